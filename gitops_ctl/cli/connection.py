"""How a command reaches the cluster: the options, and a client for the time of one command."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Refused, Unavailable

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster and namespace that the options name; `namespace` is empty for all of them."""

    kubeconfig: Path | None
    context: str | None
    namespace: str


def require_namespace(namespace: str, *, subject: str = "") -> None:
    """For a command about one object.

    Raises:
        Refused: USAGE; no namespace is named.
    """
    if not namespace:
        raise Refused("no namespace is named", code=ErrorCode.USAGE, subject=subject, hint="add --namespace")


def cluster_options(function: _FunctionT) -> _FunctionT:
    """Add `--kubeconfig`, `--context` and `-n/--namespace`; the command gets them by these names."""
    text = "Only this namespace; all of them when left out."
    return kubeconfig_options(click.option("-n", "--namespace", default="", help=text)(function))


def kubeconfig_options(function: _FunctionT) -> _FunctionT:
    """Add `--kubeconfig` and `--context` alone, for a command about the whole cluster."""
    for option in (
        click.option("--context", help="Context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Kubeconfig; KUBECONFIG or ~/.kube/config when left out.",
        ),
    ):
        function = option(function)
    return function


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator["KubeClient"]:
    """A client with the user's own credentials; exec plug-ins of the kubeconfig may run.

    Raises:
        BlockedError: the API server does not answer (CLUSTER_UNREACHABLE).
    """
    from gitops_ctl.kube.config import load_cluster  # noqa: PLC0415  imported by commands that need a cluster only
    from gitops_ctl.kube.transport import KubeClient  # noqa: PLC0415

    config = await load_cluster(target.kubeconfig, context=target.context, allow_exec=True)
    async with KubeClient(config, component="cli", clock=SystemClock()) as client:
        try:
            yield client
        except Unavailable as error:
            # A command does not try again by itself, as a controller does.
            raise BlockedError(
                f"{config.host}: {error.message}",
                code=ErrorCode.CLUSTER_UNREACHABLE,
                subject=error.subject,
                hint="see whether it runs (`gitops-ctl up` starts a local one), or name another kubeconfig",
            ) from error


def run_async(work: Awaitable[T]) -> T:
    """Run one command's coroutine to its end."""

    async def waiting() -> T:
        return await work

    return asyncio.run(waiting())

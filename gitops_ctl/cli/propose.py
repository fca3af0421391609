"""`gitops-ctl propose reopen`: a person asks once more for a pull request that was closed, deleted, reverted, or left behind by its base."""

from pathlib import Path

import click

from gitops_ctl.api.names import ANNOTATION_REOPEN_AT, GROUP, VERSION
from gitops_ctl.cli.connection import Target, cluster_options, connected, require_namespace, run_async
from gitops_ctl.core.clock import Clock, SystemClock, to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.errors import TransientError
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at

_MANAGER = "gitops-ctl-cli"
_POLL_S = 0.2


@click.group()
def propose() -> None:
    """Pull requests that the controllers open."""


@propose.command()
@click.argument("name")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the controller has answered.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait.")
@cluster_options
def reopen(
    *, name: str, wait: bool, timeout: float, kubeconfig: Path | None, context: str | None, namespace: str
) -> None:
    """Propose the change of the Proposal NAME again, although it was declined, deleted or reverted.

    One that is open is rebuilt on the present base, when that has moved: a forge may drop its approvals then.  Nothing is forced: a branch that somebody else has changed stays as it is.
    """
    require_namespace(namespace)
    target = Target(kubeconfig, context, namespace)
    run_async(_reopen(target, name=name, limit_s=timeout if wait else 0.0, clock=SystemClock()))


async def _reopen(target: Target, *, name: str, limit_s: float, clock: Clock) -> None:
    token = f"{to_rfc3339(clock.wall())}.{int(clock.boot_s() * 1000)}"
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{target.namespace}/proposals/{name}"
    body: JsonObject = {"metadata": {"annotations": {ANNOTATION_REOPEN_AT: token}}}
    named = f"Proposal/{target.namespace}/{name}"
    async with connected(target) as client:
        await client.patch_merge(path, body, manager=_MANAGER)
        click.echo(f"{named} is asked for again")
        deadline_s = clock.boot_s() + limit_s
        while limit_s and clock.boot_s() < deadline_s:
            status = object_at(await client.get(path), "status")
            if text_at(status, "lastHandledReopenAt") == token:
                ready = condition_of(status, "Ready") or {}
                click.echo(f"{text_at(ready, 'reason')}: {text_at(ready, 'message')}")
                return
            await clock.sleep(_POLL_S)
    if limit_s:
        raise TransientError(
            f"no answer within {limit_s:g} s",
            code=ErrorCode.UNAVAILABLE,
            subject=named,
            hint="is the manager running? see the conditions of the Proposal",
        )

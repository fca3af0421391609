"""`gitops-ctl plan topology`: what the commit of a checkout would do to Nodes, flavors, queues and Workloads.

Either beside a cluster, with the user's rights, or offline, from files that `kubectl get` has written.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click

from gitops_ctl.cli.connection import Target, connected, kubeconfig_options, run_async
from gitops_ctl.cli.output import Format, output_option, write_result
from gitops_ctl.cli.rolloutplan import rollout
from gitops_ctl.cli.topologycheckout import checkout_documents
from gitops_ctl.cli.topologyfiles import objects_in
from gitops_ctl.cli.topologyforecast import forecast_result, summary_of, unmet_levels
from gitops_ctl.cli.topologyoptions import Asked, asked_options
from gitops_ctl.cli.topologyworld import by_name, live_world, options_beside
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.scheduling.forecast import Live, forecast
from gitops_ctl.scheduling.options import Options

_DIFFERS = 2
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Files:
    """Where the objects of a cluster are, when none is asked."""

    nodes: Path | None
    flavors: Path | None
    queues: Path | None
    workloads: Path | None
    sources: Path | None
    features: Path | None

    @property
    def is_offline(self) -> bool:
        return self.nodes is not None

    @property
    def given(self) -> tuple[str, ...]:
        names = ("nodes", "flavors", "queues", "workloads", "sources", "features")
        return tuple(f"--{name}" for name in names if getattr(self, name) is not None)


@click.group()
def plan() -> None:
    """Say what a commit would do, before anybody makes it."""


plan.add_command(rollout)


def _file(name: str, text: str) -> Callable[[_FunctionT], _FunctionT]:
    return click.option(
        f"--{name}", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help=text
    )


@plan.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@_file("nodes", "Nodes as `kubectl get nodes -o yaml` gives them; with it no cluster is asked.")
@_file("flavors", "ResourceFlavors, in the same form.")
@_file("queues", "ClusterQueues, in the same form; they carry what is reserved.")
@_file("workloads", "Workloads of all namespaces, in the same form: they are named then.")
@_file("sources", "TopologySources as they are, in the same form.")
@_file("features", "NodeFeatures of the worker namespace, in the same form; the drop guard counts them.")
@click.option("-n", "--namespace", default="", help="Namespace of documents that name none.")
@kubeconfig_options
@asked_options
@output_option
def topology(  # noqa: PLR0913  each is an option
    *,
    path: Path,
    nodes: Path | None,
    flavors: Path | None,
    queues: Path | None,
    workloads: Path | None,
    sources: Path | None,
    features: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    asked: Asked,
    output: Format,
) -> int:
    """Say what the documents below PATH (default: this folder) would do to the scheduling of a cluster.

    Nodes whose profile changes, flavors that come and go, queues that would drain, and the Workloads that they would evict.
    Options are those of the cluster's manager, unless they are given here; beside files they have to be.  Exit code 0: nothing changes; 2:
    something does; 1: it cannot be said.
    """
    files = Files(nodes, flavors, queues, workloads, sources, features)
    if files.given and not files.is_offline:
        message = f"{', '.join(files.given)} without --nodes: a cluster is either asked, or given whole"
        raise Refused(message, code=ErrorCode.USAGE, hint="add --nodes FILE, or leave the others out")
    if files.is_offline:
        live, options = _from_files(files), asked.over()
    else:
        live, options = run_async(_beside(Target(kubeconfig, context, ""), asked))
    documents = checkout_documents(path, options=options, default_namespace=namespace)
    live = replace(live, local_queues=(*live.local_queues, *documents.local_queues))
    found = forecast(live, documents.proposed, now=SystemClock().wall(), options=options)
    unmet = unmet_levels(documents.requiring, live.local_queues, found, namespace=namespace)
    write_result(forecast_result(found, unmet), form=output)
    if output in (Format.TABLE, Format.WIDE):
        click.echo(summary_of(found))
    return _DIFFERS if found.changes else 0


async def _beside(target: Target, asked: Asked) -> tuple[Live, Options]:
    async with connected(target) as client:
        options = await options_beside(client, asked)
        return await live_world(client, options=options), options


def _from_files(files: Files) -> Live:
    def read(path: Path | None, kind: str) -> tuple[JsonObject, ...]:
        return objects_in(path, kind=kind) if path is not None else ()

    return Live(
        nodes=by_name(read(files.nodes, "Node")),
        sources=read(files.sources, "TopologySource"),
        features=read(files.features, "NodeFeature"),
        flavors=None if files.flavors is None else read(files.flavors, "ResourceFlavor"),
        queues=read(files.queues, "ClusterQueue"),
        workloads=read(files.workloads, "Workload"),
    )

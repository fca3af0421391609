"""`gitops-ctl explain node` and `explain queue`: why a Node has its profile, why a plan is what it is, what a migration waits for."""

from collections.abc import Iterable
from pathlib import Path

import click

from gitops_ctl.cli.connection import Target, connected, kubeconfig_options, run_async
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.topologyoptions import Asked, asked_options
from gitops_ctl.cli.topologyworld import NODES, kueue_path, live_world, options_beside
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.scheduling.explain import Line
from gitops_ctl.scheduling.explain_world import node_lines, queue_lines
from gitops_ctl.scheduling.queue import is_managed

_COLUMNS = ("FACT", "VALUE")


@click.command()
@click.argument("name")
@kubeconfig_options
@asked_options
@output_option
def node(*, name: str, kubeconfig: Path | None, context: str | None, asked: Asked, output: Format) -> None:
    """Say why the Node NAME has its profile: sources, snapshot revision, levels, flavors and queues.

    Options are those of the cluster's manager, unless they are given here.
    """
    lines = run_async(_node(Target(kubeconfig, context, ""), name, asked))
    _write("NodeExplanation", name, lines, form=output)


@click.command()
@click.argument("name")
@kubeconfig_options
@asked_options
@output_option
def queue(*, name: str, kubeconfig: Path | None, context: str | None, asked: Asked, output: Format) -> None:
    """Say why the plan of the ClusterQueue NAME is what it is, or what its migration waits for, with numbers.

    Options are those of the cluster's manager, unless they are given here.
    """
    lines = run_async(_queue(Target(kubeconfig, context, ""), name, asked))
    _write("QueueExplanation", name, lines, form=output)


async def _node(target: Target, name: str, asked: Asked) -> tuple[Line, ...]:
    async with connected(target) as client:
        options = await options_beside(client, asked)
        live = await live_world(client, options=options, with_workloads=False)
        now = client.clock.wall()
    if name not in live.nodes:
        raise _unknown("Node", name, NODES, live.nodes)
    return node_lines(name, live, now=now, options=options)


async def _queue(target: Target, name: str, asked: Asked) -> tuple[Line, ...]:
    async with connected(target) as client:
        options = await options_beside(client, asked)
        live = await live_world(client, options=options)
        now = client.clock.wall()
    managed = {text_at(tree, "metadata", "name"): tree for tree in live.queues if is_managed(tree)}
    if name in managed:
        return queue_lines(managed[name], live, now=now, options=options)
    if any(text_at(tree, "metadata", "name") == name for tree in live.queues):
        message = f"the ClusterQueue {name} is not managed: it lacks the label resource.gpustack.ai/type=instancetypes or a label that chooses a pool"
        raise Refused(message, code=ErrorCode.USAGE, subject=kueue_path(f"clusterqueues/{name}"), hint=_named(managed))
    raise _unknown("managed ClusterQueue", name, kueue_path("clusterqueues"), managed)


def _unknown(kind: str, name: str, path: str, known: Iterable[str]) -> NotFound:
    return NotFound(f"there is no {kind} {name}", subject=f"{path}/{name}", hint=_named(known))


def _named(known: Iterable[str]) -> str:
    names = sorted(known)
    return (
        f"name one of these: {listed(names)}"
        if names
        else "there is none in this cluster; see --kubeconfig and --context"
    )


def _write(kind: str, name: str, lines: tuple[Line, ...], *, form: Format) -> None:
    facts: list[JsonObject] = [{"fact": line.what, "value": line.text} for line in lines]
    table = Table(_COLUMNS, tuple((line.what, line.text) for line in lines))
    write_result(Result(kind, {"name": name, "facts": facts}, table, (name,)), form=form)

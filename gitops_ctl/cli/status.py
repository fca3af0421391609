"""`gitops-ctl status`: is it fine, which revision, since when, and if not, why and how to clear it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC, Kind
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.rolloutstatus import is_under_way, rollout_summaries, write_rollout
from gitops_ctl.cli.switches import is_fine, switch_summaries
from gitops_ctl.cli.topologystatus import is_running, topology_summaries
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

_REFRESH_S = 1.0
_COLUMNS = ("KIND", "NAMESPACE", "NAME", "READY", "REASON", "REVISION", "SINCE", "MESSAGE")


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Repaint when something changes; end with Ctrl-C.")
@cluster_options
@output_option
def status(*, watch: bool, kubeconfig: Path | None, context: str | None, namespace: str, output: Format) -> int:
    """Show sources, syncs, switches, proposals, rollouts and scheduling, what they wait for and what was refused.

    The exit code is 0 when everything is Ready, and 1 otherwise.  A switch, drain or rollout that is under way and a proposal that waits count as Ready.
    """
    return run_async(_status(Target(kubeconfig, context, namespace), watch=watch, form=output))


async def show_status(client: "KubeClient", *, namespace: str) -> None:
    """Write the table for people once."""
    _write(await summaries(client, namespace=namespace), form=Format.TABLE, repaint=False)


async def summaries(client: "KubeClient", *, namespace: str) -> list[JsonObject]:
    """Sources, syncs, switches, proposals that wait, rollouts and, for all namespaces, scheduling: each in its stable form."""
    found: list[JsonObject] = []
    for kind in (GIT_SOURCE, SYNC):
        found += [summary_of(kind, item) for item in (await client.list_all(kind.path(namespace))).items]
    found += await switch_summaries(client, namespace=namespace)
    found += await rollout_summaries(client, namespace=namespace)
    # What schedules is the whole cluster's, and belongs to no namespace.
    return found if namespace else [*found, *await topology_summaries(client)]


async def _status(target: Target, *, watch: bool, form: Format) -> int:
    clock = SystemClock()
    shown: list[JsonObject] = []
    async with connected(target) as client:
        while True:
            found = await summaries(client, namespace=target.namespace)
            if found != shown or not watch:
                _write(found, form=form, repaint=watch and sys.stdout.isatty())
                shown = found
            if not watch:
                return 0 if all(is_fine(item) or is_running(item) or is_under_way(item) for item in found) else 1
            await clock.sleep(_REFRESH_S)


def _write(found: Sequence[JsonObject], *, form: Format, repaint: bool) -> None:
    if repaint:
        click.clear()
    rows = tuple(_row(item) for item in found)
    names = tuple(f"{text_at(item, 'kind').lower()}/{text_at(item, 'name')}" for item in found)
    table = Table(_COLUMNS, rows, yields=("SINCE", "REVISION"))
    write_result(Result("StatusList", {"items": list(found)}, table, names), form=form)
    if form is Format.TABLE:
        if not found:
            click.echo("there are no sources and no syncs here; `gitops-ctl bootstrap` makes the first", err=True)
        for item in found:
            _write_details(item)
            write_rollout(item)


def _write_details(item: JsonObject) -> None:
    place = "/".join(text for name in ("kind", "namespace", "name") if (text := text_at(item, name)))
    rejected = object_at(item, "rejected")
    if rejected:
        click.echo(f"\n{place}: refused commit {text_at(rejected, 'commit')[:12]}")
        for name in ("reason", "path", "verb", "rule", "hint"):
            if text_at(rejected, name):
                click.echo(f"  {name + ':':<8}{text_at(rejected, name)}")
    held = objects_at(item, "held")
    if held:
        click.echo(f"\n{place}: {int_at(item, 'heldCount', default=len(held))} held")
        for one in held:
            where = f" ({text_at(one, 'file')}:{int_at(one, 'line')})" if text_at(one, "file") else ""
            click.echo(f"  {text_at(one, 'object')}{where}: {text_at(one, 'reason')}: {text_at(one, 'message')}")
        _write_rest(int_at(item, "heldCount") - len(held))
    drift = objects_at(item, "drift")
    if drift:
        click.echo(f"\n{place}: {int_at(item, 'driftCount', default=len(drift))} drifted")
        for one in drift:
            pointers = ", ".join(str(pointer) for pointer in _texts(one, "pointers"))
            manager = f" by {text_at(one, 'manager')}" if text_at(one, "manager") else ""
            more = f" and {int_at(one, 'more')} more fields" if int_at(one, "more") else ""
            click.echo(f"  {text_at(one, 'object')}: {text_at(one, 'change')}{manager} {pointers}{more}".rstrip())
        _write_rest(int_at(item, "driftCount") - len(drift))


def _write_rest(count: int) -> None:
    if count > 0:
        click.echo(f"  and {count} more; `gitops-ctl explain` says why one of them waits")


def _texts(tree: JsonObject, name: str) -> tuple[str, ...]:
    value = tree.get(name)
    return tuple(str(item) for item in value) if isinstance(value, (list, tuple)) else ()


def summary_of(kind: Kind, tree: JsonObject) -> JsonObject:
    """The stable form of one object, for JSON and for the table."""
    state = object_at(tree, "status")
    ready = condition_of(state, "Ready") or EMPTY
    revision = text_at(state, "lastAppliedRevision") or text_at(state, "accepted", "revision")
    return {
        "kind": kind.name,
        "namespace": text_at(tree, "metadata", "namespace"),
        "name": text_at(tree, "metadata", "name"),
        "ready": text_at(ready, "status", default="Unknown"),
        "reason": text_at(ready, "reason"),
        "message": text_at(ready, "message"),
        "revision": revision,
        "since": text_at(ready, "lastTransitionTime"),
        "observed": text_at(state, "observed", "revision"),
        "rejected": object_at(state, "rejected"),
        "held": list(objects_at(state, "held")),
        "heldCount": int_at(state, "counts", "held"),
        "drift": list(objects_at(state, "drift")),
        "driftCount": int_at(state, "counts", "drifted"),
        "conditions": list(objects_at(state, "conditions")),
    }


def _row(item: JsonObject) -> tuple[str, ...]:
    return (
        text_at(item, "kind"),
        text_at(item, "namespace"),
        text_at(item, "name"),
        text_at(item, "ready"),
        text_at(item, "reason"),
        text_at(item, "revision") if text_at(item, "kind") == "TopologySource" else text_at(item, "revision")[:12],
        text_at(item, "since"),
        text_at(item, "message"),
    )

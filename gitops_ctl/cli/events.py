"""`gitops-ctl events`: what the controllers did and refused, newest last."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitops_ctl.api.kinds import OUR_GROUPS
from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.core.jsonvalue import JsonObject, int_at, text_at
from gitops_ctl.kube.events import CONTROLLER

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

_SCHEDULING = frozenset({"ClusterQueue", "CustomResourceDefinition", "Node", "ResourceFlavor", "Topology"})
_COLUMNS = ("TIME", "TYPE", "REASON", "OBJECT", "NOTE")


@click.command()
@click.option("--limit", default=50, show_default=True, help="The newest ones that are shown.")
@cluster_options
@output_option
def events(*, limit: int, kubeconfig: Path | None, context: str | None, namespace: str, output: Format) -> None:
    """Show what happened to sources, syncs, switches, proposals and scheduling."""
    run_async(_events(Target(kubeconfig, context, namespace), limit=limit, form=output))


async def _events(target: Target, *, limit: int, form: Format) -> None:
    async with connected(target) as client:
        found = await newest_events(client, namespace=target.namespace, limit=limit)
    rows = tuple(tuple(text_at(item, name) for name in ("time", "type", "reason", "object", "note")) for item in found)
    names = tuple(text_at(item, "object") for item in found)
    write_result(Result("EventList", {"items": found}, Table(_COLUMNS, rows), names), form=form)


async def newest_events(client: "KubeClient", *, namespace: str, limit: int) -> list[JsonObject]:
    """The newest Events about our kinds, and our own about others, newest last, each in its stable form."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    page = await client.list_all(f"/apis/events.k8s.io/v1{scope}/events")
    ours = [item for item in page.items if _is_ours(item)]
    newest = sorted(ours, key=lambda item: text_at(item, "eventTime"))
    return [_summary(item) for item in newest[max(0, len(newest) - limit) :]]


def _is_ours(item: JsonObject) -> bool:
    """About a kind of ours, or said by our manager of a Node, a queue and what is made for them."""
    group = text_at(item, "regarding", "apiVersion").partition("/")[0]
    is_scheduling = text_at(item, "regarding", "kind") in _SCHEDULING
    return group in OUR_GROUPS or (is_scheduling and text_at(item, "reportingController") == CONTROLLER)


def _summary(item: JsonObject) -> JsonObject:
    kind = text_at(item, "regarding", "kind")
    namespace, name = (text_at(item, "regarding", member) for member in ("namespace", "name"))
    return {
        "time": text_at(item, "eventTime"),
        "type": text_at(item, "type"),
        "reason": text_at(item, "reason"),
        "action": text_at(item, "action"),
        "object": "/".join(part for part in (kind, namespace, name) if part),
        "note": text_at(item, "note"),
        "count": max(1, int_at(item, "series", "count")),
    }

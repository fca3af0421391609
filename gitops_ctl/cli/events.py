"""`gitops-ctl events`: what the controllers did and refused, newest last."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitops_ctl.api.kinds import OUR_GROUPS
from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.core.jsonvalue import JsonObject, int_at, text_at

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

_COLUMNS = ("TIME", "TYPE", "REASON", "OBJECT", "NOTE")


@click.command()
@click.option("--limit", default=50, show_default=True, help="The newest ones that are shown.")
@cluster_options
@output_option
def events(*, limit: int, kubeconfig: Path | None, context: str | None, namespace: str, output: Format) -> None:
    """Show what happened to sources, syncs, switches and proposals."""
    run_async(_events(Target(kubeconfig, context, namespace), limit=limit, form=output))


async def _events(target: Target, *, limit: int, form: Format) -> None:
    async with connected(target) as client:
        found = await newest_events(client, namespace=target.namespace, limit=limit)
    rows = tuple(tuple(text_at(item, name) for name in ("time", "type", "reason", "object", "note")) for item in found)
    names = tuple(text_at(item, "object") for item in found)
    write_result(Result("EventList", {"items": found}, Table(_COLUMNS, rows), names), form=form)


async def newest_events(client: "KubeClient", *, namespace: str, limit: int) -> list[JsonObject]:
    """The newest Events about our kinds, newest last, each in its stable form."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    page = await client.list_all(f"/apis/events.k8s.io/v1{scope}/events")
    ours = [item for item in page.items if text_at(item, "regarding", "apiVersion").partition("/")[0] in OUR_GROUPS]
    newest = sorted(ours, key=lambda item: text_at(item, "eventTime"))
    return [_summary(item) for item in newest[max(0, len(newest) - limit) :]]


def _summary(item: JsonObject) -> JsonObject:
    kind = text_at(item, "regarding", "kind")
    place = f"{text_at(item, 'regarding', 'namespace')}/{text_at(item, 'regarding', 'name')}"
    return {
        "time": text_at(item, "eventTime"),
        "type": text_at(item, "type"),
        "reason": text_at(item, "reason"),
        "action": text_at(item, "action"),
        "object": f"{kind}/{place}",
        "note": text_at(item, "note"),
        "count": max(1, int_at(item, "series", "count")),
    }

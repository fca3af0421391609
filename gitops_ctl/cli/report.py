"""`gitops-ctl report`: the present state as one HTML file, to keep or to send.

The file loads nothing from anywhere, everything in it is escaped, and what looks like a credential is taken out.  The same data
is embedded as JSON (`<script id="data" type="application/json">`), so that a program can read the page too.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final

import click

from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.events import newest_events
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC
from gitops_ctl.cli.output import API_VERSION
from gitops_ctl.cli.rolloutreport import rollouts_html
from gitops_ctl.cli.rolloutstatus import rollout_summaries
from gitops_ctl.cli.status import summary_of
from gitops_ctl.cli.topologystatus import topology_summaries
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.core.redact import redact_object, redact_text

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

_EVENTS: Final = 200

_PAGE: Final = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gitops-ctl report</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--good:#1a7f37;--bad:#c5303a;--wait:#9a6700}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .5rem}h3{font-size:1rem;margin:1rem 0 .3rem}
section{border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem;margin:.8rem 0}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .7rem .25rem 0}
th{font-weight:600;border-bottom:1px solid var(--line)}td{border-bottom:1px solid var(--soft);overflow-wrap:anywhere}
code,td.id{font:13px/1.4 ui-monospace,monospace}.small{opacity:.75}dl{display:grid;grid-template-columns:9rem 1fr;margin:.4rem 0}
dt{opacity:.75}dd{margin:0;overflow-wrap:anywhere}.badge{color:#fff;border-radius:.8rem;padding:.05rem .6rem;font-size:.85rem}
.True{background:var(--good)}.False{background:var(--bad)}.Unknown{background:var(--wait)}
</style></head><body>
<h1>gitops-ctl report</h1><p class="small">$cluster, $generated</p>
<p>$overview</p>
<h2>Sources</h2>$sources
<h2>Syncs</h2>$syncs
$rollouts
$scheduling
<h2>Events, newest first</h2>$events
<script id="data" type="application/json">$data</script>
</body></html>
""")


@click.command()
@click.option(
    "--file", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file; stdout when left out."
)
@cluster_options
def report(*, file: Path | None, kubeconfig: Path | None, context: str | None, namespace: str) -> None:
    """Write a self-contained HTML page of sources, syncs, what was refused or held and why, drift, rollouts with their timeline, and events."""
    page = page_of(run_async(_state(Target(kubeconfig, context, namespace))))
    if file is None:
        click.echo(page, nl=False)
        return
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot be written: {error.strerror}", code=ErrorCode.USAGE, subject=str(file)) from error
    click.echo(f"written to {file}", err=True)


async def _state(target: Target) -> JsonObject:
    async with connected(target) as client:
        return await state_of(client, namespace=target.namespace)


async def state_of(client: "KubeClient", *, namespace: str) -> JsonObject:
    """Everything on the page, without what looks like a credential.

    Raises:
        GitopsError: the cluster cannot be asked, or the user may not read our kinds or Events.
    """
    sources = (await client.list_all(GIT_SOURCE.path(namespace))).items
    syncs = (await client.list_all(SYNC.path(namespace))).items
    found: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "Report",
        "generated": to_rfc3339(client.clock.wall()),
        "namespace": namespace,
        "sources": [_source(tree) for tree in sources],
        "syncs": [_sync(tree) for tree in syncs],
        "rollouts": await rollout_summaries(client, namespace=namespace),
        "scheduling": [] if namespace else await topology_summaries(client),
        "events": await newest_events(client, namespace=namespace, limit=_EVENTS),
    }
    return _clean_tree(redact_object(found))


def _source(tree: JsonObject) -> JsonObject:
    spec, status = object_at(tree, "spec"), object_at(tree, "status")
    return {
        **summary_of(GIT_SOURCE, tree),
        "url": text_at(spec, "url"),
        "ref": text_at(spec, "ref", "branch") or text_at(spec, "ref", "tag"),
        "root": text_at(spec, "trust", "root", "commit"),
        "suspend": spec.get("suspend", False),
        "accepted": object_at(status, "accepted"),
    }


def _sync(tree: JsonObject) -> JsonObject:
    spec, status = object_at(tree, "spec"), object_at(tree, "status")
    return {
        **summary_of(SYNC, tree),
        "source": text_at(spec, "sourceRef", "name"),
        "path": text_at(spec, "path") or "(root)",
        "account": text_at(spec, "serviceAccountName"),
        "suspend": spec.get("suspend", False),
        "counts": object_at(status, "counts"),
        "lastPrune": object_at(status, "lastPrune"),
    }


def _clean_tree(tree: JsonObject) -> JsonObject:
    return {name: _clean_value(value) for name, value in tree.items()}


def _clean_value(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return _clean_tree(value)
    if isinstance(value, Sequence):
        return [_clean_value(item) for item in value]
    return value


def page_of(state: JsonObject) -> str:
    """The HTML page; a pure function of the state."""
    sources, syncs = objects_at(state, "sources"), objects_at(state, "syncs")
    events = list(reversed(objects_at(state, "events")))
    return _PAGE.substitute(
        cluster=escape(text_at(state, "namespace") or "all namespaces"),
        generated=escape(text_at(state, "generated")),
        overview=_overview([*sources, *syncs]),
        sources="".join(map(_source_section, sources)) or "<p>There is none.</p>",
        syncs="".join(map(_sync_section, syncs)) or "<p>There is none.</p>",
        rollouts=rollouts_html(objects_at(state, "rollouts"), generated=text_at(state, "generated")),
        scheduling=_scheduling(objects_at(state, "scheduling")),
        events=_table(("time", "type", "reason", "object", "note", "count"), events) or "<p>There is none.</p>",
        # As a text of a script element: only "<" could end it.
        data=json.dumps(state, ensure_ascii=True).replace("<", "\\u003c"),
    )


def _overview(items: Sequence[JsonObject]) -> str:
    ready = sum(1 for item in items if text_at(item, "ready") == "True")
    held = sum(int_at(item, "heldCount") for item in items)
    drifted = sum(int_at(item, "driftCount") for item in items)
    refused = sum(1 for item in items if object_at(item, "rejected"))
    return f"{ready} of {len(items)} ready, {refused} with a refused commit, {held} held, {drifted} drifted"


def _source_section(item: JsonObject) -> str:
    accepted = object_at(item, "accepted")
    facts = {
        "Repository": f"{text_at(item, 'url')} at {text_at(item, 'ref')}",
        "Pinned root": text_at(item, "root"),
        "Accepted": text_at(accepted, "revision"),
        "Accepted at": text_at(accepted, "at"),
        "Policy digest": text_at(accepted, "policyDigest"),
        "Newest seen": text_at(item, "observed"),
    }
    rejected = object_at(item, "rejected")
    refused = "<h3>Refused commit</h3>" + _facts({name: text_at(rejected, name) for name in rejected})
    return _section(item, facts, refused if rejected else "")


def _sync_section(item: JsonObject) -> str:
    counts = object_at(item, "counts")
    facts = {
        "Source": f"{text_at(item, 'source')}, folder {text_at(item, 'path')}",
        "Applied": text_at(item, "revision"),
        "Applies as": text_at(item, "account"),
        "Objects": ", ".join(f"{count} {name}" for name, count in counts.items()),
        "Last prune": ", ".join(f"{name} {value}" for name, value in object_at(item, "lastPrune").items()),
    }
    held = _titled("Held objects", ("object", "reason", "message", "file", "line", "since"), objects_at(item, "held"))
    drift = _titled("Drift", ("object", "change", "manager", "pointers", "since"), objects_at(item, "drift"))
    return _section(item, facts, held + drift)


def _scheduling(items: Sequence[JsonObject]) -> str:
    """TopologySources and managed queues; nothing where there are none."""
    table = _table(("kind", "name", "ready", "reason", "revision", "since", "message"), items)
    return f"<h2>Scheduling</h2>{table}" if table else ""


def _section(item: JsonObject, facts: Mapping[str, str], more: str) -> str:
    ready = text_at(item, "ready")
    badge = ready if ready in ("True", "False") else "Unknown"
    name = escape(f"{text_at(item, 'namespace')}/{text_at(item, 'name')}")
    suspended = " <b>suspended</b>" if item.get("suspend") is True else ""
    reason, since = escape(text_at(item, "reason") or "nothing reported yet"), escape(text_at(item, "since"))
    head = f'<h3>{name} <span class="badge {badge}">{reason}</span>{suspended} <span class="small">{since}</span></h3>'
    message = f"<p>{escape(text_at(item, 'message'))}</p>"
    others = [one for one in objects_at(item, "conditions") if text_at(one, "type") != "Ready"]
    conditions = _table(("type", "status", "reason", "message"), others)
    return f"<section>{head}{message}{_facts(facts)}{more}{conditions}</section>"


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    return f"<dl>{rows}</dl>"


def _titled(title: str, columns: Sequence[str], rows: Sequence[JsonObject]) -> str:
    return f"<h3>{escape(title)}</h3>{_table(columns, rows)}" if rows else ""


def _table(columns: Sequence[str], rows: Sequence[JsonObject]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    return f"<table><tr>{head}</tr>{''.join(_row(columns, row) for row in rows)}</table>"


def _row(columns: Iterable[str], row: JsonObject) -> str:
    return f"<tr>{''.join(f'<td>{escape(_cell(row, name))}</td>' for name in columns)}</tr>"


def _cell(row: JsonObject, name: str) -> str:
    value = row.get(name)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in list_at(row, name))
    return "" if value is None else str(value)

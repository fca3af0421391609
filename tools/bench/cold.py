"""Cold apply: from the creation of the Sync to its status that says applied, beside a bare loop of the same requests.

The reference sends the same bytes to the same API server under the same field manager, 32 in flight, and does nothing else: no
Git, no verification, no check, no inventory, no cache, no status.  It runs twice a round: as the administrator, and
impersonating the account of the Sync as the product must.  The three alternate, each beginning with no object there.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from gitops_ctl.api.names import FIELD_MANAGER
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.loader import load
from gitops_ctl.sync.model import Desired
from gitops_ctl.sync.order import stage_of
from tools.bench.documents import PATHS, path_of
from tools.bench.figures import Figure, Report, Target
from tools.bench.process import cpu_s, rss_mib
from tools.bench.world import MANAGER_AGENT, NAMESPACE, World

WIDTH = 32
BARE, IMPERSONATING, OURS = "bare", "impersonating", "ours"


@dataclass(frozen=True)
class Run:
    """One contestant's turn: objects a second, CPU seconds of its process, most memory; `sending_s` is the apply phase."""

    rate: float
    cpu_s: float
    peak_mib: float
    sending_s: float = 0.0


def requests_of(files: Sequence[tuple[str, str]], world: World) -> list[dict[str, str]]:
    """What the product sends, in its order of stages."""
    found: list[tuple[int, str, str]] = []
    for name, text in files:
        for document in load(text.encode(), file=name).documents:
            identity = ObjectId(document.id.group, document.id.kind, NAMESPACE, document.id.name)
            desired = Desired(
                identity,
                GroupVersionKind.of(document.tree),
                document.tree,
                digest=document.digest,
                file=name,
                line=document.line,
                stage=stage_of(identity.group_kind),
                owner=world.owner,
            )
            body = msgspec.json.encode(desired.body()).decode()
            found.append((int(desired.stage), path_of(document.tree, namespace=NAMESPACE), body))
    return [{"path": path, "body": body} for _, path, body in sorted(found)]


async def bare_loop(world: World, requests: list[dict[str, str]], **job: Any) -> dict[str, float]:
    """Run the reference in a process of its own."""
    certs, folder = world.plane.folder.certs, world.folder
    (folder / "requests.json").write_text(json.dumps(requests))
    whole = {
        "requests": str(folder / "requests.json"),
        "server": world.plane.url,
        "ca": str(certs / "ca.crt"),
        "certificate": str(certs / "admin.crt"),
        "key": str(certs / "admin.key"),
        "media": "application/apply-patch+yaml",
        "method": "PATCH",
        "query": f"?fieldManager={FIELD_MANAGER}&fieldValidation=Strict",
        "agent": "bare-loop",
        "width": WIDTH,
        **job,
    }
    (folder / "job.json").write_text(json.dumps(whole))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.bench.bareloop", str(folder / "job.json")), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    result: dict[str, float] = json.loads(output)
    if result["failed"]:
        raise RuntimeError(f"{result['failed']} requests of the bare loop failed")
    return result


def kinds_in(files: Sequence[tuple[str, str]]) -> list[str]:
    """The collections that the documents go to."""
    kinds = {
        str(document.tree["kind"]) for name, text in files[:1] for document in load(text.encode(), file=name).documents
    }
    return [path.format(NAMESPACE) for kind, path in PATHS.items() if kind in kinds]


async def _ours(world: World, commit: str, count: int) -> tuple[Run, dict[str, int]]:
    await world.create_source()
    await world.start_manager()
    await world.until_accepted(commit)
    await asyncio.sleep(1.0)  # its status writes and events are over
    world.audit.mark()
    used_s, began_s = cpu_s(world.manager_pid), time.monotonic()
    await world.create_sync()
    await world.until_applied(commit)
    took_s, used_s = time.monotonic() - began_s, cpu_s(world.manager_pid) - used_s
    peak = rss_mib(world.manager_pid, peak=True)
    await world.stop_manager()
    entries = world.audit.entries(MANAGER_AGENT)
    patches = [entry for entry in entries if entry["verb"] == "patch" and _is_applied_object(entry)]
    if len(patches) < count:
        raise RuntimeError(f"{len(patches)} applies of {count} are in the audit log")
    first, last = (
        min(_moment(one, "requestReceivedTimestamp") for one in patches),
        max(_moment(one, "stageTimestamp") for one in patches),
    )
    return Run(count / took_s, used_s, peak, last - first), world.audit.counts(MANAGER_AGENT)


def _is_applied_object(entry: JsonObject | dict[str, object]) -> bool:
    reference: Any = entry.get("objectRef", {})
    return reference.get("apiGroup", "") != "gitops-ctl.dev" and reference.get("resource") != "events"


def _moment(entry: dict[str, object], name: str) -> float:
    return datetime.fromisoformat(str(entry[name])).timestamp()


async def cold(world: World, report: Report, *, what: str, files: Sequence[tuple[str, str]], rounds: int) -> None:
    """Rounds of the three contestants over the same objects."""
    commit = await asyncio.to_thread(world.begin, what.rsplit(maxsplit=1)[-1].lower(), files)
    requests = requests_of(files, world)
    collections = kinds_in(files)
    await world.create_source()  # the namespace has to be there for the bare loop
    await world.forget_unit()
    runs: dict[str, list[Run]] = {BARE: [], IMPERSONATING: [], OURS: []}
    counts: dict[str, int] = {}
    for number in range(rounds):
        order = [OURS, BARE, IMPERSONATING] if number % 2 == 0 else [IMPERSONATING, BARE, OURS]
        for name in order:
            if name == OURS:
                run, counts = await _ours(world, commit, len(requests))
            else:
                account = world.account if name == IMPERSONATING else ""
                result = await bare_loop(world, requests, account=account)
                run = Run(len(requests) / result["seconds"], result["cpu_s"], result["peak_mib"], result["seconds"])
            runs[name].append(run)
            print(f"  {what}: {name} {run.rate:.0f}/s, {run.cpu_s:.1f} s CPU", file=sys.stderr)
            await world.forget_unit(*collections)
    report.add(*_figures(what, len(requests), runs))
    report.counts[f"cold apply of {what}: requests of the manager"] = counts


def _figures(what: str, count: int, runs: dict[str, list[Run]]) -> list[Figure]:
    def rates(name: str) -> tuple[float, ...]:
        return tuple(run.rate for run in runs[name])

    ours = runs[OURS]
    return [
        Figure(
            f"cold apply of {what}", "objects/s", rates(OURS), rates(BARE), "bare loop", target=Target(0.6, True, True)
        ),
        Figure(f"cold apply of {what}", "objects/s", rates(OURS), rates(IMPERSONATING), "bare loop, impersonating"),
        Figure(
            f"cold apply of {what}, first request to last answer",
            "objects/s",
            tuple(count / run.sending_s for run in ours),
            rates(IMPERSONATING),
            "bare loop, impersonating",
        ),
        Figure(
            f"cold apply of {what}, CPU of the process",
            "s",
            tuple(run.cpu_s for run in ours),
            tuple(run.cpu_s for run in runs[IMPERSONATING]),
            "bare loop, impersonating",
            inverse=True,
        ),
        Figure(f"cold apply of {what}, most memory", "MiB", tuple(run.peak_mib for run in ours)),
    ]

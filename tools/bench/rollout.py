"""Software rollouts in a large fleet: freezing, planning, the ledger; a manager over many devices; a worker with two hundred."""

import asyncio
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from tools.bench.devices import Site
from tools.bench.figures import Figure, Report, Target
from tools.bench.fleetrest import in_memory
from tools.bench.planning import RECORDS, write_fleet
from tools.bench.realfleet import on_real_server
from tools.bench.world import world

TARGETS = 100


async def planning(report: Report, folder: Path, *, count: int, rounds: int) -> None:
    """Planner and ledger, each contestant a process of its own."""
    job = await asyncio.to_thread(_prepared, folder, count)
    runs: dict[str, list[dict[str, Any]]] = {}
    for number in range(rounds):
        pairs = (("freeze", "parse"), ("pass", "loop"), ("ledger", "text"))
        for name in (one for pair in pairs for one in (pair if number % 2 == 0 else pair[::-1])):
            runs.setdefault(name, []).append(await contest(name, job))
    report.counts["planning: seconds of wall and CPU of each time"] = {
        name: [run["took"] for run in found] for name, found in runs.items()
    }
    report.counts["planning: most memory of a process in MiB"] = {
        name: max(run["peak_mib"] for run in found) for name, found in runs.items()
    }
    report.add(*_figures(runs, count))


def _figures(runs: dict[str, list[dict[str, Any]]], count: int) -> list[Figure]:
    what = f"{TARGETS} targets of {count} devices"
    return [
        Figure(
            f"{what}: first freeze",
            "s",
            medians(runs["freeze"]),
            medians(runs["parse"]),
            "every device and Node parsed and hashed",
            inverse=True,
            target=Target(2),
            note="CPU",
        ),
        Figure(
            f"{what}: planning again, a hundredth of the fleet changed",
            "ms",
            medians(runs["pass"], scale=1000),
            medians(runs["loop"], scale=1000),
            "a loop over the fleet, the targets and their Nodes parsed and hashed",
            inverse=True,
            target=Target(100),
            note="CPU",
        ),
        Figure(
            f"ledger of {RECORDS} records: one transition",
            "ms",
            medians(runs["ledger"], scale=1000),
            medians(runs["text"], scale=1000),
            "the same text read, parsed, printed and written",
            inverse=True,
            target=Target(5),
            note="CPU",
        ),
    ]


def _prepared(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_fleet(folder, count, targets=TARGETS)
    job = folder / "job.json"
    job.write_text(json.dumps({"folder": str(folder), "targets": TARGETS, "rounds": 10}))
    return job


async def contest(name: str, job: Path) -> dict[str, Any]:
    """Run one contestant of planning."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.bench.planning", name, str(job)), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{name} ended with {process.returncode}")
    found: dict[str, Any] = json.loads(output)
    return found


def medians(runs: list[dict[str, Any]], *, scale: float = 1) -> tuple[float, ...]:
    """CPU of one time, in the middle of each run: none of them waits for anything, so on a quiet machine it is the time that passes."""
    return tuple(statistics.median(cpu_s for _, cpu_s in run["took"]) * scale for run in runs)


async def rollouts(report: Report, folder: Path, *, share: int, rounds: int, window_s: float) -> None:
    """All figures; `share` is by how much sizes are divided."""
    site = Site(namespaces=10, each=1000 // share, targets=min(TARGETS, 1000 // share))
    await planning(report, folder / "planning", count=site.count, rounds=rounds)
    await in_memory(report, folder / "memory", site=site, window_s=window_s)
    async with world(folder / "real") as made:
        real = Site(namespaces=5, each=200 // share, targets=min(TARGETS, 200 // share))
        await on_real_server(report, made, site=real, window_s=window_s)

"""`python -m tools.bench [--quick] [--rounds N] [--only NAME]... [--json FILE]`: measure, print the table, write the JSON.

Every figure is taken in this run, beside its reference, in rounds whose order alternates.  A missed target is shown and does
not fail the run: the machine decides too.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.progress import progress_for
from tools.bench import steady
from tools.bench.checking import checking, second_up, starting
from tools.bench.cold import cold
from tools.bench.documents import applications, config_maps
from tools.bench.figures import Report, table
from tools.bench.judging import judging
from tools.bench.proposal import opening
from tools.bench.rollout import rollouts
from tools.bench.topology import topology
from tools.bench.verifying import verifying
from tools.bench.world import world

DEFAULT_JSON = Path("bench.json")


class Sizes:
    """Full sizes, or a tenth of them."""

    def __init__(self, *, quick: bool, rounds: int | None = None) -> None:
        self.rounds = rounds or (1 if quick else 3)
        self.share = 10 if quick else 1
        self.window_s = 15.0 if quick else 60.0

    def of(self, count: int) -> int:
        return count // self.share


async def cold_maps(report: Report, sizes: Sizes, folder: Path) -> None:
    count = sizes.of(4000)
    async with world(folder) as made:
        await cold(made, report, what=f"{count} ConfigMaps", files=list(config_maps(count)), rounds=sizes.rounds)


async def cold_apps(report: Report, sizes: Sizes, folder: Path) -> None:
    count = sizes.of(1000)
    async with world(folder) as made:
        await cold(made, report, what=f"{count} applications", files=list(applications(count)), rounds=sizes.rounds)


async def large_unit(report: Report, sizes: Sizes, folder: Path) -> None:
    count = sizes.of(10_000)
    async with world(folder) as made:
        await steady.prepare(made, count)
        await steady.rest(made, report, count=count, window_s=sizes.window_s)
        await steady.resync(made, report, count=count, rounds=sizes.rounds)
        await steady.drift(made, report, rounds=sizes.rounds)
        await steady.changed(made, report, count=count, rounds=sizes.rounds)
        await steady.pushes(made, report, count=sizes.of(100))


async def verification(report: Report, sizes: Sizes, _folder: Path) -> None:
    await asyncio.to_thread(verifying, report, commits=sizes.of(10_000), rounds=sizes.rounds)


async def judgement(report: Report, sizes: Sizes, _folder: Path) -> None:
    await asyncio.to_thread(judging, report, commits=sizes.of(1000), rounds=sizes.rounds)


async def command_line(report: Report, sizes: Sizes, folder: Path) -> None:
    with progress_for(sys.stderr) as progress:
        binaries = await find_binaries(progress=progress)
    await asyncio.to_thread(checking, folder, report, count=sizes.of(10_000), rounds=sizes.rounds)
    await asyncio.to_thread(starting, folder, report, kubectl=binaries.kubectl, rounds=sizes.rounds)
    await asyncio.to_thread(second_up, folder / "local", report, rounds=sizes.rounds)


async def pull_request(report: Report, sizes: Sizes, folder: Path) -> None:
    async with world(folder) as made:
        await opening(made, report, count=max(sizes.rounds * 3, 3))


async def scheduling(report: Report, sizes: Sizes, folder: Path) -> None:
    async with world(folder) as made:
        await topology(made, report, count=sizes.of(5000), rounds=sizes.rounds, window_s=sizes.window_s)


async def software(report: Report, sizes: Sizes, folder: Path) -> None:
    await rollouts(report, folder, share=sizes.share, rounds=sizes.rounds, window_s=sizes.window_s)


BENCHMARKS: dict[str, Callable[[Report, Sizes, Path], Awaitable[None]]] = {
    "cold-configmaps": cold_maps,
    "cold-applications": cold_apps,
    "unit": large_unit,
    "verification": verification,
    "judging": judgement,
    "check": command_line,
    "proposal": pull_request,
    "topology": scheduling,
    "rollout": software,
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description="Side-by-side measurements.")
    parser.add_argument("--quick", action="store_true", help="one round of a tenth of the size: whether it works")
    parser.add_argument("--rounds", type=int, help="instead of 3, or of 1 with --quick")
    parser.add_argument("--only", action="append", choices=sorted(BENCHMARKS), help="may be repeated; default: all")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="where the figures go (default: bench.json)")
    return parser.parse_args(arguments)


async def run(options: argparse.Namespace) -> Report:
    """All chosen benchmarks, one after the other, each in a folder that goes with it."""
    report, sizes = Report(), Sizes(quick=options.quick, rounds=options.rounds)
    for name in options.only or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="gitops-ctl-bench-") as folder:
            try:
                await BENCHMARKS[name](report, sizes, Path(folder) / name)
            except Exception as error:  # noqa: BLE001  the other benchmarks still say something
                report.failed[name] = f"{type(error).__name__}: {error}"
                traceback.print_exception(error)
        print(f"{name}: {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        print(table(report.figures), file=sys.stderr)
    return report


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    before = machine()
    report = asyncio.run(run(options))
    whole = {"begin": before, "end": machine(), "quick": options.quick, **report.to_json()}
    options.json.write_text(json.dumps(whole, indent=1, default=str) + "\n")
    print(table(report.figures))
    missed = [figure.name for figure in report.figures if figure.met is False]
    print(f"\n{len(report.figures)} figures, {len(missed)} targets missed; counts and rounds are in {options.json}")
    for name, error in report.failed.items():
        print(f"{name} failed: {error}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

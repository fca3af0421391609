"""`gitops-ctl check` of a large checkout, cold and with one changed file, and how fast the command line starts."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.bench.documents import config_map, config_maps
from tools.bench.figures import Figure, Report, Target

_BARE = (
    "import sys, pathlib, yaml\n"
    "for path in sorted(pathlib.Path(sys.argv[1]).rglob('*.yaml')):\n"
    "    list(yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader))\n"
)


def run_timed(argv: Sequence[str], *, cwd: Path, cache: Path | None) -> float:
    """Wall seconds of a whole process; `cache` is its user cache, that of this user when None.

    Raises:
        CalledProcessError: it failed.
    """
    # Compiled modules are kept, as in every installation, also where the shell says otherwise.
    caches = {} if cache is None else {"XDG_CACHE_HOME": str(cache)}
    environment = {**os.environ, **caches, "PYTHONDONTWRITEBYTECODE": ""}
    began = time.monotonic()
    subprocess.run(argv, cwd=cwd, env=environment, check=True, capture_output=True)
    return time.monotonic() - began


def checking(folder: Path, report: Report, *, count: int, rounds: int) -> None:
    """All documents with an empty cache, then one changed file; the reference only parses the same files with libyaml."""
    checkout, cache = folder / "checkout", folder / "cache"
    checkout.mkdir(parents=True)
    for name, text in config_maps(count):
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    ours = (sys.executable, "-m", "gitops_ctl", "check", ".")
    bare = (sys.executable, "-c", _BARE, ".")
    run_timed((sys.executable, "-m", "gitops_ctl", "check", "sites/000"), cwd=checkout, cache=cache)  # compiles modules
    time.sleep(2.1)  # a file that was only just written is read again by design
    cold, warm, parse = [], [], []
    for number in range(rounds):
        shutil.rmtree(cache, ignore_errors=True)
        cold.append(run_timed(ours, cwd=checkout, cache=cache))
        (checkout / "sites/000/site-00007.yaml").write_text(config_map(7, value=f"round-{number}"))
        time.sleep(0.1)
        warm.append(run_timed(ours, cwd=checkout, cache=cache))
        parse.append(run_timed(bare, cwd=checkout, cache=cache))
    what = f"check of {count} documents"
    against = "PyYAML's C loader, parsing only"
    report.add(
        Figure(f"{what}, cold", "s", tuple(cold), tuple(parse), against, inverse=True, target=Target(5)),
        Figure(f"{what}, one changed file", "s", tuple(warm), tuple(parse), against, inverse=True, target=Target(0.5)),
    )


def starting(folder: Path, report: Report, *, kubectl: Path, rounds: int) -> None:
    """`gitops-ctl --help` and `version` beside a bare interpreter and kubectl."""
    runs: dict[str, list[float]] = {"help": [], "version": [], "python": [], "kubectl": []}
    commands = {
        "help": (sys.executable, "-m", "gitops_ctl", "--help"),
        "version": (sys.executable, "-m", "gitops_ctl", "version"),
        "python": (sys.executable, "-c", "pass"),
        "kubectl": (str(kubectl), "version", "--client"),
    }
    for number in range(rounds * 3 + 1):
        for name, argv in commands.items():
            took = run_timed(argv, cwd=folder, cache=folder / "cache")
            if number:  # the first one compiles and warms the page cache
                runs[name].append(took)
    report.add(
        Figure(
            "start of the CLI, --help", "s", tuple(runs["help"]), tuple(runs["python"]), "python -c pass", inverse=True
        ),
        Figure(
            "start of the CLI, version",
            "s",
            tuple(runs["version"]),
            tuple(runs["kubectl"]),
            "kubectl version --client",
            inverse=True,
        ),
    )


def second_up(folder: Path, report: Report, *, rounds: int) -> None:
    """`gitops-ctl up` on a system that was up before, beside the first one; components only, which are built already."""
    own = ("--directory", str(folder / "system"))
    command = (sys.executable, "-m", "gitops_ctl")
    folder.mkdir(parents=True, exist_ok=True)
    first, second = [], []
    for _ in range(rounds):
        first.append(run_timed((*command, "up", "--no-manager", *own), cwd=folder, cache=None))
        run_timed((*command, "down", *own), cwd=folder, cache=None)
        second.append(run_timed((*command, "up", "--no-manager", *own), cwd=folder, cache=None))
        run_timed((*command, "down", "--purge", *own), cwd=folder, cache=None)
    report.add(
        Figure("a second up", "s", tuple(second), tuple(first), "the first up", inverse=True, target=Target(10)),
    )

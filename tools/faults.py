"""`python -m tools.faults`: run the tests of docs/what-can-go-wrong.md and of the promises, and list the ids without a passing one.

`--collect-only` asks only whether each id has a test.  Fails when an id of a family or a promise that `tests/faults.toml` names as done has
none, when a test fails, and when a test names an id that the page does not have.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.fault_tests import ids_in

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "what-can-go-wrong.md"
_ROW = re.compile(r"^\| *([A-Z]\d{2}) *\|", re.MULTILINE)


@dataclass(frozen=True)
class Catalogue:
    """All ids in the order of the page, promises last, and those that must have a passing test."""

    ids: tuple[str, ...]
    due: frozenset[str]


def catalogue(page: str, done: Mapping[str, list[str] | list[int]]) -> Catalogue:
    """The ids of the page and of the promises."""
    faults = tuple(dict.fromkeys(_ROW.findall(page)))
    promises = tuple(f"promise {number}" for number in range(1, 11))
    due = {fault for fault in faults if fault[0] in done["families"]} | {f"promise {n}" for n in done["promises"]}
    return Catalogue((*faults, *promises), frozenset(due))


def outcomes(report: str) -> tuple[set[str], set[str]]:
    """Names of tests that passed, and of tests that did not, from a JUnit report.  A name is bad when one of its cases is."""
    good: set[str] = set()
    bad: set[str] = set()
    for case in ET.fromstring(report).iter("testcase"):
        name = case.get("name", "").partition("[")[0]
        (bad if _went_wrong(case) else good).add(name)
    return good - bad, bad


def _went_wrong(case: ET.Element) -> bool:
    return any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))


def summary(known: Catalogue, *, good: Iterable[str], bad: Iterable[str]) -> tuple[list[str], bool]:
    """Lines to print, and whether everything that is due is there."""
    closed = {id_ for name in good for id_ in ids_in(name)}
    failing = sorted(bad)
    unknown = sorted({id_ for name in (*good, *bad) for id_ in ids_in(name)} - set(known.ids))
    open_ = [id_ for id_ in known.ids if id_ not in closed]
    due = [id_ for id_ in open_ if id_ in known.due]
    later = [id_ for id_ in open_ if id_ not in known.due]
    lines = [f"failing: {name}" for name in failing]
    lines += [f"not on the page: {id_}" for id_ in unknown]
    lines.append(f"without a passing test, of parts that are not done: {', '.join(later) or 'none'}")
    lines.append(f"without a passing test, of parts that are done: {', '.join(due) or 'none'}")
    lines.append(
        f"faults: {len(known.ids) - len(open_)} of {len(known.ids)} ids have a passing test, {len(due)} missing"
    )
    return lines, not (due or failing or unknown)


def _run_tests() -> tuple[set[str], set[str]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        plugin = ["-p", "tools.fault_tests", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
        command = [sys.executable, "-m", "pytest", *plugin, "-m", "not soak", "-q"]
        subprocess.run([*command, "--junit-xml", str(report)], cwd=ROOT, check=False)
        return outcomes(report.read_text())


def _collect() -> tuple[set[str], set[str]]:
    command = [sys.executable, "-m", "pytest", "-p", "tools.fault_tests", "-m", "not soak", "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 5}:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    names = {line.rpartition("::")[2].partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    return names, set()


def main() -> int:
    """The program."""
    done = tomllib.loads((ROOT / "tests" / "faults.toml").read_text())
    good, bad = _collect() if "--collect-only" in sys.argv[1:] else _run_tests()
    lines, complete = summary(catalogue(PAGE.read_text(), done), good=good, bad=bad)
    print(*lines, sep="\n")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())

"""One repository for all simulations of a worker, and the number of runs at the end."""

from collections import Counter
from collections.abc import Callable

import pytest
import structlog

from tests.support.simulation_explorer import Explorer
from tests.support.simulation_git import Book
from tests.support.simulation_stories import Story, make_book

RUNS = "simulated runs"


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """Commits that real git signs, made once."""
    return make_book(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="session")
def explorers(book: Book, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Story], Explorer]:
    """The explorer of a story; each has one reference run."""
    known: dict[str, Explorer] = {}

    def of(story: Story) -> Explorer:
        if story.name not in known:
            known[story.name] = Explorer(book, story, tmp_path_factory.mktemp("worlds"))
        return known[story.name]

    return of


@pytest.fixture(autouse=True)
def _silent_logs() -> None:
    """Thousands of processes die here; what they log is of no use."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many runs there were, over all workers."""
    runs: Counter[str] = Counter()
    for report in [item for found in terminalreporter.stats.values() for item in found]:
        for name, value in getattr(report, "user_properties", ()) if getattr(report, "when", "") == "call" else ():
            for kind, count in value.items() if name == RUNS else ():
                runs["two faults" if " and " in kind else kind] += count
    if runs:
        parts = ", ".join(f"{count} with {kind}" for kind, count in sorted(runs.items()))
        terminalreporter.write_line(f"simulated runs: {sum(runs.values())} ({parts})")

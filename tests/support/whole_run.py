"""Rules for a whole test run: what needs no real component first, nothing skipped, and a build is waited for outside of test time.

The components may still be built while the fast tests run (`make test`).  The first test that needs them waits here, where the time limit
of a test does not count, and shows what is being built.
"""

import asyncio
import io
import sys
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.gitea import find_gitea
from gitops_ctl.local.kwok import find_kwok
from gitops_ctl.local.progress import LineProgress, Progress

NEEDS_COMPONENTS = ("cluster", "contract", "peers", "e2e")
_awaited = pytest.StashKey[set[str]]()


def needs_components(item: pytest.Item) -> bool:
    """Whether a test talks to a real component, or may."""
    named = any(item.get_closest_marker(marker) for marker in NEEDS_COMPONENTS)
    return named or "control_plane" in getattr(item, "fixturenames", ())


def needs_forge(item: pytest.Item) -> bool:
    """Whether a test talks to the real Gitea."""
    return any(name.startswith("gitea") for name in getattr(item, "fixturenames", ()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the tests that need no real component to the front, those that need what is built last to the end, each part in its own order."""
    items.sort(key=lambda item: (needs_components(item), needs_forge(item)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Before the first test that needs them, wait until the components are built."""
    awaited = item.config.stash.setdefault(_awaited, set())
    if needs_components(item) and "control plane" not in awaited:
        awaited.add("control plane")
        _wait_for_build(item.config, lambda progress: find_binaries(progress=progress))
    if "kwok" in getattr(item, "fixturenames", ()) and "kwok" not in awaited:
        awaited.add("kwok")
        _wait_for_build(item.config, lambda progress: find_kwok(progress=progress))
    if needs_forge(item) and "forge" not in awaited:
        awaited.add("forge")
        _wait_for_build(item.config, lambda progress: find_gitea(progress=progress))
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run with a skipped test has not shown what it should."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        reporter.section("a test was skipped: install what it needs, or delete it", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _wait_for_build(config: pytest.Config, find: Callable[[Progress], Coroutine[Any, Any, object]]) -> None:
    capture = config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    # One worker speaks for all.
    speaks = getattr(config, "workerinput", {"workerid": "gw0"})["workerid"] == "gw0"
    with capture.global_and_fixture_disabled():
        try:
            asyncio.run(find(LineProgress(sys.__stderr__ if speaks and sys.__stderr__ else io.StringIO())))
        except GitopsError as error:
            # Told again, as the error of each test that needs the components.
            print(error.message, file=sys.__stderr__)

"""Rules for a whole test run: what takes long first, nothing skipped, and a build is waited for outside of test time.

A file stays on one worker (`--dist loadfile`): what it sets up is set up once, and its fixed names on a shared server are used once.
Files whose tests take turns on one control plane share a worker, too, so that nobody stands in line while others could run.

Where the components are built already, the longest files begin first, and the fast tests fill what is left at the end.  Else they are
built while the fast tests run (`make test`): the first test that needs them waits here, where the time limit of a test does not count,
and shows what is being built.
"""

import asyncio
import gc
import io
import sys
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.build import peers_cache
from gitops_ctl.local.gitea import find_gitea
from gitops_ctl.local.kueue import find_kueue
from gitops_ctl.local.kwok import find_kwok
from gitops_ctl.local.nfd import find_nfd
from gitops_ctl.local.progress import LineProgress
from gitops_ctl.local.recipes import CONTROL_PLANE, GITEA, KUEUE, KWOK, NFD
from tools.peers.kueue_manager import KUEUE_MANAGER, find_kueue_manager

NEEDS_COMPONENTS = ("cluster", "contract", "peers", "e2e")
TURNS = {
    "target_world": "tests/cluster/test_switch_executor_with_worker.py tests/cluster/test_switch_worker_acts.py "
    "tests/cluster/test_switch_worker_observes.py",
    "managed": "tests/cluster/test_promise_05_sockets.py tests/cluster/test_promise_09_secrets_stay_secret.py "
    "tests/cluster/test_rbac_manager.py tests/cluster/test_rbac_process.py",
}
"""Fixtures that one test at a time may have, whichever worker it runs on, and the files that ask for them."""
NOT_BESIDE_EACH_OTHER = {
    "nodes of devices": "tests/cluster/test_device_topology.py tests/cluster/test_device_workers.py "
    "tests/cluster/test_rollout_admission.py tests/cluster/test_rollout_room.py",
}
"""Files that install rules for Nodes on the shared control plane: such rules know no namespace, and would judge the others' Nodes."""
LONGEST = (
    *("tests/cluster/test_switch_executor_with_worker.py", "tests/cluster/test_switch_worker_acts.py"),
    *(
        "tests/cluster/test_rbac_process.py",
        "tests/cluster/test_rbac_manager.py",
        "tests/peers/test_proposals_gitea.py",
    ),
    *("tests/cluster/test_local_up_down.py", "tests/e2e/test_cni_switch.py", "tests/e2e/test_topology_demo.py"),
    *("tests/peers/test_topology_migration.py", "tests/peers/test_forge_merges_gitea.py"),
    *("tests/peers/test_topology_webhooks.py", "tests/cluster/test_sync_waiting.py"),
    *("tests/peers/test_gitea_adapter_reviews.py", "tests/cluster/test_cli_up.py", "tests/peers/test_telling_gitea.py"),
    *("tests/cluster/test_cli_diff.py", "tests/peers/test_gitea_adapter.py", "tests/cluster/test_cli_commands.py"),
    *("tests/cluster/test_promise_07_killed_at_every_write.py", "tests/simulation/test_one_fault.py"),
    *("tests/e2e/test_readme.py", "tests/cluster/test_device_topology.py", "tests/cluster/test_sync_basics.py"),
    *("tests/peers/test_gitea_adapter_faults.py", "tests/cluster/test_authority_attacks.py"),
    *("tests/cluster/test_cli_bootstrap.py", "tests/cluster/test_source_faults.py", "tests/peers/test_git_crash.py"),
)
"""Files of about a minute and more.  A worker that began one of them at the end would work long after the others are done."""
_TURN_OF = {file: name for name, files in (TURNS | NOT_BESIDE_EACH_OTHER).items() for file in files.split()}
_awaited = pytest.StashKey[set[str]]()
_WARM = "components_are_built"


@dataclass(frozen=True, slots=True)
class Component:
    """Something that is built: which tests wait for it, and what finds or builds it."""

    name: str
    needed_by: Callable[[pytest.Item], bool]
    find: Callable[..., Coroutine[Any, Any, object]]


def needs_components(item: pytest.Item) -> bool:
    """Whether a test talks to a real component, or may."""
    named = any(item.get_closest_marker(marker) for marker in NEEDS_COMPONENTS)
    return named or "control_plane" in getattr(item, "fixturenames", ())


def uses(prefix: str) -> Callable[[pytest.Item], bool]:
    """Whether a test has a fixture whose name begins like this, or names the component in a mark `needs`."""

    def does(item: pytest.Item) -> bool:
        marked = [name for mark in item.iter_markers("needs") for name in mark.args]
        return any(name.startswith(prefix) for name in (*getattr(item, "fixturenames", ()), *marked))

    return does


# In the order in which `python -m tools.peers` builds them.
COMPONENTS = (
    Component("control plane", needs_components, find_binaries),
    Component("kwok", uses("kwok"), find_kwok),
    Component("forge", uses("gitea"), find_gitea),
    Component("nfd", uses("nfd"), find_nfd),
    Component("kueue", uses("kueue"), find_kueue),
    Component("manager of kueue", uses("kueue_manager"), find_kueue_manager),
)


def place(item: pytest.Item) -> int:
    """How late a test runs: 0 without any component, else by the last one that it waits for."""
    return max((number for number, each in enumerate(COMPONENTS, start=1) if each.needed_by(item)), default=0)


def takes_turns(item: pytest.Item) -> bool:
    """Whether a test waits for its turn on a shared control plane.

    Raises:
        pytest.UsageError: its file is not listed for that control plane.
    """
    file = item.nodeid.partition("::")[0]
    asked = [name for name in TURNS if name in getattr(item, "fixturenames", ())]
    if asked and _TURN_OF.get(file) not in asked:
        raise pytest.UsageError(f"{file} asks for {asked[0]}: list it in TURNS of tests/support/whole_run.py")
    return bool(asked)


class ByFileOrTurn(LoadFileScheduling):
    """One worker for each file, and one for all files that take turns with each other."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return _TURN_OF.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Of `--dist loadfile`; any other is that of xdist."""
    return ByFileOrTurn(config, log) if config.getoption("dist") == "loadfile" else None


@cache
def are_built() -> bool:
    """Whether every component is in the cache, made by whichever Go."""
    recipes = (*CONTROL_PLANE, KWOK, GITEA, NFD, KUEUE, KUEUE_MANAGER)
    return all(
        any(
            all((folder / program).is_file() for program in recipe.programs)
            for folder in peers_cache().glob(f"{recipe.key()}-*")
        )
        for recipe in recipes
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Asked once for all workers: they must come to the same order, also while something is being built."""
    node.workerinput[_WARM] = are_built()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in their order.

    With everything built, the files that take longest come first, then what else needs components, then the fast tests.  Else the fast ones
    come first, and what needs the component that is built last comes at the end.
    """
    turns = {item: takes_turns(item) for item in items}
    warm = getattr(config, "workerinput", {_WARM: are_built()})[_WARM]
    if warm:
        items.sort(key=lambda item: (_length(item), not turns[item], place(item) == 0))
    else:
        items.sort(key=lambda item: (place(item), _length(item), not turns[item]))


def _length(item: pytest.Item) -> int:
    """The place of its file, or of those that it takes turns with, among the longest; one more than there are for all others."""
    file = item.nodeid.partition("::")[0]
    together = (TURNS | NOT_BESIDE_EACH_OTHER).get(_TURN_OF.get(file, ""), file).split()
    return min((LONGEST.index(each) for each in together if each in LONGEST), default=len(LONGEST))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: nobody looks for garbage among them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Before the first test that needs them, wait until the components are built."""
    awaited = item.config.stash.setdefault(_awaited, set())
    for component in COMPONENTS:
        if component.name not in awaited and component.needed_by(item):
            awaited.add(component.name)
            _wait_for_build(item.config, component)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run with a skipped test has not shown what it should."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        reporter.section("a test was skipped: install what it needs, or delete it", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _wait_for_build(config: pytest.Config, component: Component) -> None:
    capture = config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    # One worker speaks for all.
    speaks = getattr(config, "workerinput", {"workerid": "gw0"})["workerid"] == "gw0"
    with capture.global_and_fixture_disabled():
        try:
            stream = sys.__stderr__ if speaks and sys.__stderr__ else io.StringIO()
            asyncio.run(component.find(progress=LineProgress(stream)))
        except GitopsError as error:
            # Told again, as the error of each test that needs the components.
            print(error.message, file=sys.__stderr__)

"""Processes that live and die together: no end of the parent leaves one behind.

Out of scope: the control plane made of them (tests/cluster).
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitops_ctl.local.supervise import Family, ProcessSpec, log_tail
from tests.support.processes import is_running, until

WAIT = "import time; print('ready', flush=True); time.sleep(600)"


def spec(tmp_path: Path, name: str, code: str = WAIT, *, grace_s: float = 5.0) -> ProcessSpec:
    return ProcessSpec(name, (sys.executable, "-c", code), tmp_path / f"{name}.log", grace_s=grace_s)


async def test_the_first_exit_names_the_process_its_status_and_the_end_of_its_log(tmp_path: Path) -> None:
    family = Family()
    await family.spawn(spec(tmp_path, "stays"))
    await family.spawn(spec(tmp_path, "ends", "print('one'); print('two'); raise SystemExit(3)"))
    ended = await asyncio.wait_for(family.first_exit(), timeout=20)
    assert (ended.name, ended.cause, ended.tail) == ("ends", "exited with status 3", "one\ntwo")
    await family.stop()
    assert family.pids == {}


async def test_a_signal_is_named(tmp_path: Path) -> None:
    family = Family()
    await family.spawn(spec(tmp_path, "killed"))
    os.kill(family.pids["killed"], signal.SIGKILL)
    assert (await family.first_exit()).cause == "was killed by SIGKILL"
    await family.stop()


async def test_stop_ends_the_youngest_first_and_kills_who_does_not_listen(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
    told = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(time.monotonic_ns())))\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    family = Family()
    await family.spawn(spec(tmp_path, "store", told))
    await family.spawn(spec(tmp_path, "deaf", deaf, grace_s=0.2))
    await family.spawn(spec(tmp_path, "server", told))
    await asyncio.to_thread(until, lambda: all(log_tail(tmp_path / f"{name}.log") for name in family.pids))
    pids = list(family.pids.values())
    await family.stop()
    assert not any(is_running(pid) for pid in pids)
    ended = {name: int(log_tail(tmp_path / f"{name}.log").splitlines()[-1]) for name in ("store", "server")}
    assert ended["server"] < ended["store"]


async def test_what_a_process_started_itself_goes_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    family = Family()
    await family.spawn(spec(tmp_path, "parent", code))
    await asyncio.to_thread(until, lambda: log_tail(tmp_path / "parent.log"))
    grandchild = int(log_tail(tmp_path / "parent.log"))
    assert is_running(grandchild)
    await family.stop()
    await asyncio.to_thread(until, lambda: not is_running(grandchild))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=lambda number: number.name)
def test_children_die_with_a_parent_that_cannot_say_goodbye(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import asyncio, sys, pathlib\n"
        "from gitops_ctl.local.supervise import Family, ProcessSpec\n"
        "async def main():\n"
        "    family = Family()\n"
        "    for name in 'ab':\n"
        "        argv = (sys.executable, '-c', 'import time; time.sleep(600)')\n"
        f"        await family.spawn(ProcessSpec(name, argv, pathlib.Path({str(tmp_path)!r}) / name))\n"
        "    print(*family.pids.values(), flush=True)\n"
        "    await family.first_exit()\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        parent.send_signal(number)
    until(lambda: not any(is_running(pid) for pid in pids))


async def test_a_program_that_is_not_there_ends_at_once_with_its_name(tmp_path: Path) -> None:
    family = Family()
    await family.spawn(ProcessSpec("absent", ("/nowhere/program",), tmp_path / "absent.log"))
    ended = await asyncio.wait_for(family.first_exit(), timeout=20)
    assert ended.tail == "/nowhere/program: No such file or directory"
    await family.stop()


def test_a_child_whose_parent_died_before_it_asked_does_not_start(tmp_path: Path) -> None:
    shim = Path(sys.modules["gitops_ctl.local.supervise"].__file__ or "").with_name("child.py")
    marker = tmp_path / "started"
    done = subprocess.run(
        [sys.executable, "-I", "-S", shim, "1", "/usr/bin/touch", marker], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "the parent is gone\n"
    assert not marker.exists()

"""A command beside a build: exit codes, and that nothing is left over after an interrupt."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_S = 60

RUN = """
import asyncio, pathlib, sys
from tools.peers.beside import beside
build = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
sys.exit(asyncio.run(beside(sys.argv[2:], build=build, log=pathlib.Path(sys.argv[1]), grace_s=0.2)))
"""
WAIT = "import os, time; print(os.getpid(), os.getpgrp(), flush=True); time.sleep(600)"
DEAF = f"import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)]; {WAIT}"


def started(log: Path, code: str) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", RUN, str(log), sys.executable, "-c", code]
    return subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("code", "status"),
    [("pass", 0), ("import sys; sys.exit(3)", 3), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137)],
)
def test_the_exit_code_is_the_commands(tmp_path: Path, code: str, status: int) -> None:
    process = started(tmp_path / "cache" / "build.log", code)
    assert process.communicate(timeout=DEADLINE_S) == ("", "")
    assert process.returncode == status


@pytest.mark.parametrize("code", [WAIT, DEAF], ids=["plain", "deaf"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_and_the_build_quietly(
    tmp_path: Path, code: str, number: signal.Signals, status: int
) -> None:
    process = started(tmp_path / "build.log", code)
    assert process.stdout is not None
    command, group = map(int, process.stdout.readline().split())
    assert group == process.pid, "it stays in the group that a terminal would tell"
    process.send_signal(number)
    _, told = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == status
    if code == DEAF:
        assert told == ""
    assert "beside" not in told, "no traceback of the program around it"
    assert is_gone(command)
    written = (tmp_path / "build.log").read_text()
    assert not written or is_gone(int(written))

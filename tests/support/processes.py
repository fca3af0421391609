"""Waiting for processes and conditions, with a deadline and never for a fixed time."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def until(condition: Callable[[], object], *, timeout_s: float = 30.0, what: str = "") -> None:
    """Return as soon as the condition holds; fail after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what or condition}")
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def processes_of(word: str) -> list[int]:
    """Processes with `word` in an argument, this one aside: what a folder's system has left behind."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes() and is_running(int(entry.name)):
                    found.append(int(entry.name))
    return found

"""Looks at the fetch processes that this process, or another one, has started (Linux)."""

import asyncio
import multiprocessing
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.git import fetch_child
from gitops_ctl.git.fetching import FetchRequest
from gitops_ctl.git.transport import CHILD_MODULE

WAIT_S = 20.0
Value = TypeVar("Value")


def fetch_processes(parent: int | None = None) -> list[int]:
    """Process ids of the fetch children of `parent`, ours when None, that are not yet dead."""
    wanted = parent or os.getpid()
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            command, status = place.joinpath("cmdline").read_bytes(), place.joinpath("stat").read_text()
        except OSError:
            continue
        state, its_parent = status.rpartition(") ")[2].split()[:2]
        if CHILD_MODULE.encode() in command.split(b"\0") and state != "Z" and int(its_parent) == wanted:
            found.append(int(place.name))
    return found


def is_running(process_id: int) -> bool:
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(") ")[2].split()[0] != "Z"


async def wait_for(condition: Callable[[], Value], *, what: str) -> Value:
    """The first true value of `condition`, or a failure after a deadline."""
    async with asyncio.timeout(WAIT_S):
        while not (value := condition()):
            await asyncio.sleep(0.005)
    if not value:
        raise AssertionError(f"never happened: {what}")
    return value


async def error_of(call: Awaitable[object]) -> Exception:
    """What the call raises; a failure when it raises nothing."""
    try:
        value = await call
    except Exception as error:
        return error
    raise AssertionError(f"no error, but {value}")


def start_fetch(request: FetchRequest, scratch: Path) -> multiprocessing.process.BaseProcess:
    """A fetch in a process that starts in a few milliseconds, for tests that need very many; kill it, then join it."""
    scratch.mkdir(parents=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([fetch_child.__name__])
    document = {"task": "fetch", "scratch": str(scratch), "request": request.to_json()}
    process = context.Process(target=_fetch, args=(document,), daemon=True)
    process.start()
    return process


def _fetch(document: JsonObject) -> None:
    fetch_child.carry_out(document, FetchRequest.from_json(fetch_child.object_tree(document)))

"""A command that runs beside a build of what it may need, and ends when this process is told to end.

The command stays in the process group that it was started in, so that a terminal reaches it as if it ran alone.  Where no terminal
tells it, a signal is handed on.  The build always ends with it.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

GRACE_S: Final = 30.0
"""How long an interrupted command may take to end by itself, before it is told once more, and again before it is killed."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


async def beside(command: Sequence[str], *, build: Sequence[str], log: Path, grace_s: float = GRACE_S) -> int:
    """Run the command while the build runs; the exit code as a shell has it: 128 and the number of the signal.

    Args:
        command: keeps the streams of this process.
        build: its output goes to `log`; a failed one is told by whoever needs what it makes.
        log: its folder is made.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    told: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, told.put_nowait, number)
    try:
        with log.open("w") as stream:
            builder = await asyncio.create_subprocess_exec(*build, stdout=stream, stderr=stream, start_new_session=True)
        try:
            process = await asyncio.create_subprocess_exec(*command)
            interrupted = await _until_ended(process, told, grace_s=grace_s)
        finally:
            await _ended(builder)
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    status = process.returncode or 0
    if interrupted is not None:
        return 128 + interrupted
    return 128 - status if status < 0 else status


async def _until_ended(
    process: asyncio.subprocess.Process, told: asyncio.Queue[signal.Signals], *, grace_s: float
) -> signal.Signals | None:
    """Wait for the command; the first signal that this process got meanwhile."""
    first: signal.Signals | None = None
    end = asyncio.ensure_future(process.wait())
    while not end.done():
        asked = asyncio.ensure_future(told.get())
        await asyncio.wait({end, asked}, return_when=asyncio.FIRST_COMPLETED)
        if asked.cancel() or first is not None:
            continue
        first = asked.result()
        if first is not signal.SIGINT or not _terminal_tells():
            _send(process.send_signal, first)
        await _insist(process, end, grace_s=grace_s)
    return first


async def _insist(process: asyncio.subprocess.Process, end: "asyncio.Future[int]", *, grace_s: float) -> None:
    """Wait until the command ended: first by itself, then asked to terminate, then killed."""
    for last in (process.terminate, process.kill):
        await asyncio.wait({end}, timeout=grace_s)
        if end.done():
            return
        _send(last)
    await end


def _terminal_tells() -> bool:
    """Whether an interrupt comes from a terminal, which gives it to the whole group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        _send(process.terminate)
    await process.wait()


def _send(how: Callable[..., None], *arguments: object) -> None:
    with suppress(ProcessLookupError):
        how(*arguments)

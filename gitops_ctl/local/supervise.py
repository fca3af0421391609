"""Processes that live and die together.

Each process is started through `child.py`, so that the kernel kills it when this process dies, also by kill -9, and leads its own
process group, so that what it started goes with it at an ordinary stop.  Output goes to one log file per process; that of the start before is kept as `.1`.

The kernel ties a child to the *thread* that started it: start a family on the main thread, or on one that outlives it.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_SHIM = Path(__file__).with_name("child.py")
_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process to run: `argv[0]` is an absolute path, `environment` is added to ours."""

    name: str
    argv: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    grace_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: `status` as in `subprocess`, negative for a signal; `tail` is the end of its log."""

    name: str
    status: int
    log: Path
    tail: str

    @property
    def cause(self) -> str:
        """`exited with status 1`, or `was killed by SIGKILL`."""
        if self.status < 0:
            return f"was killed by {signal.Signals(-self.status).name}"
        return f"exited with status {self.status}"


def tied_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that runs `argv` so that it dies with this process."""
    return (sys.executable, "-I", "-S", str(_SHIM), str(os.getpid()), *argv)


def log_tail(path: Path, *, lines: int = 8) -> str:
    """The last lines of a log file, empty when there is none."""
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-lines:])
    return ""


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group that `pid` leads; nothing happens when it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Family:
    """Starts processes, reports the first that ends, stops them all."""

    def __init__(self) -> None:
        self._running: list[tuple[ProcessSpec, asyncio.subprocess.Process, asyncio.Task[Exit]]] = []

    @property
    def pids(self) -> Mapping[str, int]:
        """Name to process id, in the order of their start."""
        return {spec.name: process.pid for spec, process, _ in self._running}

    async def spawn(self, spec: ProcessSpec) -> None:
        """Start one process; its end is noticed by `first_exit`."""
        spec.log.parent.mkdir(parents=True, exist_ok=True)
        # A log of its own per start: what an earlier one said is no reason of this one, and the file does not grow for ever.
        with suppress(FileNotFoundError):
            spec.log.replace(spec.log.with_name(f"{spec.log.name}.1"))
        with spec.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *tied_argv(spec.argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **spec.environment},
                start_new_session=True,
            )
        self._running.append((spec, process, asyncio.create_task(_watch(spec, process), name=f"watch {spec.name}")))

    async def first_exit(self) -> Exit:
        """Wait until one of the processes ends.  The others go on until `stop`."""
        done, _ = await asyncio.wait([task for _, _, task in self._running], return_when=asyncio.FIRST_COMPLETED)
        return next(task.result() for _, _, task in self._running if task in done)

    async def stop(self) -> None:
        """End all processes, the youngest first, each with its time to finish; then nothing of them is left."""
        while self._running:
            spec, process, task = self._running[-1]
            signal_group(process.pid, signal.SIGTERM)
            await asyncio.wait([task], timeout=spec.grace_s)
            signal_group(process.pid, signal.SIGKILL)
            await task
            self._running.pop()


async def _watch(spec: ProcessSpec, process: asyncio.subprocess.Process) -> Exit:
    status = await process.wait()
    return Exit(spec.name, status, spec.log, log_tail(spec.log))

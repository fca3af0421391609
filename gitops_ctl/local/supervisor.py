"""The process behind `gitops-ctl up`: runs one control plane, and ends with it.

Run as `python -m gitops_ctl.local.supervisor` with a JSON job as its only argument.  It stops everything when it gets SIGTERM or
SIGINT, when a component ends by itself, and when the process that the job names as its owner is gone; a manager that ends by itself is
started again.  When it is killed itself, the kernel kills the components and the manager.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gitops_ctl.core.clock import Clock, SystemClock, to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, TerminalError
from gitops_ctl.core.process import asked_to_end
from gitops_ctl.local.binaries import Binaries
from gitops_ctl.local.controlplane import ControlPlane, Options
from gitops_ctl.local.gitea import Gitea, GiteaServer
from gitops_ctl.local.kwok import Kwok
from gitops_ctl.local.recipes import KUBERNETES
from gitops_ctl.local.state import SystemFolder, SystemState
from gitops_ctl.local.supervise import Exit, log_tail

if TYPE_CHECKING:
    from gitops_ctl.local.product import LocalManager

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Job:
    """What to run.

    Attributes:
        owner: process id whose end also ends the system, 0 for none.
        manager: install the product and run its manager.
        forge: run a Gitea beside it.
    """

    directory: Path
    binaries: Binaries
    options: Options
    owner: int = 0
    kwok: Kwok | None = None
    manager: bool = False
    forge: Gitea | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @staticmethod
    def from_json(text: str) -> "Job":
        tree = json.loads(text)
        binaries = Binaries(**{name: Path(path) for name, path in tree["binaries"].items()})
        played = tree["kwok"]
        kwok = played and Kwok(Path(played["program"]), tuple(map(Path, played["stages"])))
        named = tree["forge"]
        forge = named and Gitea(Path(named["program"]), Path(named["static"]))
        # JSON has lists where Python has tuples.
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in tree["options"].items()
        }
        options = Options(**given)
        return Job(Path(tree["directory"]), binaries, options, tree["owner"], kwok, tree["manager"], forge)


async def supervise(job: Job, *, clock: Clock) -> str:
    """Run the system until something ends it; returns the reason, empty when it was asked to stop.

    Raises:
        GitopsError: it did not start, or another process runs it.
    """
    folder = SystemFolder(job.directory)
    with folder.held():
        system = _System(job, folder, clock)
        ends = [
            asyncio.create_task(asked_to_end().wait(), name="signal"),
            asyncio.create_task(_gone(job.owner), name="owner"),
        ]
        try:
            # A stop that is asked for while it starts counts at once.
            start = asyncio.create_task(system.start())
            await _first(start, *ends)
            if not start.done():
                start.cancel()
                await asyncio.gather(start, return_exceptions=True)
                return ""
            start.result()
            _log(clock, "ready at", system.plane.url)
            exit_ = asyncio.create_task(system.first_exit())
            await _first(exit_, *ends)
            if not exit_.done():
                return ""
            ended = exit_.result()
            reason = f"{ended.name} {ended.cause}; all components are stopped; its log: {ended.log}"
            folder.write_failure(reason)
            return reason
        finally:
            folder.clear_state()
            await system.stop()
            for task in ends:
                task.cancel()


class _System:
    """The control plane, and the forge and the manager when the job has them."""

    def __init__(self, job: Job, folder: SystemFolder, clock: Clock) -> None:
        self.plane = ControlPlane(job.binaries, job.directory, options=job.options, kwok=job.kwok, clock=clock)
        self._job = job
        self._folder = folder
        self._clock = clock
        self._forge = GiteaServer(job.forge, folder.forge, clock=clock) if job.forge else None
        self._manager: LocalManager | None = None

    async def start(self) -> None:
        """Start everything and write down what runs.

        Raises:
            GitopsError: something did not start.
        """
        await self.plane.start()
        if self._forge is not None:
            await self._forge.start()
        self._folder.write_failure("")
        if not self._job.manager:
            self._folder.write_state(self._state(manager=0))
            return
        # With the Kubernetes client, which is not needed to ask for the help text.
        from gitops_ctl.local.product import LocalManager, install_as_admin, manager_process  # noqa: PLC0415

        await install_as_admin(self._folder, url=self.plane.url, clock=self._clock)
        spec = manager_process(self._folder, url=self.plane.url, clock=self._clock)
        self._manager = LocalManager(spec, clock=self._clock, on_change=self._manager_started)
        await self._manager.start()

    def _manager_started(self, pid: int, before: Exit | None) -> None:
        if before is not None:
            _log(self._clock, f"the manager {before.cause} and is started again; its log: {before.log}.1")
        self._folder.write_state(self._state(manager=pid))

    async def first_exit(self) -> Exit:
        """Wait until a component ends; the others still run."""
        watched = [self.plane.first_exit()] + ([self._forge.first_exit()] if self._forge else [])
        tasks = [asyncio.create_task(each) for each in watched]
        try:
            await _first(*tasks)
            return next(task.result() for task in tasks if task.done())
        finally:
            for task in tasks:
                task.cancel()

    async def stop(self) -> None:
        """The manager first, so that it can release its Lease."""
        if self._manager is not None:
            await self._manager.stop()
        if self._forge is not None:
            await self._forge.stop()
        await self.plane.stop()

    def _state(self, *, manager: int) -> SystemState:
        state = replace(_state(self._job, self.plane), manager=manager)
        if self._forge is None:
            return state
        return replace(state, forge=self._forge.url, pids={**state.pids, **self._forge.pids})


async def start_supervisor(job: Job, *, clock: Clock) -> SystemState:
    """Start the supervisor in the background and return when its system is ready.

    Raises:
        TerminalError: it did not become ready (LOCAL_SYSTEM); nothing is left running.
    """
    folder = SystemFolder(job.directory)
    folder.create()
    folder.logs.mkdir(exist_ok=True)
    log = folder.logs / "supervisor.log"
    pid = _spawn_detached(job, log)
    try:
        while _goes_on(pid):
            state = folder.state()
            if state is not None and state.supervisor == pid:
                return state
            await clock.sleep(_POLL_S)
    except BaseException:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(os.waitpid, pid, 0)
        raise
    raise TerminalError(
        f"the local system did not start: {log_tail(log, lines=3)}", code=ErrorCode.LOCAL_SYSTEM, subject=str(log)
    )


async def stop_supervisor(folder: SystemFolder, *, timeout_s: float = 30.0) -> bool:
    """Ask the supervisor to stop, also one that is still starting, and wait for its end; False when there is none.

    Raises:
        TerminalError: it did not stop in time (LOCAL_SYSTEM).
    """
    pid = folder.holder()
    if not pid:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(timeout_s):
            await _gone(pid)
    except TimeoutError:
        raise TerminalError(
            f"process {pid} did not stop within {timeout_s:g} s",
            code=ErrorCode.LOCAL_SYSTEM,
            subject=str(folder.logs / "supervisor.log"),
        ) from None
    return True


def _goes_on(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG) == (0, 0)


def _spawn_detached(job: Job, log: Path) -> int:
    """Start the supervisor in a session of its own.  No process object: it outlives whoever would hold that."""
    argv = (sys.executable, "-m", "gitops_ctl.local.supervisor", job.to_json())
    files = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    return os.posix_spawn(sys.executable, argv, os.environ, file_actions=files, setsid=True)


async def _first(*tasks: "asyncio.Task[Any]") -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _gone(pid: int) -> None:
    """Return when process `pid` ends; never for 0."""
    if pid == 0:
        await asyncio.Event().wait()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _state(job: Job, plane: ControlPlane) -> SystemState:
    return SystemState(
        kind="processes",
        url=plane.url,
        kubeconfig=str(plane.folder.admin_kubeconfig),
        version=KUBERNETES.version,
        supervisor=os.getpid(),
        pids=dict(plane.pids),
        kubectl=str(job.binaries.kubectl),
        audit_log=str(plane.folder.logs / "audit.log") if job.options.audit else "",
    )


def _log(clock: Clock, *words: str) -> None:
    print(to_rfc3339(clock.wall()), *words, file=sys.stderr, flush=True)


def _run(main: Coroutine[Any, Any, str]) -> int:
    clock = SystemClock()
    try:
        reason = asyncio.run(main)
    except GitopsError as error:
        _log(clock, f"error {error.code.label} {error.code.slug}: {error.message}", f"({error.subject})")
        return 1
    _log(clock, reason or "stopped")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(_run(supervise(Job.from_json(sys.argv[1]), clock=SystemClock())))

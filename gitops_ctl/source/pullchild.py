"""A check of a stranger's head in a process of its own, so that nothing in it can hurt the manager (forges.md, section 11.3).

Rules:
  * The child has an empty environment, a session of its own, and bounds of memory, processor time and files; it dies with its parent.
  * It is given no secret and speaks to nobody: order on standard input, report on standard output, both JSON and bounded.
  * A child that reaches a bound has given an answer: the head cannot be checked, which is a finding about the head.
"""

import asyncio
import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pygit2

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import InternalError, Refused
from gitops_ctl.documents.batch import without_cycle_search
from gitops_ctl.git.child import end_session, read_up_to, tell
from gitops_ctl.git.failures import own_machine
from gitops_ctl.git.fetch_child import die_with_parent
from gitops_ctl.source.judging import holds
from gitops_ctl.source.pullcheck import check_pull
from gitops_ctl.source.pullreport import (
    Order,
    PullReport,
    order_from_bytes,
    order_to_bytes,
    report_from_bytes,
    report_of_error,
    report_to_bytes,
)

_OBJECT: Final = re.compile("[0-9a-f]{40}")
MOST_ANSWER_BYTES: Final = 2**20
MEMORY_BYTES: Final = 1536 * 2**20
WRITTEN_BYTES: Final = 64 * 2**20
MOST_FILES: Final = 256
MAPPED_BYTES: Final = 256 * 2**20
POLITE: Final = 10
"""The manager's own work comes first."""

_BOUNDS: Final = frozenset(
    {signal.SIGKILL, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS}
)


@dataclass(frozen=True, slots=True)
class PullChild:
    """Runs checks in children.

    Attributes:
        module: what the child runs: it registers the rules of all kinds and calls `serve`.
        settings: what the module's rules are to know; no secret.
        deadline_s: wall and processor time of one check.
        memory_bytes: its address space.
    """

    module: str
    settings: str = ""
    deadline_s: float = 120.0
    memory_bytes: int = MEMORY_BYTES

    async def check(self, order: Order) -> PullReport:
        """The report on the order's head.

        Raises:
            InternalError: the child ended by a bug of ours.
            TransientError: FETCH_FAILED, no process or no folder can be made.
        """
        with own_machine(), tempfile.TemporaryDirectory(prefix="gitops-ctl-check-") as home:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-m",
                self.module,
                str(int(self.deadline_s)),
                str(self.memory_bytes),
                self.settings,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={"HOME": home, "LC_ALL": "C.UTF-8"},
                cwd=home,
                start_new_session=True,
                close_fds=True,
            )
            try:
                async with asyncio.timeout(self.deadline_s):
                    answer = await _exchange(process, order_to_bytes(order))
                    await process.wait()
            except TimeoutError:
                return report_of_error(_unfinished(f"after {self.deadline_s:g} s", order))
            finally:
                await end_session(process)
        if -(process.returncode or 0) in _BOUNDS or len(answer) > MOST_ANSWER_BYTES:
            return report_of_error(_unfinished("at its limit of memory, time or size", order))
        if process.returncode or not answer:
            raise InternalError(f"the process that checks a pull request ended with code {process.returncode}")
        return await asyncio.to_thread(_with_bound_named, report_from_bytes(answer), order)


def _with_bound_named(report: PullReport, order: Order) -> PullReport:
    """The report; short of memory libgit2 cannot map its files, and says of an object that the copy does not have it."""
    absent = [item.place for item in report.findings if item.code.startswith(ErrorCode.HISTORY_UNAVAILABLE.label)]
    if any(_OBJECT.fullmatch(place) and holds(Path(order.repository), place) for place in absent):
        return report_of_error(_unfinished("at its limit of memory", order))
    return report


async def _exchange(process: asyncio.subprocess.Process, order: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    await tell(process.stdin, order)
    return await read_up_to(process.stdout, MOST_ANSWER_BYTES + 1)


def serve(arguments: list[str], *, prepare: Callable[[str], None]) -> None:
    """The child: one order, one report.

    Args:
        arguments: seconds and bytes that it may use, and the settings.
        prepare: registers the rules of all kinds, by the settings; before anything of the head is read.
    """
    die_with_parent()
    seconds, memory, settings = arguments
    prepare(settings)
    order = order_from_bytes(sys.stdin.buffer.read())
    _bound(int(seconds), int(memory))
    try:
        with without_cycle_search():
            report = check_pull(order)
    except (MemoryError, RecursionError):
        report = report_of_error(_unfinished("at its limit of memory", order))
    sys.stdout.buffer.write(report_to_bytes(report))
    sys.stdout.buffer.flush()


def _bound(seconds: int, memory: int) -> None:
    os.nice(POLITE)
    pygit2.settings.mwindow_mapped_limit = MAPPED_BYTES
    for what, bound in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds + 1),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_FSIZE, WRITTEN_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        within = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(what, (within, within))


def _unfinished(where: str, order: Order) -> Refused:
    return Refused(f"the check of {order.head} ended {where}", code=ErrorCode.CHECK_ENDED)

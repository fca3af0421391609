"""Talks to Git servers, each time in a short-lived child process.

Rules (gitops.md, sections 2.1 and 2.4; engineering.md, sections 4.5 and 29):
  * One child per call, in a session of its own, with an empty environment; it is killed with its whole group at the deadline.
  * One fetch at a time per repository; others wait, and their deadline starts when it is their turn.
  * What comes back is one JSON document of bounded size, or an error with a code of 30xx.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakValueDictionary

import msgspec

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, InternalError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, object_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.git.failures import printable
from gitops_ctl.git.fetching import (
    Credentials,
    Fetched,
    FetchLimits,
    FetchRequest,
    Ref,
    RemoteTip,
    error_from_json,
    to_line,
)
from gitops_ctl.git.pushing import Pushed, PushRequest, result_of

__all__ = [
    "ChildTransport",
    "Credentials",
    "FetchLimits",
    "FetchRequest",
    "Fetched",
    "GitTransport",
    "Ref",
    "RemoteTip",
]

CHILD_MODULE: Final = "gitops_ctl.git.fetch_child"
PUSH_MODULE: Final = "gitops_ctl.git.push_child"
MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_ERROR_BYTES: Final = 16 * 1024


class GitTransport(Protocol):
    """How the source room reaches a server; tests may bring another one."""

    async def resolve(self, request: FetchRequest) -> RemoteTip:
        """What the server names for the ref now, without fetching anything."""
        ...

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Bring `request.repository` to what the server names now, deep enough to judge it from `request.known`."""
        ...


class ChildTransport:
    """The transport of the product.

    Every method raises core errors with 30xx codes: TransientError and its kinds for whatever may clear by itself
    (authentication, host keys and certificates included: one wrong answer is never terminal, G04), NotFound for a missing
    ref, known_hosts or key, Refused for an address or an object that is not acceptable.  REPOSITORY_DAMAGED means: discard
    the copy and fetch anew.
    """

    def __init__(self, *, scratch: Path | None = None) -> None:
        """`scratch` is where the children's short-lived homes are made; the system's place when None."""
        self._scratch = scratch
        self._turns: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    async def resolve(self, request: FetchRequest) -> RemoteTip:
        answer = await self._call("resolve", request)
        return RemoteTip(text_at(answer, "commit") or None, text_at(answer, "tag") or None)

    async def fetch(self, request: FetchRequest) -> Fetched:
        async with self._turn(request.repository):
            answer = await self._call("fetch", request)
        return Fetched(
            tip=text_at(answer, "tip"),
            tag=text_at(answer, "tag") or None,
            changed=bool_at(answer, "changed"),
            shallow=bool_at(answer, "shallow"),
            received_bytes=int_at(answer, "receivedBytes"),
            complete=bool_at(answer, "complete"),
        )

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], into: Path) -> None:
        """Write what `request.repository` still needs into the new repository `into`; see `repository.collect_garbage`."""
        async with self._turn(request.repository):
            await self._call("collect", request, extra={"keep": keep, "into": str(into)})

    def _turn(self, repository: Path) -> asyncio.Lock:
        lock = self._turns.get(repository)
        if lock is None:
            lock = self._turns[repository] = asyncio.Lock()
        return lock

    async def push(self, request: PushRequest) -> Pushed:
        """Push one commit to one branch, under a lease.

        Raises:
            LeaseLost: the branch is not where it is expected; nothing was written.
            PushRefused: the server does not take it; the message has its words.
            Refused: REFSPEC_REFUSED.
            TransientError: with 30xx codes; after a timeout nobody knows whether it was written.
        """
        answer = await self._call("push", request.remote, extra={"push": request.to_json()}, module=PUSH_MODULE)
        return result_of(answer, request)

    async def _call(
        self, task: str, request: FetchRequest, *, extra: JsonObject | None = None, module: str = CHILD_MODULE
    ) -> JsonObject:
        known = request.credentials.secrets if request.credentials else ()
        with self._home() as home:
            document = {"task": task, "scratch": str(home), "request": request.to_json(), **(extra or {})}
            output = await _run_child(to_line(document), home=home, request=request, module=module)
        try:
            answer: JsonObject = msgspec.json.decode(output, type=dict)
        except msgspec.DecodeError as error:
            raise InternalError("the fetch process answered with something that cannot be read") from error
        if "error" in answer:
            raise _without_secrets(error_from_json(object_at(answer, "error")), known)
        return object_at(answer, "ok")

    @contextmanager
    def _home(self) -> Iterator[Path]:
        home = Path(tempfile.mkdtemp(prefix="gitops-ctl-fetch-", dir=self._scratch))
        try:
            yield home
        finally:
            # The child is gone by now, also after a kill.
            shutil.rmtree(home, ignore_errors=True)


async def _run_child(document: bytes, *, home: Path, request: FetchRequest, module: str) -> bytes:
    """Standard output of one child.

    Raises:
        TransientError: FETCH_TIMEOUT, or FETCH_TOO_LARGE when a limit of the system ended it.
        InternalError: it ended without an answer.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"HOME": str(home), "LC_ALL": "C.UTF-8"},
        cwd=home,
        start_new_session=True,
        close_fds=True,
        limit=MAX_ANSWER_BYTES,
    )
    try:
        async with asyncio.timeout(request.limits.timeout_s):
            output, errors = await _exchange(process, document)
            await process.wait()
    except TimeoutError:
        what = f"{request.url.display} did not answer within {request.limits.timeout_s:g} s"
        raise TransientError(what, code=ErrorCode.FETCH_TIMEOUT, subject=request.url.display) from None
    finally:
        await _end_group(process)
    if process.returncode or not output:
        raise _ended(process.returncode or 0, errors, request)
    return output


async def _exchange(process: asyncio.subprocess.Process, document: bytes) -> tuple[bytes, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(document)
        await process.stdin.drain()
    process.stdin.close()
    # Read to a bound, not to the end: a child that goes on writing is killed with its group.
    output, errors = await asyncio.gather(
        _read_up_to(process.stdout, MAX_ANSWER_BYTES), _read_up_to(process.stderr, MAX_ERROR_BYTES)
    )
    return output, errors


async def _read_up_to(stream: asyncio.StreamReader, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < limit and (part := await stream.read(limit - size)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Kill whatever is left of the child's session; returns when the child is gone."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # A cancelled caller waits too: no child outlives its call.
        await asyncio.shield(process.wait())


def _ended(code: int, errors: bytes, request: FetchRequest) -> GitopsError:
    url = request.url.display
    if code in (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGXFSZ, -signal.SIGSEGV, -signal.SIGABRT):
        what = f"the fetch from {url} was ended by signal {-code}: a limit of memory, processor time or file size"
        return TransientError(what, code=ErrorCode.FETCH_TOO_LARGE, subject=url)
    known = request.credentials.secrets if request.credentials else ()
    lines = redact_text(errors.decode(errors="replace"), known=known).strip().splitlines()
    if lines and lines[-1].startswith("MemoryError"):
        what = f"the fetch from {url} needs more than {request.limits.memory_bytes} bytes of memory"
        return TransientError(what, code=ErrorCode.FETCH_TOO_LARGE, subject=url)
    return InternalError(
        f"the fetch process ended with code {code}: {printable(lines[-1] if lines else '')}", subject=url
    )


def _without_secrets(error: GitopsError, known: tuple[str, ...]) -> GitopsError:
    """The error with any credential cut out of its texts, in case a server sent one back."""
    error.args = (redact_text(error.message, known=known), *error.args[1:])
    error.subject, error.hint = redact_text(error.subject, known=known), redact_text(error.hint, known=known)
    return error

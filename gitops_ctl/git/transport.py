"""Talks to Git servers, each time in a short-lived child process.

Rules (gitops.md, sections 2.1 and 2.4; engineering.md, sections 4.5 and 29):
  * One child per call, in a session of its own, with an empty environment (`child`); it is killed with its whole group at the deadline.
  * One fetch at a time per repository; others wait, and their deadline starts when it is their turn.
  * What comes back is one JSON document of bounded size, or an error with a code of 30xx.
"""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakValueDictionary

import msgspec

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, InternalError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, object_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.git.child import Child, start
from gitops_ctl.git.failures import own_machine, printable
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

    def __init__(self, *, scratch: Path | None = None, keeps_spare: bool = False) -> None:
        """`scratch` is where the children's short-lived homes are made; the system's place when None.

        With `keeps_spare` a child is started after each call and waits for the next one; `close` ends it.
        """
        self._scratch = scratch
        self._keeps_spare = keeps_spare
        self._spare: asyncio.Task[Child] | None = None
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
        child = await self._child(module)
        try:
            document = {"task": task, "scratch": str(child.home), "request": request.to_json(), **(extra or {})}
            output = await _answer(child, to_line(document), request=request)
        finally:
            await child.end()
            self._keep_a_spare()
        try:
            answer: JsonObject = msgspec.json.decode(output, type=dict)
        except msgspec.DecodeError as error:
            raise InternalError("the fetch process answered with something that cannot be read") from error
        if "error" in answer:
            raise _without_secrets(error_from_json(object_at(answer, "error")), known)
        return object_at(answer, "ok")

    async def _child(self, module: str) -> Child:
        """The one that waits, if it is of use, or a new one."""
        if module == CHILD_MODULE and self._spare is not None:
            starting, self._spare = self._spare, None
            # Started by nobody who waits for it: what went wrong then is tried again now.
            with suppress(OSError):
                child = await starting
                if child.waits:
                    return child
                await child.end()
        with own_machine():
            return await start(module, scratch=self._scratch)

    def _keep_a_spare(self) -> None:
        if self._keeps_spare and self._spare is None:
            self._spare = asyncio.create_task(start(CHILD_MODULE, scratch=self._scratch), name="spare fetch process")

    async def close(self) -> None:
        """End the process that waits for the next call; none is kept from here on."""
        self._keeps_spare = False
        starting, self._spare = self._spare, None
        if starting is not None:
            with suppress(OSError):
                await (await starting).end()


async def _answer(child: Child, document: bytes, *, request: FetchRequest) -> bytes:
    """Standard output of one child.

    Raises:
        TransientError: FETCH_TIMEOUT, or FETCH_TOO_LARGE when a limit of the system ended it.
        InternalError: it ended without an answer.
    """
    try:
        async with asyncio.timeout(request.limits.timeout_s):
            output, errors = await child.ask(document)
    except TimeoutError:
        what = f"{request.url.display} did not answer within {request.limits.timeout_s:g} s"
        raise TransientError(what, code=ErrorCode.FETCH_TIMEOUT, subject=request.url.display) from None
    code = child.process.returncode or 0
    if code or not output:
        raise _ended(code, errors, request)
    return output


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

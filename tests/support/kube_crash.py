"""A process that dies at a chosen write, as seen from the API server.

`Crash` is no `Exception`, so nothing in the product handles it, and after it no request of that client leaves any more: what a
`finally` would still write is not written, as after a kill -9.
"""

from collections.abc import Callable
from typing import Any

from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient


class Crash(BaseException):
    """The process is dead."""


class Fuse:
    """Counts the writes of one client and ends it at write `at` (from 1): before it is sent, or before its answer is read.

    Attributes:
        writes: what was asked for, in order, as `verb path`.
        blown: whether the process is dead.
    """

    def __init__(self, client: KubeClient, *, at: int = 0, after: bool = False) -> None:
        self.writes: list[str] = []
        self.blown = False
        self._at = at
        self._after = after
        self.on_crash: Callable[[], None] = lambda: None
        exchange: Any = client._exchange
        self._send, self._watch = exchange._once, exchange.open_watch
        exchange._once, exchange.open_watch = self._once, self._open_watch

    async def _once(self, call: Call, authorization: str) -> bytes:
        self._require_alive()
        if call.verb not in WRITE_VERBS or "/leases" in call.path:
            return await self._alive(await self._send(call, authorization))
        self.writes.append(call.subject)
        due = len(self.writes) == self._at
        if due and not self._after:
            self._blow()
        try:
            answer: bytes = await self._send(call, authorization)
        finally:
            # A refusal is an answer too.
            if due:
                self._blow()
        return await self._alive(answer)

    async def _open_watch(self, call: Call) -> Any:
        self._require_alive()
        return await self._watch(call)

    async def _alive(self, answer: bytes) -> bytes:
        """A dead process reads no answer."""
        self._require_alive()
        return answer

    def _require_alive(self) -> None:
        if self.blown:
            raise Crash

    def _blow(self) -> None:
        self.blown = True
        self.on_crash()
        raise Crash

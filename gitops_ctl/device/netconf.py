"""NETCONF for the device worker: sessions that can be awaited (devices.md, sections 2 and 6).

client = NetconfClient()
async with client.session(endpoint) as session:
    reply = await session.get(filter_tree)

Each session is owned by one thread of its own, which does nothing else and ends with it; the number of sessions is bounded.
What the device offers is asked at every connect and kept nowhere.  Leaving the block after an error or a cancellation cuts the
connection; it is said goodbye to only when all went well.  A lost reply says nothing about what happened: see ReplyLost.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog
from lxml import etree

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import ReplyLost, Unavailable
from gitops_ctl.device.login import Endpoint, Login, endpoint_of
from gitops_ctl.device.netconfreply import BASE, AnswerUnusable, NetconfRefused, Reply, RpcError
from gitops_ctl.device.netconfsession import Limits, PinnedSession, quiet_libraries

__all__ = [
    "AnswerUnusable",
    "Endpoint",
    "Limits",
    "Login",
    "NetconfClient",
    "NetconfRefused",
    "NetconfSession",
    "Reply",
    "RpcError",
    "endpoint_of",
]

log = structlog.get_logger(__name__)

T = TypeVar("T")


class NetconfSession:
    """One open session.  Calls follow one another; two at once wait for each other."""

    def __init__(self, session: PinnedSession, owner: "_Owner", limits: Limits) -> None:
        self._session = session
        self._owner = owner
        self._limits = limits
        self.capabilities: frozenset[str] = frozenset()
        """What the device says that it offers, in full."""

    @property
    def name(self) -> str:
        """How messages call the device."""
        return self._session.endpoint.name

    def offers(self, module: str) -> bool:
        """Whether the device names this YANG module, or this capability, in its hello."""
        return any(entry.partition("?")[0] == module for entry in self.capabilities)

    async def get(self, *trees: etree._Element) -> Reply:
        """Operational data and configuration that the subtree filters select; everything of their kind, never all.

        Raises:
            ReplyLost, Unavailable, NetconfRefused, AnswerUnusable: no data came.
        """
        return await self._read(etree.Element(f"{BASE}get"), trees)

    async def get_config(self, store: str, *trees: etree._Element) -> Reply:
        """Configuration of the datastore `running` or `startup`; all of it without filters.

        Raises:
            ReplyLost, Unavailable, NetconfRefused, AnswerUnusable: no data came.
        """
        operation = etree.Element(f"{BASE}get-config")
        etree.SubElement(etree.SubElement(operation, f"{BASE}source"), f"{BASE}{store}")
        return await self._read(operation, trees)

    async def call(self, operation: etree._Element, *, timeout_s: float | None = None) -> Reply:
        """Any operation, sent once.

        Raises:
            Unavailable: it was not sent.
            ReplyLost: it was sent and may have been carried out.
            NetconfRefused: the device answered with errors.
            AnswerUnusable: it answered something else than NETCONF.
        """
        limit = timeout_s or self._limits.rpc_s
        lost = ReplyLost(f"no reply within {limit:g} s", code=ErrorCode.NETCONF_REPLY_LOST, subject=self.name)
        call = lambda: self._session.call(operation, timeout_s=limit)  # noqa: E731  it is run elsewhere
        return await self._owner.run(call, limit_s=limit + self._limits.close_s + self._limits.margin_s, late=lost)

    async def _read(self, operation: etree._Element, trees: tuple[etree._Element, ...]) -> Reply:
        if trees:
            etree.SubElement(operation, f"{BASE}filter", type="subtree").extend(trees)
        reply = await self.call(operation)
        if not reply.has_data:
            raise AnswerUnusable("the reply to a read has no data", subject=self.name)
        return reply


class NetconfClient:
    """Opens sessions, at most so many at once in this process: more than a worker has devices, so that none waits for another."""

    def __init__(self, *, limits: Limits | None = None, most_sessions: int = 256) -> None:
        quiet_libraries()
        self._limits = limits or Limits()
        self._places = asyncio.Semaphore(most_sessions)

    @asynccontextmanager
    async def session(self, endpoint: Endpoint) -> AsyncIterator[NetconfSession]:
        """An open session, ended when the block ends.

        Raises:
            Unavailable: no connection, no answer in time, or no session is free at the device.
            BlockedError: the host key is another one, or the credential is refused.
        """
        limits = self._limits
        async with self._places:
            pinned = PinnedSession(endpoint, limits)
            owner = _Owner(f"netconf {endpoint.name}", pinned)
            session = NetconfSession(pinned, owner, limits)
            try:
                late = Unavailable(
                    f"no session within {limits.open_s:g} s", code=ErrorCode.NETCONF_UNAVAILABLE, subject=endpoint.name
                )
                session.capabilities = await owner.run(pinned.open, limit_s=limits.open_s, late=late)
                yield session
                await owner.run(pinned.end, limit_s=2 * limits.close_s + limits.margin_s, late=late)
            finally:
                await owner.end(limit_s=2 * limits.close_s + limits.margin_s)


class _Owner:
    """The thread of one session."""

    def __init__(self, name: str, session: PinnedSession) -> None:
        self._session = session
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # A daemon: a name service that never answers must not keep the process from ending.
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    async def run(self, call: Callable[[], T], *, limit_s: float, late: Exception) -> T:
        """What `call` gives, run in the owner's thread; `late` is raised when it is not back after `limit_s`."""
        done: Future[T] = Future()
        self._work.put(lambda: _settle(done, call))
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.wrap_future(done)
        except TimeoutError:
            self._session.cut()
            raise late from None
        except asyncio.CancelledError:
            self._session.cut()
            raise

    async def end(self, *, limit_s: float) -> None:
        """Cut the connection, whatever state it is in, and see its threads end, as long as that is bounded."""
        late = Unavailable("the threads of a session do not end", subject=self._session.endpoint.name)
        try:
            await self.run(self._session.hang_up, limit_s=limit_s, late=late)
        except Unavailable:
            log.warning("the threads of a session do not end", device=self._session.endpoint.name)
        finally:
            self._work.put(None)

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call()


def _settle(done: "Future[T]", call: Callable[[], T]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001  it is raised where somebody waits for it
        done.set_exception(error)

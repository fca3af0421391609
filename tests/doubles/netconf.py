"""NETCONF sessions with a switch in memory: the responder without processes, SSH and waiting.

switch = MemoryDevice(new_device("FOC1234"), now=clock)
async with DirectNetconf({"switch-17": switch}).session(endpoint) as session: ...

The sessions have the methods of NetconfSession and raise its errors; faults are those of the responder.  What is tested about SSH, host
keys, time-outs and threads is tested with sshd.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from lxml import etree

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import ReplyLost, Unavailable
from gitops_ctl.device.netconf import AnswerUnusable, Endpoint, Reply
from gitops_ctl.device.netconfreply import BASE, read_reply
from tools.peers.iosxe.netconf import Gone, Session
from tools.peers.iosxe.state import DeviceFile


class MemoryDevice(DeviceFile):
    """The state of one switch, without a file."""

    def __init__(self, device: dict[str, Any], *, now: Callable[[], float] = time.time) -> None:
        super().__init__(Path("memory"), now=now)
        self.now = now
        self._text = msgspec.json.encode(device)

    def fault(self, kind: str, **members: Any) -> None:
        """See tools/peers/iosxe/netconf.py."""
        with self.change() as device:
            device["faults"].append({"for": "netconf", "kind": kind, **members})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        yield

    def _load(self) -> bytes:
        return self._text

    def _save(self, device: dict[str, Any]) -> None:
        self._text = msgspec.json.encode(device)


class _Wire:
    """Keeps what the responder sends; nothing more arrives."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def receive(self) -> None:
        return None

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def write(self, raw: bytes) -> None:
        self.sent.append(raw)


class DirectSession:
    """One session with a switch in memory."""

    def __init__(self, device: MemoryDevice, name: str, known: tuple[str, ...] = ()) -> None:
        self._device = device
        self.known = known
        self._over = False
        self.name = name
        self.capabilities: frozenset[str] = frozenset()

    async def get(self, *trees: etree._Element) -> Reply:
        return await self._read(etree.Element(f"{BASE}get"), trees)

    async def get_config(self, store: str, *trees: etree._Element) -> Reply:
        operation = etree.Element(f"{BASE}get-config")
        etree.SubElement(etree.SubElement(operation, f"{BASE}source"), f"{BASE}{store}")
        return await self._read(operation, trees)

    async def call(self, operation: etree._Element, *, timeout_s: float | None = None) -> Reply:
        if self._over:
            raise Unavailable("the session has ended", code=ErrorCode.NETCONF_UNAVAILABLE, subject=self.name)
        waited: list[float] = []
        wire = _Wire()
        session = Session(self._device, wire, now=self._device.now, sleep=waited.append)
        rpc = etree.Element(f"{BASE}rpc", {"message-id": "1"})
        rpc.append(operation)
        try:
            session.answer(rpc)
        except Gone:
            raise self._lost("the device closed the connection") from None
        if sum(waited) > (timeout_s or 30):
            raise self._lost("no reply in time")
        text = wire.sent[-1].decode()
        if 'message-id="1"' not in text:
            raise self._lost("an answer to somebody else")
        return read_reply(text, subject=self.name, known=self.known)

    async def _read(self, operation: etree._Element, trees: tuple[etree._Element, ...]) -> Reply:
        if trees:
            etree.SubElement(operation, f"{BASE}filter", type="subtree").extend(trees)
        reply = await self.call(operation)
        if not reply.has_data:
            raise AnswerUnusable("the reply to a read has no data", subject=self.name)
        return reply

    def _lost(self, why: str) -> ReplyLost:
        self._over = True
        return ReplyLost(why, code=ErrorCode.NETCONF_REPLY_LOST, subject=self.name)


class DirectNetconf:
    """Takes the place of NetconfClient; switches are found by the name of their endpoint."""

    def __init__(self, devices: Mapping[str, MemoryDevice]) -> None:
        self._devices = devices
        self.away: set[str] = set()
        """Switches that do not answer."""

    @asynccontextmanager
    async def session(self, endpoint: Endpoint) -> AsyncIterator[DirectSession]:
        device = self._devices[endpoint.name]
        down = device.read().get("downUntil", 0) > device.now()
        refused = device.take_fault("netconf", "hello") is not None
        if endpoint.name in self.away or down or refused:
            raise Unavailable("no connection", code=ErrorCode.NETCONF_UNAVAILABLE, subject=endpoint.name)
        login = getattr(endpoint, "login", None)
        yield DirectSession(device, endpoint.name, login.secrets if login is not None else ())

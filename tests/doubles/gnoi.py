"""gNOI sessions with a switch in memory: the peer without TLS, sockets and waiting.

switch = MemorySwitch(new_device("FOC1234"), now=clock)
sessions = DirectGnoi({"192.0.2.21:9339": switch})
async with sessions.session(target) as session: ...

The sessions have the methods of GnoiSession and give its outcomes; faults are those of tools/peers/gnoi/faults.py.  MemorySwitch is a
MemoryDevice, so DirectNetconf shows the same switch.  What is tested about TLS, streams and stalls is tested with the peer.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from gitops_ctl.core.errors import InternalError
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.gnoi import RebootStatus, Standby, StandbyState, Verified
from gitops_ctl.device.gnoianswers import GnoiNotProvisioned, GnoiUnsupported
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.installstream import CHUNK_BYTES, Content, InstallOrder, InstallTerms, Progress
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from tests.doubles.netconf import MemoryDevice
from tools.peers.gnoi import switch
from tools.peers.gnoi.package import PackageError, Received

Point = Callable[[str, str, Literal["before", "after"]], Awaitable[None]]
"""Hears of each call (serial number, method) before anything happens and when everything has; it may raise."""

_PERMANENT = {
    *("UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MemorySwitch(MemoryDevice):
    """The state of one switch, with both of its sides; reboots begin and end as time goes on."""

    def __init__(self, device: dict[str, Any], *, now: Callable[[], float] = time.time, **settings: Any) -> None:
        super().__init__(switch.prepared(device, **settings), now=now)

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        with super().change() as device:
            switch.settle(device, self.now())
            yield device

    def order(self, kind: str, *, on: str, **members: Any) -> None:
        """A fault of this side."""
        with self.change() as device:
            device["faults"].append({"for": "gnoi", "kind": kind, "on": on, **members})


class DirectSession:
    """One session with a switch in memory; one changing call, as with the real one."""

    def __init__(self, device: MemorySwitch, name: str, point: Point | None) -> None:
        self._device = device
        self._name = name
        self._point = point
        self._is_spent = False

    async def verify(self) -> Verified:
        await self._read("Verify")
        device = self._device.read()
        await self._tell("Verify", "after")
        return Verified(
            version=device["running"],
            fail_message=device["failMessage"],
            standby=_standby(device),
            individual_installs=device["gnoi"]["layout"] == "individual",
        )

    async def device_time(self) -> datetime:
        await self._read("Time")
        return _EPOCH + timedelta(seconds=self._device.now() + self._device.read()["gnoi"]["clockOffsetS"])

    async def reboot_status(self) -> RebootStatus:
        await self._read("RebootStatus")
        gnoi, now = self._device.read()["gnoi"], self._device.now()
        pending = gnoi["pendingReboot"]
        if pending is None or now < pending["acceptedAt"] + gnoi["inactiveS"]:
            return RebootStatus(active=False, wait_s=0.0, reason="", failed=False)
        return RebootStatus(active=True, wait_s=max(0.0, pending["at"] - now), reason=pending["reason"], failed=False)

    async def cancel_reboot(self, message: str) -> Outcome:
        self._spend("CancelReboot")
        if (ended := await self._changing("CancelReboot")) is not None:
            return ended
        with self._device.change() as device:
            switch.record(device, "CancelReboot", {"message": message}, now=self._device.now())
            device["gnoi"]["pendingReboot"] = None
        return await self._answered("CancelReboot", Accepted())

    async def activate(self, version: str, *, standby: bool, no_reboot: bool) -> Outcome:
        self._spend("Activate")
        await self._tell("Activate", "before")
        if (refusal := self._unprovisioned("Activate")) is not None:
            return refusal
        with self._device.change() as device:
            arguments = {"version": version, "standby": standby, "noReboot": no_reboot}
            switch.record(device, "Activate", arguments, now=self._device.now())
        if (ended := self._ended("Activate", "Activate")) is not None:
            return ended
        try:
            with self._device.change() as device:
                switch.require_activatable(device, version, standby=standby)
                switch.activate(device, version, standby=standby, no_reboot=no_reboot, now=self._device.now())
        except switch.RefusedError as refused:
            return Refused(refused.kind, f"the device refuses the activation: {refused.kind}: {refused.detail}")
        return await self._answered("Activate", Accepted())

    async def install(self, order: InstallOrder, content: Content, *, terms: InstallTerms) -> Outcome:
        self._spend("Install")
        if not order.version:
            raise InternalError("an install without a version would force a transfer")
        if (ended := await self._changing("Install")) is not None:
            return ended
        with self._device.change() as device:
            arguments = {"version": order.version, "standby": order.standby, "size": order.size}
            switch.record(device, "Install", arguments, now=self._device.now())
        if (ended := self._ended("Install:asked", "Install")) is not None:
            return ended
        try:
            return await self._installed(order, content, terms)
        except switch.RefusedError as refused:
            detail = refused.detail or "the device gives no detail"
            return Refused(refused.kind, f"the device refuses the install: {refused.kind}: {detail}")
        finally:
            with self._device.change() as device:
                device["operation"] = None if _is_ours(device) else device["operation"]

    async def _installed(self, order: InstallOrder, content: Content, terms: InstallTerms) -> Outcome:
        with self._device.change() as device:
            way = switch.require_installable(device, order.version, standby=order.standby, size=order.size)
            if way in ("ready", "sync"):
                device["operation"] = {"kind": "add", "by": "gnoi", "startedAt": self._device.now()}
        if way == "sync":
            version = switch.named(switch.installed(self._device.read(), standby=not order.standby), order.version)
            return await self._stored(order, version, sent=0)
        if way != "ready":
            return await self._answered("Install", Accepted(way, 0))
        return await self._transferred(order, content, terms)

    async def _transferred(self, order: InstallOrder, content: Content, terms: InstallTerms) -> Outcome:
        received, digest = Received(), hashlib.sha256()
        ended = self._ended("Install:content", "Install")
        async for chunk in content.chunks(CHUNK_BYTES):
            if ended is not None:
                return self._after_fault(order, ended)
            await terms.pacer.release(len(chunk))
            received.feed(chunk)
            digest.update(chunk)
            terms.tell(Progress(sent_bytes=received.size, received_bytes=received.size))
        if (received.size, digest.hexdigest()) != (order.size, order.sha256):
            return Unknown("the image changed while it was read; the end of the transfer was not sent", received.size)
        if (ended := self._ended("Install:end", "Install", sent=received.size)) is not None:
            return self._after_fault(order, ended)
        try:
            members = received.judged(self._device.read()["platform"])
        except PackageError as error:
            return Refused(error.kind, f"the device refuses the install: {error.kind}: {error}", received.size)
        return await self._stored(order, members["version"], sent=received.size, failing=members.get("fail_activation"))

    async def _stored(self, order: InstallOrder, version: str, *, sent: int, failing: object = False) -> Outcome:
        with self._device.change() as device:
            switch.store(
                device, version, standby=order.standby, size=sent, failing=bool(failing), now=self._device.now()
            )
        if (ended := self._ended("Install:stored", "Install", sent=sent)) is not None:
            return ended
        return await self._answered("Install", Accepted(version, sent))

    def _after_fault(self, order: InstallOrder, ended: Outcome) -> Outcome:
        if isinstance(ended, Unknown) and ended.message.startswith("store "):
            with self._device.change() as device:
                version = ended.message.removeprefix("store ")
                switch.store(device, version, standby=order.standby, size=0, failing=False, now=self._device.now())
        return ended

    def _ended(self, place: str, method: str, *, sent: int = 0) -> Outcome | None:
        """The outcome that a fault at this place makes, when there is one."""
        fault = self._device.take_fault("gnoi", place)
        completed = place in ("Install:end", "Install:stored")
        match None if fault is None else fault["kind"]:
            case None | "delay" | "stall" | "progress":
                return None
            case "error" if fault is not None and fault["code"] in _PERMANENT:
                return Refused(fault["code"], f"{method}: the device answers {fault['code']}", sent)
            case "answer" if fault is not None:
                return Refused(fault["type"], f"the device refuses the install: {fault['type']}", sent)
            case "validated" if fault is not None:
                return Accepted(fault["version"], sent)
            case "store" if fault is not None:
                return Unknown(f"store {fault['version']}", sent, completed)
        return Unknown(f"the reply to {method} is lost", sent, completed)

    async def _changing(self, method: str) -> Outcome | None:
        await self._tell(method, "before")
        return self._unprovisioned(method) or self._ended(method, method)

    def _unprovisioned(self, method: str) -> Refused | None:
        if self._device.read()["provisioned"]:
            return None
        return Refused("NOT_PROVISIONED", f"{method}: the device is not provisioned for gNOI")

    async def _answered(self, method: str, outcome: Outcome) -> Outcome:
        """The outcome, unless its reply is lost."""
        lost = self._ended(f"{method}:done", method)
        await self._tell(method, "after")
        return outcome if lost is None else lost

    async def _read(self, method: str) -> None:
        await self._tell(method, "before")
        if not self._device.read()["provisioned"]:
            raise GnoiNotProvisioned(f"{method}: the device is not provisioned for gNOI", subject=self._name)
        fault = self._device.take_fault("gnoi", method)
        is_missing = self._device.read()["gnoi"]["quirks"] and method != "Verify"
        if is_missing or (fault is not None and fault.get("code") == "UNIMPLEMENTED"):
            raise GnoiUnsupported(f"{method}: the device does not offer this call", subject=self._name)
        if (fault is not None and fault["kind"] != "delay") or _is_down(self._device):
            raise GnoiUnavailable(f"{method}: the device does not answer", subject=self._name)

    async def _tell(self, method: str, when: Literal["before", "after"]) -> None:
        if self._point is not None:
            await self._point(self._device.read()["serial"], method, when)

    def _spend(self, method: str) -> None:
        if self._is_spent:
            raise InternalError(f"{method}: a session sends one changing call")
        self._is_spent = True


class DirectGnoi:
    """Takes the place of GnoiClient; switches are found by the text of their target, `address:port`."""

    def __init__(self, devices: Mapping[str, MemorySwitch], *, point: Point | None = None) -> None:
        self._devices = devices
        self._point = point
        self.away: set[str] = set()
        """Switches that do not answer."""

    @asynccontextmanager
    async def session(self, target: GnoiTarget) -> AsyncIterator[DirectSession]:
        name = str(target)
        device = self._devices[name]
        if name in self.away or _is_down(device):
            raise GnoiUnavailable("there is no connection to the gNOI service: Connection refused", subject=name)
        yield DirectSession(device, name, self._point)


def _is_down(device: MemorySwitch) -> bool:
    return bool(device.read()["downUntil"] > device.now())


def _is_ours(device: dict[str, Any]) -> bool:
    return device["operation"] is not None and device["operation"]["by"] == "gnoi"


def _standby(device: dict[str, Any]) -> Standby:
    gnoi = device["gnoi"]
    if gnoi["layout"] == "single":
        return Standby(StandbyState.UNSUPPORTED)
    condition = "unavailable" if gnoi["standbyReboot"] is not None else gnoi["standby"]
    if condition != "ready":
        return Standby(StandbyState.NON_EXISTENT if condition == "absent" else StandbyState.UNAVAILABLE)
    supervisor = device["supervisors"][1]
    message = "" if supervisor["running"] != device["running"] else gnoi.get("standbyFailMessage", "")
    return Standby(StandbyState.READY, supervisor["slot"], supervisor["running"], message)

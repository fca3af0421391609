"""The state of one device, in a file that its NETCONF and its gNOI side share.

Each side is processes of its own, so every look and every change takes the lock beside the file, and the file is replaced as a
whole.  What time does to a device (an auto-abort timer that ends, a commit that needs a while) happens at the next look.
Times are seconds of the epoch, sizes are bytes.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

AUTO_ABORT_S = 7200
FLASH = 11_353_194_496


class DeviceFile:
    """`path` is the file; `path.lock` beside it is the lock."""

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now

    def create(self, device: dict[str, Any]) -> None:
        with self._locked():
            self._save(device)

    def read(self) -> dict[str, Any]:
        """As the device is now."""
        with self.change() as device:
            return device

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        """The device to be changed in place; nothing is kept when the block raises."""
        with self._locked():
            before = self._load()
            device: dict[str, Any] = msgspec.json.decode(before)
            pass_time(device, self._now())
            yield device
            if msgspec.json.encode(device) != before:
                self._save(device)

    def take_fault(self, side: str, *places: str) -> dict[str, Any] | None:
        """The first fault for this side that stands at one of the places; one that is used up is gone."""
        with self.change() as device:
            for fault in device["faults"]:
                if fault["for"] != side or fault.get("on", "") not in ("", *places):
                    continue
                if fault.get("skip", 0) > 0:
                    fault["skip"] -= 1
                    continue
                fault["times"] = fault.get("times", 1) - 1
                if fault["times"] == 0:
                    device["faults"].remove(fault)
                return dict(fault)
        return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self.path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _load(self) -> bytes:
        return self.path.read_bytes()

    def _save(self, device: dict[str, Any]) -> None:
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.write_bytes(msgspec.json.encode(device))
        os.replace(beside, self.path)


def new_device(serial: str, *, version: str = "17.18.02.0.4112.1766116039", supervisors: int = 1) -> dict[str, Any]:
    """A healthy switch at one committed version, with two uplinks and nothing unsaved."""
    config = (
        f'<native xmlns="http://cisco.com/ns/yang/Cisco-IOS-XE-native"><hostname>{serial.lower()}</hostname></native>'
    )
    return {
        "serial": serial,
        "platform": "C9300-48UXM",
        "mode": "install",
        "supervisors": [_supervisor(number, version) for number in range(supervisors)],
        "packages": [{"version": version, "state": "committed", "file": "", "addedAt": 0}],
        "running": version,
        "committed": version,
        "previous": version,
        "pending": "",
        "failMessage": "",
        "bootTime": 0,
        "autoAbort": None,
        "autoAbortSeconds": AUTO_ABORT_S,
        "committing": None,
        "operation": None,
        "history": [],  # adds that are over: {"file", "begun", "ended", "status"}
        "provisioned": True,
        **_uplinks(),
        "lldp": [],
        "apps": [],
        "runningConfig": config,
        "startupConfig": config,
        "commits": [],
        "mutations": [],
        "faults": [],
        "sessions": {},
        "sessionLimit": 16,
    }


def _supervisor(number: int, version: str) -> dict[str, Any]:
    return {
        "slot": f"R{number}",
        "role": "standby" if number else "active",
        "flashTotal": FLASH,
        "flashFree": 6 * 2**30,
        "running": version,
        "next": version,
    }


def _uplinks() -> dict[str, Any]:
    names = [f"TenGigabitEthernet1/1/{number}" for number in (1, 2)]
    rates = {"oper": "up", "speed": 10**10, "inKbps": 400_000, "outKbps": 900_000}
    return {
        "interfaces": [{"name": name, **rates} for name in names],
        "cdp": [
            {"id": f"core-{number}.example.net", "interface": name, "state": "discovered"}
            for number, name in enumerate(names, start=1)
        ],
    }


def pass_time(device: dict[str, Any], now: float) -> None:
    """What is due by now happens: a commit that was asked for is done, an uncommitted version is left."""
    committing, timer = device["committing"], device["autoAbort"]
    if committing is not None and committing["until"] <= now:
        commit(device)
    elif timer is not None and timer["deadline"] <= now:
        boot(device, timer["revertTo"], now=now)
        device["autoAbort"] = device["committing"] = None
        device["failMessage"] = "the auto-abort timer ended before a commit"


def commit(device: dict[str, Any]) -> None:
    """What runs is kept; the timer stops."""
    for package in device["packages"]:
        if package["version"] == device["running"]:
            package["state"] = "committed"
        elif package["state"] == "committed":
            package["state"] = "inactive"
    device["committed"] = device["running"]
    device["autoAbort"] = device["committing"] = None


def boot(device: dict[str, Any], version: str, *, now: float) -> None:
    """The device comes up with `version`; whether that is committed is not decided here."""
    device["previous"], device["running"], device["pending"] = device["running"], version, ""
    device["bootTime"] = now
    for supervisor in device["supervisors"]:
        supervisor["running"] = supervisor["next"] = version
    for package in device["packages"]:
        if package["version"] == version and package["state"] != "committed":
            package["state"] = "active"
        elif package["state"] == "active":
            package["state"] = "inactive"


def activate(device: dict[str, Any], version: str, *, now: float) -> None:
    """The device boots `version` and, where it needs a commit, arms the timer that leaves it again."""
    committed = device["committed"]
    boot(device, version, now=now)
    if not device["autoAbortSeconds"]:
        commit(device)
    elif version != committed:
        device["autoAbort"] = {"deadline": now + device["autoAbortSeconds"], "revertTo": committed}

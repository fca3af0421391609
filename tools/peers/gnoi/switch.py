"""What a switch does with its software, on the device file; no gRPC here (the text of the OS service; devices.md, sections 11 and 16).

`gnoi` in the device file holds what only this side knows; see `SETTINGS`.  Reboots take the time that is set there; meanwhile `downUntil` is in
the future and neither side of the switch answers.
"""

from typing import Any

from tools.peers.iosxe import state

SETTINGS: dict[str, Any] = {
    "layout": "single",  # single, whole (one install for both supervisors), individual (one each)
    "standby": "ready",  # ready, unavailable, absent
    "copies": True,  # one supervisor takes a package from the other, where installs are individual
    "standbyVersions": [],  # installed on the standby, where installs are individual
    "failing": [],  # versions that do not boot
    "bootFails": "message",  # and whether the switch says so after it came back with the old one: message, silent
    "rebootS": 0.2,
    "ignoreNoReboot": False,
    "effectAfterS": 0.0,  # an activation that was accepted shows nowhere for this long, and takes effect then
    "listedAfterS": 0.0,  # a package that was added shows in no inventory for this long
    "later": [],  # what was accepted and is due: {"at", "what": activate or store, "arguments"}
    "quirks": False,  # of a public implementation: UNKNOWN for wrong orders and on top of INSTALL_IN_PROGRESS, no service System
    "clockOffsetS": 0.0,
    "inactiveS": 0.0,  # RebootStatus does not know of a reboot for this long after it was accepted
    "readyAfterS": 0.01,
    "progressBytes": 5_000_000,
    "reboot": None,  # {"until", "into"}
    "standbyReboot": None,
    "pendingReboot": None,  # of System.Reboot with a delay: {"at", "reason", "acceptedAt"}
    "violations": [],  # changing calls that came a second time
    "counted": [],  # changing calls since the last order `forget`
}


class RefusedError(Exception):
    """The type and detail of an InstallError or ActivateError."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


def prepared(device: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The device with this side's members; `settings` replace those of SETTINGS."""
    return {"downUntil": 0, **device, "gnoi": {**SETTINGS, **device.get("gnoi", {}), **settings}}


def record(device: dict[str, Any], method: str, arguments: dict[str, Any], *, now: float) -> None:
    """Note a changing call; the same one twice is a violation of at-most-once."""
    device["mutations"].append({"method": method, "arguments": arguments, "at": now})
    gnoi, call = device["gnoi"], [method, arguments]
    if call in gnoi["counted"]:
        gnoi["violations"].append({"method": method, "arguments": arguments, "at": now})
    gnoi["counted"].append(call)


def installed(device: dict[str, Any], *, standby: bool = False) -> list[str]:
    """Versions on one supervisor."""
    if standby:
        return list(device["gnoi"]["standbyVersions"])
    return [package["version"] for package in device["packages"]]


def named(versions: list[str], wanted: str) -> str:
    """The installed version that a request means: that one, or a longer one; empty when there is none."""
    return next((each for each in versions if wanted and (each == wanted or each.startswith(f"{wanted}."))), "")


def require_installable(device: dict[str, Any], version: str, *, standby: bool, size: int) -> str:
    """What a transfer request leads to: `ready`, `sync`, or the version that is there already.

    Raises:
        RefusedError: the install is not possible.
    """
    gnoi = device["gnoi"]
    if device["operation"] is not None:
        raise RefusedError("INSTALL_IN_PROGRESS", f"{device['operation']['kind']} runs")
    if standby and gnoi["layout"] != "individual":
        raise RefusedError("NOT_SUPPORTED_ON_BACKUP", "one install serves the whole system")
    if standby and gnoi["standby"] != "ready":
        raise RefusedError("UNSPECIFIED", "there is no standby supervisor that is ready")
    if found := named(installed(device, standby=standby), version):
        return found
    if gnoi["layout"] == "individual" and gnoi["copies"] and named(installed(device, standby=not standby), version):
        return "sync"
    supervisors = device["supervisors"]
    concerned = supervisors if gnoi["layout"] == "whole" else supervisors[1:2] if standby else supervisors[:1]
    if size and any(each["flashFree"] < size for each in concerned):
        raise RefusedError("TOO_LARGE", "there is not enough room in flash")
    return "ready"


def store(device: dict[str, Any], version: str, *, standby: bool, size: int, failing: bool, now: float) -> None:
    """The package is available from now on, or once the inventory lists it."""
    gnoi = device["gnoi"]
    if gnoi["listedAfterS"]:
        arguments = {"version": version, "standby": standby, "size": size, "failing": failing}
        gnoi["later"].append({"at": now + gnoi["listedAfterS"], "what": "store", "arguments": arguments})
        return
    _store(device, version, standby=standby, size=size, failing=failing, now=now)


def _store(device: dict[str, Any], version: str, *, standby: bool, size: int, failing: bool, now: float) -> None:
    gnoi = device["gnoi"]
    if failing:
        gnoi["failing"].append(version)
    file = f"cat9k_iosxe.{version}.SPA.bin"
    if standby:
        gnoi["standbyVersions"].append(version)
    elif version not in installed(device):
        package = {"version": version, "state": "added", "file": f"flash:{file}", "addedAt": now}
        device["packages"].append(package)
    device.setdefault("history", []).append({"file": file, "begun": now, "ended": now, "status": "succ"})
    for place, supervisor in enumerate(device["supervisors"]):
        if gnoi["layout"] == "whole" or place == int(standby):
            supervisor["flashFree"] -= size


def require_activatable(device: dict[str, Any], version: str, *, standby: bool) -> None:
    """Raises RefusedError when the version cannot be activated."""
    gnoi = device["gnoi"]
    if standby and gnoi["layout"] != "individual":
        raise RefusedError("NOT_SUPPORTED_ON_BACKUP", "one activation serves the whole system")
    if not version or version not in (*installed(device, standby=standby), device["running"]):
        raise RefusedError("NON_EXISTENT_VERSION", f"{version or 'no version'} is not installed")


def activate(device: dict[str, Any], version: str, *, standby: bool, no_reboot: bool, now: float) -> None:
    """Set the version of the next boot, and boot unless that is to wait; after a while where the switch takes its time."""
    gnoi = device["gnoi"]
    if gnoi["effectAfterS"]:
        arguments = {"version": version, "standby": standby, "no_reboot": no_reboot}
        gnoi["later"].append({"at": now + gnoi["effectAfterS"], "what": "activate", "arguments": arguments})
        return
    _activate(device, version, standby=standby, no_reboot=no_reboot, now=now)


def _activate(device: dict[str, Any], version: str, *, standby: bool, no_reboot: bool, now: float) -> None:
    gnoi = device["gnoi"]
    due = {"until": now + gnoi["rebootS"], "into": version}
    if standby:
        device["supervisors"][1]["next"] = version
        if not no_reboot or gnoi["ignoreNoReboot"]:
            gnoi["standbyReboot"] = due
        return
    if version == device["running"]:
        return
    device["supervisors"][0]["next"] = device["pending"] = version
    if not no_reboot or gnoi["ignoreNoReboot"]:
        gnoi["reboot"], device["downUntil"] = due, due["until"]


def reboot(device: dict[str, Any], *, now: float) -> None:
    """Boot what stands for the next boot."""
    gnoi = device["gnoi"]
    into = device["pending"] or device["running"]
    gnoi["reboot"] = {"until": now + gnoi["rebootS"], "into": into}
    device["downUntil"], gnoi["pendingReboot"] = gnoi["reboot"]["until"], None


def settle(device: dict[str, Any], now: float) -> None:
    """What is due by now happens: reboots begin and end."""
    gnoi = device["gnoi"]
    for one in [each for each in gnoi["later"] if each["at"] <= now]:
        gnoi["later"].remove(one)
        (_activate if one["what"] == "activate" else _store)(device, **one["arguments"], now=one["at"])
    pending, due, standby = gnoi["pendingReboot"], gnoi["reboot"], gnoi["standbyReboot"]
    if pending is not None and pending["at"] <= now and due is None:
        reboot(device, now=now)
    if standby is not None and standby["until"] <= now:
        device["supervisors"][1]["running"] = device["supervisors"][1]["next"] = standby["into"]
        gnoi["standbyReboot"] = None
    if due is not None and due["until"] <= now:
        _come_up(device, due["into"], now=now)
        gnoi["reboot"] = None
        device["downUntil"] = 0


def next_due(device: dict[str, Any]) -> float:
    """The next moment at which something happens by itself; far away when nothing does."""
    gnoi = device["gnoi"]
    moments = [each["until"] for each in (gnoi["reboot"], gnoi["standbyReboot"], device["committing"]) if each]
    moments += [each["at"] for each in gnoi["later"]]
    moments += [gnoi["pendingReboot"]["at"]] if gnoi["pendingReboot"] else []
    moments += [device["autoAbort"]["deadline"]] if device["autoAbort"] else []
    return min(moments, default=float("inf"))


def _come_up(device: dict[str, Any], into: str, *, now: float) -> None:
    gnoi, before = device["gnoi"], device["running"]
    standby = [supervisor["running"] for supervisor in device["supervisors"][1:]]
    if into in gnoi["failing"]:
        state.boot(device, before, now=now)
        device["failMessage"] = f"{into} did not boot" if gnoi["bootFails"] == "message" else ""
    elif into == before:
        device["bootTime"], device["pending"] = now, ""
        return
    else:
        state.activate(device, into, now=now)
        device["failMessage"] = ""
    if gnoi["layout"] == "individual":
        for supervisor, version in zip(device["supervisors"][1:], standby, strict=True):
            supervisor["running"] = supervisor["next"] = version

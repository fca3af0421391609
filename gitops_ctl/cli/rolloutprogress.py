"""How far a rollout is: waves, devices and bytes, read from the rollout and its leaves (rollouts.md, sections 3.4, 3.6 and 4.3).

Pure.  `status`, `report` and `explain` say the same about a device because all of them ask here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.names import CAMPAIGN_UID

KIND: Final = "IOSXESoftwareRollout"
_READY: Final = {"Succeeded": "True", "Cancelled": "True", "Failed": "False"}
_STOPPED: Final = frozenset({"PolicyChanged", "SourceChanged"})
_UNITS: Final = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_TIMES: Final = ("startTime", "installStartTime", "activationStartTime", "rollbackStartTime", "completionTime")


@dataclass(frozen=True, slots=True)
class DeviceProgress:
    """One target.

    Attributes:
        wave: 0 for canaries; the frozen number.
        phase, reason, message: of the target, as the manager wrote them; the phase is Planned before it was.
        step: phase of the leaf; "" while there is none.
        sent, size: bytes of the image; size is 0 while it is not known.
        since: when the target came into its phase.
        times: when each part of the work of the leaf began, in order; name and time.
        claims: stages that the worker has claimed.
    """

    name: str
    wave: int
    phase: str
    reason: str = ""
    message: str = ""
    step: str = ""
    sent: int = 0
    size: int = 0
    since: str = ""
    times: tuple[tuple[str, str], ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def bytes(self) -> str:
        """`312 MiB of 1.2 GiB (26 %)`; empty before the transfer."""
        if not self.sent:
            return ""
        if not self.size:
            return bytes_text(self.sent)
        return f"{bytes_text(self.sent)} of {bytes_text(self.size)} ({100 * self.sent // self.size} %)"

    def to_json(self) -> JsonObject:
        """The members in their order; empty ones are left out."""
        tree: dict[str, JsonValue] = {"device": self.name, "wave": self.wave, "phase": self.phase}
        optional: dict[str, JsonValue] = {
            "reason": self.reason,
            "message": self.message,
            "step": self.step,
            "bytesTransferred": self.sent,
            "totalBytes": self.size,
            "since": self.since,
            "times": [{"what": what, "at": at} for what, at in self.times],
            "claims": list(self.claims),
        }
        return tree | {name: value for name, value in optional.items() if value}


def bytes_text(count: int) -> str:
    """A number of bytes for people: `312 MiB`, `1.2 GiB`."""
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}" if unit == "GiB" else f"{count // size} {unit}"
    return f"{count} B"


def devices_of(rollout: JsonObject, leaves: Mapping[str, JsonObject]) -> tuple[DeviceProgress, ...]:
    """The targets in the order of the plan: canaries first.

    Args:
        leaves: by name; those of other campaigns do no harm.
    """
    status = object_at(rollout, "status")
    uid = text_at(rollout, "metadata", "uid")
    stored = {text_at(one, "deviceUID"): one for one in objects_at(status, "targets")}
    return tuple(
        _device(target, stored.get(text_at(target, "deviceUID"), {}), _own(leaves, text_at(target, "childName"), uid))
        for target in objects_at(status, "frozenPlan", "targets")
    )


def _own(leaves: Mapping[str, JsonObject], name: str, uid: str) -> JsonObject:
    leaf = leaves.get(name, {})
    return leaf if text_at(leaf, "metadata", "labels", CAMPAIGN_UID) == uid else {}


def _device(target: JsonObject, stored: JsonObject, leaf: JsonObject) -> DeviceProgress:
    status = object_at(leaf, "status")
    moved = object_at(status, "transferProgress")
    return DeviceProgress(
        name=text_at(target, "deviceName"),
        wave=int_at(target, "wave"),
        phase=text_at(stored, "phase", default="Planned"),
        reason=text_at(stored, "reason"),
        message=text_at(stored, "message") or text_at(status, "message"),
        step=text_at(status, "phase"),
        sent=int_at(moved, "bytesTransferred"),
        size=int_at(moved, "totalBytes") or int_at(status, "sourceSize"),
        since=text_at(stored, "lastTransitionTime"),
        times=tuple((name, at) for name in _TIMES if (at := text_at(status, name))),
        claims=tuple(text_at(claim, "stage") for claim in objects_at(status, "managedMutationClaims")),
    )


def waves_of(devices: Iterable[DeviceProgress]) -> dict[int, tuple[DeviceProgress, ...]]:
    """The devices by their wave, in order."""
    found: dict[int, tuple[DeviceProgress, ...]] = {}
    for device in devices:
        found[device.wave] = (*found.get(device.wave, ()), device)
    return dict(sorted(found.items()))


def wave_name(number: int) -> str:
    """What people call a wave."""
    return "canaries" if number == 0 else f"wave {number}"


def wave_text(number: int, devices: Sequence[DeviceProgress]) -> str:
    """`canaries: 2 of 2 succeeded`, and what the others are."""
    counted = Counter(device.phase for device in devices)
    done = counted.pop("Succeeded", 0)
    others = "".join(f", {count} {phase}" for phase, count in sorted(counted.items()))
    return f"{wave_name(number)}: {done} of {len(devices)} succeeded{others}"


def rollout_summary(rollout: JsonObject, leaves: Mapping[str, JsonObject]) -> JsonObject:
    """One rollout in the form of `status`: its phase, the waves in the message, and each device with its bytes."""
    status, devices = object_at(rollout, "status"), devices_of(rollout, leaves)
    phase = text_at(status, "phase")
    waves = waves_of(devices)
    said = text_at(status, "message")
    numbers = "; ".join(wave_text(number, found) for number, found in waves.items())
    return {
        "kind": KIND,
        "namespace": text_at(rollout, "metadata", "namespace"),
        "name": text_at(rollout, "metadata", "name"),
        "ready": _ready(status, phase),
        "reason": _reason(status, phase),
        "message": "; ".join(part for part in (numbers, said) if part),
        "revision": "",
        "since": _since(status),
        "phase": phase,
        "targetVersion": text_at(rollout, "spec", "plan", "targetVersion"),
        "planHash": text_at(status, "frozenPlan", "hash"),
        "counts": object_at(status, "counts"),
        "control": object_at(status, "control"),
        "waves": [{"wave": number, "text": wave_text(number, found)} for number, found in waves.items()],
        "devices": [device.to_json() for device in devices],
        "conditions": list(objects_at(status, "conditions")),
    }


def _condition(status: JsonObject, kind: str) -> JsonObject:
    return next((one for one in objects_at(status, "conditions") if text_at(one, "type") == kind), {})


def _ready(status: JsonObject, phase: str) -> str:
    """False only for what no waiting mends: a failed rollout, one that cannot be planned, one that needs another plan."""
    if _reason(status, phase) == "PlanningFailed":
        return "False"
    if any(text_at(_condition(status, kind), "status") == "True" for kind in _STOPPED):
        return "False"
    return _READY.get(phase, "Unknown")


def _reason(status: JsonObject, phase: str) -> str:
    """The phase, and in Paused and Failed the word that says why."""
    resume = _condition(status, "CanaryResumeRequired")
    if phase == "Paused" and text_at(resume, "status") == "True":
        return text_at(resume, "reason")
    said = text_at(_condition(status, "Ready"), "reason")
    return said if said and phase in ("Paused", "Failed", "") else phase or "Planning"


def _since(status: JsonObject) -> str:
    return text_at(_condition(status, "Progressing"), "lastTransitionTime") or text_at(
        _condition(status, "Ready"), "lastTransitionTime"
    )


def detail_lines(summary: JsonObject) -> Iterator[str]:
    """What stands below the table of `status` for a rollout that is not over: one line for each device, by waves."""
    if text_at(summary, "phase") in ("Succeeded", "Cancelled"):
        return
    for wave in objects_at(summary, "waves"):
        yield f"  {text_at(wave, 'text')}"
        for device in objects_at(summary, "devices"):
            if device.get("wave") == wave.get("wave"):
                yield f"    {device_line(device)}".rstrip()


def device_line(device: JsonObject) -> str:
    """`edge-1  Running  Transferring  312 MiB of 1.2 GiB (26 %)`, with the reason where the phase does not say all."""
    sent, size = int_at(device, "bytesTransferred"), int_at(device, "totalBytes")
    moved = DeviceProgress(name="", wave=0, phase="", sent=sent, size=size).bytes
    phase, reason, step = (text_at(device, name) for name in ("phase", "reason", "step"))
    words = [f"{text_at(device, 'device'):<16}", f"{phase:<20}"]
    words += [step] if step not in ("", phase) else []
    words += [moved] if moved and phase not in ("Succeeded", "Cancelled") else []
    words += [reason] if reason not in ("", phase, step) else []
    said = text_at(device, "message") if phase in ("Blocked", "Failed", "Soaking") else ""
    return " ".join(words) + (f": {said}" if said else "")

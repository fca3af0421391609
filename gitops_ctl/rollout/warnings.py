"""What a person should know before approving a plan; a warning blocks nothing (rollouts.md, sections 9.4 and 22)."""

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.fleet.device import Preflight
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.planned import Plan

_SEGMENT: Final = re.compile(r"([0-9]+)[a-z]?")


class WarningReason(enum.StrEnum):
    """The words of the warnings."""

    SOAK_ZERO = "SoakZeroUsesDefault"
    AGE_WITHOUT_EFFECT = "ObservationAgeWithoutEffect"
    VERSION_STYLE = "VersionStyleDiffers"
    TRANSFER_TOO_LONG = "TransferExceedsTimeout"
    FLEET_BLOCKED = "FleetBlocksAdmission"


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """One warning; `device` is "" when the plan as a whole is meant."""

    reason: WarningReason
    message: str
    device: str = ""

    def __str__(self) -> str:
        where = f"{self.device}: " if self.device else ""
        return f"{where}{self.message} ({self.reason})"


def plan_warnings(plan: Plan, *, policy_freshness_s: int) -> Iterator[PlanWarning]:
    """What the numbers of a plan do not mean."""
    soaks = (
        ("canarySoakSeconds", plan.canary_soak_s, plan.effective_canary_soak_s),
        ("waveSoakSeconds", plan.wave_soak_s, plan.effective_wave_soak_s),
    )
    for name, written, effective in soaks:
        if not written:
            message = f"health.{name} is 0, which counts as unset: {effective} s are waited; write 1 for no wait"
            yield PlanWarning(WarningReason.SOAK_ZERO, message)
    if plan.max_age_s > policy_freshness_s:
        message = (
            f"health.maxObservationAgeSeconds is {plan.max_age_s}, and the fleet policy takes nothing older "
            f"than {policy_freshness_s} s"
        )
        yield PlanWarning(WarningReason.AGE_WITHOUT_EFFECT, message)


def version_warnings(target_version: str, running: Mapping[str, str]) -> Iterator[PlanWarning]:
    """Devices that write versions in another style than the plan, so that the target may never verify.

    Args:
        running: device name to the version in the words of the device's own OS service; a device of which none is known is left out.
    """
    for device, version in running.items():
        place = differing_segment(target_version, version)
        if place:
            message = (
                f"the device writes {version} and the plan {target_version}: segment {place} has a leading zero in "
                "only one of them, and versions are compared as text"
            )
            yield PlanWarning(WarningReason.VERSION_STYLE, message, device)


def transfer_warning(device: str, *, size: int, rate: int, install_timeout_s: int) -> PlanWarning | None:
    """Whether an image takes longer than the installation may.

    Args:
        size: bytes of the image, 0 while it is not known.
        rate: frozen bytes per second, 0 when the transfer is not paced.
    """
    if not size or not rate or size <= rate * install_timeout_s:
        return None
    message = (
        f"{size} bytes at {rate} bytes/s take {-(-size // rate)} s, and installTimeoutSeconds is {install_timeout_s}"
    )
    return PlanWarning(WarningReason.TRANSFER_TOO_LONG, message, device)


def campaign_warnings(campaign: CampaignState, preflights: Mapping[str, Preflight]) -> Iterator[PlanWarning]:
    """The warnings of a frozen plan, with what its preflights found out.

    Args:
        preflights: of this plan, by name of the device.
    """
    plan = campaign.plan
    yield from plan_warnings(plan, policy_freshness_s=campaign.effective.policy.freshness_s)
    running = {name: found.running_version for name, found in preflights.items() if found.running_version}
    yield from version_warnings(plan.target_version, running)
    for target in campaign.targets:
        found = preflights.get(target.device_name)
        warning = transfer_warning(
            target.device_name,
            size=found.image_size if found is not None else 0,
            rate=target.max_bytes_per_s,
            install_timeout_s=plan.install_timeout_s,
        )
        if warning is not None:
            yield warning


def differing_segment(target: str, running: str) -> int:
    """The first place, from 1, where one version has a leading zero and the other shows that it writes none; 0 without one.

    Only numbers below ten show it: 17.12 says nothing about how 17.3 would be written.
    """
    pairs = zip(_segments(target), _segments(running), strict=False)
    for place, (wanted, found) in enumerate(pairs, start=1):
        if wanted and found and int(wanted) < 10 and int(found) < 10 and len(wanted) != len(found):
            return place
    return 0


def _segments(version: str) -> Sequence[str]:
    found = (_SEGMENT.fullmatch(part) for part in version.split("."))
    return [match[1] if match is not None else "" for match in found]

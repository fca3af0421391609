"""Why a target of a rollout does not go on: the first unmet condition, by the checks that the manager makes (rollouts.md, 11.4 to 13.7).

Pure.  What decides is asked of the functions that decide in the manager, so that an explanation cannot differ from what happens.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gitops_ctl.cli.rolloutprogress import bytes_text
from gitops_ctl.cli.rolloutseen import Seen, Unmet, unhindered
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import int_at, object_at, text_at
from gitops_ctl.core.moment import from_rfc3339, to_rfc3339
from gitops_ctl.fleet.leaf import FROM_ACTIVATION_ON, Leaf
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.grant import ready_for_grant
from gitops_ctl.rollout.ledger_arithmetic import reserve
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.lock import judged as lock_judged
from gitops_ctl.rollout.progress import TargetPhase, TargetStanding
from gitops_ctl.rollout.refusal import Refusal
from gitops_ctl.rollout.settlement import After, Open, Soaking, judged, soak_s
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.validation import admissible, lock_claim, request_of

SOON: Final = "NextPass"
_NO_LOCK: Final = "0" * 32
_RECOVER: Final = (
    "if the device is dead or its outcome cannot be proven, two persons sign a recovery: `gitops-ctl rollout recover`"
)


def target_unmet(
    seen: Seen, campaign: CampaignState, target: Target, *, standing: TargetStanding | None, stopping: str, waits: str
) -> Unmet | None:
    """The first condition that the target waits for; None for one that has succeeded.

    Args:
        standing: as the status has it; None before it was written.
        stopping: name of a target that keeps every new one from beginning; "" without one.
        waits: why the whole wave waits; "" when it does not.
    """
    leaf = seen.leaf_of(campaign, target)
    if leaf is not None:
        return _of_leaf(seen, campaign, target, leaf, standing)
    if standing is not None and standing.phase in {TargetPhase.CANCELLED, TargetPhase.FAILED}:
        return Unmet(standing.reason or standing.phase.value, standing.message or "nothing of it ever began")
    return Unmet("WaitsForCanaries", waits) if waits else _unadmitted(seen, campaign, target, standing, stopping)


def _unadmitted(
    seen: Seen, campaign: CampaignState, target: Target, standing: TargetStanding | None, stopping: str
) -> Unmet:
    if seen.ledger is not None and seen.ledger.get(campaign.reservation_of(target)) is not None:
        return Unmet(SOON, "its reservation is in the ledger; its leaf is made next")
    refusal = _refusal(seen, unhindered(campaign), target)
    if refusal is not None:
        return Unmet(refusal.target_reason, refusal.message, _remedy(refusal.target_reason))
    if stopping and stopping != target.device_name:
        return Unmet(
            "WaitsForAnotherTarget", f"{stopping} soaks or is blocked; nothing else begins until it is through"
        )
    if standing is not None and standing.message and standing.phase is TargetPhase.BLOCKED:
        return Unmet(standing.reason, standing.message, _remedy(standing.reason))
    return Unmet(SOON, "nothing of its own is in its way; targets are admitted one at a time")


def _refusal(seen: Seen, campaign: CampaignState, target: Target) -> Refusal | None:
    """What an admission would answer now; None where it would admit, or where not all of it could be read."""
    facts = seen.facts(campaign, target)
    if facts is None:
        return None
    found = admissible(facts, begun=campaign, target=target)
    if isinstance(found, Refusal):
        return found
    lock = lock_judged(found.device, lock_claim(campaign, target))
    if isinstance(lock, Refusal):
        return lock
    if seen.ledger is None:
        return None
    which = Acquisition(campaign.reservation_of(target), campaign.effective.number, _NO_LOCK)
    answer = reserve(seen.ledger, found.policy, found.fleet, request_of(found, which, child_name=target.child_name))
    return answer if isinstance(answer, Refusal) else None


def _of_leaf(
    seen: Seen, campaign: CampaignState, target: Target, leaf: Leaf, standing: TargetStanding | None
) -> Unmet | None:
    state = leaf.admission.state if leaf.admission is not None else ""
    if leaf.recovery is not None and state == "Settled":
        return Unmet(leaf.recovery.outcome, f"two persons settled it: {listed(leaf.recovery.persons)}")
    if state == "Settled":
        return _failure(leaf) if leaf.is_failed else None
    if leaf.is_terminal:
        return _unsettled(seen, campaign, target, leaf, standing)
    match state:
        case "Granted":
            return _work(seen, campaign, leaf)
        case "Revoked":
            return _revoked(leaf)
        case _:
            return _ungranted(seen, campaign, target, leaf)


def _failure(leaf: Leaf) -> Unmet:
    said = text_at(leaf.status, "message") or text_at(leaf.status, "failureReason") or "its worker gave no message"
    return Unmet(leaf.phase, said, "look at the device, then make a new rollout for it and what is left")


def _unsettled(
    seen: Seen, campaign: CampaignState, target: Target, leaf: Leaf, standing: TargetStanding | None
) -> Unmet:
    node = None if seen.nodes is None else seen.nodes.get(target.node_name)
    policy = seen.policy.record.policy if seen.policy is not None and seen.policy.record is not None else None
    after = After(seen.devices.get(target.device_uid), node, policy, seen.now)
    since = _soaking_since(standing)
    found = judged(leaf, after, campaign=campaign, target=target, soaking_since=since)
    if isinstance(found, Open):
        remedy = _RECOVER if leaf.has_unresolved_claim else ""
        return Unmet(found.reason, found.message, remedy)
    if isinstance(found, Soaking):
        left = max(0, int((found.until - seen.now).total_seconds()))
        whole = soak_s(campaign, target)
        return Unmet("HealthyPostMutationSoak", f"healthy since the change; {left} of {whole} s are left to watch it")
    return Unmet(SOON, "outcome, health and soak are through: the next pass settles it")


def _soaking_since(standing: TargetStanding | None) -> datetime | None:
    soaks = standing is not None and standing.phase is TargetPhase.SOAKING and standing.since
    return from_rfc3339(standing.since) if standing is not None and soaks else None


def _ungranted(seen: Seen, campaign: CampaignState, target: Target, leaf: Leaf) -> Unmet:
    device = seen.devices.get(target.device_uid)
    if device is None:
        return Unmet("TargetChanged", f"there is no CiscoDevice {target.device_name} of the frozen UID any more")
    found = ready_for_grant(leaf, device, unhindered(campaign))
    if isinstance(found, Refusal):
        hint = "" if leaf.worker_control is not None else "see whether the network worker of the namespace runs"
        return Unmet(found.reason, found.message, hint)
    return Unmet(SOON, "its worker agreed: the next pass grants it")


def _work(seen: Seen, campaign: CampaignState, leaf: Leaf) -> Unmet:
    worker = leaf.worker_control
    if not leaf.claims:
        window = _window(seen.now, campaign)
        if window is not None:
            return window
    state = worker.effective_state if worker is not None else ""
    if state in ("Denied", "Paused"):
        said = worker.message if worker is not None and worker.message else "its worker may not claim anything now"
        return Unmet(f"Worker{state}", said)
    return Unmet(leaf.phase or "Granted", _step(leaf), _RECOVER if leaf.phase in FROM_ACTIVATION_ON else "")


def _window(now: datetime, campaign: CampaignState) -> Unmet | None:
    window = object_at(campaign.plan.tree, "maintenanceWindow")
    begins, ends = moment_at(window, "notBefore"), moment_at(window, "notAfter")
    if begins is not None and now < begins:
        left = int((begins - now).total_seconds())
        return Unmet("MaintenanceWindowNotOpen", f"the window opens at {to_rfc3339(begins)}, in {left} s")
    if ends is not None and now > ends:
        remedy = "make a new rollout with a later window"
        return Unmet("MaintenanceWindowClosed", f"the window closed at {to_rfc3339(ends)}; nothing was claimed", remedy)
    return None


def _step(leaf: Leaf) -> str:
    """What its worker does now."""
    moved = object_at(leaf.status, "transferProgress")
    sent, size = int_at(moved, "bytesTransferred"), int_at(moved, "totalBytes") or int_at(leaf.status, "sourceSize")
    parts: Sequence[str] = (
        f"its worker is at {leaf.phase}" if leaf.phase else "its worker has not begun yet",
        f"{bytes_text(sent)} of {bytes_text(size)} sent" if sent and size else "",
        f"claimed {listed([claim.stage for claim in leaf.claims])}" if leaf.claims else "",
        text_at(leaf.status, "message"),
    )
    return "; ".join(part for part in parts if part)


def _revoked(leaf: Leaf) -> Unmet:
    reason = leaf.admission.revocation_reason if leaf.admission is not None else ""
    if leaf.has_unresolved_claim:
        stages = listed([claim.stage for claim in leaf.claims])
        message = f"revoked ({reason}) after {stages} was claimed: it is looked at until the outcome is proven"
        return Unmet("AcceptedMutationConverging", message, _RECOVER)
    return Unmet(reason or "Revoked", "revoked before anything was claimed: the device was not touched")


def _remedy(reason: str) -> str:
    return _REMEDIES.get(reason, "")


_REMEDIES: Final = {
    "ClaimHistoryLost": "the journal of the worker is gone: see whether its volume was replaced",
    "DeviceRetired": "the replacement is a CiscoDevice of its own, in a rollout of its own",
    "PreparedOwnershipRetained": "activate or invalidate the preparation of the other rollout",
    "PreflightPending": "see whether the network worker of the namespace runs",
}

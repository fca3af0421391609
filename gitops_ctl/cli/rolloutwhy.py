"""Why nothing happens in a rollout: the first unmet condition of the campaign, and of each target (rollouts.md, sections 9.1 and 11.2).

Pure.  The conditions stand in the order in which the manager asks them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.cli.rolloutseen import Seen, Unmet
from gitops_ctl.cli.rollouttargetwhy import SOON, target_unmet
from gitops_ctl.core.conditions import condition_of, listed
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, object_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.rollout.activation import INVALID
from gitops_ctl.rollout.approval import REVOKED
from gitops_ctl.rollout.authority import NOT_FROM_GIT
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.control import acknowledged, in_force
from gitops_ctl.rollout.epochs import Begin, Fence, Publish, decide_epoch
from gitops_ctl.rollout.fenceup import standing_fence
from gitops_ctl.rollout.progress import TargetPhase, standings_of
from gitops_ctl.rollout.targets import Target

_STOPS: Final = frozenset({TargetPhase.SOAKING, TargetPhase.BLOCKED})
_NEW: Final = "make a new rollout with the devices that are left"


@dataclass(frozen=True, slots=True)
class TargetWhy:
    """One target; `unmet` is None for one that has succeeded."""

    device: str
    wave: int
    phase: str
    unmet: Unmet | None


@dataclass(frozen=True, slots=True)
class Why:
    """The answer.

    Attributes:
        first: None when the rollout is over and nothing is missing.
    """

    first: Unmet | None
    targets: tuple[TargetWhy, ...] = ()


def why(seen: Seen) -> Why:
    """The first unmet condition of the campaign, and that of each target."""
    campaign = campaign_state(seen.rollout)
    if campaign is None:
        return Why(next(_before_the_plan(seen), None))
    targets = tuple(_targets(seen, campaign))
    return Why(next(_conditions(seen, campaign, targets), None), targets)


def _before_the_plan(seen: Seen) -> Iterator[Unmet]:
    yield from _held(seen)
    status = object_at(seen.rollout, "status")
    if "deletionTimestamp" in object_at(seen.rollout, "metadata"):
        yield Unmet("Deleting", "the rollout is being deleted before it was planned")
    ready = condition_of(status, "Ready") or {}
    if text_at(ready, "reason") == "PlanningFailed":
        message = text_at(ready, "message") or text_at(status, "message")
        yield Unmet("PlanningFailed", message, "`gitops-ctl plan rollout FILE` names every device and what is wrong")
    if seen.policy is not None and seen.policy.record is None:
        message = f"the fleet policy cannot be used: {seen.policy.why or 'there is none'}"
        yield Unmet("PolicyUnavailable", message, "see docs/howto/fleet-policy")
    message = text_at(status, "message") or "the manager has not planned it yet; it looks again every few seconds"
    yield Unmet("PlanningDeferred", message, "`gitops-ctl plan rollout FILE` says which device is not ready, and why")


def _conditions(seen: Seen, campaign: CampaignState, targets: tuple[TargetWhy, ...]) -> Iterator[Unmet]:
    yield from _held(seen)
    phase = text_at(seen.rollout, "status", "phase")
    if phase in ("Succeeded", "Cancelled"):
        return
    if phase == "Failed":
        yield _failed(seen, targets)
        return
    yield from _ending(seen, campaign, targets)
    yield from _policy(seen, campaign)
    yield from _stopped(seen)
    yield from _approval(seen, campaign)
    yield from _paused(seen, campaign)
    yield from _in_work(targets)


def _held(seen: Seen) -> Iterator[Unmet]:
    if seen.hold is not None:
        place = f" ({seen.hold.place})" if seen.hold.place else ""
        yield Unmet(seen.hold.reason, f"{seen.hold.sync} holds the document{place}: {seen.hold.message}")


def _failed(seen: Seen, targets: tuple[TargetWhy, ...]) -> Unmet:
    said = text_at(seen.rollout, "status", "message")
    failed = [one for one in targets if one.phase == "Failed" and one.unmet is not None]
    reason = failed[0].unmet.reason if failed and failed[0].unmet is not None else "Failed"
    detail = "".join(f"; {one.device}: {one.unmet.message}" for one in failed if one.unmet is not None)
    fenced = sum(one.phase not in ("Failed", "Succeeded") for one in targets)
    rest = f"; the {fenced} others are fenced and were not touched" if fenced else ""
    return Unmet(reason, f"{said or 'the rollout failed'}{detail}{rest}", f"look at the device; then {_NEW}")


def _ending(seen: Seen, campaign: CampaignState, targets: tuple[TargetWhy, ...]) -> Iterator[Unmet]:
    if not campaign.deleting and not in_force(seen.rollout).cancel and not campaign.live_control.cancel:
        return
    word = (
        "it is being deleted" if campaign.deleting else f"control revision {campaign.live_control.revision} cancels it"
    )
    open_ones = [one for one in targets if one.phase not in ("Cancelled", "Succeeded", "Failed")]
    first = next((f"; {one.device}: {one.unmet.message}" for one in open_ones if one.unmet is not None), "")
    message = f"{word}: {len(open_ones)} of {len(targets)} targets are not settled yet{first}"
    yield Unmet("Cancelling", message)


def _policy(seen: Seen, campaign: CampaignState) -> Iterator[Unmet]:
    if seen.policy is None or standing_fence(seen.rollout) is not None:
        return
    found = decide_epoch(
        seen.policy,
        frozen=campaign.frozen,
        effective=campaign.effective,
        transition=campaign.transition,
        target_count=len(campaign.targets),
        requested_cap=campaign.plan.max_targets,
    )
    match found:
        case Fence(reason, message):
            yield Unmet(str(reason), message, _NEW)
        case Begin(epoch) | Publish(epoch):
            yield _transition(seen, campaign, epoch.number)
        case _:
            return


def _transition(seen: Seen, campaign: CampaignState, number: int) -> Unmet:
    """The old epoch is fenced first; what is claimed keeps its reservation."""
    leaves = [leaf for target in campaign.targets if (leaf := seen.leaf_of(campaign, target)) is not None]
    live = [
        leaf.name for leaf in leaves if leaf.admission is not None and leaf.admission.state in ("Pending", "Granted")
    ]
    waits = f"; {len(live)} of {len(leaves)} leaves are not fenced yet: {listed(live)}" if live else ""
    return Unmet(
        "FencingPreviousEpoch", f"the policy changed: epoch {number} begins once the former one is fenced{waits}"
    )


_TOLD = frozenset(
    {"ChildIdentityConflict", "RevisionRefused", "ActivationChildIdentityConflict", INVALID, REVOKED, NOT_FROM_GIT}
)
"""Reasons of the condition Ready whose message says what is wrong."""


def _stopped(seen: Seen) -> Iterator[Unmet]:
    """What the manager found about the campaign as a whole and what nothing here can look up."""
    status = object_at(seen.rollout, "status")
    fence = standing_fence(seen.rollout)
    if fence is not None:
        yield Unmet(fence.reason, fence.message or "what was approved is not what is there any more", _NEW)
    ready = text_at(condition_of(status, "Ready") or {}, "reason")
    if ready in _TOLD:
        yield Unmet(ready, text_at(status, "message"))


def _approval(seen: Seen, campaign: CampaignState) -> Iterator[Unmet]:
    if campaign.approved:
        return
    recorded, block = object_at(seen.rollout, "status", "approval"), object_at(seen.rollout, "spec", "approval")
    if block and recorded and not bool_at(recorded, "valid"):
        revision = f"; the accepted revision is {seen.accepted[:12]}" if seen.accepted else ""
        message = (
            f"the approval in the cluster has no effect: no commit of somebody with the verb approve has it{revision}"
        )
        yield Unmet(text_at(recorded, "reason"), message, "commit it to Git, signed by somebody who may approve")
        return
    if block:
        yield Unmet("ApprovalUnjudged", "the approval is in the cluster; the manager has not judged it yet")
        return
    yield Unmet("ApprovalRequired", _awaiting(seen, campaign), _how_to_approve(seen, campaign))


def _awaiting(seen: Seen, campaign: CampaignState) -> str:
    """The hash, and how far the preflight is."""
    found = [
        (target, device.preflight_of(campaign.uid) if device is not None else None)
        for target in campaign.targets
        for device in [seen.devices.get(target.device_uid)]
    ]
    done = [target for target, result in found if result is not None and result.plan_hash == campaign.plan_hash]
    failed = [target.device_name for target, result in found if result is not None and result.result == "Failed"]
    bad = f", failed on {listed(failed)}" if failed else ""
    numbers = f"the preflight is done on {len(done)} of {len(campaign.targets)} devices{bad}"
    return f"nobody has approved the plan {campaign.plan_hash}; {numbers}"


def _how_to_approve(seen: Seen, campaign: CampaignState) -> str:
    url = seen.requests.get(f"rollout-approval/{campaign.namespace}/{campaign.name}")
    by_hand = f"`gitops-ctl approve FILE planHash={campaign.plan_hash}`, signed by somebody other than the author"
    return f"merge {url}, or {by_hand}" if url else by_hand


def _paused(seen: Seen, campaign: CampaignState) -> Iterator[Unmet]:
    live, status = object_at(seen.rollout, "spec", "control"), object_at(seen.rollout, "status")
    resume = f"`gitops-ctl rollout resume {campaign.name}`, signed by somebody with the verb control"
    if campaign.live_control.pause or in_force(seen.rollout).pause:
        leaves = [leaf for target in campaign.targets if (leaf := seen.leaf_of(campaign, target)) is not None]
        late = [leaf.name for leaf in leaves if not acknowledged(leaf, campaign.live_control)]
        by = text_at(live, "requestedBy", default="somebody")
        why_ = f" ({text_at(live, 'reason')})" if text_at(live, "reason") else ""
        numbers = f"; {len(leaves) - len(late)} of {len(leaves)} leaves have acknowledged it" if leaves else ""
        yield Unmet("Paused", f"control revision {int_at(live, 'revision')} of {by} pauses it{why_}{numbers}", resume)
    condition = condition_of(status, "CanaryResumeRequired") or {}
    if text_at(condition, "status") == "True":
        count = sum(target.wave == 0 for target in campaign.targets)
        rest = len(campaign.targets) - count
        message = f"{count} of {count} canaries succeeded; {rest} more wait for a control revision above {campaign.live_control.revision}"
        yield Unmet("CanariesPassed", message, resume)


def _in_work(targets: tuple[TargetWhy, ...]) -> Iterator[Unmet]:
    """What soaks or is blocked stops everything else, so it comes first; then what works; then what waits."""
    open_ones = [one for one in targets if one.unmet is not None]
    ranked = sorted(open_ones, key=lambda one: _RANK.get(one.phase, len(_RANK)))
    for one in ranked:
        assert one.unmet is not None
        yield Unmet(one.unmet.reason, f"{one.device}: {one.unmet.message}", one.unmet.remedy)
    yield Unmet(SOON, "nothing is missing: the next pass goes on")


_RANK: Final = {name: place for place, name in enumerate(("Blocked", "Soaking", "Running", "Admitted", "Cancelling"))}


def _targets(seen: Seen, campaign: CampaignState) -> Iterator[TargetWhy]:
    standings = standings_of(seen.rollout)
    stopping = next((one.device_name for one in standings.values() if one.phase in _STOPS and one.leaf_name), "")
    waits = _waits_for_canaries(campaign, {uid: one.phase for uid, one in standings.items()})
    for target in campaign.targets:
        standing = standings.get(target.device_uid)
        phase = standing.phase if standing is not None else TargetPhase.PLANNED
        unmet = None
        if phase is not TargetPhase.SUCCEEDED:
            held_back = waits if target.wave > 0 else ""
            unmet = target_unmet(seen, campaign, target, standing=standing, stopping=stopping, waits=held_back)
        yield TargetWhy(target.device_name, target.wave, phase.value, unmet)


def _waits_for_canaries(campaign: CampaignState, phases: Mapping[str, TargetPhase]) -> str:
    canaries = [target for target in campaign.targets if target.wave == 0]
    done = [target for target in canaries if phases.get(target.device_uid) is TargetPhase.SUCCEEDED]
    if len(done) == len(canaries):
        return ""
    left = [_named(target) for target in canaries if target not in done]
    return f"{len(done)} of {len(canaries)} canaries succeeded; waits for {listed(left)}"


def _named(target: Target) -> str:
    return target.device_name


def result_json(seen: Seen, found: Why) -> JsonObject:
    """The answer for programs."""
    meta = object_at(seen.rollout, "metadata")
    return {
        "rollout": f"{text_at(meta, 'namespace')}/{text_at(meta, 'name')}",
        "phase": text_at(seen.rollout, "status", "phase"),
        "at": to_rfc3339(seen.now),
        "accepted": seen.accepted,
        "first": found.first.to_json() if found.first is not None else None,
        "targets": [
            {
                "device": one.device,
                "wave": one.wave,
                "phase": one.phase,
                "unmet": one.unmet.to_json() if one.unmet is not None else None,
            }
            for one in found.targets
        ],
    }

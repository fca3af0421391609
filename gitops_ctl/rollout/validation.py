"""Whether a target may go on now: everything that was frozen is compared with what is (rollouts.md, section 11.4).

Pure.  The same checks run before the lock, inside the ledger's compare-and-swap, and twice again for the grant; each time over facts that were
read anew.  The fleet comes from informers, everything about the target itself from the server.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.health import HealthProblem, Member, member_of
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.ledger import Reservation, State
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.epochs import Audit, Begin, Fence, Keep, PolicySeen, decide_epoch
from gitops_ctl.rollout.fleetlook import FleetLook
from gitops_ctl.rollout.leafplan import account_of
from gitops_ctl.rollout.ledger_arithmetic import (
    EffectivePolicy,
    Fleet,
    Limits,
    ReserveRequest,
    effective_policy,
    merged,
)
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.lock import LockClaim
from gitops_ctl.rollout.planned import DRAIN
from gitops_ctl.rollout.problem import Problem
from gitops_ctl.rollout.problem import Reason as ProblemReason
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.snapshot import PolicyRecord
from gitops_ctl.rollout.sources import Sources, SourceSecret, freeze_sources
from gitops_ctl.rollout.targets import Looked, Target, freeze_target, target_problems

_PASSES_BY_ITSELF: Final = frozenset(
    {
        ProblemReason.INITIALIZATION_GUARD,
        ProblemReason.PHASE_NOT_READY,
        ProblemReason.CONDITION_NOT_TRUE,
        ProblemReason.WORKER_REVISION,
        ProblemReason.WORKER_PROTOCOL,
        ProblemReason.NODE_NOT_READY,
        ProblemReason.MANAGED_WRITER,
        ProblemReason.HEALTH_NOT_FRESH,
        ProblemReason.NETWORK_GATE,
        ProblemReason.CLAIM_HISTORY_LOST,
        ProblemReason.RETIRED,
        ProblemReason.CRITICAL_SERVICE_PROTECTED,
        ProblemReason.SINGLETON_PATH_PROTECTED,
    }
)
"""The device is out for the moment, or for good, but it is the one that was frozen: only this target waits."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What one look found.

    Attributes:
        campaign: None when the object is gone, or is another one.
        active_pods: `namespace/name` of each Pod that runs or terminates on the target's Node.
        leaves: of the namespace.
        secrets: the source Secrets of the namespace by name.
        fleet: None until the informers have seen the whole fleet.
        history_lost: a leaf of the device says that the history of its claims is gone.
    """

    campaign: CampaignState | None
    policy: PolicySeen
    device: Device | None
    node: NodeSeen | None
    active_pods: tuple[str, ...]
    leaves: Sequence[Leaf]
    secrets: Mapping[str, SourceSecret]
    fleet: FleetLook | None
    history_lost: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class Valid:
    """A target that may go on, with what the next step needs."""

    campaign: CampaignState
    target: Target
    device: Device
    node: NodeSeen
    policy: EffectivePolicy
    fleet: Fleet
    account: str


def validated(facts: Facts, *, begun: CampaignState, target: Target) -> Valid | Refusal:
    """The checks in the order of the contract; the first that fails is the answer.

    Args:
        begun: the campaign as it was when the pass began; a later one must be the same in what counts.
    """
    campaign, record = facts.campaign, facts.policy.record
    refusal = (
        same_campaign(campaign, begun)
        or _policy_stands(facts, begun)
        or _prepared_by_others(facts, begun, target)
        or _sources_stand(facts, begun)
    )
    if refusal is not None:
        return refusal
    assert campaign is not None
    assert record is not None
    campaign = campaign.with_control(begun.control)
    if facts.device is None or facts.node is None:
        missing = f"CiscoDevice {target.device_name}" if facts.device is None else f"Node {target.node_name}"
        return Refusal(Reason.TARGET_CHANGED, f"{missing} is gone")
    refusal = _target_stands(facts, campaign, target, record) or _fleet_stands(facts, campaign, record)
    if refusal is not None:
        return refusal
    fleet = _fleet(facts, campaign, record)
    if isinstance(fleet, Refusal):
        return fleet
    return Valid(
        campaign=campaign,
        target=target,
        device=facts.device,
        node=facts.node,
        policy=effective_policy(campaign.effective.policy, record.policy, epoch=campaign.effective.number),
        fleet=fleet,
        account=account_of(campaign.namespace, record.policy.network_management_account),
    )


def admissible(facts: Facts, *, begun: CampaignState, target: Target) -> Valid | Refusal:
    """As `validated`, and what only a target needs that begins now: its preflight, and no workload on its Node."""
    found = validated(facts, begun=begun, target=target)
    if isinstance(found, Refusal):
        return found
    return _preflight(found) or no_workloads(facts, target) or found


def no_workloads(facts: Facts, target: Target) -> Refusal | None:
    """None while no Pod runs or terminates on the Node of the target."""
    if not facts.active_pods:
        return None
    count = len(facts.active_pods)
    return Refusal(
        Reason.WORKLOADS,
        f"{count} Pod{'s' if count > 1 else ''} on Node {target.node_name}: {listed(facts.active_pods, limit=5)}",
        scope=f"Node {target.node_name}",
        used=count,
        holders=facts.active_pods,
    )


def active_pods(pods: Sequence[JsonObject]) -> tuple[str, ...]:
    """The Pods that count: neither Succeeded nor Failed, or terminating."""
    found = [
        f"{text_at(pod, 'metadata', 'namespace')}/{text_at(pod, 'metadata', 'name')}"
        for pod in pods
        if text_at(pod, "status", "phase") not in {"Succeeded", "Failed"}
        or text_at(pod, "metadata", "deletionTimestamp")
    ]
    return tuple(sorted(found))


def request_of(valid: Valid, which: Acquisition, *, child_name: str) -> ReserveRequest:
    """What the ledger is asked for; `child_name` is that of the leaf of this run."""
    campaign, target, plan = valid.campaign, valid.target, valid.campaign.plan
    keys = {*valid.policy.domains, *(domain.key for domain in plan.domains)}
    record = Reservation(
        id=which.reservation_id,
        campaign_uid=campaign.uid,
        plan_hash=campaign.plan_hash,
        policy_uid=campaign.effective.policy.uid,
        policy_version=campaign.effective.policy.resource_version,
        policy_epoch=which.policy_epoch,
        topology_lock_id=which.lock_id,
        physical_id=target.physical_identity,
        device_uid=target.device_uid,
        node_uid=target.node_uid,
        child_namespace=campaign.namespace,
        child_name=child_name,
        domains=tuple((key, value) for key, value in target.topology if key in keys),
        risk_groups=target.risk_groups,
        control_revision=campaign.control.revision,
        state=State.RESERVED,
    )
    return ReserveRequest(
        record,
        Limits(plan.transfers, plan.unavailable),
        {domain.key: Limits(domain.transfers or None, domain.unavailable or None) for domain in plan.domains},
    )


def lock_claim(campaign: CampaignState, target: Target) -> LockClaim:
    """What the lock of a target says."""
    return LockClaim(
        device_namespace=campaign.namespace,
        device_name=target.device_name,
        campaign_namespace=campaign.namespace,
        campaign_name=campaign.name,
        campaign_uid=campaign.uid,
        plan_hash=campaign.plan_hash,
        reservation_id=campaign.reservation_of(target),
        policy_epoch=campaign.effective.number,
        device_uid=target.device_uid,
        device_generation=target.device_generation,
        node_uid=target.node_uid,
        projection_hash=target.projection_hash,
    )


def same_campaign(campaign: CampaignState | None, begun: CampaignState) -> Refusal | None:
    """None while the campaign is the one that the pass began with, approved, and asked for nothing else."""
    if campaign is None or campaign.uid != begun.uid:
        return Refusal(Reason.CAMPAIGN_CHANGED, f"rollout {begun.name} is gone")
    changes = (
        (campaign.deleting, "the rollout is being deleted"),
        (campaign.plan_hash != begun.plan_hash or not campaign.approved, "the exact plan is not approved"),
        (not begun.control.is_neutral, f"control revision {begun.control.revision} pauses or cancels"),
        (
            campaign.live_control != begun.live_control,
            f"control revision {campaign.live_control.revision} came in between",
        ),
        (campaign.transition is not None, "the next epoch of the policy is about to begin"),
        (campaign.effective != begun.effective, f"epoch {campaign.effective.number} of the policy came in between"),
        (campaign.plan.workload_policy == DRAIN, "workloads.policy Drain is not carried out by this version"),
    )
    return next((Refusal(Reason.CAMPAIGN_CHANGED, text) for changed, text in changes if changed), None)


def _policy_stands(facts: Facts, begun: CampaignState) -> Refusal | None:
    decision = decide_epoch(
        facts.policy,
        frozen=begun.frozen,
        effective=begun.effective,
        transition=None,
        target_count=len(begun.targets),
        requested_cap=begun.plan.max_targets,
    )
    match decision:
        case Keep():
            return None
        case Fence(_, message):
            return Refusal(Reason.POLICY_CHANGED, message)
        case Audit():
            return Refusal(
                Reason.POLICY_CHANGED, "the policy was rewritten without a change; its version is recorded first"
            )
        case Begin(epoch):
            return Refusal(Reason.POLICY_CHANGED, f"the policy changed; epoch {epoch.number} begins first")
        case _:
            return Refusal(Reason.POLICY_CHANGED, "an epoch is about to begin")


def _prepared_by_others(facts: Facts, begun: CampaignState, target: Target) -> Refusal | None:
    """A prepared leaf of another campaign owns its device until it is consumed or invalidated (12.1)."""
    consumed = {leaf.binding.prepared_upgrade_uid for leaf in facts.leaves if leaf.phase == "Succeeded"}
    for leaf in facts.leaves:
        if (
            leaf.binding.device_uid == target.device_uid
            and leaf.phase == "Prepared"
            and leaf.binding.campaign_uid != begun.uid
            and leaf.uid not in consumed
        ):
            owner = f"{leaf.binding.campaign_namespace}/{leaf.binding.campaign_name}"
            return Refusal(
                Reason.PREPARED_OWNERSHIP,
                f"rollout {owner} prepared {leaf.target_version} on {target.device_name} (leaf {leaf.name}), "
                "which is neither activated nor invalidated",
                holders=(owner,),
            )
    return None


def sources_stand(begun: CampaignState, record: PolicyRecord, secrets: Mapping[str, SourceSecret]) -> Sources | Refusal:
    """The sources of a campaign while each is the frozen one: the same Secret by its UID, which still allows the endpoint (11.2, step 2)."""
    keys = frozenset(record.policy.required_keys)
    found = freeze_sources(begun.plan, required_keys=keys, secrets=secrets, namespace=begun.namespace)
    if found.problems:
        return Refusal(Reason.SOURCE_CHANGED, str(found.problems[0]))
    frozen = {target.source.name: target.source for target in begun.targets}
    changed = sorted(name for name, source in frozen.items() if found.frozen.get(name) != source)
    if changed:
        return Refusal(Reason.SOURCE_CHANGED, f"source {listed(changed)} is not the frozen one any more")
    return found


def _sources_stand(facts: Facts, begun: CampaignState) -> Refusal | None:
    record = facts.policy.record
    assert record is not None
    found = sources_stand(begun, record, facts.secrets)
    if isinstance(found, Refusal):
        return found
    if facts.device is None:
        return None
    target = begun.by_device.get(facts.device.uid)
    chosen = found.choose(facts.device.labels)
    if target is not None and chosen != target.source:
        said = chosen.message if isinstance(chosen, Problem) else f"source {chosen.name} would be chosen now"
        return Refusal(
            Reason.SOURCE_CHANGED, f"{facts.device.name} was planned with source {target.source.name}; {said}"
        )
    return None


def _target_stands(facts: Facts, campaign: CampaignState, target: Target, record: PolicyRecord) -> Refusal | None:
    assert facts.device is not None
    looked = Looked(facts.device, facts.node, facts.history_lost)
    shared = campaign.checked_at(facts.now, policy=record.policy)
    problem = next(target_problems(looked, shared), None)
    if problem is not None:
        waits = problem.reason in _PASSES_BY_ITSELF
        return Refusal(
            Reason.TARGET_UNAVAILABLE if waits else Reason.TARGET_CHANGED, str(problem), check=str(problem.reason)
        )
    now = freeze_target(looked, shared, source=target.source, wave=target.wave)
    differing = [one.name for one in fields(target) if getattr(now, one.name) != getattr(target, one.name)]
    if not differing:
        return None
    return Refusal(
        Reason.TARGET_CHANGED, f"{target.device_name} differs from the frozen target in {', '.join(differing)}"
    )


def _fleet_stands(facts: Facts, campaign: CampaignState, record: PolicyRecord) -> Refusal | None:
    """One badly formed device anywhere in the fleet stops every admission, and is named (S7)."""
    if facts.fleet is None:
        return Refusal(Reason.FLEET_INVALID, "the fleet has not been read yet")
    if facts.fleet.problems:
        first, more = facts.fleet.problems[0], len(facts.fleet.problems) - 1
        text = f"{first}" + (f"; {more} more" if more else "")
        return Refusal(Reason.FLEET_INVALID, text, holders=tuple(one.device for one in facts.fleet.problems))
    if record.policy.risk_groups and facts.fleet.membership_hash != campaign.membership_hash:
        return Refusal(Reason.FLEET_INVALID, "which devices are in which risk groups is not what was frozen")
    return None


def _fleet(facts: Facts, campaign: CampaignState, record: PolicyRecord) -> Fleet | Refusal:
    """The members, the target as it was read just now in place of what the informers have of it."""
    assert facts.device is not None
    assert facts.fleet is not None
    own = member_of(facts.device, facts.node, record.policy, facts.now, freshness_s=campaign.freshness_s)
    if isinstance(own, HealthProblem):
        return Refusal(Reason.TARGET_CHANGED, own.message, check=own.reason)
    if own.unavailable:
        in_maintenance = facts.device.session is not None and facts.device.session.is_maintenance
        text = "is in maintenance" if in_maintenance else "is not proven to be healthy, or that proof is old"
        return Refusal(Reason.TARGET_UNAVAILABLE, f"{facts.device.name} {text}")
    return merged(_with_own(facts.fleet.members, own))


def _with_own(members: Sequence[Member], own: Member) -> Iterator[Member]:
    yield from (member for member in members if member.device_uid != own.device_uid)
    yield own


def _preflight(valid: Valid) -> Refusal | None:
    name = valid.target.device_name
    found = valid.device.preflight_of(valid.campaign.uid)
    if found is None or found.plan_hash != valid.campaign.plan_hash:
        return Refusal(Reason.PREFLIGHT, f"the preflight of {name} for this plan has not been done yet")
    if found.result in {"Passed", "Warned"}:
        return None
    failed = [check for check in found.checks if check.status in {"Fail", "Unknown"}]
    text = f"the preflight of {name} failed: " + (
        listed([f"{one.name} ({one.message})" for one in failed]) or "no check"
    )
    return Refusal(Reason.PREFLIGHT, text, check=preflight_word(failed[0].name) if failed else "")


def preflight_word(check: str) -> str:
    """The reason that a failed check of the preflight stands for (9.4); its own name where several share it."""
    return _PREFLIGHT_WORDS.get(check, check)


_PREFLIGHT_WORDS: Final = {
    "Netconf": "NetconfUnavailable",
    "Gnoi": "GnoiUnavailable",
    "Source": "SourceUnreachable",
    "Spool": "SpoolFull",
    "FlashSpace": "FlashSpaceInsufficient",
    "InstallMode": "NotInstallMode",
    "Quiescent": "DeviceNotQuiescent",
    "SavedConfiguration": "UnsavedConfiguration",
}

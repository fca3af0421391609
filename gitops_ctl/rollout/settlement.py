"""A leaf that ended is settled: outcome, health after it, soak, and then the device is given back (rollouts.md, section 13.7).

The judgement is pure and is made twice: by the pass, and again inside the ledger's compare-and-swap over facts that are read there.  No time
alone settles anything: a soak only counts while every look is healthy, and begins anew after one that is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.evidence import Rules, accepted_problem, sample_of
from gitops_ctl.fleet.health import HealthProblem, Standing, standing_of
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.ledger import Ledger, Reservation
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.fence import settle_admission
from gitops_ctl.rollout.leafplan import acquisition_from
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.ledger_transitions import Attested, Settled, settle, settle_by_attestation
from gitops_ctl.rollout.lock import device_path
from gitops_ctl.rollout.ports import Ports, node_path
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.release import HISTORY_LOST, NO_JOURNAL, Remove, give_back
from gitops_ctl.rollout.targets import Target, journal_is_lost
from gitops_ctl.rollout.validation import lock_claim

RETIRED = "DeviceRetired"


@dataclass(frozen=True, slots=True)
class Open:
    """Nothing is settled yet.  `reason` is a word for the target, `message` says what is missing."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Soaking:
    """Healthy, and still being watched until then."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Passed:
    """Outcome proven, healthy since, soak over."""

    child_uid: str


@dataclass(frozen=True, slots=True)
class After:
    """What is seen of a target after its leaf ended."""

    device: Device | None
    node: NodeSeen | None
    policy: FleetPolicy | None
    now: datetime


def judged(
    leaf: Leaf, after: After, *, campaign: CampaignState, target: Target, soaking_since: datetime | None
) -> Open | Soaking | Passed:
    """How far a leaf is on its way to being settled.

    Args:
        soaking_since: since when the target has been shown as Soaking without a break; None when it is not.
    """
    if not leaf.is_outcome_resolved or leaf.completion_time is None:
        return Open("MutationOutcomeUnresolved", _unresolved(leaf))
    if not leaf.claims and leaf.recovery is None and after.device is not None and journal_is_lost(after.device):
        return Open(HISTORY_LOST, f"leaf {leaf.name} shows no claim, and {NO_JOURNAL.format(after.device.name)}")
    problem = next(_gate(after, leaf.completion_time, campaign, target), "")
    if problem:
        return Open("PostMutationHealthGate", problem)
    since = max(soaking_since or after.now, leaf.completion_time)
    until = since + timedelta(seconds=soak_s(campaign, target))
    if soaking_since is None or after.now < until:
        return Soaking(since, until)
    return Passed(leaf.uid)


def soak_s(campaign: CampaignState, target: Target) -> int:
    """Seconds that the target is watched."""
    plan = campaign.plan
    return plan.effective_canary_soak_s if target.wave == 0 else plan.effective_wave_soak_s


def _unresolved(leaf: Leaf) -> str:
    if not leaf.is_terminal:
        return f"leaf {leaf.name} is in phase {leaf.phase or 'none'}"
    if leaf.has_unresolved_claim:
        return f"leaf {leaf.name} ended {leaf.phase}, and whether {listed([one.stage for one in leaf.claims])} took place is not proven"
    return f"leaf {leaf.name} ended {leaf.phase} without a completion time"


def _gate(after: After, completed: datetime, campaign: CampaignState, target: Target) -> Iterator[str]:
    """What is not proven about the device since its leaf ended; its own maintenance does not count."""
    device, policy = after.device, after.policy
    if device is None or policy is None:
        yield "the device or the fleet policy cannot be read"
        return
    standing = standing_of(device, after.node, policy)
    if isinstance(standing, HealthProblem):
        yield standing.message
        return
    yield from _identity(device, standing, target)
    if standing.health_time is None:
        yield standing.problem.message if standing.problem is not None else "its health is not proven"
        return
    seen = min(standing.health_time, after.now)
    if seen <= completed:
        yield f"its health was last proven at {to_rfc3339(seen)}, the leaf ended at {to_rfc3339(completed)}"
    if (after.now - seen).total_seconds() > campaign.freshness_s:
        age = int((after.now - seen).total_seconds())
        yield f"its health was proven {age} s ago, {campaign.freshness_s} s are allowed"
    yield from _network(device, after.now, completed, campaign)


def _identity(device: Device, standing: Standing, target: Target) -> Iterator[str]:
    seen = (standing.physical_id, standing.device_uid, standing.node_uid)
    if seen != (target.physical_identity, target.device_uid, target.node_uid):
        yield f"{device.name} is not the device that was frozen any more"
    moved = [key for key, value in target.topology if device.labels.get(key) != value]
    if moved:
        yield f"{device.name} has other labels than the frozen ones: {listed(moved)}"


def _network(device: Device, now: datetime, completed: datetime, campaign: CampaignState) -> Iterator[str]:
    if not campaign.plan.network_is_on or campaign.plan.network is None:
        return
    accepted = device.health.accepted if device.health is not None else None
    reason = accepted_problem(device, rules=Rules.of(campaign.plan.network), now=now, freshness_s=campaign.freshness_s)
    if reason or accepted is None:
        yield f"its network evidence fails: {reason}"
        return
    started = sample_of(accepted).started_at
    if started is None or started <= completed:
        yield f"its network evidence was collected before the leaf ended at {to_rfc3339(completed)}"


def attested(leaf: Leaf) -> Attested | Refusal:
    """Proof that two persons declared the device of this leaf retired, for exactly the claims that it has (11.6)."""
    recovery = leaf.recovery
    if recovery is None or recovery.outcome != RETIRED or len(set(recovery.persons)) < 2:
        return Refusal(Reason.NOT_PROVEN, f"nobody attested that the device of leaf {leaf.name} is retired")
    named = {(claim.stage, claim.claimed_at_text) for claim in recovery.claims}
    if named != {(claim.stage, claim.claimed_at_text) for claim in leaf.claims}:
        return Refusal(Reason.NOT_PROVEN, f"the recovery of leaf {leaf.name} names other claims than it has")
    return Attested(leaf.uid)


async def settle_target(
    ports: Ports, campaign: CampaignState, target: Target, *, leaf_name: str, soaking_since: datetime | None
) -> Leaf | Open | Soaking | Refusal:
    """Settle one target as far as it goes: the settled leaf, or what is still missing.

    Raises:
        TransientError, Conflict: how far it came is found out by the next pass, which runs the same steps.
    """

    async def look() -> tuple[Leaf, Open | Soaking | Passed] | Refusal:
        leaf = await ports.leaf(campaign.namespace, leaf_name)
        if leaf is None:
            return Refusal(Reason.NOT_PROVEN, f"leaf {leaf_name} is gone")
        after = await look_after(ports, campaign, target)
        return leaf, judged(leaf, after, campaign=campaign, target=target, soaking_since=soaking_since)

    found = await look()
    if isinstance(found, Refusal):
        return found
    leaf, judgement = found
    if leaf.admission is not None and leaf.admission.state == "Settled":
        return leaf
    if not isinstance(judgement, Passed):
        return judgement

    async def remove(ledger: Ledger, record: Reservation | None) -> Ledger | Refusal:
        again = await look()
        if isinstance(again, Refusal):
            return again
        if not isinstance(again[1], Passed):
            return Refusal(Reason.NOT_PROVEN, f"{target.device_name} does not pass its health gate any more")
        return _without(ledger, record, Settled(again[1].child_uid), again[0])

    return await _given_back(ports, campaign, target, leaf, remove)


async def settle_retired(ports: Ports, campaign: CampaignState, target: Target, *, leaf_name: str) -> Leaf | Refusal:
    """Give back what a retired device held: lock, record, admission.  The caller has recorded `status.retired` before.

    Raises:
        TransientError, Conflict: as for `settle_target`.
    """
    leaf = await ports.leaf(campaign.namespace, leaf_name)
    if leaf is None:
        return Refusal(Reason.NOT_PROVEN, f"leaf {leaf_name} is gone")
    proof = attested(leaf)
    if isinstance(proof, Refusal) or (leaf.admission is not None and leaf.admission.state == "Settled"):
        return leaf if not isinstance(proof, Refusal) else proof

    async def remove(ledger: Ledger, record: Reservation | None) -> Ledger | Refusal:
        again = await ports.leaf(campaign.namespace, leaf_name)
        if again is None:
            return Refusal(Reason.NOT_PROVEN, f"leaf {leaf_name} is gone")
        proof = attested(again)
        return proof if isinstance(proof, Refusal) else _without(ledger, record, proof, again)

    return await _given_back(ports, campaign, target, leaf, remove)


def _without(ledger: Ledger, record: Reservation | None, proof: Settled | Attested, leaf: Leaf) -> Ledger | Refusal:
    which = acquisition_from(leaf)
    if which is None:
        return Refusal(Reason.NOT_PROVEN, f"leaf {leaf.name} names no lock")
    if (
        record is None
        and ledger.last_release_fence is not None
        and ledger.last_release_fence.topology_lock_id == which.lock_id
    ):
        return ledger
    if isinstance(proof, Settled):
        return settle(ledger, which, proof=proof)
    return settle_by_attestation(ledger, which, proof=proof)


async def _given_back(
    ports: Ports, campaign: CampaignState, target: Target, leaf: Leaf, remove: Remove
) -> Leaf | Refusal:
    which = acquisition_from(leaf)
    if which is None:
        return Refusal(Reason.NOT_PROVEN, f"leaf {leaf.name} names no lock, so what it holds is not known")
    claim, store = lock_claim(campaign, target), ports.ledger(campaign)
    refusal = await give_back(ports, store, claim, which, remove=remove)
    if refusal is not None:
        return refusal
    if leaf.recovery is not None and leaf.recovery.outcome == RETIRED:
        await _end_session(ports, campaign, target, leaf)
    return await settle_admission(ports, campaign.namespace, leaf.name)


async def _end_session(ports: Ports, campaign: CampaignState, target: Target, leaf: Leaf) -> None:
    """End the maintenance of a leaf whose device does not come back: its worker asks for nothing any more."""
    path = device_path(campaign.namespace, target.device_name)

    async def one_round() -> None:
        tree = await ports.client.find(path)
        session = device_of(tree).session if tree is not None else None
        if tree is None or session is None or session.operation.uid != leaf.uid or session.phase == "Settled":
            return
        body = swap(tree, {"status": {"maintenanceSession": {"phase": "Settled"}}})
        await ports.client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status")

    await swapped(ports.client, one_round)


async def look_after(ports: Ports, campaign: CampaignState, target: Target) -> After:
    """Device, Node and policy as they are now."""
    device = await ports.client.find(device_path(campaign.namespace, target.device_name))
    node = await ports.client.find(node_path(target.node_name))
    policy = await ports.policy(campaign)
    return After(
        device=None if device is None else device_of(device),
        node=None if node is None else node_of(node),
        policy=policy.record.policy if policy.record is not None else None,
        now=ports.clock.wall(),
    )

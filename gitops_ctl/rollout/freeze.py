"""Freezing a plan: a pure function of listed objects (rollouts.md, sections 9.2 and 9.3).

Nothing here decides by the text of a message.  The first problem is what planning fails with; the others are there for people.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import Device, Preflight
from gitops_ctl.fleet.encoding import sha256_text
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.fleet.strict import Malformed
from gitops_ctl.rollout.fleetlook import FleetLook
from gitops_ctl.rollout.intent import intent_hash
from gitops_ctl.rollout.planhash import MOST_PLAN_BYTES, hash_and_size, plan_hash_input
from gitops_ctl.rollout.planned import DRAIN, Plan, plan_of
from gitops_ctl.rollout.problem import HELD, Problem, Reason
from gitops_ctl.rollout.selection import Selection, select
from gitops_ctl.rollout.snapshot import PolicyRecord, PolicySnapshot, snapshot_of
from gitops_ctl.rollout.sources import Source, Sources, SourceSecret, freeze_sources
from gitops_ctl.rollout.targets import Campaign, Looked, Target, freeze_target, target_problems
from gitops_ctl.rollout.warnings import PlanWarning, WarningReason, plan_warnings, version_warnings

NO_REBOOT: Final = "NoReboot"
CLAIM_HISTORY_LOST: Final = "ClaimHistoryLost"


@dataclass(frozen=True, slots=True)
class FreezeInput:
    """All that a plan depends on.

    Attributes:
        rollout: the stored object.
        devices: of the rollout's namespace.
        nodes: by name.
        secrets: the source Secrets of the namespace by name.
        leaves: of the namespace.
        fleet: what was found in the whole fleet.
    """

    rollout: JsonObject
    policy: PolicyRecord
    devices: Sequence[Device]
    nodes: Mapping[str, NodeSeen]
    secrets: Mapping[str, SourceSecret]
    leaves: Sequence[Leaf]
    fleet: FleetLook
    now: datetime

    @property
    def namespace(self) -> str:
        return text_at(self.rollout, "metadata", "namespace")


@dataclass(frozen=True, slots=True)
class Frozen:
    """A plan that can be published.

    Attributes:
        size: bytes of the encoded hash input.
        membership_hash: "" when the policy has no risk groups.
        targets: in name order.
        fleet_problems: devices outside the plan that would block every admission; the plan is frozen all the same.
    """

    hash: str
    size: int
    generation: int
    snapshot: PolicySnapshot
    membership_hash: str
    targets: tuple[Target, ...]
    intent_hash: str
    warnings: tuple[PlanWarning, ...]
    fleet_problems: tuple[Problem, ...]

    def to_json(self, *, created_at: datetime) -> JsonObject:
        """`status.frozenPlan`."""
        tree: dict[str, JsonValue] = {
            "hash": self.hash,
            "encodedSizeBytes": self.size,
            "createdAt": to_rfc3339(created_at),
            "campaignGeneration": self.generation,
            "policy": self.snapshot.to_json(),
        }
        if self.membership_hash:
            tree["riskGroupMembershipHash"] = self.membership_hash
        return tree | {"targets": [target.to_json() for target in self.targets]}


@dataclass(frozen=True, slots=True)
class FreezeProblem:
    """Why a plan cannot be frozen; `problems` is never empty, and the first one decides."""

    problems: tuple[Problem, ...]

    @property
    def first(self) -> Problem:
        return self.problems[0]

    @property
    def is_deferred(self) -> bool:
        """Whether planning waits for a device that is still being taken up, instead of failing."""
        return self.first.is_deferred

    @property
    def is_held(self) -> bool:
        """Whether this version never plans it."""
        return any(one.reason in HELD for one in self.problems)

    @property
    def message(self) -> str:
        """The first blocking device with its check, and how many more there are."""
        more = len(self.problems) - 1
        return f"{self.first}" + (f"; {more} more" if more else "")


@dataclass(frozen=True, slots=True)
class Considered:
    """A plan half made: what was selected and chosen, with every problem; for those who look before they freeze."""

    plan: Plan
    selection: Selection
    sources: Sources
    chosen: Mapping[str, Source]
    problems: tuple[Problem, ...]


def freeze(given: FreezeInput) -> Frozen | FreezeProblem:
    """The frozen plan of a rollout, or why there is none."""
    considered = consider(given)
    if isinstance(considered, Problem):
        return FreezeProblem((considered,))
    if considered.problems:
        return FreezeProblem(considered.problems)
    campaign = campaign_of(given, considered.plan)
    targets = tuple(
        freeze_target(
            _looked(given, device),
            campaign,
            source=considered.chosen[device.name],
            wave=considered.selection.wave_of(device),
        )
        for device in considered.selection.devices
    )
    repeated = _repeated(targets, given.namespace)
    return FreezeProblem(repeated) if repeated else _hashed(given, considered.plan, targets)


def consider(given: FreezeInput, *, observed: bool = True, secrets: bool = True) -> Considered | Problem:
    """Selection, sources and checks of a plan, with all problems in the order in which they decide.

    Args:
        observed: False where devices are documents: what only a cluster can show is left out.
        secrets: False where source Secrets cannot be read: they are left out.
    """
    try:
        plan = plan_of(object_at(given.rollout, "spec", "plan"))
    except Malformed as flaw:
        return Problem(Reason.SELECTOR_INVALID, f"plan{flaw.pointer}: {flaw.why}")
    policy = given.policy.policy
    selection = select(given.devices, plan=plan, namespace=given.namespace, policy_cap=policy.max_campaign_targets)
    sources = freeze_sources(
        plan,
        required_keys=frozenset(policy.required_keys),
        secrets=given.secrets if secrets else None,
        namespace=given.namespace,
    )
    chosen, unclear = _choices(selection, sources, given.namespace)
    campaign = campaign_of(given, plan)
    problems = (
        *_plan_problems(given, plan),
        *_binding_problems(given.policy, observed),
        *selection.problems,
        *sources.problems,
        *unclear,
        *(
            found
            for one in selection.devices
            for found in target_problems(_looked(given, one), campaign, observed=observed)
        ),
        *(given.fleet.problems if policy.risk_groups else ()),
    )
    return Considered(plan, selection, sources, chosen, problems)


def campaign_of(given: FreezeInput, plan: Plan) -> Campaign:
    """What all targets share."""
    meta = object_at(given.rollout, "metadata")
    return Campaign(text_at(meta, "name"), text_at(meta, "uid"), plan, given.policy.policy, given.now)


def _looked(given: FreezeInput, device: Device) -> Looked:
    return Looked(device, given.nodes.get(device.node_name), history_is_lost(given.leaves, device))


def history_is_lost(leaves: Sequence[Leaf], device: Device) -> bool:
    """Whether an open leaf of the device says so, also where the present worker has begun a new journal."""
    return any(
        leaf.device_name == device.name
        and not leaf.is_outcome_resolved
        and (
            text_at(leaf.status, "failureReason") == CLAIM_HISTORY_LOST
            or any(text_at(item, "reason") == CLAIM_HISTORY_LOST for item in objects_at(leaf.status, "conditions"))
        )
        for leaf in leaves
    )


def _plan_problems(given: FreezeInput, plan: Plan) -> Iterator[Problem]:
    control = object_at(given.rollout, "spec", "control")
    if int_at(control, "revision") or bool_at(control, "pause") or bool_at(control, "cancel"):
        yield Problem(Reason.CONTROL_NOT_NEUTRAL, "a rollout is planned only while its control is neutral")
    if plan.workload_policy == DRAIN:
        message = "workloads.policy Drain is not carried out by this version; write BlockIfRunning"
        yield Problem(Reason.WORKLOAD_POLICY_UNSUPPORTED, message)
    if plan.strategy == NO_REBOOT:
        message = (
            "strategy NoReboot is not for IOS-XE: a switch reboots when it is activated; write PrepareOnly or Reload"
        )
        yield Problem(Reason.STRATEGY_UNSUPPORTED, message)
    yield from _budget_problems(plan, given.policy.policy)


def _binding_problems(record: PolicyRecord, observed: bool) -> Iterator[Problem]:
    if observed and not record.ledger_uid:
        yield Problem(Reason.POLICY_UNBOUND, f"policy {record.name} is bound to no ledger yet")


def _budget_problems(plan: Plan, policy: FleetPolicy) -> Iterator[Problem]:
    for domain in plan.domains:
        kinds = (
            ("maxConcurrentTransfers", domain.transfers, policy.domain_transfers),
            ("maxUnavailable", domain.unavailable, policy.domain_unavailable),
        )
        for name, limit, limits in kinds:
            if limit and domain.key not in limits:
                message = f"budgets.domains sets {name} for {domain.key}, for which the fleet policy sets none"
                yield Problem(Reason.BUDGET_KEY_UNKNOWN, message)


def _choices(
    selection: Selection, sources: Sources, namespace: str
) -> tuple[Mapping[str, Source], tuple[Problem, ...]]:
    """The source of each device, and those for which it is not clear; nothing while the sources themselves have problems."""
    chosen: dict[str, Source] = {}
    problems = []
    for device in () if sources.problems else selection.devices:
        found = sources.choose(device.labels)
        if isinstance(found, Problem):
            problems.append(replace(found, device=f"{namespace}/{device.name}"))
        else:
            chosen[device.name] = found
    return chosen, tuple(problems)


def _repeated(targets: Sequence[Target], namespace: str) -> tuple[Problem, ...]:
    """Two devices that are one chassis, or would get one leaf."""
    identities = Counter(target.physical_identity for target in targets)
    children = Counter(target.child_name for target in targets)
    return tuple(
        Problem(reason, message, f"{namespace}/{target.device_name}")
        for target in targets
        for reason, message, count in (
            (
                Reason.IDENTITY_REPEATED,
                f"another target has the physical identity {target.physical_identity} too",
                identities[target.physical_identity],
            ),
            (
                Reason.CHILD_NAME_REPEATED,
                f"another target would get the leaf {target.child_name} too",
                children[target.child_name],
            ),
        )
        if count > 1
    )


def _hashed(given: FreezeInput, plan: Plan, targets: tuple[Target, ...]) -> Frozen | FreezeProblem:
    meta, policy = object_at(given.rollout, "metadata"), given.policy.policy
    snapshot, generation = snapshot_of(given.policy), int_at(meta, "generation")
    membership = given.fleet.membership_hash if policy.risk_groups else ""
    try:
        hashed, size = hash_and_size(
            plan_hash_input(
                plan.tree,
                campaign_uid=text_at(meta, "uid"),
                generation=generation,
                policy=snapshot.to_json(),
                membership_hash=membership,
                targets=[target.to_json() for target in targets],
            )
        )
    except ValueError as error:
        return FreezeProblem((Problem(Reason.SELECTOR_INVALID, f"the plan cannot be encoded: {error}"),))
    if size > MOST_PLAN_BYTES:
        message = f"the plan has {size} bytes, {MOST_PLAN_BYTES} are allowed"
        return FreezeProblem((Problem(Reason.PLAN_TOO_LARGE, message),))
    names = {f"{given.namespace}/{target.device_name}" for target in targets}
    outside = tuple(one for one in given.fleet.problems if one.device not in names)
    devices = [(target.device_uid, target.device_generation) for target in targets]
    return Frozen(
        hash=hashed,
        size=size,
        generation=generation,
        snapshot=snapshot,
        membership_hash=membership,
        targets=targets,
        intent_hash=intent_hash(plan.tree, semantic_hash=snapshot.semantic_hash, devices=devices),
        warnings=(
            *plan_warnings(plan, policy_freshness_s=policy.health_freshness_s),
            *version_warnings(plan.target_version, running_versions(given.devices, targets)),
            *_fleet_warnings(outside),
        ),
        fleet_problems=outside,
    )


def running_versions(devices: Sequence[Device], targets: Sequence[Target]) -> Mapping[str, str]:
    """Device name to the version in the words of its own OS service, as far as a preflight has asked it."""
    wanted = {target.device_uid for target in targets}
    return {
        device.name: last.running_version
        for device in devices
        if device.uid in wanted and (last := _last_preflight(device)) is not None and last.running_version
    }


def _last_preflight(device: Device) -> Preflight | None:
    dated = [(entry.observed_at, entry) for entry in device.preflight if entry.observed_at is not None]
    return max(dated, key=lambda pair: pair[0])[1] if dated else None


def _fleet_warnings(problems: Sequence[Problem]) -> Iterator[PlanWarning]:
    for problem in problems:
        message = f"it blocks every admission: {problem.message} ({problem.reason})"
        yield PlanWarning(WarningReason.FLEET_BLOCKED, message, problem.device)


def planning_digest(given: FreezeInput) -> str:
    """Equal while nothing changed that could make planning end otherwise: devices, their Nodes without heartbeats, policy, sources.

    A failed plan is tried again only under another digest.
    """
    # The texts of tuples of texts: unambiguous, and many times cheaper than JSON for a namespace full of Nodes.
    nodes = sorted({one.node_name for one in given.devices} & given.nodes.keys())
    parts = (
        int_at(given.rollout, "metadata", "generation"),
        (given.policy.uid, given.policy.resource_version, given.policy.ledger_uid),
        sorted((one.namespace, one.name, one.uid, one.resource_version) for one in given.devices),
        [_seen(given.nodes[name]) for name in nodes],
        [(one.name, one.uid, one.resource_version) for _, one in sorted(given.secrets.items())],
        sorted((leaf.name, leaf.resource_version) for leaf in given.leaves),
        given.fleet.digest,
    )
    return sha256_text(repr(parts))


def _seen(node: NodeSeen) -> tuple[object, ...]:
    """A Node without what it says again and again."""
    ready, writer = node.ready, node.managed_writer
    return (
        node.name,
        node.uid,
        sorted(node.labels.items()),
        sorted(node.annotations.items()),
        [(taint.key, taint.value, taint.effect) for taint in node.taints],
        None if ready is None else (ready.status, ready.reason),
        None if writer is None else (writer.status, writer.reason),
        (node.machine_id, node.system_uuid),
    )

"""Whether a device is healthy, and since when that is known (rollouts.md, sections 15.2 to 15.4 and 8.3).

Everything fails closed.  Each piece of evidence keeps its own time and the oldest one counts: to refresh one source never makes the others
fresh, and a time from the future never extends anything.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device, HealthObservation
from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.fleet.identity import canonical_identity, observed_identity
from gitops_ctl.fleet.node import NodeCondition, NodeSeen
from gitops_ctl.fleet.policy import FleetPolicy, matches_fleet, risk_groups_of
from gitops_ctl.fleet.projection import ProjectionProblem, projected_labels

DEFAULT_OBSERVATION_AGE_S: Final = 300
_CONDITION_MEMBERS: Final = ("type", "status", "observedGeneration", "lastTransitionTime", "reason", "message")


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """Why health is not proven: one word, and a sentence with what was seen."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Member:
    """A device in the arithmetic of budgets; `domains` are (key, value) sorted by key, `groups` the names of its risk groups, sorted."""

    physical_id: str
    device_uid: str
    node_uid: str
    domains: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]
    unavailable: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What a member is, apart from the present moment: computed anew only when device, Node or policy change.

    `health_time` is None when health is not proven, `problem` then says why.
    """

    physical_id: str
    device_uid: str
    node_uid: str
    domains: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]
    in_maintenance: bool
    health_time: datetime | None
    problem: HealthProblem | None

    def member(self, now: datetime, *, freshness_s: int) -> Member:
        """The member now: unavailable also when its health was last seen before `now - freshness_s`."""
        seen, best = self.health_time, self.at_best
        is_stale = seen is None or min(seen, now) < now - timedelta(seconds=freshness_s)
        return self.at_worst if is_stale or best is None else best

    @property
    def at_best(self) -> Member | None:
        """The member while its evidence is young; None when no evidence makes it available."""
        return None if self.health_time is None or self.in_maintenance else self._member(unavailable=False)

    @property
    def at_worst(self) -> Member:
        """The member once its evidence is old."""
        return self._member(unavailable=True)

    def _member(self, *, unavailable: bool) -> Member:
        return Member(self.physical_id, self.device_uid, self.node_uid, self.domains, self.groups, unavailable)


def conditions_hash(phase: str, conditions: Iterable[JsonObject]) -> str:
    """Hash of a device's phase and of all its conditions, whatever their order."""
    return sha256_of(conditions_hash_input(phase, conditions))


def conditions_hash_input(phase: str, conditions: Iterable[JsonObject]) -> dict[str, JsonValue]:
    """What `conditions_hash` is taken over: conditions as stored, sorted by type, a generation of 0 left out."""
    found = sorted(conditions, key=lambda item: text_at(item, "type"))
    return {"phase": phase, "conditions": [_condition(item) for item in found]}


def _condition(tree: JsonObject) -> JsonObject:
    members: dict[str, JsonValue] = {name: tree.get(name, "") for name in _CONDITION_MEMBERS}
    if not members["observedGeneration"]:
        del members["observedGeneration"]
    return members


def freshness_limit(policy_s: int, plan_s: int = 0) -> int:
    """Seconds that an observation stays good: the smaller of the policy's limit and the plan's, 300 where the plan names none."""
    return min(policy_s, plan_s or DEFAULT_OBSERVATION_AGE_S)


def effective_health_time(device: Device, node: NodeSeen | None, now: datetime) -> datetime | HealthProblem:
    """The time of the oldest evidence that the health of the device rests on, never later than `now`.

    A newer heartbeat of the Node is only an effect of reading the two objects one after the other: the snapshot's stays the bound.
    """
    found = evidence_time(device, node)
    return found if isinstance(found, HealthProblem) else min(found, now)


def evidence_time(device: Device, node: NodeSeen | None) -> datetime | HealthProblem:
    """As `effective_health_time`, without the present moment; the time may lie in the future of a slow clock."""
    snapshot = device.health
    if snapshot is None or snapshot.observed_at is None or snapshot.heartbeat is None:
        return HealthProblem("HealthObservationMissing", "no health observation is recorded for the device yet")
    problem = _ready_problem(node, snapshot.heartbeat)
    if problem is not None:
        return problem
    if conditions_hash(device.phase, objects_at(device.status, "conditions")) != snapshot.conditions_hash:
        return HealthProblem("DeviceConditionsChanged", "phase or conditions changed since they were observed")
    times = [snapshot.observed_at, snapshot.heartbeat]
    for found in _required_observations(device, snapshot):
        if isinstance(found, HealthProblem):
            return found
        times.append(found)
    return min(times)


def _ready_problem(node: NodeSeen | None, heartbeat: datetime) -> HealthProblem | None:
    """Why the Node does not continue the readiness that the snapshot saw."""
    ready = node.ready if node is not None else None
    if ready is None or ready.status != "True":
        word = ready.status if ready is not None else "missing"
        return HealthProblem("NodeNotReady", f"the condition Ready of the Node is {word}")
    if ready.heartbeat is None or ready.heartbeat < heartbeat:
        return HealthProblem("NodeHeartbeatOlder", "the heartbeat of the Node is older than the one that was observed")
    if ready.transition is None or ready.transition > heartbeat:
        return HealthProblem("NodeReadyChanged", "the Node became ready after the heartbeat that was observed")
    return None


def _required_observations(device: Device, snapshot: HealthObservation) -> Iterator[datetime | HealthProblem]:
    seen = {item.type: item for item in snapshot.observations}
    for kind in names.REQUIRED_CONDITIONS:
        observation, condition = seen.get(kind), device.condition(kind)
        if observation is None or observation.observed_at is None or condition is None:
            yield HealthProblem("ConditionNotObserved", f"nobody has observed the condition {kind} yet")
        elif (observation.status, observation.observed_generation) != (condition.status, condition.observed_generation):
            yield HealthProblem("ConditionObservedOtherwise", f"the condition {kind} was observed with another status")
        else:
            yield observation.observed_at


def is_healthy(device: Device, node: NodeSeen | None) -> bool:
    """Whether both objects say that the device is healthy; how old that is, is another question."""
    return health_problem(device, node) is None


def health_problem(device: Device, node: NodeSeen | None) -> HealthProblem | None:
    """The first reason why the device is not healthy."""
    return next(_health_problems(device, node), None)


def _health_problems(device: Device, node: NodeSeen | None) -> Iterator[HealthProblem]:
    if device.phase != "Ready":
        yield HealthProblem("DeviceNotReady", f"the phase of the device is {device.phase or 'missing'}")
    if node is None or node.ready is None or node.ready.status != "True":
        yield HealthProblem("NodeNotReady", "the Node is not Ready")
        return
    for kind in names.REQUIRED_CONDITIONS:
        condition = device.condition(kind)
        if condition is None or condition.status != "True":
            why = condition.reason if condition is not None else "missing"
            yield HealthProblem("ConditionNotTrue", f"the condition {kind} of the device is not True ({why})")
        elif condition.observed_generation != device.generation:
            yield HealthProblem("ConditionOutdated", f"the condition {kind} is of an older generation of the device")
    if device.network_worker_revision is None or not device.network_worker_revision.is_proven:
        yield HealthProblem(
            "WorkerRevisionUnproven", "no network worker has proven yet that it loaded the present inputs"
        )
    if not _has_answered(node.managed_writer, device):
        yield HealthProblem(
            "ManagedWriterNotReady", "the status writer of the Node has not answered since the projection"
        )
    if node.has_initialisation_guard:
        yield HealthProblem("InitializationGuardActive", "the Node is still guarded against scheduling")


def _has_answered(writer: NodeCondition | None, device: Device) -> bool:
    projected = device.projection.last_successful if device.projection is not None else None
    if writer is None or writer.status != "True" or writer.reason != names.MANAGED_WRITER_REASON:
        return False
    return projected is not None and writer.heartbeat is not None and writer.heartbeat >= projected


def in_fleet(device: Device, policy: FleetPolicy) -> bool:
    """Whether the device counts at all: its labels enrol it and it is not retired (7.2)."""
    return device.retired is None and matches_fleet(policy, device.labels)


def member_of(
    device: Device, node: NodeSeen | None, policy: FleetPolicy, now: datetime, *, freshness_s: int | None = None
) -> Member | HealthProblem:
    """The device as a member of the fleet, or why it is so badly formed that nothing may be admitted beside it."""
    standing = standing_of(device, node, policy)
    if isinstance(standing, HealthProblem):
        return standing
    return standing.member(now, freshness_s=policy.health_freshness_s if freshness_s is None else freshness_s)


def standing_of(device: Device, node: NodeSeen | None, policy: FleetPolicy) -> Standing | HealthProblem:
    """Strict (11.4): missing identity, a stale projection, a missing domain label or a bad binding of the Node is a problem of the fleet.

    A well-formed device without proven health is a member without `health_time`.
    """
    problem = next(_form_problems(device, node, policy), None)
    if problem is not None:
        return problem
    assert device.node_identity is not None
    health, seen = health_problem(device, node) or _observed_problem(device, node), evidence_time(device, node)
    if health is None and isinstance(seen, HealthProblem):
        health = seen
    return Standing(
        physical_id=device.node_identity.physical_identity,
        device_uid=device.uid,
        node_uid=device.node_identity.node_uid,
        domains=tuple((key, device.labels[key]) for key in policy.domain_keys),
        groups=risk_groups_of(policy, device.labels),
        in_maintenance=device.session is not None and device.session.is_maintenance,
        health_time=seen if health is None and isinstance(seen, datetime) else None,
        problem=health,
    )


def _form_problems(device: Device, node: NodeSeen | None, policy: FleetPolicy) -> Iterator[HealthProblem]:
    name, bound = f"{device.namespace}/{device.name}", device.node_identity
    if bound is None or not bound.physical_identity or not device.uid:
        yield HealthProblem("IdentityMissing", f"CiscoDevice {name} has no recorded identity")
        return
    try:
        declared = canonical_identity(device.physical_identity)
    except Refused as error:
        yield HealthProblem("IdentityMissing", f"CiscoDevice {name}: {error.message}")
        return
    if declared != bound.physical_identity or bound.device_uid != device.uid:
        yield HealthProblem("IdentityDiffers", f"CiscoDevice {name} is not the one that its identity was recorded for")
    if (
        node is None
        or node.uid != bound.node_uid
        or node.name != bound.node_name
        or device.node_name != bound.node_name
    ):
        yield HealthProblem("NodeBindingInvalid", f"CiscoDevice {name} is not bound to the Node {device.node_name}")
        return
    if node.annotations.get(names.DEVICE_UID) != device.uid:
        yield HealthProblem("NodeBindingInvalid", f"Node {node.name} does not carry the UID of CiscoDevice {name}")
    lacking = [key for key in policy.domain_keys if not device.labels.get(key)]
    if lacking:
        yield HealthProblem("DomainLabelMissing", f"CiscoDevice {name} lacks the label {', '.join(lacking)}")
    yield from _projection_problems(device, node, policy)


def _projection_problems(device: Device, node: NodeSeen, policy: FleetPolicy) -> Iterator[HealthProblem]:
    name, projection = f"{device.namespace}/{device.name}", projected_labels(device, policy)
    if isinstance(projection, ProjectionProblem):
        yield HealthProblem(projection.reason, f"CiscoDevice {name}: {projection.message}")
        return
    recorded = device.projection.label_hash if device.projection is not None else ""
    if not recorded == node.annotations.get(names.PROJECTION_HASH) == projection.hash:
        yield HealthProblem("ProjectionStale", f"the labels of CiscoDevice {name} are not projected onto its Node yet")
    elif any(node.labels.get(key) != value for key, value in projection.labels.items()):
        yield HealthProblem("ProjectionStale", f"the projected labels of Node {node.name} were changed")


def _observed_problem(device: Device, node: NodeSeen | None) -> HealthProblem | None:
    """Whether the Node shows the chassis that is bound: without it, health is that of some other device."""
    assert node is not None
    assert device.node_identity is not None
    try:
        observed = observed_identity(node.machine_id, node.system_uuid)
    except Refused as error:
        return HealthProblem("IdentityNotObserved", error.message)
    if observed != device.node_identity.physical_identity:
        return HealthProblem("IdentityNotObserved", f"the Node shows the chassis {observed}")
    return None

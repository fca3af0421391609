"""What is frozen of one device, and everything that must hold for it (rollouts.md, sections 9.2 and 9.3).

The checks stand in the order of the contract, except that the initialisation guard is seen first: a device that is still being taken up
ends by itself and must not look broken.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import JOURNAL_READY, Device
from gitops_ctl.fleet.evidence import Rules, accepted_problem
from gitops_ctl.fleet.health import HealthProblem, effective_health_time
from gitops_ctl.fleet.identity import canonical_identity, child_name, observed_identity, reservation_id
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.fleet.policy import FleetPolicy, matches_fleet, protection_of, risk_groups_of, transfer_rate
from gitops_ctl.fleet.projection import ProjectionProblem, projected_labels
from gitops_ctl.rollout.planned import Plan
from gitops_ctl.rollout.problem import Problem, Reason
from gitops_ctl.rollout.sources import Source, source_from

DRIVER: Final = "XE"
_READY: Final = "Ready"
_GUARD: Final = "InitializationGuardActive"
_PROTECTED: Final = {
    "CriticalServiceProtected": Reason.CRITICAL_SERVICE_PROTECTED,
    "SingletonPathProtected": Reason.SINGLETON_PATH_PROTECTED,
}


@dataclass(frozen=True, slots=True)
class Target:
    """One device of a frozen plan.

    Attributes:
        topology: key and value of each label that the policy requires, sorted by key.
        canary_cohort: "" for devices that go in the second wave.
        max_bytes_per_s: 0 = as fast as it goes.
    """

    device_name: str
    device_uid: str
    device_generation: int
    physical_identity: str
    node_name: str
    node_uid: str
    driver: str
    image_family: str
    source: Source
    cohort: str
    worker_protocol: str
    projection_hash: str
    topology: tuple[tuple[str, str], ...]
    risk_groups: tuple[str, ...]
    max_bytes_per_s: int
    canary_cohort: str
    wave: int
    child_name: str

    def to_json(self) -> JsonObject:
        """The members in the order in which they are hashed and published."""
        tree: dict[str, JsonValue] = {
            "deviceName": self.device_name,
            "deviceUID": self.device_uid,
            "deviceGeneration": self.device_generation,
            "physicalIdentity": self.physical_identity,
            "nodeName": self.node_name,
            "nodeUID": self.node_uid,
            "driver": self.driver,
            "imageFamily": self.image_family,
            "source": self.source.to_json(),
            "qualificationCohort": self.cohort,
            "workerProtocolVersion": self.worker_protocol,
            "projectionHash": self.projection_hash,
            "topology": [{"key": key, "value": value} for key, value in self.topology],
        }
        optional: dict[str, JsonValue] = {
            "riskGroups": list(self.risk_groups),
            "maxTransferBytesPerSecond": self.max_bytes_per_s,
            "canaryCohort": self.canary_cohort,
        }
        tree |= {name: value for name, value in optional.items() if value}
        return tree | {"wave": self.wave, "childName": self.child_name}


def image_source(target: Target) -> JsonObject:
    """`spec.imageSource` of the leaf that installs or prepares it."""
    tree: dict[str, JsonValue] = {"url": target.source.url, "sha256": target.source.sha256}
    return tree | ({"urlSecretRef": {"name": target.source.secret_name}} if target.source.secret_name else {})


def target_from(tree: JsonObject) -> Target:
    """A published target, read back."""
    return Target(
        device_name=text_at(tree, "deviceName"),
        device_uid=text_at(tree, "deviceUID"),
        device_generation=int_at(tree, "deviceGeneration"),
        physical_identity=text_at(tree, "physicalIdentity"),
        node_name=text_at(tree, "nodeName"),
        node_uid=text_at(tree, "nodeUID"),
        driver=text_at(tree, "driver"),
        image_family=text_at(tree, "imageFamily"),
        source=source_from(object_at(tree, "source")),
        cohort=text_at(tree, "qualificationCohort"),
        worker_protocol=text_at(tree, "workerProtocolVersion"),
        projection_hash=text_at(tree, "projectionHash"),
        topology=tuple((text_at(entry, "key"), text_at(entry, "value")) for entry in objects_at(tree, "topology")),
        risk_groups=tuple(str(name) for name in list_at(tree, "riskGroups")),
        max_bytes_per_s=int_at(tree, "maxTransferBytesPerSecond"),
        canary_cohort=text_at(tree, "canaryCohort"),
        wave=int_at(tree, "wave"),
        child_name=text_at(tree, "childName"),
    )


@dataclass(frozen=True, slots=True)
class Looked:
    """One device of a plan with what was seen of it.

    Attributes:
        node: None when there is none of its name.
        history_lost: a leaf of the device says that the history of its claims is gone.
    """

    device: Device
    node: NodeSeen | None
    history_lost: bool = False

    @property
    def name(self) -> str:
        return f"{self.device.namespace}/{self.device.name}"


@dataclass(frozen=True, slots=True)
class Campaign:
    """What all targets of a plan share."""

    name: str
    uid: str
    plan: Plan
    policy: FleetPolicy
    now: datetime

    @property
    def freshness_s(self) -> int:
        """Seconds after which evidence is too old, the smaller of policy and plan (15.3)."""
        return min(self.policy.health_freshness_s, self.plan.max_age_s)


def freeze_target(looked: Looked, campaign: Campaign, *, source: Source, wave: int) -> Target:
    """The frozen form of a device that has no problem."""
    device, policy = looked.device, campaign.policy
    identity, projection = device.node_identity, device.projection
    assert identity is not None
    assert projection is not None
    cohort = device.labels.get(names.COHORT, "")
    return Target(
        device_name=device.name,
        device_uid=device.uid,
        device_generation=device.generation,
        physical_identity=identity.physical_identity,
        node_name=identity.node_name,
        node_uid=identity.node_uid,
        driver=DRIVER,
        image_family=campaign.plan.image_family,
        source=source,
        cohort=cohort,
        worker_protocol=names.PROTOCOL,
        projection_hash=projection.label_hash,
        topology=tuple((key, device.labels[key]) for key in sorted(policy.required_keys)),
        risk_groups=risk_groups_of(policy, device.labels),
        max_bytes_per_s=transfer_rate(policy, device.labels),
        canary_cohort=cohort if wave == 0 else "",
        wave=wave,
        child_name=child_name(campaign.name, device.name, reservation_id(campaign.uid, device.uid)),
    )


def target_problems(looked: Looked, campaign: Campaign, *, observed: bool = True) -> Iterator[Problem]:
    """Everything that keeps a device from being a target, the first one first; without `observed` what its document says."""
    for problem in declared_problems(looked, campaign):
        yield replace(problem, device=looked.name)
    for problem in _observed_problems(looked, campaign) if observed else ():
        yield replace(problem, device=looked.name)


def declared_problems(looked: Looked, campaign: Campaign) -> Iterator[Problem]:
    """What can be said from the document of the device alone."""
    device, plan, policy = looked.device, campaign.plan, campaign.policy
    if not matches_fleet(policy, device.labels):
        yield Problem(Reason.OUTSIDE_FLEET, "the fleet selector of the policy does not take it")
    if device.driver != DRIVER:
        yield Problem(Reason.DRIVER_UNSUPPORTED, f"its driver is {device.driver or 'not set'}, only {DRIVER} is run")
    protection = protection_of(policy, device.labels)
    if protection:
        yield Problem(_PROTECTED[protection], "a disruption protection of the policy covers it")
    family = device.labels.get(names.IMAGE_FAMILY, "")
    if family != plan.image_family:
        message = f"its image family is {family or 'not set'}, the plan's is {plan.image_family}"
        yield Problem(Reason.IMAGE_FAMILY, message)
    missing = sorted(key for key in policy.required_keys if not device.labels.get(key))
    if missing:
        yield Problem(Reason.LABEL_MISSING, f"it lacks {', '.join(missing)}, which the policy requires")


def _observed_problems(looked: Looked, campaign: Campaign) -> Iterator[Problem]:
    device, node = looked.device, looked.node
    if device.retired is not None:
        yield Problem(Reason.RETIRED, f"it was retired by rollout {device.retired.rollout_name}")
    if looked.history_lost or journal_is_lost(device):
        yield Problem(Reason.CLAIM_HISTORY_LOST, "the worker lost the journal of its claims for this device")
    if node is not None and node.has_initialisation_guard:
        yield Problem(Reason.INITIALIZATION_GUARD, f"Node {node.name} still has the initialisation guard")
        return
    binding = list(_binding_problems(looked))
    yield from binding
    if binding or node is None:
        return
    yield from _readiness_problems(device)
    yield from _node_problems(device, node)
    yield from _evidence_problems(device, node, campaign)


def journal_is_lost(device: Device) -> bool:
    """Whether the worker of the device has another journal than the one that served it (13.9)."""
    report = device.worker_report
    return report is not None and report.journal is not None and report.journal.state != JOURNAL_READY


def _binding_problems(looked: Looked) -> Iterator[Problem]:
    """Which Node and which chassis it is."""
    device, node, identity = looked.device, looked.node, looked.device.node_identity
    if identity is None:
        yield Problem(Reason.IDENTITY_MISSING, "it is bound to no Node yet")
        return
    if identity.device_uid != device.uid:
        yield Problem(Reason.IDENTITY_MISSING, "its Node identity is that of an earlier object of this name")
        return
    if device.projection is None or not device.projection.label_hash:
        yield Problem(Reason.PROJECTION_MISSING, "its labels were never projected")
        return
    if node is None:
        yield Problem(Reason.NODE_MISSING, f"there is no Node {identity.node_name}")
        return
    wanted = {
        names.MANAGED: "true",
        names.DEVICE_NAMESPACE: device.namespace,
        names.DEVICE_NAME: device.name,
        names.DEVICE_UID: device.uid,
        names.NODE_UID: node.uid,
    }
    wrong = sorted(key for key, value in wanted.items() if node.annotations.get(key) != value)
    if identity.node_uid != node.uid:
        yield Problem(Reason.NODE_BINDING, f"Node {node.name} is another one of that name")
    elif wrong:
        yield Problem(Reason.NODE_BINDING, f"Node {node.name} is bound otherwise: {', '.join(wrong)}")
    elif node.annotations.get(names.WORKER_PROTOCOL) != names.PROTOCOL:
        said = node.annotations.get(names.WORKER_PROTOCOL) or "none"
        yield Problem(Reason.WORKER_PROTOCOL, f"its worker speaks {said}, {names.PROTOCOL} is needed")
    elif not node.annotations.get(names.WORKER_USERNAME):
        yield Problem(Reason.WORKER_PROTOCOL, f"no worker account stands on Node {node.name}")


def _readiness_problems(device: Device) -> Iterator[Problem]:
    for kind in names.REQUIRED_CONDITIONS:
        found = device.condition(kind)
        if found is not None and found.reason == _GUARD and found.status != "True":
            yield Problem(Reason.INITIALIZATION_GUARD, f"{kind} says {_GUARD}")
            return
    if device.phase != _READY:
        yield Problem(Reason.PHASE_NOT_READY, f"its phase is {device.phase or 'not set'}")
    for kind in names.REQUIRED_CONDITIONS:
        found = device.condition(kind)
        if found is None or found.status != "True":
            said = "missing" if found is None else f"{found.status}, {found.reason}"
            yield Problem(Reason.CONDITION_NOT_TRUE, f"{kind} is {said}", check=kind)
        elif found.observed_generation != device.generation:
            message = f"{kind} is of generation {found.observed_generation}, the device has {device.generation}"
            yield Problem(Reason.CONDITION_NOT_TRUE, message, check=kind)
    if device.network_worker_revision is None or not device.network_worker_revision.is_proven:
        yield Problem(Reason.WORKER_REVISION, "its worker has not proved that it loaded the present configuration")


def _node_problems(device: Device, node: NodeSeen) -> Iterator[Problem]:
    if node.ready is None or node.ready.status != "True":
        said = "missing" if node.ready is None else node.ready.status
        yield Problem(Reason.NODE_NOT_READY, f"Ready of Node {node.name} is {said}")
    projected = device.projection.last_successful if device.projection is not None else None
    writer = node.managed_writer
    if writer is None or writer.status != "True" or writer.reason != names.MANAGED_WRITER_REASON:
        yield Problem(Reason.MANAGED_WRITER, f"Node {node.name} has no current status writer")
    elif projected is None or writer.heartbeat is None or writer.heartbeat < projected:
        yield Problem(Reason.MANAGED_WRITER, f"the status writer of Node {node.name} has not answered since projection")


def _evidence_problems(device: Device, node: NodeSeen, campaign: Campaign) -> Iterator[Problem]:
    seen = effective_health_time(device, node, campaign.now)
    if isinstance(seen, HealthProblem):
        yield Problem(Reason.HEALTH_NOT_FRESH, seen.message, check=seen.reason)
    elif (campaign.now - seen).total_seconds() > campaign.freshness_s:
        age = int((campaign.now - seen).total_seconds())
        message = f"its health was seen {age} s ago, {campaign.freshness_s} s are allowed"
        yield Problem(Reason.HEALTH_NOT_FRESH, message)
    yield from _label_problems(device, node, campaign.policy)
    yield from _identity_problems(device, node)
    if campaign.plan.network is not None and campaign.plan.network_is_on:
        yield from _network_problems(device, campaign, campaign.plan.network)


def _label_problems(device: Device, node: NodeSeen, policy: FleetPolicy) -> Iterator[Problem]:
    projection = projected_labels(device, policy)
    if isinstance(projection, ProjectionProblem):
        yield Problem(Reason.LABELS_DIFFER, projection.message, check=projection.reason)
        return
    labels = projection.labels
    differing = sorted(key for key, value in labels.items() if node.labels.get(key) != value)
    recorded = device.projection.label_hash if device.projection is not None else ""
    if differing:
        yield Problem(Reason.LABELS_DIFFER, f"Node {node.name} has other labels: {', '.join(differing)}")
    elif not projection.hash == recorded == node.annotations.get(names.PROJECTION_HASH):
        yield Problem(Reason.LABELS_DIFFER, f"the projection recorded for Node {node.name} is not the present one")


def _identity_problems(device: Device, node: NodeSeen) -> Iterator[Problem]:
    recorded = device.node_identity.physical_identity if device.node_identity is not None else ""
    try:
        declared = canonical_identity(device.physical_identity)
        observed = observed_identity(node.machine_id, node.system_uuid)
    except Refused as error:
        yield Problem(Reason.PHYSICAL_IDENTITY, error.message)
        return
    if not declared == recorded == observed:
        message = f"declared {declared}, recorded {recorded or 'none'}, observed {observed}"
        yield Problem(Reason.PHYSICAL_IDENTITY, message)


def _network_problems(device: Device, campaign: Campaign, rules: JsonObject) -> Iterator[Problem]:
    found = accepted_problem(device, rules=Rules.of(rules), now=campaign.now, freshness_s=campaign.freshness_s)
    if found:
        yield Problem(Reason.NETWORK_GATE, "its network evidence does not pass the plan's gate", check=found)

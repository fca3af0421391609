"""A managed ClusterQueue as the planners see it, and the one set of fields that they write (topology-scheduling.md, 1.4, 6.6, 7.4, D35).

Whatever changes a queue is one server-side apply of the whole `Managed` set with the resourceVersion that was read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Self

from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.scheduling.names import ACCELERATABLE, ACCELERATOR, ARCH, GENERAL, OS, TOPOLOGY
from gitops_ctl.scheduling.quantity import quantity
from gitops_ctl.scheduling.selectors import Labels, labels_of
from gitops_ctl.scheduling.topology import KUEUE_API_VERSION, is_marked, is_terminating

MARK: Final = "instancetypes"
FIELD_MANAGER: Final = "gitops-ctl-scheduling"

NONE: Final = "None"
HOLD: Final = "Hold"
HOLD_AND_DRAIN: Final = "HoldAndDrain"
POLICIES: Final = frozenset({NONE, HOLD, HOLD_AND_DRAIN})
UNSET: Final = "unset"
"""Saved for a policy that was absent (D25)."""

TAS_QUEUE: Final = f"{TOPOLOGY}/tas-queue"
PHASE: Final = f"{TOPOLOGY}/migration-phase"
SAVED_POLICY: Final = f"{TOPOLOGY}/migration-stop-policy"
STARTED_AT: Final = f"{TOPOLOGY}/migration-started-at"
EMPTY_HOLD: Final = f"{TOPOLOGY}/empty-plan-hold"
APPLIED_POLICY: Final = f"{TOPOLOGY}/applied-stop-policy"
HOLD_RELEASE: Final = f"{TOPOLOGY}/hold-release"
WANTED_POLICY: Final = f"{TOPOLOGY}/wanted-stop-policy"
_OURS: Final = (TAS_QUEUE, PHASE, SAVED_POLICY, STARTED_AT, EMPTY_HOLD, APPLIED_POLICY, HOLD_RELEASE)

Quota = tuple[str, Fraction]
"""A resource and its nominal quota."""


@dataclass(frozen=True, slots=True)
class Group:
    """One resource group: its resources, and the flavors with a quota for each, in order."""

    resources: tuple[str, ...]
    flavors: tuple[tuple[str, tuple[Quota, ...]], ...]


Groups = tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Managed:
    """Everything that this controller owns of a queue.

    Attributes:
        policy: `spec.stopPolicy`; empty when the field is absent.
        checks: names of the AdmissionChecks, in order; empty means that the field is absent.
        marks: our annotations.
    """

    policy: str = ""
    groups: Groups = ()
    checks: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether nothing holds the queue."""
        return self.policy in ("", NONE)

    def marks_with(self, changes: Mapping[str, str | None]) -> Mapping[str, str]:
        """Our annotations after these changes; None takes one away."""
        merged = {**self.marks, **changes}
        return {key: value for key, value in merged.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Usage:
    """What Kueue counts, and whether it counted the spec as it is now.

    Attributes:
        is_current: Kueue has observed this generation, so that all counters are of it.
        is_stopped: it has, and the queue is inactive because it is stopped.
        reserved, used: per flavor, whether anything is counted; a flavor that is missing is unknown.
    """

    is_current: bool = False
    is_stopped: bool = False
    reserving: int = 0
    admitted: int = 0
    reserved: Mapping[str, bool] = field(default_factory=dict)
    used: Mapping[str, bool] = field(default_factory=dict)

    @property
    def is_anything_reserved(self) -> bool:
        return self.reserving > 0 or self.admitted > 0 or any(self.reserved.values())

    @property
    def is_drained(self) -> bool:
        """Stopped at this generation, and nothing is reserved any more; pending Workloads do not count."""
        return self.is_stopped and not self.is_anything_reserved

    def is_idle(self, flavor: str) -> bool:
        """Whether both lists name the flavor with nothing in it."""
        return self.reserved.get(flavor) is False and self.used.get(flavor) is False

    def lists(self, flavor: str) -> bool:
        """Whether both lists name the flavor."""
        return flavor in self.reserved and flavor in self.used


@dataclass(frozen=True, slots=True)
class Queue:
    """One live queue.

    Attributes:
        annotations: all, those from Git too.
        spec: as it is stored; more than `managed` says where the groups are somebody else's.
        is_left_drained: it is being deleted, and our last write surely came after the deletion.
    """

    name: str
    uid: str
    resource_version: str
    labels: Labels
    annotations: Labels
    is_deleted: bool
    managed: Managed
    usage: Usage
    spec: JsonObject = field(default_factory=dict)
    is_left_drained: bool = False

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        """From the object."""
        texts = object_at(tree, "metadata", "annotations").items()
        annotations = {key: value for key, value in texts if isinstance(value, str)}
        checks = objects_at(tree, "spec", "admissionChecksStrategy", "admissionChecks")
        return cls(
            name=text_at(tree, "metadata", "name"),
            uid=text_at(tree, "metadata", "uid"),
            resource_version=text_at(tree, "metadata", "resourceVersion"),
            labels=labels_of(tree),
            annotations=annotations,
            is_deleted=is_terminating(tree),
            managed=Managed(
                policy=text_at(tree, "spec", "stopPolicy"),
                groups=groups_of(tree),
                checks=tuple(text_at(check, "name") for check in checks),
                marks={key: value for key, value in annotations.items() if key in _OURS},
            ),
            usage=_usage(tree),
            spec=object_at(tree, "spec"),
            is_left_drained=_was_written_in_deletion(tree),
        )

    @property
    def wanted(self) -> str:
        """The policy that Git wants (D5); what was applied, where the annotation holds no policy."""
        policy = self.annotations.get(WANTED_POLICY, NONE)
        return policy if policy in POLICIES else self.applied

    @property
    def applied(self) -> str:
        """The wanted policy that was carried out last (D28)."""
        return self.managed.marks.get(APPLIED_POLICY, NONE)


def is_managed(tree: JsonObject) -> bool:
    """Whether a ClusterQueue carries our mark and chooses a pool."""
    return is_marked(tree, MARK) and pool_selector(labels_of(tree)) is not None


def discriminators(labels: Labels) -> Labels:
    """The labels that tell pools apart."""
    return {
        key: value
        for key, value in labels.items()
        if key in (OS, ARCH, ACCELERATABLE) or (key.startswith((GENERAL, ACCELERATOR)) and value == "true")
    }


def pool_selector(labels: Labels) -> Labels | None:
    """What chooses the flavors of a queue; None when os and arch alone are left: it must never match everything."""
    found = discriminators(labels)
    return found if set(found) - {OS, ARCH} else None


def groups_of(tree: JsonObject) -> Groups:
    """The resource groups of a ClusterQueue, quantities by value; one that cannot be read is minus one."""
    return tuple(
        Group(
            tuple(name for name in list_at(group, "coveredResources") if isinstance(name, str)),
            tuple((text_at(flavor, "name"), _quotas(flavor)) for flavor in objects_at(group, "flavors")),
        )
        for group in objects_at(tree, "spec", "resourceGroups")
    )


def quotas_of(groups: Groups) -> Mapping[str, Fraction]:
    """The quota of each flavor; over several resources their sum."""
    return {
        name: sum((value for _, value in quotas), Fraction(0)) for group in groups for name, quotas in group.flavors
    }


def apply_tree(queue: Queue, wanted: Managed) -> JsonObject:
    """The object of the one forced server-side apply that makes the queue `wanted`.

    Groups and checks that stay are repeated as they are stored: those of somebody else have limits that no plan of ours has.
    """
    spec: dict[str, JsonValue] = {"stopPolicy": wanted.policy} if wanted.policy else {}
    if wanted.groups:
        stored = queue.spec.get("resourceGroups") if wanted.groups == queue.managed.groups else None
        spec["resourceGroups"] = stored or [_group_tree(group) for group in wanted.groups]
    if wanted.checks:
        stored = queue.spec.get("admissionChecksStrategy") if wanted.checks == queue.managed.checks else None
        spec["admissionChecksStrategy"] = stored or {"admissionChecks": [{"name": name} for name in wanted.checks]}
    return {
        "apiVersion": KUEUE_API_VERSION,
        "kind": "ClusterQueue",
        "metadata": {
            "name": queue.name,
            "uid": queue.uid,
            "resourceVersion": queue.resource_version,
            "annotations": dict(wanted.marks),
        },
        "spec": spec,
    }


def _group_tree(group: Group) -> JsonObject:
    return {
        "coveredResources": list(group.resources),
        "flavors": [
            {"name": name, "resources": [{"name": resource, "nominalQuota": str(value)} for resource, value in quotas]}
            for name, quotas in group.flavors
        ],
    }


def _quotas(flavor: JsonObject) -> tuple[Quota, ...]:
    unreadable = Fraction(-1)
    return tuple(
        (text_at(one, "name"), unreadable if (value := quantity(one.get("nominalQuota"))) is None else value)
        for one in objects_at(flavor, "resources")
    )


def _was_written_in_deletion(tree: JsonObject) -> bool:
    """Whether our own apply is younger than the deletion mark; in the second of the mark nobody can tell."""
    deleted = text_at(tree, "metadata", "deletionTimestamp")
    entries = objects_at(tree, "metadata", "managedFields")
    times = (
        text_at(entry, "time")
        for entry in entries
        if text_at(entry, "manager") == FIELD_MANAGER and not text_at(entry, "subresource")
    )
    # RFC 3339 in UTC without fractions, as the server writes them: texts compare like times.
    return bool(deleted) and any(time > deleted for time in times)


def _usage(tree: JsonObject) -> Usage:
    status = object_at(tree, "status")
    active = condition_of(status, "Active")
    is_current = active is not None and int_at(active, "observedGeneration", default=-1) >= int_at(
        tree, "metadata", "generation"
    )
    is_stopped = active is not None and (text_at(active, "status"), text_at(active, "reason")) == ("False", "Stopped")
    return Usage(
        is_current=is_current,
        is_stopped=is_current and is_stopped,
        reserving=int_at(status, "reservingWorkloads"),
        admitted=int_at(status, "admittedWorkloads"),
        reserved=_counted(status, "flavorsReservation"),
        used=_counted(status, "flavorsUsage"),
    )


def _counted(status: JsonObject, name: str) -> Mapping[str, bool]:
    """Per flavor, whether any total or borrowed amount is not zero; what cannot be read is not zero."""
    return {
        text_at(flavor, "name"): any(
            quantity(one.get(member, 0)) != 0
            for one in objects_at(flavor, "resources")
            for member in ("total", "borrowed")
        )
        for flavor in objects_at(status, name)
    }

"""In which order objects are applied and deleted (gitops.md, section 8).

Eight stages, roles before the bindings that name them, and `gitops-ctl.dev/depends-on` inside a unit.  A stage only orders:
an object that fails keeps back what depends on it and nothing else.  Deletion goes the other way round; what gives the
Sync's ServiceAccount its rights goes last (R08).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.ids import GroupKind, NamespacedName, ObjectId
from gitops_ctl.sync.model import Desired, Entry, Held, Stage, View

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_BINDINGS: Final = frozenset({GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding")})
NAMESPACE: Final = GroupKind("", "Namespace")
CRD: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
SERVICE_ACCOUNT: Final = GroupKind("", "ServiceAccount")

_STAGES: Final[Mapping[GroupKind, Stage]] = {
    CRD: Stage.CRDS,
    NAMESPACE: Stage.NAMESPACES,
    GroupKind("", "ResourceQuota"): Stage.POLICIES,
    GroupKind("", "LimitRange"): Stage.POLICIES,
    GroupKind("networking.k8s.io", "NetworkPolicy"): Stage.POLICIES,
    GroupKind("policy", "PodDisruptionBudget"): Stage.POLICIES,
    GroupKind("scheduling.k8s.io", "PriorityClass"): Stage.POLICIES,
    GroupKind("storage.k8s.io", "StorageClass"): Stage.POLICIES,
    GroupKind("node.k8s.io", "RuntimeClass"): Stage.POLICIES,
    SERVICE_ACCOUNT: Stage.RBAC,
    GroupKind("", "ConfigMap"): Stage.CONFIGURATION,
    GroupKind("", "Secret"): Stage.CONFIGURATION,
    GroupKind("", "Service"): Stage.CONFIGURATION,
    GroupKind("", "PersistentVolume"): Stage.CONFIGURATION,
    GroupKind("", "PersistentVolumeClaim"): Stage.CONFIGURATION,
    GroupKind("networking.k8s.io", "IngressClass"): Stage.CONFIGURATION,
    GroupKind("", "Pod"): Stage.WORKLOADS,
    GroupKind("", "ReplicationController"): Stage.WORKLOADS,
    GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): Stage.WEBHOOKS,
    GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): Stage.WEBHOOKS,
    GroupKind("apiregistration.k8s.io", "APIService"): Stage.WEBHOOKS,
}
_GROUP_STAGES: Final[Mapping[str, Stage]] = {
    "": Stage.CONFIGURATION,
    RBAC_GROUP: Stage.RBAC,
    "admissionregistration.k8s.io": Stage.POLICIES,
    "flowcontrol.apiserver.k8s.io": Stage.POLICIES,
    "apps": Stage.WORKLOADS,
    "batch": Stage.WORKLOADS,
    "autoscaling": Stage.WORKLOADS,
    "networking.k8s.io": Stage.WORKLOADS,
    "discovery.k8s.io": Stage.WORKLOADS,
}


def stage_of(kind: GroupKind) -> Stage:
    """The stage of a kind: by the kind, else by its group; a kind that nothing names is custom."""
    found = _STAGES.get(kind)
    if found is None:
        found = _GROUP_STAGES.get(kind.group, Stage.CUSTOM)
    return found


@dataclass(frozen=True, slots=True)
class Ordered:
    """Objects in waves, and those that stand in a cycle."""

    waves: tuple[tuple[Desired, ...], ...]
    cycles: tuple[Held, ...] = ()


Rank = tuple[int, int, int]
"""Stage, roles before bindings, and depth of the dependencies inside."""


def in_waves(objects: Mapping[ObjectId, Desired]) -> Ordered:
    """Waves in the order of application; inside one wave by identity, so that two runs do the same.

    An object comes in a later wave than everything that its annotation names, whatever their stages.  A cycle holds each of
    its members with a message that names them all.
    """
    ranks = _ranks(objects)
    waves: dict[Rank, list[Desired]] = {}
    for item in sorted(ranks):
        waves.setdefault(ranks[item], []).append(objects[item])
    open_ = {item: desired for item, desired in objects.items() if item not in ranks}
    return Ordered(tuple(tuple(waves[rank]) for rank in sorted(waves)), _cycles(open_))


def _ranks(objects: Mapping[ObjectId, Desired]) -> dict[ObjectId, Rank]:
    """The rank of each object that waits for no cycle; in steps of the number of dependencies, however long the chains."""
    needs = {item: {other for other in desired.depends_on if other in objects} for item, desired in objects.items()}
    open_ = {item: len(others) for item, others in needs.items()}
    followers: dict[ObjectId, list[ObjectId]] = {}
    for item, others in needs.items():
        for other in others:
            followers.setdefault(other, []).append(item)
    ranks: dict[ObjectId, Rank] = {}
    ready = [item for item, count in open_.items() if not count]
    while ready:
        item = ready.pop()
        ranks[item] = max([_own_rank(objects[item]), *(_after(ranks[other]) for other in needs[item])])
        for follower in followers.get(item, ()):
            open_[follower] -= 1
            if not open_[follower]:
                ready.append(follower)
    return ranks


def _own_rank(desired: Desired) -> Rank:
    return (int(desired.stage), int(desired.id.group_kind in _BINDINGS), 0)


def _after(rank: Rank) -> Rank:
    return (rank[0], rank[1], rank[2] + 1)


@dataclass(frozen=True, slots=True)
class _Cycle:
    """The members of a cycle, each waiting for the next one."""

    names: list[str]
    places: Mapping[ObjectId, int]

    def shown_from(self, item: ObjectId) -> str:
        place = self.places.get(item, 0)
        return listed([*self.names[place:], *self.names[: place + 1]])


def _cycles(open_: Mapping[ObjectId, Desired]) -> tuple[Held, ...]:
    held = []
    reached = _cycles_reached(open_)
    for item, desired in sorted(open_.items()):
        cycle = reached[item]
        if item in cycle.places:
            text, code = f"depends on itself: {cycle.shown_from(item)}", ErrorCode.DEPENDENCY_CYCLE
        else:
            text = f"waits for objects in a dependency cycle: {listed(cycle.names)}"
            code = ErrorCode.DEPENDENCY_NOT_READY
        held.append(Held(item, code, text, desired.file, desired.line))
    return tuple(held)


def _cycles_reached(open_: Mapping[ObjectId, Desired]) -> Mapping[ObjectId, _Cycle]:
    """The cycle that one reaches from each object, by its first dependency that is open too; each is walked once."""
    reached: dict[ObjectId, _Cycle] = {}
    for start in open_:
        path: dict[ObjectId, int] = {}
        current = start
        while current not in reached and current not in path:
            path[current] = len(path)
            current = min(other for other in open_[current].depends_on if other in open_)
        cycle = reached.get(current)
        if cycle is None:
            members = list(path)[path[current] :]
            cycle = _Cycle([str(member) for member in members], {member: place for place, member in enumerate(members)})
        reached.update(dict.fromkeys(path, cycle))
    return reached


@dataclass(frozen=True, slots=True)
class Deletion:
    """One object to delete, with what decides about its place."""

    entry: Entry
    view: View | None = None


def in_deletion_waves(
    doomed: Iterable[Deletion], *, account: NamespacedName | None
) -> tuple[tuple[Deletion, ...], ...]:
    """Waves in the order of deletion: stages backwards; the account, its namespace, its bindings and their roles last.

    Args:
        doomed: what goes.
        account: the Sync's ServiceAccount, None when it lives in another cluster's namespace that nothing here touches.
    """
    items = list(doomed)
    roles = {item.view.role for item in items if item.view is not None and _binds(item, account)}
    waves: dict[int, list[Deletion]] = {}
    for item in sorted(items, key=lambda found: found.entry.id):
        waves.setdefault(_deletion_rank(item, account, roles), []).append(item)
    return tuple(tuple(waves[rank]) for rank in sorted(waves))


def _binds(item: Deletion, account: NamespacedName | None) -> bool:
    return item.view is not None and account is not None and str(account) in item.view.binds


def _deletion_rank(item: Deletion, account: NamespacedName | None, roles: set[ObjectId | None]) -> int:
    identity = item.entry.id
    kind = identity.group_kind
    if account is not None:
        if kind == NAMESPACE and identity.name == account.namespace:
            return 100
        if kind == SERVICE_ACCOUNT and (identity.namespace, identity.name) == (account.namespace, account.name):
            return 101
        # Together, because whichever goes first takes the right to delete the other.
        if _binds(item, account) or identity in roles:
            return 102
    if kind in _BINDINGS:
        return 91
    if kind.group == RBAC_GROUP or kind == SERVICE_ACCOUNT:
        return 90
    return int(Stage.WEBHOOKS) - int(stage_of(kind))

"""References between documents: what an object names must be there.

An explicit order (`depends-on`, `dependsOn`) that names nothing, or a circle, is an error.  A name inside a workload is
only a warning, and only where the repository declares other objects of that kind in the namespace: they may as well be made
by somebody else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gitops_ctl.api.names import ANNOTATION_DEPENDS_ON, GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, objects_at, text_at
from gitops_ctl.documents.annotations import depends_on
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw

Finder: TypeAlias = Callable[[JsonObject], Iterable["Reference"]]


@dataclass(frozen=True, slots=True)
class Reference:
    """One object names another one.

    Attributes:
        pointer: where it says so.
        orders: the other one must come first.
        strict: the other one must be declared; else it is only worth a warning.
    """

    target: ObjectId
    pointer: str
    orders: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """What the check across documents needs to know of one; small enough to be kept for ten thousand."""

    id: ObjectId
    references: tuple[Reference, ...]


_MOST_NAMES: Final = 10
_FINDERS: Final[dict[GroupKind, list[Finder]]] = {}


def register_references(group_kind: GroupKind, finder: Finder) -> None:
    """Add a function that finds what objects of a kind refer to."""
    _FINDERS.setdefault(group_kind, []).append(finder)


def references_of(tree: JsonObject) -> tuple[Reference, ...]:
    """Everything that one object refers to."""
    found = list(_ordering(tree))
    for finder in _FINDERS.get(ObjectId.of(tree).group_kind, ()):
        found.extend(finder(tree))
    return tuple(found)


def check_references(nodes: Iterable[Node], *, declared: frozenset[ObjectId]) -> Iterator[tuple[ObjectId, Flaw]]:
    """What is missing, and circles.

    Args:
        nodes: the objects to check.
        declared: every identity that Git names, broken documents included.
    """
    listed_nodes = list(nodes)
    managed: set[tuple[GroupKind, str]] | None = None
    for node in listed_nodes:
        for reference in node.references:
            target = reference.target
            if target in declared:
                continue
            if reference.strict:
                message = f"{target} is not declared in Git"
                yield node.id, Flaw(ErrorCode.REFERENCE, message, reference.pointer)
                continue
            if managed is None:
                managed = {(one.group_kind, one.namespace) for one in declared}
            if (target.group_kind, target.namespace) in managed:
                message = f"{target} is not declared in Git, though others of its kind are"
                yield node.id, Flaw(ErrorCode.REFERENCE, message, reference.pointer, severity="warning")
    yield from _circles(listed_nodes)


def _circles(nodes: list[Node]) -> Iterator[tuple[ObjectId, Flaw]]:
    order = {node.id: [reference for reference in node.references if reference.orders] for node in nodes}
    for circle in _strongly_connected({name: [one.target for one in found] for name, found in order.items()}):
        names = ", ".join(str(member) for member in circle[:_MOST_NAMES])
        if len(circle) > _MOST_NAMES:
            names += f" and {len(circle) - _MOST_NAMES} more"
        members = frozenset(circle)
        for member in circle:
            pointer = next(one.pointer for one in order[member] if one.target in members)
            yield member, Flaw(ErrorCode.DEPENDENCY_CYCLE, f"these wait for each other: {names}", pointer)


def _strongly_connected(edges: Mapping[ObjectId, list[ObjectId]]) -> list[tuple[ObjectId, ...]]:
    """Groups that wait for each other, sorted: two walks, one against the direction, each over every edge once."""
    forward = {name: [target for target in targets if target in edges] for name, targets in edges.items()}
    backward: dict[ObjectId, list[ObjectId]] = {}
    for name, targets in forward.items():
        for target in targets:
            backward.setdefault(target, []).append(name)
    seen: set[ObjectId] = set()
    ended = [name for start in forward for name in _walked(start, forward, seen=seen)]
    seen.clear()
    groups = (tuple(sorted(_walked(start, backward, seen=seen))) for start in reversed(ended))
    return sorted(group for group in groups if len(group) > 1 or (group and group[0] in forward[group[0]]))


def _walked(start: ObjectId, edges: Mapping[ObjectId, list[ObjectId]], *, seen: set[ObjectId]) -> Iterator[ObjectId]:
    """What one reaches from `start` and has not `seen`, each after all that one reaches from it."""
    stack = [] if start in seen else [(start, iter(edges.get(start, ())))]
    seen.add(start)
    while stack:
        name, targets = stack[-1]
        target = next((target for target in targets if target not in seen), None)
        if target is None:
            stack.pop()
            yield name
        else:
            seen.add(target)
            stack.append((target, iter(edges.get(target, ()))))


def _ordering(tree: JsonObject) -> Iterator[Reference]:
    pointer = pointer_of(("metadata", "annotations", ANNOTATION_DEPENDS_ON))
    try:
        targets = depends_on(tree)
    except ValueError:
        return
    for target in targets:
        yield Reference(target, pointer, orders=True, strict=True)


def _syncs(tree: JsonObject) -> Iterator[Reference]:
    namespace = text_at(tree, "metadata", "namespace")
    for place, entry in enumerate(list_at(tree, "spec", "dependsOn")):
        name = entry if isinstance(entry, str) else text_at(entry, "name") if isinstance(entry, dict) else ""
        if name:
            target = ObjectId(GROUP, "Sync", namespace, name)
            yield Reference(target, f"/spec/dependsOn/{place}", orders=True)


def _workload(*path: str) -> Finder:
    """Pods name their ServiceAccount."""

    def find(tree: JsonObject) -> Iterator[Reference]:
        name = text_at(tree, *path, "serviceAccountName")
        if name and name != "default":
            target = ObjectId("", "ServiceAccount", text_at(tree, "metadata", "namespace"), name)
            yield Reference(target, pointer_of((*path, "serviceAccountName")))

    return find


def _binding(tree: JsonObject) -> Iterator[Reference]:
    namespace = text_at(tree, "metadata", "namespace")
    role = object_at(tree, "roleRef")
    if text_at(role, "kind") == "Role":
        target = ObjectId("rbac.authorization.k8s.io", "Role", namespace, text_at(role, "name"))
        yield Reference(target, "/roleRef/name")
    for place, subject in enumerate(objects_at(tree, "subjects")):
        if text_at(subject, "kind") == "ServiceAccount" and text_at(subject, "name") != "default":
            where = text_at(subject, "namespace", default=namespace)
            target = ObjectId("", "ServiceAccount", where, text_at(subject, "name"))
            yield Reference(target, f"/subjects/{place}/name")


def _ingress(tree: JsonObject) -> Iterator[Reference]:
    namespace = text_at(tree, "metadata", "namespace")
    for at_rule, rule in enumerate(objects_at(tree, "spec", "rules")):
        for at_path, path in enumerate(objects_at(rule, "http", "paths")):
            name = text_at(path, "backend", "service", "name")
            if name:
                pointer = f"/spec/rules/{at_rule}/http/paths/{at_path}/backend/service/name"
                yield Reference(ObjectId("", "Service", namespace, name), pointer)


_RBAC: Final = "rbac.authorization.k8s.io"
_POD: Final = ("spec", "template", "spec")

register_references(GroupKind(GROUP, "Sync"), _syncs)
register_references(GroupKind("", "Pod"), _workload("spec"))
for _kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
    register_references(GroupKind("apps", _kind), _workload(*_POD))
register_references(GroupKind("batch", "Job"), _workload(*_POD))
register_references(GroupKind("batch", "CronJob"), _workload("spec", "jobTemplate", *_POD))
register_references(GroupKind(_RBAC, "RoleBinding"), _binding)
register_references(GroupKind(_RBAC, "ClusterRoleBinding"), _binding)
register_references(GroupKind("networking.k8s.io", "Ingress"), _ingress)

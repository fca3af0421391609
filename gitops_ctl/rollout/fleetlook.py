"""A look over the whole fleet, remembered by resourceVersion (rollouts.md, sections 10.3 and 11.4).

One badly formed device blocks every admission, so it is looked for before the first one and named (S7 of section 22).  A device, its Node
and the policy are judged anew only when one of them changed; only the age of its evidence is looked at each time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.fleet.health import HealthProblem, Member, Standing, standing_of
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.fleet.policy import FleetPolicy, matches_fleet, semantic_hash
from gitops_ctl.rollout.planhash import membership_hash
from gitops_ctl.rollout.problem import Problem, Reason

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FleetLook:
    """What is known of the fleet now.

    Attributes:
        members: of every well-formed device, in the order of namespace and name.
        problems: badly formed devices, each with the first check that it fails, in the same order.
        membership_hash: which chassis is in which risk groups.
    """

    members: tuple[Member, ...]
    problems: tuple[Problem, ...]
    membership_hash: str

    @property
    def digest(self) -> str:
        """Equal while the fleet lets planning end in the same way."""
        problems = [[one.device, one.check] for one in self.problems]
        return sha256_of({"membership": self.membership_hash, "problems": problems})


class ByVersion(Generic[T]):
    """What objects are read as, remembered until they change.  Forgets what is not given any more.

    A cache hands out the same tree until the object changes, so trees are told apart by identity first; a tree that was listed anew is
    known by UID and resourceVersion.
    """

    def __init__(self, read: Callable[[JsonObject], T]) -> None:
        self._read = read
        self._known: dict[int, tuple[JsonObject, T]] = {}

    def __call__(self, trees: Iterable[JsonObject]) -> tuple[T, ...]:
        """The objects as values, in the order of the trees, which nobody may change afterwards."""
        before, self._known = self._known, {}
        by_version: dict[tuple[str, str], T] = {}
        values = []
        for tree in trees:
            found = before.get(id(tree))
            if found is None or found[0] is not tree:
                by_version = by_version or {_version(old): value for old, value in before.values()}
                value = by_version.get(_version(tree))
                found = (tree, self._read(tree) if value is None else value)
            self._known[id(tree)] = found
            values.append(found[1])
        return tuple(values)


def _version(tree: JsonObject) -> tuple[str, str]:
    return text_at(tree, "metadata", "uid"), text_at(tree, "metadata", "resourceVersion")


@dataclass(slots=True)
class _Known:
    """One device with its Node, judged; `node` is None where there is none of its name."""

    device: Device
    node: NodeSeen | None
    standing: Standing | HealthProblem | None
    """None outside the fleet."""


class FleetMemo:
    """Looks over the fleet and remembers what it found.  For one event loop."""

    def __init__(self) -> None:
        self._policy = ""
        self._known: dict[str, _Known] = {}
        self._groups: list[tuple[str, tuple[str, ...]]] | None = None
        self._membership = ""

    def look(
        self,
        devices: Sequence[Device],
        nodes: Mapping[str, NodeSeen],
        *,
        policy: FleetPolicy,
        now: datetime,
        freshness_s: int | None = None,
    ) -> FleetLook:
        """The fleet as it is.

        Args:
            devices: of all namespaces; those outside the fleet and retired ones are passed over.
            nodes: by name.
            freshness_s: the policy's when left out.
        """
        before = self._of_policy(policy)
        limit = policy.health_freshness_s if freshness_s is None else freshness_s
        self._known, members, problems, groups = {}, [], [], []
        for device in sorted(devices, key=lambda one: (one.namespace, one.name)):
            known = _judged(before.get(device.uid), device, nodes.get(device.node_name), policy)
            self._known[device.uid] = known
            standing = known.standing
            if isinstance(standing, HealthProblem):
                problems.append(_problem(device, standing))
            elif standing is not None:
                members.append(standing.member(now, freshness_s=limit))
                groups.append((standing.physical_id, standing.groups))
        return FleetLook(tuple(members), tuple(problems), self._hash_of(groups))

    def _of_policy(self, policy: FleetPolicy) -> dict[str, _Known]:
        """What is known, as far as it was judged by a policy of this meaning."""
        meaning = semantic_hash(policy)
        if meaning != self._policy:
            self._policy = meaning
            return {}
        return self._known

    def _hash_of(self, groups: list[tuple[str, tuple[str, ...]]]) -> str:
        if groups != self._groups:
            self._groups, self._membership = groups, membership_hash(groups)
        return self._membership


def _judged(known: _Known | None, device: Device, node: NodeSeen | None, policy: FleetPolicy) -> _Known:
    """The device as it was judged, or judged now when it, or its Node, is another one or another version."""
    if known is not None and _is_same(known.device, device) and _is_same(known.node, node):
        return known
    in_fleet = device.retired is None and matches_fleet(policy, device.labels)
    return _Known(device, node, standing_of(device, node, policy) if in_fleet else None)


def _is_same(one: Device | NodeSeen | None, other: Device | NodeSeen | None) -> bool:
    if one is other:
        return True
    if one is None or other is None:
        return False
    return bool(one.resource_version) and (one.uid, one.resource_version) == (other.uid, other.resource_version)


def _problem(device: Device, found: HealthProblem) -> Problem:
    return Problem(Reason.FLEET_INCOMPLETE, found.message, f"{device.namespace}/{device.name}", found.reason)

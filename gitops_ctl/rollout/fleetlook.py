"""A look over the whole fleet, remembered by resourceVersion (rollouts.md, sections 10.3 and 11.4).

One badly formed device blocks every admission, so it is looked for before the first one and named (S7 of section 22).  A device, its Node
and the policy are judged anew only when one of them changed; only the age of its evidence is looked at each time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.fleet.health import HealthProblem, Member, Standing, standing_of
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.fleet.policy import FleetPolicy, matches_fleet, semantic_hash
from gitops_ctl.rollout.planhash import membership_hash
from gitops_ctl.rollout.problem import Problem, Reason


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


class Seen(NamedTuple):
    """One device by name, with the versions that it and its Node had when they were seen: (UID, resourceVersion) of both."""

    key: NamespacedName
    version: tuple[str, str, str, str]


Read = Callable[[NamespacedName], tuple[Device, NodeSeen | None] | None]
"""A device and its Node as they were seen last; None for one that is gone."""


@dataclass(frozen=True, slots=True)
class _Known:
    """One device with its Node, judged; the objects themselves are not kept."""

    version: tuple[str, str, str, str]
    labels: Mapping[str, str]
    standing: Standing | HealthProblem | None
    """None outside the fleet."""


class FleetMemo:
    """Looks over the fleet and remembers what it found.  For one event loop."""

    def __init__(self) -> None:
        self._policy = ""
        self._known: dict[NamespacedName, _Known] = {}
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
        """The fleet as these objects have it.

        Args:
            devices: of all namespaces; those outside the fleet and retired ones are passed over.
            nodes: by name.
            freshness_s: the policy's when left out.
        """
        given = {NamespacedName(one.namespace, one.name): (one, nodes.get(one.node_name)) for one in devices}
        seen = [Seen(key, _versions(device, node)) for key, (device, node) in given.items()]
        return self.over(seen, given.get, policy=policy, now=now, freshness_s=freshness_s)

    def over(
        self,
        seen: Iterable[Seen],
        read: Read,
        *,
        policy: FleetPolicy,
        now: datetime,
        freshness_s: int | None = None,
    ) -> FleetLook:
        """The fleet as it was seen; only what changed since the last look is read."""
        self._take_policy(policy)
        limit = policy.health_freshness_s if freshness_s is None else freshness_s
        before, self._known = self._known, {}
        members, problems, groups = [], [], []
        for key, version in sorted(seen):
            known = before.get(key)
            known = known if known is not None and _is_same(known, version) else _judged(read(key), version, policy)
            if known is None:
                continue
            self._known[key] = known
            standing = known.standing
            if isinstance(standing, HealthProblem):
                problems.append(_problem(key, standing))
            elif standing is not None:
                members.append(standing.member(now, freshness_s=limit))
                groups.append((standing.physical_id, standing.groups))
        return FleetLook(tuple(members), tuple(problems), self._hash_of(groups))

    def unknown(self, seen: Iterable[Seen], policy: FleetPolicy) -> list[Seen]:
        """Those of which a look would have to read something."""
        self._take_policy(policy)
        found = []
        for one in seen:
            known = self._known.get(one.key)
            if known is None or not _is_same(known, one.version):
                found.append(one)
        return found

    def learn(self, one: Seen, read: Read, policy: FleetPolicy) -> None:
        """Judge one device before somebody looks."""
        self._take_policy(policy)
        known = _judged(read(one.key), one.version, policy)
        if known is not None:
            self._known[one.key] = known

    def matching(self, namespace: str, matches: Callable[[Mapping[str, str]], bool]) -> list[NamespacedName]:
        """Devices of a namespace, by name, that had such labels at the last look."""
        found = (key for key, known in self._known.items() if key.namespace == namespace and matches(known.labels))
        return sorted(found)

    def _take_policy(self, policy: FleetPolicy) -> None:
        """Forget what was judged by a policy of another meaning."""
        meaning = semantic_hash(policy)
        if meaning != self._policy:
            self._policy, self._known = meaning, {}

    def _hash_of(self, groups: list[tuple[str, tuple[str, ...]]]) -> str:
        if groups != self._groups:
            self._groups, self._membership = groups, membership_hash(groups)
        return self._membership


def _versions(device: Device, node: NodeSeen | None) -> tuple[str, str, str, str]:
    has_node = ("", "") if node is None else (node.uid, node.resource_version)
    return device.uid, device.resource_version, *has_node


def _is_same(known: _Known, version: tuple[str, str, str, str]) -> bool:
    """Whether it is that version; one without a version is never known."""
    return known.version == version and bool(version[1]) and bool(version[2]) is bool(version[3])


def _judged(
    found: tuple[Device, NodeSeen | None] | None, version: tuple[str, str, str, str], policy: FleetPolicy
) -> _Known | None:
    if found is None:
        return None
    device, node = found
    in_fleet = device.retired is None and matches_fleet(policy, device.labels)
    return _Known(version, device.labels, standing_of(device, node, policy) if in_fleet else None)


def _problem(key: NamespacedName, found: HealthProblem) -> Problem:
    return Problem(Reason.FLEET_INCOMPLETE, found.message, str(key), found.reason)

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

_Key = tuple[str, str, str, str]
"""UID and resourceVersion of a device, UID and resourceVersion of its Node."""


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
    """What objects are read as, remembered by UID and resourceVersion.  Forgets what is not given any more."""

    def __init__(self, read: Callable[[JsonObject], T]) -> None:
        self._read = read
        self._known: dict[tuple[str, str], T] = {}

    def __call__(self, trees: Iterable[JsonObject]) -> tuple[T, ...]:
        """The objects as values, in the order of the trees."""
        known: dict[tuple[str, str], T] = {}
        for tree in trees:
            key = (text_at(tree, "metadata", "uid"), text_at(tree, "metadata", "resourceVersion"))
            found = self._known.get(key)
            known[key] = self._read(tree) if found is None else found
        self._known = known
        return tuple(known.values())


class FleetMemo:
    """Looks over the fleet and remembers what it found.  For one event loop."""

    def __init__(self) -> None:
        self._policy = ""
        self._standings: dict[_Key, Standing | HealthProblem] = {}
        self._groups: tuple[tuple[str, tuple[str, ...]], ...] | None = None
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
        self._forget_another(policy)
        limit = policy.health_freshness_s if freshness_s is None else freshness_s
        standings, members, problems, groups = {}, [], [], []
        for device in sorted(devices, key=lambda one: (one.namespace, one.name)):
            if device.retired is not None or not matches_fleet(policy, device.labels):
                continue
            node = nodes.get(device.node_name)
            key = _key(device, node)
            standing = self._standings.get(key) or standing_of(device, node, policy)
            standings[key] = standing
            if isinstance(standing, HealthProblem):
                problems.append(_problem(device, standing))
                continue
            members.append(standing.member(now, freshness_s=limit))
            groups.append((standing.physical_id, standing.groups))
        self._standings = standings
        return FleetLook(tuple(members), tuple(problems), self._hash_of(tuple(groups)))

    def _forget_another(self, policy: FleetPolicy) -> None:
        meaning = semantic_hash(policy)
        if meaning != self._policy:
            self._policy, self._standings = meaning, {}

    def _hash_of(self, groups: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
        if groups != self._groups:
            self._groups, self._membership = groups, membership_hash(groups)
        return self._membership


def _key(device: Device, node: NodeSeen | None) -> _Key:
    seen = ("", "") if node is None else (node.uid, node.resource_version)
    return (device.uid, device.resource_version, *seen)


def _problem(device: Device, found: HealthProblem) -> Problem:
    return Problem(Reason.FLEET_INCOMPLETE, found.message, f"{device.namespace}/{device.name}", found.reason)

"""A look over the whole fleet, remembered by resourceVersion (rollouts.md, sections 10.3 and 11.4).

One badly formed device blocks every admission, so it is looked for before the first one and named (S7 of section 22).  A device, its Node
and the policy are judged anew only when one of them changed; only the age of its evidence is looked at each time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

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


Version: TypeAlias = tuple[str, str, str, str | int]
"""UID and version of a device, UID and version of its Node: two of the same are judged the same."""


@dataclass(frozen=True, slots=True)
class Ages:
    """How old evidence may be, in seconds, for one campaign (15.3).

    A plan may ask for younger evidence of its targets than the policy does; of any other member nobody renews it that early.

    Attributes:
        targets: UIDs of the devices that the plan names.
    """

    everybody_s: int
    targets_s: int = 0
    targets: frozenset[str] = frozenset()


class Seen(NamedTuple):
    """One device by name, with the versions that it and its Node had when they were seen."""

    key: NamespacedName
    version: Version


Read = Callable[[NamespacedName], tuple[Device, NodeSeen | None] | None]
"""A device and its Node as they were seen last; None for one that is gone."""


@dataclass(frozen=True, slots=True)
class _Known:
    """One device with its Node, judged; the objects themselves are not kept.

    Attributes:
        version: None when the objects had none: then they are judged each time.
        standing: None outside the fleet.
        available, unavailable: the two members that it may be, by the age of its evidence.
    """

    version: Version | None
    labels: Mapping[str, str]
    standing: Standing | HealthProblem | None
    available: Member | None = None
    unavailable: Member | None = None

    @property
    def groups(self) -> tuple[str, tuple[str, ...]] | None:
        """Its chassis with its risk groups; None for one that is no member."""
        found = self.unavailable
        return None if found is None else (found.physical_id, found.groups)


class FleetMemo:
    """Looks over the fleet and remembers what it found.  For one event loop."""

    def __init__(self) -> None:
        self._policy: FleetPolicy | None = None
        self._meaning = ""
        self._known: dict[NamespacedName, _Known] = {}
        self._membership = ""
        """Hash of the groups of all members; empty while it has to be taken anew."""

    def look(
        self,
        devices: Sequence[Device],
        nodes: Mapping[str, NodeSeen],
        *,
        policy: FleetPolicy,
        now: datetime,
        ages: Ages | None = None,
    ) -> FleetLook:
        """The fleet as these objects have it.

        Args:
            devices: of all namespaces; those outside the fleet and retired ones are passed over.
            nodes: by name.
            ages: the policy's when left out.
        """
        given = {NamespacedName(one.namespace, one.name): (one, nodes.get(one.node_name)) for one in devices}
        seen = [Seen(key, _versions(device, node)) for key, (device, node) in given.items()]
        return self.over(seen, given.get, policy=policy, now=now, ages=ages)

    def over(
        self,
        seen: Iterable[Seen],
        read: Read,
        *,
        policy: FleetPolicy,
        now: datetime,
        ages: Ages | None = None,
    ) -> FleetLook:
        """The fleet as it was seen; only what changed since the last look is read."""
        self._take_policy(policy)
        limits = ages or Ages(policy.health_freshness_s)
        anybody = now - timedelta(seconds=limits.everybody_s)
        target = now - timedelta(seconds=min(limits.everybody_s, limits.targets_s))
        before, self._known = self._known, {}
        members, problems = [], []
        for key, version in sorted(seen):
            known = before.get(key)
            if known is None or known.version != version:
                known = self._judge(key, version, read, known)
            if known is None:
                continue
            self._known[key] = known
            standing = known.standing
            if isinstance(standing, Standing):
                seen_at, fit = standing.health_time, known.available
                oldest = target if standing.device_uid in limits.targets else anybody
                found = known.unavailable if fit is None or seen_at is None or seen_at < oldest else fit
                assert found is not None
                members.append(found)
            elif standing is not None:
                problems.append(_problem(key, standing))
        if len(before) > len(self._known):
            self._membership = ""
        return FleetLook(tuple(members), tuple(problems), self._groups_hash())

    def unknown(self, seen: Iterable[Seen], policy: FleetPolicy) -> list[Seen]:
        """Those of which a look would have to read something."""
        self._take_policy(policy)
        found = []
        for one in seen:
            known = self._known.get(one.key)
            if known is None or known.version != one.version:
                found.append(one)
        return found

    def learn(self, one: Seen, read: Read, policy: FleetPolicy) -> None:
        """Judge one device before somebody looks."""
        self._take_policy(policy)
        known = self._judge(one.key, one.version, read, self._known.get(one.key))
        if known is not None:
            self._known[one.key] = known

    def matching(self, namespace: str, matches: Callable[[Mapping[str, str]], bool]) -> list[NamespacedName]:
        """Devices of a namespace, by name, that had such labels at the last look."""
        found = (key for key, known in self._known.items() if key.namespace == namespace and matches(known.labels))
        return sorted(found)

    def version(self, key: NamespacedName) -> Version | None:
        """The versions that a device was judged by at the last look."""
        known = self._known.get(key)
        return None if known is None else known.version

    def _take_policy(self, policy: FleetPolicy) -> None:
        """Forget what was judged by a policy of another meaning."""
        if policy is self._policy:
            return
        self._policy, meaning = policy, semantic_hash(policy)
        if meaning != self._meaning:
            self._meaning, self._known, self._membership = meaning, {}, ""

    def _judge(self, key: NamespacedName, version: Version, read: Read, before: _Known | None) -> _Known | None:
        assert self._policy is not None
        found = _judged(read(key), version, self._policy)
        if found is None or before is None or found.groups != before.groups:
            self._membership = ""
        return found

    def _groups_hash(self) -> str:
        if not self._membership:
            groups = (known.groups for known in self._known.values())
            self._membership = membership_hash(one for one in groups if one is not None)
        return self._membership


def _versions(device: Device, node: NodeSeen | None) -> Version:
    has_node = ("", "") if node is None else (node.uid, node.resource_version)
    return device.uid, device.resource_version, *has_node


def _judged(found: tuple[Device, NodeSeen | None] | None, version: Version, policy: FleetPolicy) -> _Known | None:
    if found is None:
        return None
    device, node = found
    is_known = bool(version[1]) and bool(version[2]) is bool(version[3])
    in_fleet = device.retired is None and matches_fleet(policy, device.labels)
    standing = standing_of(device, node, policy) if in_fleet else None
    if not isinstance(standing, Standing):
        return _Known(version if is_known else None, device.labels, standing)
    return _Known(
        version if is_known else None,
        device.labels,
        standing,
        available=standing.at_best,
        unavailable=standing.at_worst,
    )


def _problem(key: NamespacedName, found: HealthProblem) -> Problem:
    return Problem(Reason.FLEET_INCOMPLETE, found.message, str(key), found.reason)

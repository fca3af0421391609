"""The plan of a queue: which flavors with which quotas, or why there is none (topology-scheduling.md, 7.4 and 7.5).

The checks run in the order of the contract and the first failure wins; whatever fails, the last plan keeps serving.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.scheduling.flavor import MARK as FLAVOR_MARK
from gitops_ctl.scheduling.flavor import node_labels
from gitops_ctl.scheduling.hardware import CAPACITY, COUNT
from gitops_ctl.scheduling.names import ACCELERATABLE, ACCELERATOR, GENERAL, MANAGED, PROFILE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import PHASE, TAS_QUEUE, Group, Groups, Queue, discriminators, pool_selector, quotas_of
from gitops_ctl.scheduling.selectors import Labels, labels_of
from gitops_ctl.scheduling.topology import is_marked, is_terminating, topology_name

MOST_FLAVORS: Final = 64
CREDITS_PER_DEVICE: Final = 1_600_000
RETRY_S: Final = 30.0
_CPU: Final = "cpu"
_CREDITS: Final = "credits.gpustack.ai/"
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")

RefusalReason = Literal[
    "DuplicateCoveredResource",
    "UnsupportedExistingObject",
    "TooManyFlavors",
    "MissingTopology",
    "OverlappingSelectors",
    "NonConservedQuota",
    "MixedPool",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no plan; the groups stay as they are.

    Attributes:
        retry_s: seconds until the next look; None when an event has to come first.
    """

    reason: RefusalReason
    message: str

    @property
    def retry_s(self) -> float | None:
        return RETRY_S if self.reason in ("MissingTopology", "NonConservedQuota") else None


@dataclass(frozen=True, slots=True)
class Plan:
    """The groups of a queue.

    Attributes:
        groups: one group with one resource; none when the pool has no flavor.
        members: the flavor of each Node, by the name of the Node.
    """

    groups: Groups = ()
    members: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """What a plan depends on, besides the queue.

    Attributes:
        flavors: all ResourceFlavors.
        topologies: names of the Topologies that exist.
        nodes: labels of all Nodes, by name.
    """

    flavors: tuple[JsonObject, ...]
    topologies: frozenset[str]
    nodes: Mapping[str, Labels]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A flavor of the pool, with what the checks ask of it."""

    name: str
    selector: Labels
    labels: Labels
    topology: str
    nodes: frozenset[str]

    @property
    def is_accelerated(self) -> bool:
        return self.labels.get(ACCELERATABLE) == "true"

    @property
    def key(self) -> str:
        """The own key: the one key of its kind with a count in the selector; empty when there is not exactly one."""
        prefix = ACCELERATOR if self.is_accelerated else GENERAL
        keys = [key for key in self.selector if key.startswith(prefix) and key.endswith(COUNT)]
        return keys[0].removesuffix(COUNT) if len(keys) == 1 else ""

    @property
    def count(self) -> int:
        text = self.selector.get(f"{self.key}{COUNT}", "")
        return int(text) if _COUNT.fullmatch(text) else 0

    @property
    def capacity(self) -> int | None:
        text = self.labels.get(f"{self.key}{CAPACITY}", "")
        return int(text) if _NUMBER.fullmatch(text) else None

    @property
    def resource(self) -> tuple[str, int]:
        """The covered resource, and its amount for each counted core or device."""
        if not self.is_accelerated:
            return _CPU, 1
        manufacturer = self.key.removeprefix(ACCELERATOR).partition("-")[0]
        return f"{_CREDITS}{manufacturer}", CREDITS_PER_DEVICE


def plan_queue(queue: Queue, world: World, *, options: Options) -> Plan | Refusal:
    """The plan for a managed queue; an empty one, without any check, when its pool has no living flavor.

    Groups of somebody else are refused all the same: an empty plan would drain the queue and take them away.
    """
    candidates = _candidates(queue, world)
    if not candidates:
        return (_existing_refusal(queue, 0) if _has_foreign_groups(queue) else None) or Plan((), {})
    refusal = (
        _existing_refusal(queue, len(candidates))
        or next(_flavor_refusals(candidates, world), None)
        or next(_quota_refusals(candidates), None)
        or _uncovered(queue, candidates, world, options)
        or _mixed(candidates)
    )
    return refusal or _planned(candidates)


def flavor_counts(queue: Queue, world: World) -> tuple[tuple[str, int, int | None], ...]:
    """Each living flavor of the pool by name, with the number of its Nodes and the capacity that it states, whether there is a plan or not."""
    return tuple((one.name, len(one.nodes), one.capacity) for one in _candidates(queue, world))


def pool_nodes(queue: Queue, nodes: Mapping[str, Labels], *, options: Options) -> Mapping[str, Labels]:
    """The managed Nodes of the queue's pool, those without a profile included (7.5, check 9)."""
    selector = dict(pool_selector(queue.labels) or {})
    is_cpu = selector.get(ACCELERATABLE) == "false"
    if is_cpu:
        # Nodes carry the label only as `true`.
        del selector[ACCELERATABLE]
    selector[MANAGED] = "true"
    skip_accelerated = is_cpu and not options.mixed_on_node
    return {
        name: labels
        for name, labels in nodes.items()
        if selector.items() <= labels.items() and not (skip_accelerated and labels.get(ACCELERATABLE) == "true")
    }


def queues_of_flavor(flavor: JsonObject, queues: Iterable[Queue]) -> tuple[str, ...]:
    """Names of the managed queues that a flavor event wakes: those whose selector is a part of its discriminators."""
    found = discriminators(labels_of(flavor)).items()
    return tuple(sorted(queue.name for queue in queues if (pool_selector(queue.labels) or {}).items() <= found))


def usable_checks(active: Iterable[str], *, options: Options) -> tuple[str, ...]:
    """The AdmissionChecks that a queue may list: a missing or inactive one would make it inactive (D23)."""
    known = set(active)
    return tuple(name for name in options.admission_checks if name in known)


def _candidates(queue: Queue, world: World) -> tuple[_Candidate, ...]:
    """The living flavors of the pool, by name.  A terminating one counts as absent, or it could never go."""
    selector = pool_selector(queue.labels)
    if selector is None:
        return ()
    living = [
        (flavor, node_labels(flavor), labels)
        for flavor in world.flavors
        if is_marked(flavor, FLAVOR_MARK)
        and not is_terminating(flavor)
        and selector.items() <= (labels := labels_of(flavor)).items()
    ]
    chosen = _chosen([wanted for _, wanted, _ in living], world.nodes)
    found = [
        _Candidate(text_at(flavor, "metadata", "name"), wanted, labels, text_at(flavor, "spec", "topologyName"), nodes)
        for (flavor, wanted, labels), nodes in zip(living, chosen, strict=True)
    ]
    return tuple(sorted(found, key=lambda candidate: candidate.name))


def _chosen(selectors: list[Labels], nodes: Mapping[str, Labels]) -> Iterator[frozenset[str]]:
    """The Nodes of each selector; over an index, because every flavor asks about every Node."""
    index: dict[tuple[str, str], set[str]] = {item: set() for selector in selectors for item in selector.items()}
    for name, labels in nodes.items():
        for item in labels.items():
            if item in index:
                index[item].add(name)
    for selector in selectors:
        sets = sorted((index[item] for item in selector.items()), key=len)
        yield frozenset(sets[0].intersection(*sets[1:])) if sets else frozenset(nodes)


def _existing_refusal(queue: Queue, flavors: int) -> Refusal | None:
    """Checks 1 to 3."""
    covered = [resource for group in queue.managed.groups for resource in group.resources]
    repeated = sorted({resource for resource in covered if covered.count(resource) > 1})
    if repeated:
        return Refusal("DuplicateCoveredResource", f"the existing groups cover {', '.join(repeated)} twice")
    if queue.managed.groups and not _is_ours(queue):
        message = f"the groups are not ours: {TAS_QUEUE} is missing; create a fresh queue"
        return Refusal("UnsupportedExistingObject", message)
    if flavors > MOST_FLAVORS:
        return Refusal("TooManyFlavors", f"the pool has {flavors} flavors, {MOST_FLAVORS} are possible")
    return None


def _is_ours(queue: Queue) -> bool:
    return queue.managed.marks.get(TAS_QUEUE) == "true"


def _has_foreign_groups(queue: Queue) -> bool:
    """Whether the groups were never planned here; a migration that runs was begun by a plan."""
    return bool(queue.managed.groups) and not _is_ours(queue) and PHASE not in queue.managed.marks


def _flavor_refusals(candidates: tuple[_Candidate, ...], world: World) -> Iterator[Refusal]:
    """Checks 4 to 7, all four on one flavor before the next."""
    owner: dict[str, str] = {}
    for candidate in candidates:
        profile = candidate.selector.get(PROFILE, "")
        if not profile or profile != candidate.labels.get(PROFILE) or not candidate.topology:
            yield Refusal(
                "MissingTopology", f"flavor {candidate.name} has no profile, no topologyName, or two profiles"
            )
        elif candidate.topology != topology_name(profile):
            message = f"flavor {candidate.name} refers to {candidate.topology}, due is {topology_name(profile)}"
            yield Refusal("MissingTopology", message)
        elif candidate.topology not in world.topologies:
            yield Refusal("MissingTopology", f"Topology {candidate.topology} of flavor {candidate.name} does not exist")
        shared = sorted(owner.keys() & candidate.nodes)
        if shared:
            message = f"node {shared[0]} is selected by the flavors {owner[shared[0]]} and {candidate.name}"
            yield Refusal("OverlappingSelectors", message)
        owner |= dict.fromkeys(candidate.nodes, candidate.name)


def _quota_refusals(candidates: tuple[_Candidate, ...]) -> Iterator[Refusal]:
    """Check 8."""
    for candidate in candidates:
        due = len(candidate.nodes) * candidate.count
        if candidate.count <= 0:
            yield Refusal("NonConservedQuota", f"the selector of flavor {candidate.name} has no usable count")
        elif candidate.capacity != due:
            message = f"flavor {candidate.name} has the capacity {candidate.capacity}, its {len(candidate.nodes)} Nodes have {due}"
            yield Refusal("NonConservedQuota", message)


def _uncovered(queue: Queue, candidates: tuple[_Candidate, ...], world: World, options: Options) -> Refusal | None:
    """Check 9.

    A Node whose flavor is terminating in the groups of this queue is not waited for: that flavor comes again only after the queue
    has dropped it, and without this exception neither would ever move.
    """
    covered = frozenset[str]().union(*(candidate.nodes for candidate in candidates))
    pool = pool_nodes(queue, world.nodes, options=options)
    leaving = [
        node_labels(flavor)
        for flavor in world.flavors
        if is_terminating(flavor) and text_at(flavor, "metadata", "name") in quotas_of(queue.managed.groups)
    ]
    missing = sorted(
        name
        for name, labels in pool.items()
        if labels.get(PROFILE)
        and name not in covered
        and not any(selector.items() <= labels.items() for selector in leaving)
    )
    if not missing:
        return None
    return Refusal("NonConservedQuota", f"node {missing[0]} of the pool is in no flavor ({len(missing)} such Nodes)")


def _mixed(candidates: tuple[_Candidate, ...]) -> Refusal | None:
    """B14: one queue has one resource.  CPU flavors of several manufacturers share it: `cpu` names none."""
    resources = sorted({candidate.resource[0] for candidate in candidates})
    return Refusal("MixedPool", f"the flavors provide {', '.join(resources)}") if len(resources) > 1 else None


def _planned(candidates: tuple[_Candidate, ...]) -> Plan:
    """Small Nodes fill first: by count, then by name."""
    resource, unit = candidates[0].resource
    ordered = sorted(candidates, key=lambda candidate: (candidate.count, candidate.name))
    flavors = tuple((one.name, ((resource, Fraction((one.capacity or 0) * unit)),)) for one in ordered)
    members = {node: candidate.name for candidate in ordered for node in candidate.nodes}
    return Plan((Group((resource,), flavors),), members)

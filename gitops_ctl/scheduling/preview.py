"""What a change of the inventory would do, before anybody makes it (topology-scheduling.md, 6 to 8).

Offline and pure: profiles, flavors and queues are computed as the controllers would, once all Nodes have settled.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gitops_ctl.scheduling.drain import dropped_flavors, left_flavors
from gitops_ctl.scheduling.flavor import flavor_object, flavors_of
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import profile_of
from gitops_ctl.scheduling.queue import Queue
from gitops_ctl.scheduling.queue_plan import Refusal, World, plan_queue
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import topology_name


@dataclass(frozen=True, slots=True)
class Inventory:
    """Nodes with the labels that they have or would have, and the sources that choose among them."""

    nodes: Mapping[str, Labels]
    sources: tuple[TopologySource, ...]


@dataclass(frozen=True, slots=True)
class Drained:
    """A queue that would be drained.

    Attributes:
        flavors: those that go or lose Nodes, in use or of unknown use.
        workloads: how many reserve quota in the queue now; all of them would be evicted.
    """

    queue: str
    flavors: tuple[str, ...]
    workloads: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What would change; everything by name.

    Attributes:
        profiles: Node, profile before, profile after.
        refused: queue and reason, where there would be no plan.
    """

    profiles: tuple[tuple[str, str, str], ...]
    new_flavors: tuple[str, ...]
    gone_flavors: tuple[str, ...]
    drained: tuple[Drained, ...]
    refused: tuple[tuple[str, Refusal], ...]


def projected(
    nodes: Mapping[str, Labels], *, before: Mapping[str, Labels], after: Mapping[str, Labels]
) -> Mapping[str, Labels]:
    """The Nodes once NFD has taken away what is no longer published and set what is."""
    return {
        name: {key: value for key, value in labels.items() if key not in before.get(name, {})}
        | dict(after.get(name, {}))
        for name, labels in nodes.items()
    }


def preview(before: Inventory, after: Inventory, queues: Iterable[Queue], *, options: Options) -> Preview:
    """Compare two inventories of the same cluster."""
    old, new = _profiled(before, options), _profiled(after, options)
    was, will = flavors_of(old, options=options), flavors_of(new, options=options)
    topologies = frozenset(topology_name(labels[PROFILE]) for labels in new.values())
    world = World(tuple(flavor_object(flavor) for flavor in will.values()), topologies, new)
    members = {node: flavor for flavor, found in was.items() for node in found.contributors}
    drained, refused = [], []
    for queue in sorted(queues, key=lambda one: one.name):
        plan = plan_queue(queue, world, options=options)
        if isinstance(plan, Refusal):
            refused.append((queue.name, plan))
            continue
        moved = {node: flavor for node, flavor in members.items() if flavor in _flavors(queue)}
        going = dropped_flavors(queue.managed.groups, plan.groups) | left_flavors(
            queue.managed.groups, plan.groups, before=moved, members=plan.members or {}
        )
        busy = tuple(sorted(name for name in going if not queue.usage.is_idle(name)))
        if busy:
            drained.append(Drained(queue.name, busy, queue.usage.reserving))
    return Preview(
        tuple(_changes(old, new)),
        tuple(sorted(will.keys() - was.keys())),
        tuple(sorted(was.keys() - will.keys())),
        tuple(drained),
        tuple(refused),
    )


def _flavors(queue: Queue) -> frozenset[str]:
    return dropped_flavors(queue.managed.groups, ())


def _profiled(inventory: Inventory, options: Options) -> Mapping[str, Labels]:
    return {
        name: {**labels, PROFILE: profile_of(labels, inventory.sources, options=options).name}
        for name, labels in inventory.nodes.items()
    }


def _changes(old: Mapping[str, Labels], new: Mapping[str, Labels]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(old.keys() & new.keys()):
        if old[name][PROFILE] != new[name][PROFILE]:
            yield name, old[name][PROFILE], new[name][PROFILE]

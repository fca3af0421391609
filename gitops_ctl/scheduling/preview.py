"""What a change of the inventory would do, before anybody makes it (topology-scheduling.md, 6 to 8).

Offline and pure: profiles, flavors and queues are computed as the controllers would, once all Nodes have settled.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from gitops_ctl.scheduling.drain import ALLOW_DRAIN, dropped_flavors, left_flavors, plan_digest
from gitops_ctl.scheduling.flavor import flavor_object, flavors_of
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import profile_of
from gitops_ctl.scheduling.queue import PHASE, Queue, quotas_of
from gitops_ctl.scheduling.queue_plan import Plan, Refusal, World, plan_queue
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import topology_name


@dataclass(frozen=True, slots=True)
class Inventory:
    """Nodes with the labels that they would have, and the sources that choose among them."""

    nodes: Mapping[str, Labels]
    sources: tuple[TopologySource, ...]


class Fate(enum.StrEnum):
    """What would become of a queue."""

    SAME = "same"
    IN_PLACE = "in place"
    """Its groups change while it goes on."""
    DRAIN = "drain"
    """It is held and drained first: whatever holds quota in it is evicted."""
    KEPT = "kept"
    """The pool loses all its flavors, and the last plan keeps serving while anything is reserved (drain-when-no-flavors)."""
    REFUSED = "refused"
    """There is no plan: the last one keeps serving."""


@dataclass(frozen=True, slots=True)
class QueueChange:
    """What would become of one queue.

    Attributes:
        before, after: quota by flavor.
        going: flavors that go or lose Nodes.
        busy: those of them that are in use, or of unknown use.
        workloads: how many reserve quota in the queue now.
        digest: what a consent to this change names.
        is_consented: whether the queue carries such a consent.
        is_migrating: a drain runs already; it would end in this plan.
        refusal: why there would be no plan.
    """

    queue: str
    fate: Fate
    before: Mapping[str, Fraction]
    after: Mapping[str, Fraction]
    going: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    workloads: int = 0
    digest: str = ""
    is_consented: bool = False
    is_migrating: bool = False
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What would change; everything by name.

    Attributes:
        profiles: Node, profile before (empty for none), profile after.
        levels: the level keys of each profile that Nodes would have.
        queues: every queue, also those that stay as they are.
    """

    profiles: tuple[tuple[str, str, str], ...]
    levels: Mapping[str, tuple[str, ...]]
    new_flavors: tuple[str, ...]
    gone_flavors: tuple[str, ...]
    queues: tuple[QueueChange, ...]

    @property
    def drained(self) -> tuple[QueueChange, ...]:
        """Queues that would be drained."""
        return tuple(change for change in self.queues if change.fate is Fate.DRAIN)


def projected(
    nodes: Mapping[str, Labels], *, before: Mapping[str, Labels], after: Mapping[str, Labels]
) -> Mapping[str, Labels]:
    """The Nodes once NFD has taken away what is no longer published and set what is."""
    return {
        name: {key: value for key, value in labels.items() if key not in before.get(name, {})}
        | dict(after.get(name, {}))
        for name, labels in nodes.items()
    }


def preview(
    live: Mapping[str, Labels],
    after: Inventory,
    queues: Iterable[Queue],
    *,
    flavors: Collection[str] | None = None,
    options: Options,
) -> Preview:
    """Compare a cluster with an inventory of it.

    Args:
        live: Nodes with the labels that they have, their profile among them.
        flavors: names of our flavors that exist; None takes those that the Nodes feed.
    """
    profiles = {name: profile_of(labels, after.sources, options=options) for name, labels in after.nodes.items()}
    names = {name: profile.name for name, profile in profiles.items()}
    new = {name: {**labels, PROFILE: names[name]} for name, labels in after.nodes.items()}
    was, will = flavors_of(live, options=options), flavors_of(new, options=options)
    topologies = frozenset(topology_name(profile) for profile in names.values())
    world = World(tuple(flavor_object(flavor) for flavor in will.values()), topologies, new)
    fed = {flavor: found.contributors for flavor, found in was.items()}
    known = set(was if flavors is None else flavors)
    return Preview(
        tuple(_changes(live, names)),
        {profile.name: profile.levels for profile in profiles.values()},
        tuple(sorted(will.keys() - known)),
        tuple(sorted(known - will.keys())),
        tuple(_queue_change(queue, world, fed, options) for queue in sorted(queues, key=lambda one: one.name)),
    )


def _queue_change(queue: Queue, world: World, fed: Mapping[str, tuple[str, ...]], options: Options) -> QueueChange:
    """`fed` are the Nodes of each flavor as it is now."""
    before = quotas_of(queue.managed.groups)
    plan = plan_queue(queue, world, options=options)
    is_migrating = PHASE in queue.managed.marks
    if isinstance(plan, Refusal):
        return QueueChange(queue.name, Fate.REFUSED, before, before, is_migrating=is_migrating, refusal=plan)
    # Only flavors of this queue: a Node with an accelerator feeds those of another one, too.
    members = {node: flavor for flavor in before for node in fed.get(flavor, ())}
    going = dropped_flavors(queue.managed.groups, plan.groups) | left_flavors(
        queue.managed.groups, plan.groups, before=members, members=plan.members or {}
    )
    busy = tuple(sorted(name for name in going if not queue.usage.is_idle(name)))
    is_kept = _is_pool_lost(queue, plan) and not options.drain_when_no_flavors and queue.usage.is_anything_reserved
    if is_kept and not is_migrating:
        return QueueChange(queue.name, Fate.KEPT, before, before, busy=busy, workloads=queue.usage.reserving)
    digest = plan_digest(queue, plan.groups)
    return QueueChange(
        queue.name,
        _fate(queue, plan, busy),
        before,
        quotas_of(plan.groups),
        tuple(sorted(going)),
        busy,
        queue.usage.reserving,
        digest,
        queue.annotations.get(ALLOW_DRAIN) == digest,
        is_migrating,
    )


def _is_pool_lost(queue: Queue, plan: Plan) -> bool:
    return bool(queue.managed.groups) and not plan.groups


def _fate(queue: Queue, plan: Plan, busy: tuple[str, ...]) -> Fate:
    if queue.managed.groups == plan.groups:
        return Fate.DRAIN if busy else Fate.SAME
    # A pool that loses all its flavors is held first, whether anything is reserved or not.
    return Fate.DRAIN if busy or _is_pool_lost(queue, plan) else Fate.IN_PLACE


def _changes(old: Mapping[str, Labels], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(old.keys() & new.keys()):
        if old[name].get(PROFILE, "") != new[name]:
            yield name, old[name].get(PROFILE, ""), new[name]

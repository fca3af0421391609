"""What stands around a Node and a queue: where each label comes from, which queue serves it, which Workloads still hold quota.

Beside `explain`, which says how a profile and a plan are computed; pure as well (topology-scheduling.md, 9.3 and 12: B9 and B10).
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from gitops_ctl.core.conditions import condition_of, listed
from gitops_ctl.core.duration import to_text
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, objects_at, text_at
from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.scheduling.drain import left_flavors
from gitops_ctl.scheduling.explain import Line, explain_node, explain_queue, hostname_clashes
from gitops_ctl.scheduling.forecast import Live
from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.migration import CONDITION, Desired, Unsettled
from gitops_ctl.scheduling.names import HOSTNAME, PROFILE
from gitops_ctl.scheduling.nodefeature import is_owned, node_of
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import Profile, profile_of
from gitops_ctl.scheduling.queue import Queue, is_managed, quotas_of
from gitops_ctl.scheduling.queue_plan import Plan, World, plan_queue, pool_nodes
from gitops_ctl.scheduling.required_level import unknown_level
from gitops_ctl.scheduling.seen import seen_feature, written_at
from gitops_ctl.scheduling.selectors import Labels, labels_of
from gitops_ctl.scheduling.settled import PATIENCE_S, Published, settling
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import levels_of
from gitops_ctl.scheduling.workload import Workload, holding, local_queues_of, uncovered, waiting

_NEVER = "not yet"


def node_lines(name: str, live: Live, *, now: datetime, options: Options) -> tuple[Line, ...]:
    """Everything about one Node: sources and revision, levels and their values, profile, flavors, queues.

    Raises:
        KeyError: there is no such Node.
    """
    labels = labels_of(live.nodes[name])
    sources = _sources(live, now)
    found = profile_of(labels, sources, options=options)
    return (
        *explain_node(labels, sources, options=options),
        *_inventory_lines(found, live),
        *_level_lines(name, labels, found, live),
        *_serving_lines(name, labels, found, live, options),
    )


def queue_lines(tree: JsonObject, live: Live, *, now: datetime, options: Options) -> tuple[Line, ...]:
    """Everything about one managed queue: policy, pool and plan, what a drain waits for, what can never be admitted."""
    queue = Queue.of(tree)
    desired = desired_of(queue, live, now=now, options=options)
    workloads = tuple(map(Workload.of, live.workloads))
    waiters = waiting(workloads, queue.name, local_queues_of(live.local_queues))
    return (
        *_state_lines(tree, queue, now),
        *explain_queue(queue, world_of(live), desired, now=now, options=options),
        *_usage_lines(tree),
        *_holding_lines(holding(workloads, queue.name), now),
        *_waiting_lines(queue, waiters, live),
        *_clash_lines(queue, live, options),
    )


def world_of(live: Live) -> World:
    """What plans depend on."""
    topologies = frozenset(text_at(tree, "metadata", "name") for tree in live.topologies)
    return World(live.flavors or (), topologies, {name: labels_of(node) for name, node in live.nodes.items()})


def desired_of(queue: Queue, live: Live, *, now: datetime, options: Options) -> Desired:
    """What the controller wants for the queue, as far as it can be told from outside.

    Since when Nodes are unsettled, and which Node counted for which flavor before, only the manager remembers.
    """
    world = world_of(live)
    plan = plan_queue(queue, world, options=options)
    left = frozenset[str]()
    if isinstance(plan, Plan):
        left = left_flavors(queue.managed.groups, plan.groups, before=None, members=plan.members or {})
    pool = pool_nodes(queue, world.nodes, options=options)
    return Desired(plan, _unsettled(pool, live, now, options), queue.managed.checks, left, bool(pool))


def _sources(live: Live, now: datetime) -> tuple[TopologySource, ...]:
    return tuple(TopologySource.of(tree).at(now) for tree in live.sources)


def _unsettled(pool: Mapping[str, Labels], live: Live, now: datetime, options: Options) -> Unsettled | None:
    sources = _sources(live, now)
    staying = {name: labels for name, labels in pool.items() if not _is_going(live.nodes[name])}
    profiles = {name: profile_of(labels, sources, options=options).name for name, labels in staying.items()}
    found = settling(staying, profiles=profiles, published=_published(sources, live), now_s=now.timestamp())
    nodes = tuple(name for name, _ in found.lacking)
    return Unsettled(*found.lacking[0], since_s=0.0, nodes=nodes) if nodes else None


def _published(sources: Iterable[TopologySource], live: Live) -> Iterator[Published]:
    ready = [source.uid for source in sources if source.writes and source.ready[0] == "True"]
    for tree in live.features:
        if any(is_owned(tree, uid) for uid in ready):
            until_s = written_at(tree).timestamp() + PATIENCE_S
            feature = seen_feature(tree, awaited_until_s=until_s)
            yield Published(feature.node, feature.labels, feature.awaited_until_s)


def _is_going(tree: JsonObject) -> bool:
    return bool(text_at(tree, "metadata", "deletionTimestamp"))


def _inventory_lines(found: Profile, live: Live) -> Iterator[Line]:
    """The snapshot behind the levels of a Node."""
    tree = next((one for one in live.sources if text_at(one, "metadata", "name") == found.source), None)
    if tree is None:
        return
    status, source = object_at(tree, "status"), TopologySource.of(tree)
    if not source.writes:
        yield Line("inventory", f"the labels of the Node itself (source {source.name} writes none)")
        return
    revision = text_at(status, "lastSuccessfulRevision") or "none"
    applied = text_at(status, "lastSuccessfulRefreshTime") or _NEVER
    yield Line("inventory", f"{source.kind} of source {source.name}, revision {revision}, applied {applied}")
    valid = condition_of(status, "Valid") or EMPTY
    if text_at(valid, "status") == "False":
        yield Line("inventory problem", f"{text_at(valid, 'reason')}: {text_at(valid, 'message')}")


def _level_lines(name: str, labels: Labels, found: Profile, live: Live) -> Iterator[Line]:
    """The value of each level that counts, and who says so."""
    asked = {
        key: (value, text_at(feature, "metadata", "name"))
        for feature in live.features
        if node_of(feature) == name
        for key, value in object_at(feature, "spec", "labels").items()
    }
    for level in found.levels:
        if level == HOSTNAME:
            continue
        value, feature = asked.get(level, (None, ""))
        if not feature:
            yield Line(f"level {level}", f"{labels[level]}, a label that somebody else set")
        elif value == labels[level]:
            yield Line(f"level {level}", f"{labels[level]}, by NodeFeature {feature}")
        else:
            yield Line(f"level {level}", f"{labels[level]}, and NodeFeature {feature} asks for {value}: see nfd-master")
    for level, (value, feature) in sorted(asked.items()):
        if level not in labels:
            yield Line(f"label {level}", f"NodeFeature {feature} asks for {value}, the Node lacks it: see nfd-master")


def _serving_lines(name: str, labels: Labels, found: Profile, live: Live, options: Options) -> Iterator[Line]:
    """The managed queues whose pool has the Node, and what of it they serve."""
    mine = {identity.name for identity in fed_by({**labels, PROFILE: found.name}, options=options).flavors}
    pools = [
        queue
        for queue in map(Queue.of, filter(is_managed, live.queues))
        if name in pool_nodes(queue, {name: labels}, options=options)
    ]
    for queue in sorted(pools, key=lambda one: one.name):
        served = sorted(mine & quotas_of(queue.managed.groups).keys())
        text = (
            f"serves it by flavor {', '.join(served)}"
            if served
            else "has the Node in its pool, and no flavor of it yet"
        )
        yield Line(f"queue {queue.name}", text)
    if not pools:
        yield Line("queue", "no managed queue has the Node in its pool")


def _state_lines(tree: JsonObject, queue: Queue, now: datetime) -> Iterator[Line]:
    """The conditions as they stand, and the policies."""
    for kind in (CONDITION, "Active"):
        found = condition_of(object_at(tree, "status"), kind)
        if found is not None:
            message = f": {text_at(found, 'message')}" if text_at(found, "message") else ""
            age = _age(text_at(found, "lastTransitionTime"), now)
            yield Line(kind, f"{text_at(found, 'status')}/{text_at(found, 'reason')}{age}{message}")
    yield Line(
        "stop policy", f"{queue.managed.policy or 'absent'}; Git wants {queue.wanted}, carried out {queue.applied}"
    )


def _usage_lines(tree: JsonObject) -> Iterator[Line]:
    """What Kueue counts for each flavor, reserved and used; a flavor that goes may go when both are zero."""
    counted = [_totals(tree, name) for name in ("flavorsReservation", "flavorsUsage")]
    for flavor in sorted(counted[0].keys() | counted[1].keys()):
        reserved, used = (totals.get(flavor, "unknown") for totals in counted)
        yield Line(f"usage {flavor}", f"reserved {reserved}, used {used}")


def _totals(tree: JsonObject, name: str) -> Mapping[str, str]:
    return {
        text_at(flavor, "name"): ", ".join(
            f"{one.get('total', 0)} {text_at(one, 'name')}" for one in objects_at(flavor, "resources")
        )
        or "0"
        for flavor in objects_at(tree, "status", name)
    }


def _holding_lines(workloads: tuple[Workload, ...], now: datetime) -> Iterator[Line]:
    """What a drain waits for, the oldest first."""
    for one in workloads:
        flavors = f", flavors {listed(sorted(one.flavors))}" if one.flavors else ""
        evicted = f", evicted{_age(one.evicted_since, now)} and not gone" if one.evicted_since else ""
        yield Line(f"holds quota {one.name}", f"since {one.since or 'unknown'}{_age(one.since, now)}{flavors}{evicted}")


def _waiting_lines(queue: Queue, waiters: tuple[Workload, ...], live: Live) -> Iterator[Line]:
    """What waits in vain: for a resource or a level that the queue does not have."""
    for resource, names in uncovered(waiters, queue).items():
        text = (
            f"no group covers it; Kueue leaves {listed(names)} pending, unless its configuration excludes the resource"
        )
        yield Line(f"resource {resource}", text)
    levels = [levels for _, levels in _topologies(queue, live)]
    for one in waiters if levels else ():
        for level in sorted(one.required):
            reason = unknown_level(level, levels)
            if reason:
                yield Line(f"workload {one.name}", reason)


def _clash_lines(queue: Queue, live: Live, options: Options) -> Iterator[Line]:
    pool = pool_nodes(queue, world_of(live).nodes, options=options)
    for top in sorted({levels[0] for _, levels in _topologies(queue, live) if levels and levels[0] != HOSTNAME}):
        clashes = hostname_clashes(pool, top)
        if clashes:
            text = (
                f"host name and a value of {top} are equal on {listed(clashes)}: some versions of Kueue never use them"
            )
            yield Line("warning", text)


def _topologies(queue: Queue, live: Live) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The Topologies of the queue's flavors, each with its level keys."""
    known = {text_at(tree, "metadata", "name"): levels_of(tree) for tree in live.topologies}
    flavors = {text_at(tree, "metadata", "name"): tree for tree in live.flavors or ()}
    for name in quotas_of(queue.managed.groups):
        topology = text_at(flavors.get(name, EMPTY), "spec", "topologyName")
        if topology in known:
            yield topology, known[topology]


def _age(moment: str, now: datetime) -> str:
    """` (5m ago)`; nothing for a time that cannot be read."""
    try:
        seconds = (now - from_rfc3339(moment)).total_seconds()
    except ValueError:
        return ""
    return f" ({to_text(max(0.0, float(int(seconds))))} ago)"

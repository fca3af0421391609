"""Why a Node has its profile, and why the plan of a queue is what it is (topology-scheduling.md, 12: B9 and B10).

Pure: the lines are made from what somebody has read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.duration import to_text
from gitops_ctl.scheduling.drain import dropped_flavors, evicts, is_approved, plan_digest
from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.migration import Desired, decide, drain_age_s
from gitops_ctl.scheduling.names import ACCELERATABLE, HOSTNAME, PROFILE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import order_note, profile_of
from gitops_ctl.scheduling.quantity import text_of
from gitops_ctl.scheduling.queue import PHASE, Queue, quotas_of
from gitops_ctl.scheduling.queue_plan import Refusal, World, flavor_counts, plan_queue, pool_nodes
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import topology_name


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation."""

    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


def explain_node(labels: Labels, sources: tuple[TopologySource, ...], *, options: Options) -> tuple[Line, ...]:
    """Sources, readiness, selector match, levels, first gap, the input of the hash, and the flavors of a Node."""
    return tuple(_node_lines(labels, sources, options))


def explain_queue(queue: Queue, world: World, desired: Desired, *, now: datetime, options: Options) -> tuple[Line, ...]:
    """Pool, flavors, the first failing check, what goes and what uses it, the drain, and a policy that is not from Git."""
    return tuple(_queue_lines(queue, world, desired, now, options))


def hostname_clashes(nodes: Mapping[str, Labels], level: str) -> tuple[str, ...]:
    """Nodes whose host name is also a value of this, the coarsest, level: some versions of Kueue never use them."""
    domains = {labels[level] for labels in nodes.values() if level in labels}
    return tuple(sorted(name for name, labels in nodes.items() if labels.get(HOSTNAME) in domains))


def _node_lines(labels: Labels, sources: tuple[TopologySource, ...], options: Options) -> Iterator[Line]:
    found = profile_of(labels, sources, options=options)
    for candidate in found.candidates:
        yield Line(
            f"source {candidate.source}", f"{'counts' if candidate.counts else 'does not count'}: {candidate.why}"
        )
    counting = sum(candidate.counts for candidate in found.candidates)
    if counting != 1:
        yield Line("levels", f"{counting} sources count, one is needed: the Node has its host name only")
    levels = next((source.levels for source in sources if source.name == found.source), ())
    if note := order_note(levels, options=options):
        yield Line("order", note)
    yield Line("hash input", ", ".join(found.levels))
    if found.gap:
        yield Line("first gap", f"the Node has no value for {found.gap}")
    yield Line("profile", found.name)
    live = labels.get(PROFILE)
    if live != found.name:
        yield Line("label", f"the Node still carries {live}" if live else "the Node does not carry it yet")
    yield Line("topology", topology_name(found.name))
    fed = fed_by({**labels, PROFILE: found.name}, options=options)
    yield Line("flavors", ", ".join(identity.name for identity in fed.flavors) or "none")
    if fed.flavors and not options.mixed_on_node and labels.get(ACCELERATABLE) == "true":
        yield Line("mixed", "a Node with accelerators feeds no CPU flavor (mixed-on-node)")
    for warning in fed.warnings:
        yield Line("warning", warning)


def _queue_lines(queue: Queue, world: World, desired: Desired, now: datetime, options: Options) -> Iterator[Line]:
    pool = sorted(pool_nodes(queue, world.nodes, options=options))
    yield Line("pool", f"{len(pool)} managed Nodes: {listed(pool)}" if pool else "no managed Node")
    plan = plan_queue(queue, world, options=options)
    if isinstance(plan, Refusal):
        yield Line("plan", f"refused, {plan.reason}: {plan.message}")
        for name, nodes, capacity in flavor_counts(queue, world):
            told = "unknown" if capacity is None else str(capacity)
            yield Line(f"flavor {name}", f"{nodes} Nodes, capacity {told}")
    else:
        for name, quota in quotas_of(plan.groups).items():
            nodes = sum(flavor == name for flavor in (plan.members or {}).values())
            yield Line(f"flavor {name}", f"{nodes} Nodes, quota {text_of(quota)}")
        yield from _going_lines(queue, desired, now, options)
    if desired.unsettled is not None:
        yield Line("unsettled", desired.unsettled.text)
        if len(desired.unsettled.nodes) > 1:
            yield Line("unsettled Nodes", f"{len(desired.unsettled.nodes)}: {listed(desired.unsettled.nodes)}")
    if PHASE in queue.managed.marks:
        age = drain_age_s(queue, now=now)
        yield Line(
            "drain", f"{queue.managed.marks[PHASE]}, age {'unknown' if age is None else to_text(max(0, int(age)))}"
        )
    found = decide(queue, desired, now=now, options=options)
    if found.condition is not None:
        text = f"{found.condition.status}/{found.condition.reason}"
        yield Line("condition", f"{text}: {found.condition.message}" if found.condition.message else text)
    for event in found.events:
        yield Line(event.reason, event.message)


def _going_lines(queue: Queue, desired: Desired, now: datetime, options: Options) -> Iterator[Line]:
    if isinstance(desired.plan, Refusal):
        return
    dropped = dropped_flavors(queue.managed.groups, desired.plan.groups)
    for name in sorted(dropped | desired.left):
        usage = "idle" if queue.usage.is_idle(name) else "in use" if queue.usage.lists(name) else "usage unknown"
        yield Line(f"{'dropped' if name in dropped else 'left'} flavor {name}", usage)
    going = dropped | desired.left
    if going and options.require_drain_approval and evicts(queue, going):
        approved = is_approved(queue, desired.plan.groups, now=now)
        yield Line("approval", f"{'given' if approved else 'missing'} for {plan_digest(queue, desired.plan.groups)}")

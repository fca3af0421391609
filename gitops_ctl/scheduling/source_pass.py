"""One pass over a TopologySource: from what was read to what is written (topology-scheduling.md, 3 to 5 and 9.1).

The order is that of the contract: spec, decode, rules 6 to 13, ownership, rule 14, the drop guard; nothing is written before all
of it is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.scheduling.drop_guard import ALLOW_NODE_DROP, drop_of, drop_problem
from gitops_ctl.scheduling.nodefeature import FeaturePlan, is_owned, node_of, overlap_of, plan_features
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import hierarchy_problem, order_note
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.snapshot import Snapshot, decode
from gitops_ctl.scheduling.snapshot_rules import (
    Reach,
    content_problems,
    publish_problems,
    publishable,
    tolerated_nodes,
)
from gitops_ctl.scheduling.source import TopologySource, last_success
from gitops_ctl.scheduling.source_rules import source_problems, source_warnings
from gitops_ctl.scheduling.source_status import (
    Applied,
    Contested,
    Failed,
    Judgement,
    Look,
    Misspecified,
    Outcome,
    failure_of,
    judge,
)
from gitops_ctl.scheduling.topology import is_terminating

_NOTHING: Final[Mapping[str, Labels]] = {}
_UNSEEN: Final = Look()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the cluster holds.

    Attributes:
        nodes: labels of all Nodes, by name.
        sources: all TopologySources.
        features: all NodeFeatures of the worker namespace.
    """

    nodes: Mapping[str, Labels]
    sources: tuple[TopologySource, ...]
    features: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass ends in.

    Attributes:
        judgement: None for a source that is going: only its NodeFeatures are left to delete.
    """

    features: FeaturePlan
    look: Look
    judgement: Judgement | None


@dataclass(frozen=True, slots=True)
class _Found:
    """The outcome, with what it publishes; None leaves the NodeFeatures as they are."""

    outcome: Outcome
    desired: Mapping[str, Labels] | None
    look: Look = _UNSEEN


def plan_pass(
    tree: JsonObject, read: str | bytes | Failed | None, around: Surroundings, *, now: datetime, options: Options
) -> Pass:
    """Judge one source.

    Args:
        tree: the TopologySource.
        read: the text of its snapshot, or why there is none; None for nodeLabels and for a spec with problems.
        now: wall clock.
    """
    source = TopologySource.of(tree)
    if is_terminating(tree):
        return Pass(_features(source, _NOTHING, around, options), Look(), None)
    found = _found(tree, source, read, around, options)
    judgement = judge(found.outcome, source=source, succeeded_at=last_success(tree), now=now, options=options)
    desired = _NOTHING if judgement.removes else found.desired
    plan = FeaturePlan() if desired is None else _features(source, desired, around, options)
    return Pass(plan, replace(found.look, mutated=plan.mutations), judgement)


def _features(
    source: TopologySource, desired: Mapping[str, Labels], around: Surroundings, options: Options
) -> FeaturePlan:
    return plan_features(around.features, desired=desired, source=source, namespace=options.worker_namespace)


def _found(
    tree: JsonObject, source: TopologySource, read: str | bytes | Failed | None, around: Surroundings, options: Options
) -> _Found:
    problems = source_problems(tree, options=options)
    if problems:
        return _Found(Misspecified(problems), None)
    notes = [str(warning) for warning in source_warnings(tree, options=options)]
    notes += [note] if (note := order_note(source.levels, options=options)) else []
    selected = {name: labels for name, labels in around.nodes.items() if source.chooses(labels)}
    if not source.writes:
        problem = hierarchy_problem(source, around.nodes, options=options)
        return _Found(Applied(problem, "; ".join(notes)), _NOTHING, Look(selected=len(selected)))
    if read is None or isinstance(read, Failed):
        return _Found(read or Failed("SnapshotKeyMissing", "there is no snapshot"), None)
    decoded = decode(read)
    if decoded.snapshot is None:
        return _Found(failure_of(decoded.problems, source), None)
    reach = Reach(source.levels, source.write_prefix, selected, frozenset(around.nodes))
    return _judged(tree, decoded.snapshot, reach, around, notes, options=options)


def _judged(
    tree: JsonObject,
    snapshot: Snapshot,
    reach: Reach,
    around: Surroundings,
    notes: Sequence[str],
    *,
    options: Options,
) -> _Found:
    source = TopologySource.of(tree)
    content = content_problems(snapshot, reach, options=options)
    if content:
        return _Found(failure_of(content, source), None)
    overlap = overlap_of(source, around.sources, around.nodes)
    selected = len(reach.selected or ())
    if overlap.nodes:
        return _Found(Contested(overlap), _NOTHING, Look(selected=selected, conflicted=len(overlap.nodes)))
    published = publish_problems(snapshot, reach)
    if published:
        return _Found(failure_of(published, source), None)
    desired = publishable(snapshot, reach)
    owned = [node_of(feature) for feature in around.features if is_owned(feature, source.uid)]
    drop = drop_of(owned, wanted=desired, existing=around.nodes)
    refused = drop_problem(drop, consent=text_at(tree, "metadata", "annotations", ALLOW_NODE_DROP), options=options)
    if refused is not None:
        return _Found(failure_of([refused], source), None)
    passed_over = tolerated_nodes(snapshot, reach, options=options)
    note = (
        [f"Nodes that do not exist were passed over (tolerate-unknown-nodes): {listed(passed_over)}"]
        if passed_over
        else []
    )
    return _Found(Applied(note="; ".join([*notes, *note])), desired, Look(snapshot.revision, selected))

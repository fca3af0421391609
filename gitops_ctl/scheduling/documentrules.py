"""Documents of topology-aware scheduling in Git, judged by `gitops-ctl check` and by a Sync alike (topology-scheduling.md, 1.4, D4, 4.6).

Content refuses no commit: a finding holds its object as it is in the cluster.  Nodes are asked only by a command that has them;
a Sync judges without, because Nodes change without Git.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from gitops_ctl.api.names import ANNOTATION_ALLOW_DRAIN, ANNOTATION_ALLOW_NODE_DROP, ANNOTATION_DRAIN_WINDOW
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.documents.annotations import ValueCheck, register_annotation
from gitops_ctl.documents.holds import HoldQuestion, register_hold
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.problem import Problem, Severity
from gitops_ctl.documents.rules import register_check
from gitops_ctl.documents.setrules import SetRule, register_set_rule
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.scheduling.drain import window_of
from gitops_ctl.scheduling.nodefeature import overlap_of
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import hierarchy_problem
from gitops_ctl.scheduling.queue_documents import is_managed_queue, queue_flaws
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.snapshot_documents import CONFIG_MAP, SOURCE, snapshot_problems
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_rules import SpecProblem, source_problems, source_warnings

CLUSTER_QUEUE: Final = GroupKind("kueue.x-k8s.io", "ClusterQueue")
RULE_NAME: Final = "topology"
MOST_BYTES: Final = 2**20
"""All values of a ConfigMap together, by the rule of the API server."""
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def register(options: Options, *, nodes: Mapping[str, Labels] | None = None) -> None:
    """Judge every later set with these options, and with the labels of these Nodes where they are known."""
    judge = partial(_judged, options=options, nodes=nodes)
    register_set_rule(RULE_NAME, SetRule(SOURCE, snapshots_of, judge))


def snapshots_of(documents: Sequence[Document]) -> frozenset[ObjectId]:
    """The ConfigMaps that sources refer to, also by the name alone, for a default namespace."""
    found: set[ObjectId] = set()
    for document in documents:
        reference = object_at(document.tree, "spec", "configMap", "configMapRef")
        if document.id.group_kind == SOURCE and reference:
            name = text_at(reference, "name")
            found |= {
                ObjectId(CONFIG_MAP.group, CONFIG_MAP.kind, namespace, name)
                for namespace in (text_at(reference, "namespace"), "")
            }
    return frozenset(found)


def _judged(
    documents: Sequence[Document], namespace: str, *, options: Options, nodes: Mapping[str, Labels] | None
) -> Iterator[Problem]:
    sources = [document for document in documents if document.id.group_kind == SOURCE]
    sound = []
    for document in sources:
        problems = source_problems(document.tree, options=options)
        yield from (_placed(document, problem) for problem in problems)
        for problem in source_warnings(document.tree, options=options):
            yield _placed(document, problem, severity="warning")
        if not problems:
            sound.append(document)
    yield from snapshot_problems(documents, options=options, default_namespace=namespace, nodes=nodes)
    if nodes is not None:
        yield from _live_problems(sound, nodes, options)


def _placed(document: Document, problem: SpecProblem, *, severity: Severity = "error") -> Problem:
    return document.problem(Flaw(ErrorCode.RULE, str(problem), _pointer(problem.path), severity=severity))


def _pointer(path: str) -> str:
    """The JSON pointer of a path such as `spec.levels[0]` or `spec.nodeSelector.matchLabels[example.net/pool]`."""
    return pointer_of(tuple(match[1] if match[2] is None else match[2] for match in _STEP.finditer(path)))


def _live_problems(sound: Sequence[Document], nodes: Mapping[str, Labels], options: Options) -> Iterator[Problem]:
    """What only Nodes show: sources that write to the same ones, and labels that are no tree."""
    # A document has no UID yet; its name tells it from the others.
    sources = [replace(TopologySource.of(document.tree), uid=document.id.name) for document in sound]
    for document, source in zip(sound, sources, strict=True):
        overlap = overlap_of(source, sources, nodes)
        if overlap.nodes:
            others = ", ".join(overlap.sources)
            message = (
                f"writes to {len(overlap.nodes)} Nodes of other sources ({others}): none of them would publish anything"
            )
            yield document.problem(Flaw(ErrorCode.RULE, message, "/spec/nodeSelector"))
        if source.kind == "NodeLabels":
            problem = hierarchy_problem(source, nodes, options=options)
            if problem:
                yield document.problem(Flaw(ErrorCode.RULE, f"the labels are no tree: {problem}", "/spec/levels"))


def _queue(document: Document) -> Iterator[Flaw]:
    yield from queue_flaws(document.tree, None)


def _config_map(document: Document) -> Iterator[Flaw]:
    """The server takes no ConfigMap whose values together are larger; a Sync would learn it from a refusal."""
    texts = (value for value in object_at(document.tree, "data").values() if isinstance(value, str))
    encoded = (value for value in object_at(document.tree, "binaryData").values() if isinstance(value, str))
    size = sum(len(text.encode(errors="replace")) for text in texts)
    size += sum(len(text.rstrip("=")) * 3 // 4 for text in encoded)
    if size > MOST_BYTES:
        message = f"the ConfigMap has {size} bytes of data, {MOST_BYTES} are possible"
        hint = "split it; a large inventory is split over sources with disjoint selectors"
        yield Flaw(ErrorCode.RULE, message, "/data", hint=hint)


def stays_managed(question: HoldQuestion) -> Flaw | None:
    """Held while a managed queue would lose its mark or its last discriminator."""
    if is_managed_queue(question.new):
        return None
    return next(queue_flaws(question.new, question.old), None)


def _on(kind: GroupKind, check: ValueCheck) -> ValueCheck:
    def checked(value: str, owner: ObjectId) -> str:
        return check(value, owner) if owner.group_kind == kind else f"belongs on a {kind.kind}"

    return checked


def _digest(value: str, _: ObjectId) -> str:
    return "" if _DIGEST.fullmatch(value) else "needs the digest that was shown, sha256: and 64 hex digits"


def _window(value: str, _: ObjectId) -> str:
    window = window_of(value)
    if window is None:
        return "needs <start>/<end>, two RFC 3339 times such as 2026-11-30T22:00:00Z"
    return "" if window[0] < window[1] else "ends before it begins"


register_check(CLUSTER_QUEUE, _queue)
register_check(CONFIG_MAP, _config_map)
register_hold(CLUSTER_QUEUE, stays_managed)
register_annotation(ANNOTATION_ALLOW_NODE_DROP, _on(SOURCE, _digest))
register_annotation(ANNOTATION_ALLOW_DRAIN, _on(CLUSTER_QUEUE, _digest))
register_annotation(ANNOTATION_DRAIN_WINDOW, _on(CLUSTER_QUEUE, _window))
register(Options())

"""What the scheduling controller would say of the sources of a checkout in the cluster as it is now (topology-scheduling.md, 1.4, D4).

Rules that need Nodes, the drop guard and conflicts hold no document, because Nodes change without Git; `gitops-ctl diff` tells them.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from gitops_ctl.cli.comparison import Finding
from gitops_ctl.cli.topologyworld import NODES, SOURCES, listed_objects
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.nodefeature import NODE_FEATURE_API_VERSION
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import labels_of
from gitops_ctl.scheduling.snapshot_documents import CONFIG_MAP, SOURCE, snapshot_problems
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_pass import Surroundings, plan_pass
from gitops_ctl.scheduling.source_rules import source_problems


async def live_findings(
    client: KubeClient, documents: Sequence[Document], *, options: Options, namespace: str, now: datetime
) -> tuple[Finding, ...]:
    """The findings; no cluster is asked when no document is a TopologySource.

    Who may not read Nodes, sources or NodeFeatures is told that, in place of what they would show.
    """
    first = next((document for document in documents if document.id.group_kind == SOURCE), None)
    if first is None:
        return ()
    features = f"/apis/{NODE_FEATURE_API_VERSION}/namespaces/{options.worker_namespace}/nodefeatures"
    try:
        found = [await listed_objects(client, path) for path in (NODES, SOURCES, features)]
    except GitopsError as error:
        message = f"sources are not judged by Nodes: {error.message}"
        return (Finding(first.id, first.file, first.line, error.reason, message),)
    nodes = {text_at(tree, "metadata", "name"): labels_of(tree) for tree in found[0]}
    live = {text_at(tree, "metadata", "name"): tree for tree in found[1]}
    return findings(documents, nodes=nodes, live=live, features=found[2], options=options, namespace=namespace, now=now)


def findings(  # noqa: PLR0913  what a cluster holds
    documents: Sequence[Document],
    *,
    nodes: Mapping[str, Mapping[str, str]],
    live: Mapping[str, JsonObject],
    features: Sequence[JsonObject],
    options: Options,
    namespace: str,
    now: datetime,
) -> tuple[Finding, ...]:
    """The same, of what was read; `namespace` is that of ConfigMaps that name none."""
    declared = {
        document.id.name: _as_stored(document.tree, live.get(document.id.name))
        for document in _sound(documents, options)
    }
    sources = tuple(TopologySource.of(tree) for tree in {**live, **declared}.values())
    around = Surroundings(nodes, sources, tuple(features))
    held = {problem.object for problem in snapshot_problems(documents, options=options, default_namespace=namespace)}
    texts = dict(_snapshots(documents, held, namespace))
    found = []
    for document in _sound(documents, options):
        tree = declared[document.id.name]
        read = _text(tree, texts)
        if read is None and object_at(tree, "spec").get("nodeLabels") is None:
            continue  # its snapshot is elsewhere, or is held
        judgement = plan_pass(tree, read, around, now=now, options=options).judgement
        conditions = judgement.conditions if judgement is not None else ()
        wrong = next((item for item in conditions if item.type == "Valid" and item.status == "False"), None)
        contested = next(
            (item for item in conditions if item.type == "OwnershipConflict" and item.status == "True"), None
        )
        for item in (wrong, contested):
            if item is not None:
                found.append(Finding(document.id, document.file, document.line, item.reason, item.message))
    return tuple(found)


def _sound(documents: Sequence[Document], options: Options) -> Iterator[Document]:
    for document in documents:
        if document.id.group_kind == SOURCE and not source_problems(document.tree, options=options):
            yield document


def _as_stored(tree: JsonObject, live: JsonObject | None) -> JsonObject:
    """The source as it would be after the apply: its UID and status are those of the cluster; a new one has its name for a UID."""
    metadata = object_at(tree, "metadata")
    uid = text_at(live or {}, "metadata", "uid") or text_at(metadata, "name")
    return {**tree, "metadata": {**metadata, "uid": uid}, "status": object_at(live or {}, "status")}


def _snapshots(
    documents: Sequence[Document], held: set[ObjectId | None], namespace: str
) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    for document in documents:
        if document.id.group_kind == CONFIG_MAP and document.id not in held:
            yield (document.id.namespace or namespace, document.id.name), object_at(document.tree, "data")


def _text(tree: JsonObject, texts: Mapping[tuple[str, str], JsonObject]) -> str | None:
    arm = object_at(tree, "spec", "configMap")
    reference = object_at(arm, "configMapRef")
    data = texts.get((text_at(reference, "namespace"), text_at(reference, "name")), {})
    value = data.get(text_at(arm, "key"))
    return value if isinstance(value, str) else None

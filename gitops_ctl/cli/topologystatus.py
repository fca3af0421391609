"""What `status` says about TopologySources and managed ClusterQueues (topology-scheduling.md, 9 and 8.1: D39)."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from gitops_ctl.cli.topologyworld import SOURCES, kueue_path
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.duration import to_text
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.scheduling.migration import CONDITION, drain_age_s, is_draining
from gitops_ctl.scheduling.queue import PHASE, Queue, is_managed

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

QUEUE_KIND: Final = "ClusterQueue"
_RUNNING: Final = "Migrating"


async def topology_summaries(client: "KubeClient") -> list[JsonObject]:
    """Sources, then managed queues, in the form of `status`; none where their kinds are not installed or may not be read."""
    now = client.clock.wall()
    sources = [source_summary(tree) for tree in await _listed(client, SOURCES)]
    queues = [
        queue_summary(tree, now=now) for tree in await _listed(client, kueue_path("clusterqueues")) if is_managed(tree)
    ]
    return [*sources, *queues]


def is_running(item: JsonObject) -> bool:
    """Whether a summary is that of a queue whose drain runs: nothing to worry about."""
    return text_at(item, "kind") == QUEUE_KIND and text_at(item, "reason") == _RUNNING


def source_summary(tree: JsonObject) -> JsonObject:
    """The stable form of one source."""
    status = object_at(tree, "status")
    ready, valid = (condition_of(status, kind) or EMPTY for kind in ("Ready", "Valid"))
    message = text_at(valid, "message") if text_at(ready, "status") != "True" else ""
    return {
        "kind": "TopologySource",
        "namespace": "",
        "name": text_at(tree, "metadata", "name"),
        "ready": text_at(ready, "status", default="Unknown"),
        "reason": text_at(ready, "reason"),
        "message": message or text_at(ready, "message"),
        "revision": text_at(status, "lastSuccessfulRevision"),
        "since": text_at(ready, "lastTransitionTime"),
        "sourceKind": text_at(status, "sourceKind"),
        "selectedNodes": int_at(status, "selectedNodes"),
        "conflictedNodes": int_at(status, "conflictedNodes"),
        "conditions": list(objects_at(status, "conditions")),
    }


def queue_summary(tree: JsonObject, *, now: datetime) -> JsonObject:
    """The stable form of one managed queue; while it is drained its message begins with the age of the drain."""
    status, queue = object_at(tree, "status"), Queue.of(tree)
    ready = condition_of(status, CONDITION) or EMPTY
    age = drain_age_s(queue, now=now) if is_draining(queue) else None
    message = text_at(ready, "message")
    if age is not None:
        message = "; ".join(part for part in (f"draining for {to_text(max(0, int(age)))}", message) if part)
    return {
        "kind": QUEUE_KIND,
        "namespace": "",
        "name": queue.name,
        "ready": text_at(ready, "status", default="Unknown"),
        "reason": text_at(ready, "reason"),
        "message": message,
        "revision": "",
        "since": text_at(ready, "lastTransitionTime"),
        "phase": queue.managed.marks.get(PHASE, ""),
        "stopPolicy": queue.managed.policy,
        "reservingWorkloads": queue.usage.reserving,
        "conditions": list(objects_at(status, "conditions")),
    }


async def _listed(client: "KubeClient", path: str) -> tuple[JsonObject, ...]:
    try:
        return tuple((await client.list_all(path)).items)
    except BlockedError as error:
        if error.code in (ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND, ErrorCode.KIND_NOT_SERVED):
            return ()
        raise

"""What `status` and `explain` say about switches of kube-proxy and about proposals (cni-switch.md, sections 3.3 and 11).

Counts are here and not in conditions: they are read from what the cluster worker observed last.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from gitops_ctl.api.names import GROUP, ICHOR_GROUP, VERSION
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.errors import NotFound
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, int_at, list_at, object_at, objects_at, text_at

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

OPERATION: Final = GroupKind(ICHOR_GROUP, "TalosOperation")
_OVER: Final = {"Succeeded": "True", "Cancelled": "True", "Paused": "False"}
_SHOWN_PROPOSALS: Final = ("", "Pending", "Open")


async def switch_summaries(client: "KubeClient", *, namespace: str) -> list[JsonObject]:
    """Operations that are not over and the newest of each cluster, then proposals that wait; in the form of `status`."""
    operations = await _listed(client, ICHOR_GROUP, "talosoperations", namespace)
    proposals = await _listed(client, GROUP, "proposals", namespace)
    waiting = [item for item in proposals if text_at(item, "status", "phase") in _SHOWN_PROPOSALS]
    return [*map(operation_summary, shown(operations)), *map(proposal_summary, waiting)]


def shown(operations: Iterable[JsonObject]) -> list[JsonObject]:
    """Operations that are not over, and the newest one of each cluster."""
    newest: dict[tuple[str, str], JsonObject] = {}
    for item in operations:
        key = (text_at(item, "metadata", "namespace"), text_at(item, "spec", "clusterRef", "name"))
        known = newest.get(key, EMPTY)
        if text_at(item, "metadata", "creationTimestamp") >= text_at(known, "metadata", "creationTimestamp"):
            newest[key] = item
    return [
        item
        for item in operations
        if text_at(item, "status", "phase") not in ("Succeeded", "Cancelled") or item in newest.values()
    ]


def is_fine(item: JsonObject) -> bool:
    """Whether a summary is nothing to worry about: a switch that runs and a pull request that waits are fine."""
    if text_at(item, "kind") in ("TalosOperation", "Proposal"):
        return text_at(item, "ready") != "False"
    return text_at(item, "ready") == "True"


def operation_summary(tree: JsonObject) -> JsonObject:
    """The stable form of one operation."""
    status = object_at(tree, "status")
    phase = text_at(status, "phase", default="Pending")
    found = condition_of(status, "Paused" if phase == "Paused" else "Succeeded") or EMPTY
    reason = text_at(found, "reason") if phase == "Paused" else phase
    return {
        "kind": "TalosOperation",
        "namespace": text_at(tree, "metadata", "namespace"),
        "name": text_at(tree, "metadata", "name"),
        "ready": _OVER.get(phase, "Unknown"),
        "reason": reason,
        "message": text_at(found, "message"),
        "revision": text_at(tree, "spec", "sourceCommit"),
        "since": text_at(found, "lastTransitionTime"),
        "cluster": text_at(tree, "spec", "clusterRef", "name"),
        "target": text_at(tree, "spec", "target"),
        "phase": phase,
        "step": text_at(status, "step"),
        "conditions": list(objects_at(status, "conditions")),
    }


def proposal_summary(tree: JsonObject) -> JsonObject:
    """The stable form of one proposal."""
    status = object_at(tree, "status")
    ready = condition_of(status, "Ready") or EMPTY
    return {
        "kind": "Proposal",
        "namespace": text_at(tree, "metadata", "namespace"),
        "name": text_at(tree, "metadata", "name"),
        "ready": text_at(ready, "status", default="Unknown"),
        "reason": text_at(ready, "reason", default=text_at(status, "phase")),
        "message": text_at(status, "url") or text_at(ready, "message"),
        "revision": text_at(status, "headCommit"),
        "since": text_at(ready, "lastTransitionTime"),
        "purpose": text_at(tree, "spec", "reason"),
        "phase": text_at(status, "phase"),
        "conditions": list(objects_at(status, "conditions")),
    }


def operation_facts(tree: JsonObject) -> dict[str, JsonValue]:
    """What `explain` says about one operation: its step, what it waits for, and how far that is."""
    summary, status = operation_summary(tree), object_at(tree, "status")
    observed = object_at(status, "observed")
    cilium, proxy = object_at(observed, "cilium"), object_at(observed, "kubeProxy")
    rows = objects_at(status, "machines")
    facts: dict[str, JsonValue] = {
        "cluster": text_at(summary, "cluster"),
        "target": text_at(summary, "target"),
        "phase": text_at(summary, "phase"),
        "step": text_at(summary, "step"),
        "reason": text_at(summary, "reason"),
        "waitsFor": text_at(summary, "message"),
        "requestedBy": text_at(tree, "metadata", "annotations", f"{GROUP}/introduced-by"),
        "sourceCommit": text_at(tree, "spec", "sourceCommit"),
        "liveValue": text_at(cilium, "value", default="unset") if cilium else "",
        "agents": counted(object_at(cilium, "agents")),
        "operator": counted(object_at(cilium, "operator")),
        "kubeProxyPods": counted(object_at(proxy, "rollOut")),
        "lagging": ", ".join(map(str, (*list_at(cilium, "lagging"), *list_at(proxy, "lagging")))),
        "machines": machines_done(rows),
        "observedAt": text_at(observed, "at"),
        "pullRequest": text_at(status, "pullRequest", "url"),
    }
    for row in rows:
        message = f": {text_at(row, 'message')}" if text_at(row, "message") else ""
        facts[f"machine {text_at(row, 'name')}"] = f"{text_at(row, 'state')}{message}"
    for request in objects_at(status, "requests"):
        facts[f"request {text_at(request, 'action')}"] = text_at(request, "id")
    for clock in objects_at(status, "clocks"):
        facts[f"until {text_at(clock, 'name')}"] = text_at(clock, "deadline")
    return facts


def counted(tree: JsonObject) -> str:
    """How far a roll-out is: `7 of 12 ready`; empty where nothing was seen."""
    if not tree:
        return ""
    desired = int_at(tree, "desired")
    return f"{int_at(tree, 'ready')} of {desired} ready, {int_at(tree, 'updated')} of {desired} updated"


def machines_done(rows: Iterable[JsonObject]) -> str:
    """`2 of 5 done`; empty before the machines' turn."""
    states = [text_at(row, "state") for row in rows]
    return f"{states.count('Done')} of {len(states)} done" if states else ""


async def _listed(client: "KubeClient", group: str, plural: str, namespace: str) -> list[JsonObject]:
    scope = f"/namespaces/{namespace}" if namespace else ""
    try:
        return list((await client.list_all(f"/apis/{group}/{VERSION}{scope}/{plural}")).items)
    except NotFound:
        return []  # a product without these kinds has none of them

"""What a Sync that waits is told about a TopologySource and a managed ClusterQueue (topology-scheduling.md, 9, D42)."""

from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, objects_at, text_at

_READY: Final = "Ready"
_TOPOLOGY_READY: Final = "TopologyReady"


def source_waits_for(source: JsonObject) -> str:
    """Why a TopologySource is not current yet; empty when its newest generation is observed and Ready."""
    observed = object_at(source, "status").get("observedGeneration")
    if observed != int_at(source, "metadata", "generation"):
        return "its newest generation is not observed yet"
    return _unmet(source, _READY)


def queue_waits_for(queue: JsonObject) -> str:
    """Why a managed ClusterQueue is not current yet; empty when its plan stands, also when it is held with an empty one."""
    return _unmet(queue, _TOPOLOGY_READY)


def _unmet(tree: JsonObject, name: str) -> str:
    found = next((item for item in objects_at(tree, "status", "conditions") if text_at(item, "type") == name), {})
    if text_at(found, "status") == "True":
        return ""
    return text_at(found, "message") or text_at(found, "reason") or f"has no condition {name} yet"

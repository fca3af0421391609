"""What may never happen to a queue, watched on every write that the API server in memory takes (topology-scheduling.md, 8.3)."""

from typing import Any

from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.store import Change

GROUP = "kueue.x-k8s.io"
QUEUES, WORKLOADS = (GROUP, "clusterqueues"), (GROUP, "workloads")
PHASE = "topology.gpustack.ai/migration-phase"


class Laws:
    """Attributes: broken has one sentence for each law that was broken, in the order of the writes."""

    def __init__(self, api: ApiServer) -> None:
        self.broken: list[str] = []
        self._api = api
        api.store.listeners.append(self._written)

    def _written(self, change: Change) -> None:
        if change.collection == QUEUES and change.old is not None and change.new is not None:
            self._queue(change.old, change.new)
        elif change.collection == WORKLOADS and change.new is not None:
            self._workload(change.old or {}, change.new)

    def _queue(self, old: Any, new: Any) -> None:
        name = new["metadata"]["name"]
        gone = _flavors(old) - _flavors(new)
        living = gone & self._reserved(name)
        if living:
            self.broken.append(f"queue {name} dropped {sorted(living)} while something is reserved there")
        is_open = new["spec"].get("stopPolicy", "None") == "None"
        if is_open and not _flavors(new):
            self.broken.append(f"queue {name} is open without groups")
        if is_open and PHASE in new["metadata"].get("annotations", {}) and self._reserved(name) - _flavors(new):
            self.broken.append(f"queue {name} was released while an old reservation lives")

    def _workload(self, old: Any, new: Any) -> None:
        admission = new.get("status", {}).get("admission")
        if not admission or old.get("status", {}).get("admission"):
            return
        queue: Any = self._api.store.get(QUEUES, ("", admission["clusterQueue"]))
        if queue is None or not _flavors(queue):
            self.broken.append(f"workload {new['metadata']['name']} got a reservation in a queue without groups")
        elif queue["spec"].get("stopPolicy", "None") != "None":
            self.broken.append(f"workload {new['metadata']['name']} got a reservation in a queue that is held")

    def _reserved(self, queue: str) -> set[str]:
        """The flavors in which a Workload of the queue has a reservation."""
        found: set[str] = set()
        for _, tree in self._api.store.all(WORKLOADS):
            admission: Any = tree.get("status", {}).get("admission") or {}
            if admission.get("clusterQueue") == queue:
                for each in admission["podSetAssignments"]:
                    found |= set(each.get("flavors", {}).values())
        return found


def _flavors(queue: Any) -> set[str]:
    return {flavor["name"] for group in queue["spec"].get("resourceGroups", ()) for flavor in group["flavors"]}

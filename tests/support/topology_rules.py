"""What must hold after every single write of a simulated cluster with topology-aware scheduling (topology-scheduling.md, 7.5, 7.6 and 8.3).

A broken rule is collected and fails the run.  The rules know the product by its objects only, and count Workloads, not Kueue's counters.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.doubles.apiserver.store import Change, Store, Tree
from tests.doubles.kueue_placement import amount

KUEUE = "kueue.x-k8s.io"
NODES, EVENTS, LEASES = ("", "nodes"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases")
SOURCES, FEATURES = ("worker.gpustack.ai", "topologysources"), ("nfd.k8s-sigs.io", "nodefeatures")
TOPOLOGIES, FLAVORS = (KUEUE, "topologies"), (KUEUE, "resourceflavors")
QUEUES, WORKLOADS = (KUEUE, "clusterqueues"), (KUEUE, "workloads")
MAY_WRITE = (NODES, SOURCES, FEATURES, TOPOLOGIES, FLAVORS, QUEUES)
OWN = "topology.gpustack.ai/"
PROFILE, PHASE, WANTED = f"{OWN}profile", f"{OWN}migration-phase", f"{OWN}wanted-stop-policy"
SEEN_S = 6.0
"""For so long the product may still act on what it saw before: a late event, and the pass that it wakes."""

BLIND_S = 50.0
"""... when the server was away, with the pause until its watches are asked for again."""


@dataclass
class Rules:
    """Watches one store; `writer` is manager or story.

    Attributes:
        strict: no flavor in use is ever dropped, not even by a Workload that Kueue has not counted yet (hold-before-drop).
        server_back_s: until then, at most, the manager saw nothing.
        writes: what the manager changed, oldest first.
    """

    store: Store
    now_s: Callable[[], float]
    writer: str = "story"
    strict: bool = False
    server_back_s: float = 0.0
    broken: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    last_write_s: float = 0.0
    _labels: list[tuple[float, Mapping[str, Mapping[str, str]]]] = field(default_factory=list)

    def begin(self) -> None:
        """Take the world as it is for granted, and look at everything that comes."""
        self._labels = [(self.now_s(), self._labels_now())]
        self.store.listeners.append(self.changed)

    def changed(self, change: Change) -> None:
        """One write."""
        old, new = change.old or {}, change.new or {}
        if change.collection == NODES and _labels(old) != _labels(new):
            self._labels.append((self.now_s(), self._labels_now()))
        if change.collection == WORKLOADS:
            self._admission(old, new)
        if self.writer == "story" or change.collection in (EVENTS, LEASES):
            return
        name = f"{change.last['kind']} {change.last['metadata']['name']}"
        self.writes.append(name)
        if change.collection not in MAY_WRITE:
            self._break(f"the manager wrote {name}")
        elif change.collection == NODES:
            self._node(name, old, new)
        elif change.collection == SOURCES:
            self._source(name, old, new)
        elif change.collection in (TOPOLOGIES, FLAVORS):
            self._immutable(change.collection, name, old, new)
        elif change.collection == QUEUES:
            self._queue(name, old, new)

    # -- who may write what ------------------------------------------------------------------------------------------

    def _node(self, name: str, old: Tree, new: Tree) -> None:
        """Of a Node its profile label is all that the manager writes."""
        if not old or not new:
            self._break(f"{name} was made or removed")
        elif _but(old, PROFILE) != _but(new, PROFILE):
            self._break(f"more of {name} was written than its profile")

    def _source(self, name: str, old: Tree, new: Tree) -> None:
        if not old or (new and (old["spec"] != new["spec"] or _labels(old) != _labels(new))):
            self._break(f"more of {name} was written than finalizers and status")

    def _immutable(self, collection: tuple[str, str], name: str, old: Tree, new: Tree) -> None:
        """Topologies and flavors are made and removed, never rewritten, and not removed under those who use them."""
        if old and new and old["spec"] != new["spec"]:
            self._break(f"the spec of {name} was rewritten")
        if old and new and "deletionTimestamp" not in new["metadata"] and collection == TOPOLOGIES:
            self._break(f"{name} was rewritten")
        going = old and (
            not new or ("deletionTimestamp" in new["metadata"] and "deletionTimestamp" not in old["metadata"])
        )
        if going and collection == TOPOLOGIES:
            profile = old["metadata"]["name"].removeprefix("gpustack-")
            if all(any(each.get(PROFILE) == profile for each in one.values()) for one in self._recent()):
                self._break(f"{name} was removed while a Node carries its profile")
            if any(tree["spec"].get("topologyName") == old["metadata"]["name"] for _, tree in self.store.all(FLAVORS)):
                self._break(f"{name} was removed while a flavor refers to it")
        if going and collection == FLAVORS and all(self._selected(old, one) for one in self._recent()):
            self._break(f"{name} was removed while Nodes feed it")

    # -- queues ------------------------------------------------------------------------------------------------------

    def _queue(self, name: str, old: Tree, new: Tree) -> None:
        if not old or not new or old["metadata"]["uid"] != new["metadata"]["uid"]:
            self._break(f"{name} was made or removed")
            return
        if _of_git(old) != _of_git(new):
            self._break(f"more of {name} was written than is the manager's")
        if old.get("status") != new.get("status") and _of_kueue(old) != _of_kueue(new):
            self._break(f"more of the status of {name} was written than TopologyReady")
        before, after = quotas(old), quotas(new)
        if not after and new["spec"].get("stopPolicy", "None") == "None":
            self._break(f"{name} is open without groups")
        if before != after:
            self._switched(name, old, new)
        if PHASE in _marks(old) and PHASE not in _marks(new) and self._reserved(new):
            self._break(f"{name} was released while {self._reserved(new)} reserve")

    def _switched(self, name: str, old: Tree, new: Tree) -> None:
        """Another plan: nothing that goes is in use, and what comes is what the Nodes have."""
        dropped = quotas(old).keys() - quotas(new).keys()
        if PHASE in _marks(old):
            if self._reserved(old):
                self._break(f"{name} was switched while {self._reserved(old)} reserve")
            if {one["spec"].get("stopPolicy") for one in (old, new)} != {"HoldAndDrain"}:
                self._break(f"{name} was switched without a hold")
        elif dropped:
            counted = _counted(old)
            if not _is_observed(old) or any(counted.get(flavor, 1) != 0 for flavor in dropped):
                self._break(f"{name} lost {sorted(dropped)} in place, and Kueue says {counted}")
            used = {flavor for flavors in self._reserved(old).values() for flavor in flavors} & dropped
            if self.strict and used:
                self._break(f"{name} lost {sorted(used)}, which are in use")
        self._conserved(name, new)

    def _conserved(self, name: str, queue: Tree) -> None:
        """One resource group of live flavors with disjoint Nodes; each quota is what its Nodes had a moment ago."""
        flavors = {tree["metadata"]["name"]: tree for _, tree in self.store.all(FLAVORS)}
        owner: dict[str, str] = {}
        if len(queue["spec"].get("resourceGroups", ())) > 1 or len(quotas(queue)) > 64:
            self._break(f"{name} has more than one group, or too many flavors")
        for flavor, quota in quotas(queue).items():
            tree = flavors.get(flavor)
            if tree is None:
                self._break(f"{name} names {flavor}, which does not exist")
                continue
            if quota not in {capacity(tree, self._selected(tree, one)) for one in self._recent()}:
                self._break(f"{name} has {quota} of {flavor}, and its Nodes have something else")
            for node in self._selected(tree, self._labels[-1][1]):
                if owner.setdefault(node, flavor) != flavor:
                    self._break(f"{name} gives out {node} twice, by {flavor} and {owner[node]}")

    def _admission(self, old: Tree, new: Tree) -> None:
        """Kueue admits something: never into a queue without groups."""
        had, has = ((each.get("status", {}).get("admission") or {}).get("clusterQueue", "") for each in (old, new))
        if not has or had == has:
            return
        queue = self.store.get(QUEUES, ("", has)) or {"spec": {}}
        if not quotas(queue):
            self._break(f"{new['metadata']['name']} was admitted into {has}, which has no groups")

    def _reserved(self, queue: Tree) -> dict[str, list[str]]:
        """The Workloads that have a reservation in the queue, with their flavors."""
        found = {}
        for _, tree in self.store.all(WORKLOADS):
            admission = tree.get("status", {}).get("admission") or {}
            if admission.get("clusterQueue") == queue["metadata"]["name"]:
                sets = admission.get("podSetAssignments", ())
                found[tree["metadata"]["name"]] = [one for each in sets for one in each.get("flavors", {}).values()]
        return found

    # -- the Nodes ---------------------------------------------------------------------------------------------------

    def _labels_now(self) -> Mapping[str, Mapping[str, str]]:
        return {key[1]: _labels(tree) for key, tree in self.store.all(NODES)}

    def _recent(self) -> Iterator[Mapping[str, Mapping[str, str]]]:
        """The labels of all Nodes as they were at any moment that the product may still act on, newest first."""
        now_s = self.now_s()
        since_s = now_s - (BLIND_S if now_s - self.server_back_s < BLIND_S else SEEN_S)
        for at_s, labels in reversed(self._labels):
            yield labels
            if at_s < since_s:
                return

    @staticmethod
    def _selected(flavor: Tree, nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
        wanted = flavor["spec"].get("nodeLabels", {}).items()
        return [name for name, labels in nodes.items() if wanted <= labels.items()]

    def _break(self, text: str) -> None:
        self.broken.append(text)


def quotas(queue: Tree) -> dict[str, Fraction]:
    """Flavors of a queue with their only quota."""
    return {
        flavor["name"]: amount(flavor["resources"][0]["nominalQuota"])
        for group in queue["spec"].get("resourceGroups", ())
        for flavor in group["flavors"]
    }


def capacity(flavor: Tree, nodes: list[str]) -> Fraction:
    """What so many Nodes give to a CPU flavor, counted from its selector alone."""
    [count] = [value for key, value in flavor["spec"]["nodeLabels"].items() if key.endswith(".count")]
    return Fraction(int(count) * len(nodes))


def _labels(tree: Tree) -> Mapping[str, str]:
    found: Mapping[str, str] = tree.get("metadata", {}).get("labels", {})
    return found


def _marks(tree: Tree) -> Mapping[str, str]:
    found: Mapping[str, str] = tree["metadata"].get("annotations", {})
    return found


def _but(node: Tree, label: str) -> Any:
    metadata = {
        name: value for name, value in node["metadata"].items() if name not in ("managedFields", "resourceVersion")
    }
    metadata["labels"] = {key: value for key, value in _labels(node).items() if key != label}
    return {**node, "metadata": metadata}


def _of_git(queue: Tree) -> Any:
    """What of a queue is not the manager's."""
    spec = {
        name: value
        for name, value in queue["spec"].items()
        if name not in ("stopPolicy", "resourceGroups", "admissionChecksStrategy")
    }
    foreign = {key: value for key, value in _marks(queue).items() if key == WANTED or not key.startswith(OWN)}
    return spec, foreign, _labels(queue), queue["metadata"].get("finalizers")


def _of_kueue(queue: Tree) -> Any:
    status = queue.get("status", {})
    conditions = [each for each in status.get("conditions", ()) if each["type"] != "TopologyReady"]
    return {**status, "conditions": conditions}


def _counted(queue: Tree) -> dict[str, Fraction]:
    """What Kueue counts for each flavor that both its lists name."""
    lists = [
        {each["name"]: each["resources"] for each in queue.get("status", {}).get(member, ())}
        for member in ("flavorsReservation", "flavorsUsage")
    ]
    return {
        name: sum((amount(one["total"]) for found in lists for one in found[name]), Fraction(0))
        for name in lists[0].keys() & lists[1].keys()
    }


def _is_observed(queue: Tree) -> bool:
    found = [each for each in queue.get("status", {}).get("conditions", ()) if each["type"] == "Active"]
    return bool(found) and bool(found[0].get("observedGeneration", 0) >= queue["metadata"]["generation"])

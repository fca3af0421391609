"""What must hold after every single write of a simulated switch; a broken rule is collected and fails the run (cni-switch.md)."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.apiserver.store import Change, Store, Tree

CLUSTERS = ("ichor.maesh.dev", "talosclusters")
MACHINES = ("ichor.maesh.dev", "talosmachines")
OPERATIONS = ("ichor.maesh.dev", "talosoperations")
PROPOSALS = ("gitops-ctl.dev", "proposals")
MAY_WRITE = (CLUSTERS, MACHINES, OPERATIONS, PROPOSALS)
_FLYING = ("Applying", "Preparing", "Verifying")
WORKERS_OWN = ("claims", "receipts", "observed", "removed", "restored")


@dataclass
class Rules:
    """Watches one store; `writer` is executor, worker or story."""

    store: Store
    writer: str = "story"
    broken: list[str] = field(default_factory=list)
    last_write_s: float = 0.0
    purposes: Counter[tuple[str, str]] = field(default_factory=Counter)
    claimed: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Tree] = field(default_factory=dict)

    def begin(self) -> None:
        self.store.listeners.append(self.changed)

    def changed(self, change: Change) -> None:
        """One write."""
        if self.writer == "story" or change.last.get("kind") == "Event":
            return
        old, new = change.old or {}, change.new or {}
        if change.collection not in MAY_WRITE:
            self._break(f"{self.writer} wrote {change.collection[1]} {change.last['metadata']['name']}")
            return
        made = change.old is None and change.collection in (OPERATIONS, PROPOSALS)
        if change.collection != PROPOSALS and not made and old.get("spec") != new.get("spec"):
            self._break(f"{self.writer} wrote the spec of a {change.last['kind']}")
        if change.collection == PROPOSALS:
            self._proposal(old, new)
        if change.collection == OPERATIONS:
            self._operation(old.get("status", {}), new)
        if change.collection == CLUSTERS:
            self._cluster(old.get("status", {}), new.get("status", {}))

    def _proposal(self, old: Tree, new: Tree) -> None:
        """Never a second pull request: one Proposal for one purpose of one operation."""
        if not old:
            key = (new["spec"]["reason"], new["spec"]["subject"]["uid"])
            self.purposes[key] += 1
            if self.purposes[key] > 1:
                self._break(f"a second proposal for {key}")

    def _operation(self, old: Tree, new: Tree) -> None:
        status = new.get("status", {})
        for name in status:
            if self.writer == "executor" and name in WORKERS_OWN and old.get(name) != status[name]:
                self._break(f"the executor wrote {name}")
        flying = [row["name"] for row in status.get("machines", []) if row["state"] in _FLYING]
        asked = [one["machine"] for one in status.get("requests", []) if one["action"] == "apply-mode"]
        if len(flying) > 1 or len(asked) > 1:
            self._break(f"more than one machine at once: {flying} {asked}")
        self._requests(old, status)
        self._claims(new, old, status)
        self._ended(old, status)

    def _requests(self, old: Tree, new: Tree) -> None:
        """An id stands for one attempt: it never names anything else, and an effect is asked for under the lock and its mode."""
        cluster = self._status_of_cluster()
        known = {one["id"] for one in old.get("requests", [])}
        for request in new.get("requests", []):
            before = self.asked.setdefault(request["id"], request)
            if before != request:
                self._break(f"{request['id']} names another attempt now")
            if request["id"] in known or request["action"] in ("observe", "probe-service"):
                continue
            if cluster.get("cni", {}).get("kubeProxy") != request["mode"]:
                self._break(f"{request['id']} was asked for before the mode was set")
            if "lock" not in cluster:
                self._break(f"{request['id']} was asked for without the lock")

    def _claims(self, tree: Tree, old: Tree, new: Tree) -> None:
        before = {one["id"] for one in old.get("claims", [])}
        standing = {one["id"] for one in old.get("requests", [])}
        for claim in new.get("claims", []):
            if claim["id"] in before:
                continue
            if claim["id"] in self.claimed or claim["id"] not in standing:
                self._break(f"{claim['id']} was claimed twice, or after it was taken back")
            self.claimed[claim["id"]] = tree["metadata"]["uid"]

    def _ended(self, old: Tree, new: Tree) -> None:
        over = ("Succeeded", "Cancelled")
        if old.get("phase") in over and new.get("phase") != old.get("phase"):
            self._break("an operation that is over went on")

    def _cluster(self, old: Tree, new: Tree) -> None:
        if self.writer == "worker":
            return
        held = {
            tree["metadata"]["uid"]: tree.get("status", {}).get("phase", "Pending")
            for _, tree in self.store.all(OPERATIONS)
        }
        before, after = old.get("lock", {}).get("operationUID"), new.get("lock", {}).get("operationUID")
        if before and before != after and held.get(before) not in (None, "Succeeded", "Cancelled"):
            self._break("the lock was taken away from an operation that is not over")
        if new.get("cni", {}).get("kubeProxy") != old.get("cni", {}).get("kubeProxy") and not after:
            self._break("the mode was set without the lock")

    def _status_of_cluster(self) -> dict[str, Any]:
        return next((tree.get("status", {}) for _, tree in self.store.all(CLUSTERS)), {})

    def _break(self, text: str) -> None:
        self.broken.append(text)

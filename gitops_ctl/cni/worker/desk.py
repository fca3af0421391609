"""Where the executor and the worker meet: requests, claims and receipts in the status of one TalosOperation (cni-switch.md, 2.1).

Every write is a compare-and-swap on the version that was read, because a request that is withdrawn and one that is claimed race: whoever
writes first wins.  An id is claimed at most once.  The worker applies all its members together, so it always starts from what is stored.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_CNI_WORKER, ICHOR_GROUP, VERSION
from gitops_ctl.api.talos_operation import WORKER_MEMBERS
from gitops_ctl.cni.model import Operation, Result, kept_ids
from gitops_ctl.cni.reading import operation_of
from gitops_ctl.cni.worker.proxyset import ProxyObject
from gitops_ctl.core.clock import Clock, to_rfc3339
from gitops_ctl.core.conditions import MESSAGE_LIMIT, cut
from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, NotFound, TransientError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, objects_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.statuswriter import swap_status
from gitops_ctl.kube.transport import KubeClient

CLUSTERS: Final = Resource(GroupVersionKind(ICHOR_GROUP, VERSION, "TalosCluster"), "talosclusters", namespaced=True)
MACHINES: Final = Resource(GroupVersionKind(ICHOR_GROUP, VERSION, "TalosMachine"), "talosmachines", namespaced=True)
OPERATIONS: Final = Resource(
    GroupVersionKind(ICHOR_GROUP, VERSION, "TalosOperation"), "talosoperations", namespaced=True
)

WARNINGS: Final = 20

CLAIM_S: Final = 15.0
"""An effect begins within this time after its claim, or never: later another worker may have settled the claim already."""

Owned = dict[str, JsonValue]
Change = Callable[[JsonObject, Operation, Owned], bool]
"""Changes the worker's members, given the stored object; False when there is nothing to write."""

_RETRY_S: Final = (0.1, 0.3, 1.0, 2.0, 5.0)


class Withdrawn(BlockedError):
    """The request is not there any more, or the operation has ended: nothing is done and nothing is written."""


class Unfit(BlockedError):
    """A check that must hold before an effect does not; nothing was changed.  `word` is the reason for machines."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that was written; `written_s` is when that was first tried, on the boot clock."""

    clock: Clock
    written_s: float

    def require_fresh(self) -> None:
        """Ask this right before every mutating call: a process that stood still must not act on what it knew before.

        Raises:
            Unfit: the claim is too old; nothing more may be done with it.
        """
        age_s = self.clock.boot_s() - self.written_s
        if age_s > CLAIM_S:
            raise Unfit("ClaimStale", f"the worker stood still for {age_s:.0f} s after its claim and did nothing more")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended.

    Attributes:
        removed, restored: what went or came with it.
        there: what of kube-proxy was there at the end of a removal, None when that is not known; it is not listed as removed.
    """

    result: Result
    message: str
    hash_applied: str = ""
    warnings: tuple[str, ...] = ()
    removed: tuple[ProxyObject, ...] = ()
    restored: tuple[ProxyObject, ...] = ()
    there: tuple[ProxyObject, ...] | None = None


def refused(error: GitopsError) -> Outcome:
    """Nothing was changed, because of this."""
    word = error.word if isinstance(error, Unfit) else error.reason
    return Outcome(Result.REFUSED, f"{word}: {error.message}")


class Desk:
    """Reads one operation uncached and writes the worker's part of its status."""

    def __init__(self, client: KubeClient, key: NamespacedName, *, worker: str) -> None:
        """`worker` is the identity that stands in claims."""
        self.key = key
        self._client = client
        self._worker = worker
        self._path = OPERATIONS.path(key.namespace, key.name)
        self._writing = asyncio.Lock()

    async def standing(self, request_id: str) -> Operation:
        """The operation as it is stored, with this request still standing and without a receipt.

        Raises:
            Withdrawn: it is not.
            NotFound: the operation is gone.
        """
        return _require_standing(_operation(await self._client.get(self._path)), request_id)

    async def claim(self, request_id: str, *, removing: Sequence[ProxyObject] = ()) -> Claim:
        """Write the claim; when this returns the effect may happen, once, while the claim is fresh.

        `removing` is listed as removed with it, so that nothing is missing there when this process is killed on the way; the
        receipt takes out again what is still there.

        Raises:
            Withdrawn: the request was taken away first, or the id is claimed already.
        """
        clock = self._client.clock
        tried: list[float] = []

        def add(tree: JsonObject, operation: Operation, owned: Owned) -> bool:
            if tried and self._is_ours(tree, request_id):
                return False  # the reply of the first attempt was lost
            _require_standing(operation, request_id)
            if request_id in operation.claims:
                raise Withdrawn(f"the request {request_id} is claimed already")
            owned["claims"] = [*list_at(owned, "claims"), {"id": request_id, "worker": self._worker, "at": self._now()}]
            if removing:
                owned["removed"] = _merged(list_at(owned, "removed"), removing, at=self._now())
            tried.append(clock.boot_s())
            return True

        await self.change(add)
        return Claim(clock, tried[0])

    async def settle(self, request_id: str, outcome: Outcome) -> None:
        """Write the receipt, unless there is one.  A claimed request gets it also after it was taken away.

        Raises:
            Withdrawn: it was not claimed, and it does not stand any more.
        """

        def add(tree: JsonObject, operation: Operation, owned: Owned) -> bool:
            if request_id in operation.receipts:
                return False
            if request_id not in operation.claims:
                _require_standing(operation, request_id)
            owned["receipts"] = [*list_at(owned, "receipts"), self._receipt_tree(request_id, outcome)]
            for member, items in (("removed", outcome.removed), ("restored", outcome.restored)):
                if items:
                    owned[member] = _merged(list_at(owned, member), items, at=self._now())
            if outcome.there is not None:
                _take_out(owned, outcome.there)
            _forget(tree, operation, owned)
            return True

        await self.change(add)

    async def change(self, change: Change) -> None:
        """Change the worker's members; tried again when somebody wrote in between.

        Raises:
            NotFound: the operation is gone.
            Conflict, TransientError: several times in a row.
        """
        async with self._writing:
            for delay_s in (*_RETRY_S, None):
                try:
                    return await self._change_once(change)
                except (Conflict, TransientError):
                    # After a lost reply the next reading tells whether it was written.
                    if delay_s is None:
                        raise
                    await self._client.clock.sleep(delay_s * (0.5 + 0.5 * self._client.draw()))

    async def _change_once(self, change: Change) -> None:
        tree = await self._client.get(self._path)
        owned = {name: value for name, value in object_at(tree, "status").items() if name in WORKER_MEMBERS}
        if change(tree, _operation(tree), owned):
            await swap_status(self._client, OPERATIONS, tree, owned, manager=FIELD_MANAGER_CNI_WORKER)

    def _is_ours(self, tree: JsonObject, request_id: str) -> bool:
        claims = objects_at(tree, "status", "claims")
        return any(text_at(item, "id") == request_id and text_at(item, "worker") == self._worker for item in claims)

    def _receipt_tree(self, request_id: str, outcome: Outcome) -> JsonObject:
        tree: dict[str, JsonValue] = {
            "id": request_id,
            "result": outcome.result.value,
            "at": self._now(),
            "message": cut(redact_text(outcome.message), limit=MESSAGE_LIMIT),
        }
        if outcome.hash_applied:
            tree["hashApplied"] = outcome.hash_applied
        if outcome.warnings:
            shown = [cut(redact_text(text), limit=MESSAGE_LIMIT) for text in outcome.warnings[:WARNINGS]]
            tree["warnings"] = shown
        return tree

    def _now(self) -> str:
        return to_rfc3339(self._client.clock.wall())


def _operation(tree: JsonObject) -> Operation:
    operation = operation_of(tree)
    if operation is None:
        raise Withdrawn(f"the operation {text_at(tree, 'metadata', 'name')} is of another kind")
    return operation


def _require_standing(operation: Operation, request_id: str) -> Operation:
    stands = any(request.id == request_id for request in operation.state.requests)
    if not stands or operation.is_over or request_id in operation.receipts:
        raise Withdrawn(f"the request {request_id} does not stand any more")
    return operation


def _merged(listed: Sequence[JsonValue], items: Iterable[ProxyObject], *, at: str) -> list[JsonValue]:
    """`listed` and what came with this receipt; an object is listed once by its uid."""
    known = {text_at(entry, "uid") for entry in listed if isinstance(entry, Mapping)}
    return [*listed, *(item.changed(at=at).to_tree() for item in items if item.uid not in known)]


def _take_out(owned: Owned, there: Iterable[ProxyObject]) -> None:
    """List as removed only what is not there."""
    uids = {item.uid for item in there}
    left = [entry for entry in objects_at(owned, "removed") if text_at(entry, "uid") not in uids]
    owned.pop("removed", None)
    if left:
        owned["removed"] = left


def _forget(tree: JsonObject, operation: Operation, owned: Owned) -> None:
    """Drop old claims and receipts, but nothing of a request that stands and no claim without a receipt (section 3.3)."""
    kept = kept_ids(object_at(tree, "status"), step=operation.state.step)
    kept |= {request.id for request in operation.state.requests}
    kept |= {text_at(item, "id") for item in objects_at(owned, "receipts")[-1:]}
    receipts = {text_at(item, "id") for item in objects_at(owned, "receipts")}
    for member in ("claims", "receipts"):
        if member in owned:
            entries = [(text_at(item, "id"), item) for item in objects_at(owned, member)]
            owned[member] = [item for id, item in entries if id in kept or id not in receipts]


def require_lock(cluster: JsonObject, operation: Operation) -> None:
    """Refuse an effect while another operation, or none, holds the cluster.

    Raises:
        Unfit: it does not hold the lock.
    """
    holder = text_at(cluster, "status", "lock", "operationUID")
    if not holder or holder != operation.uid:
        shown = text_at(cluster, "status", "lock", "holder") or "nobody"
        raise Unfit("LockNotHeld", f"the lock of the cluster is held by {shown}")


async def read_cluster(client: KubeClient, key: NamespacedName) -> JsonObject:
    """The TalosCluster as it is stored.

    Raises:
        NotFound: it is gone.
    """
    found = await client.find(CLUSTERS.path(key.namespace, key.name))
    if found is None:
        raise NotFound(f"the TalosCluster {key.name} is gone")
    return found

"""Carries out deletions, and takes our marks off objects that stay (gitops.md, sections 9 and 23.4).

Every delete names the UID that was planned, and is made as the Sync's ServiceAccount.  A wave that leaves objects with
finalizers behind ends the round: what comes after it may be what they need to go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gitops_ctl.api.names import (
    ANNOTATION_INTRODUCED_BY,
    ANNOTATION_INTRODUCED_COMMIT,
    ANNOTATION_OWNER_ID,
    FIELD_MANAGER,
    LABEL_OWNER,
)
from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, NotFound
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.sync.apply import WIDTH
from gitops_ctl.sync.cluster import LiveCluster
from gitops_ctl.sync.digestview import view_of
from gitops_ctl.sync.model import Entry, OwnerId, View
from gitops_ctl.sync.order import Deletion, in_deletion_waves
from gitops_ctl.sync.prune import propagation_of

T = TypeVar("T")


@dataclass(slots=True)
class Removed:
    """What came of a round of deletions.

    Attributes:
        forbidden: those of the failed ones that no right allows, now or later by itself.
    """

    gone: list[ObjectId] = field(default_factory=list)
    terminating: list[ObjectId] = field(default_factory=list)
    failed: dict[ObjectId, str] = field(default_factory=dict)
    forbidden: set[ObjectId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Remover:
    """Where and as whom objects are removed.  `require` raises when the manager may not write any more."""

    cluster: LiveCluster
    account: str
    require: Callable[[], None]

    async def delete(self, doomed: Iterable[Deletion], *, own: NamespacedName | None) -> Removed:
        """Delete in waves, as far as nothing waits for finalizers.  `own` is the Sync's account."""
        result = Removed()
        for wave in in_deletion_waves(doomed, account=own):
            self.require()
            await _in_parallel(wave, lambda item: self._delete_one(item, result))
            if result.terminating or result.failed:
                break
        return result

    async def _delete_one(self, item: Deletion, result: Removed) -> None:
        entry, view = item.entry, item.view
        if view is not None and view.terminating:
            result.terminating.append(entry.id)
            return
        uid = view.uid if view is not None else entry.uid
        try:
            path = (await self._resource(entry)).path(entry.id.namespace, entry.id.name)
            propagation = propagation_of(entry, view)
            left = await self.cluster.client.delete(path, uid=uid, propagation=propagation, account=self.account)
        except KindNotServed:
            left = None
        except Conflict:
            return  # another object has the name now: the next round looks at it afresh
        except GitopsError as error:
            result.failed[entry.id] = error.message
            if isinstance(error, BlockedError):
                result.forbidden.add(entry.id)
            return
        (result.gone if left is None else result.terminating).append(entry.id)
        if self.cluster.is_watched(entry.gvk):
            self.cluster.note_removal(entry.id, entry.gvk, left=view_of(left) if left is not None else None, uid=uid)

    async def _resource(self, entry: Entry) -> Resource:
        try:
            return await self.cluster.mapper.resource(self.cluster.served_as(entry.gvk))
        except KindNotServed:
            return await self.cluster.mapper.group_kind(entry.id.group_kind)

    async def read(
        self, entries: Iterable[Entry], *, refused: dict[ObjectId, str] | None = None
    ) -> dict[ObjectId, View | None]:
        """Read objects by name; those that cannot be read are left out, and `refused` is told why when a right is missing."""
        found: dict[ObjectId, View | None] = {}

        async def read_one(entry: Entry) -> None:
            try:
                path = (await self._resource(entry)).path(entry.id.namespace, entry.id.name)
                tree = await self.cluster.client.find(path, account=self.account)
            except KindNotServed:
                found[entry.id] = None
            except BlockedError as error:
                if refused is not None:
                    refused[entry.id] = error.message
            except GitopsError:
                return
            else:
                found[entry.id] = view_of(tree) if tree is not None else None

        await _in_parallel(tuple(entries), read_one)
        return found

    async def release(self, entries: Iterable[Entry], *, owner: OwnerId) -> Removed:
        """Take our marks off; the objects stay as they are."""
        result = Removed()

        async def release_one(entry: Entry) -> None:
            try:
                path = (await self._resource(entry)).path(entry.id.namespace, entry.id.name)
                tree = await self.cluster.client.find(path, account=self.account)
                if tree is not None and view_of(tree).owner == owner.mark(entry.id):
                    patch = _without_marks(view_of(tree).uid)
                    await self.cluster.client.patch_merge(path, patch, manager=FIELD_MANAGER, account=self.account)
            except NotFound:
                pass
            except GitopsError as error:
                result.failed[entry.id] = error.message
                return
            result.gone.append(entry.id)

        self.require()
        await _in_parallel(tuple(entries), release_one)
        return result


def _without_marks(uid: str) -> JsonObject:
    annotations = dict.fromkeys((ANNOTATION_OWNER_ID, ANNOTATION_INTRODUCED_BY, ANNOTATION_INTRODUCED_COMMIT))
    return {"metadata": {"uid": uid, "labels": {LABEL_OWNER: None}, "annotations": annotations}}


async def _in_parallel(items: Sequence[T], work: Callable[[T], Awaitable[None]]) -> None:
    waiting = iter(items)

    async def run() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(WIDTH, len(items))):
            group.create_task(run())

"""One cluster as the units see it: a client, discovery, and one informer per kind that somebody needs (gitops.md, section 11).

Informers select on the owner label and keep a digest and a few facts of each object, whoever owns it, so that a second
owner is seen before a write.  What we have just written is laid over the cache until the cache shows it.  Secrets have no
informer; kinds that the manager may not watch have none that works: both are read by name, as the account of the unit.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from gitops_ctl.api.names import LABEL_OWNER
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupKind, GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.informer import Informer, State, Timing
from gitops_ctl.kube.mapper import Mapper, Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.digestview import view_of
from gitops_ctl.sync.model import UNSEEN, Entry, OwnerId, Seen, Unseen, View

NEVER_WATCHED: Final = frozenset({GroupKind("", "Secret")})
"""Kinds that are read by name only, as the account of the unit."""

NOTE_S: Final = 30.0
"""How long a write of ours counts for more than a cache that does not show it."""

SETTLE_S: Final = 10.0
"""How long a pass waits for the first list of a kind; then the kind counts as unseen."""


@dataclass(frozen=True, slots=True)
class _Note:
    seen: View | None
    uid: str
    until_s: float


class LiveCluster:
    """An async context manager; its informers end with it.

    Attributes:
        key: empty for the cluster that the manager runs in, else a name for the kubeconfig.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        key: str = "",
        on_change: Callable[[OwnerId, ObjectId], None],
        on_lost: Callable[[NamespacedName], None] = lambda _: None,
        timing: Timing | None = None,
    ) -> None:
        """`on_change` hears which object of which owner changed, was removed, or lost its mark.

        `on_lost` hears which unit needs a kind that can be seen no longer.
        """
        self.client = client
        self.key = key
        self.mapper = Mapper(client)
        self._on_change, self._on_lost = on_change, on_lost
        self._timing = timing
        self._informers: dict[GroupVersionKind, Informer[View]] = {}
        self._tasks: dict[GroupVersionKind, asyncio.Task[None]] = {}
        self._served_as: dict[GroupVersionKind, GroupVersionKind] = {}
        self._absent: set[GroupVersionKind] = set()
        self._needs: dict[NamespacedName, frozenset[GroupVersionKind]] = {}
        self._notes: dict[ObjectId, _Note] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._informers.clear()
        await self._stack.aclose()

    async def need(self, unit: NamespacedName, kinds: Iterable[GroupVersionKind]) -> None:
        """Watch these kinds for a unit and stop watching what no unit needs; returns when each was read once or cannot be.

        Raises:
            TransientError: discovery cannot be read.
        """
        wanted = frozenset(kind for kind in kinds if kind.group_kind not in NEVER_WATCHED)
        self._needs[unit] = wanted
        for kind in wanted:
            if (kind not in self._informers and kind not in self._served_as) or kind in self._absent:
                await self._begin(kind)
        await self._end_unneeded()
        waiting = [informer.settled.wait() for kind in wanted if (informer := self._informer(kind)) is not None]
        if waiting:
            try:
                async with asyncio.timeout(SETTLE_S):
                    await asyncio.gather(*waiting)
            except TimeoutError:
                return

    async def forget(self, unit: NamespacedName) -> None:
        """A unit is gone: what only it needed is watched no longer."""
        self._needs.pop(unit, None)
        await self._end_unneeded()

    async def _begin(self, kind: GroupVersionKind) -> None:
        try:
            resource = await self._resource(kind)
        except KindNotServed:
            self._absent.add(kind)
            return
        except GitopsError:
            return  # its group cannot be seen now: the kind stays unseen, and the next pass asks again
        self._absent.discard(kind)
        self._served_as[kind] = resource.gvk
        if resource.gvk in self._informers:
            return
        group_kind = resource.gvk.group_kind
        informer = Informer(
            self.client,
            resource,
            trim=lambda tree: self._view(group_kind, tree),
            selector=LABEL_OWNER,
            timing=self._timing,
        )
        informer.add_handler(lambda change: self._heard(group_kind, change))
        informer.on_lost = lambda: self._lost(resource.gvk)
        self._informers[resource.gvk] = informer
        self._tasks[resource.gvk] = asyncio.create_task(informer.run(), name=f"informer {resource.gvk}")

    async def _resource(self, kind: GroupVersionKind) -> Resource:
        """How a kind is served; an entry may name a version that is not served any more."""
        try:
            return await self.mapper.resource(kind)
        except KindNotServed:
            return await self.mapper.group_kind(kind.group_kind)

    async def _end_unneeded(self) -> None:
        needed = {self._served_as.get(kind, kind) for kinds in self._needs.values() for kind in kinds}
        for kind in [kind for kind in self._informers if kind not in needed]:
            del self._informers[kind]
            self._served_as = {name: served for name, served in self._served_as.items() if served != kind}
            task = self._tasks.pop(kind)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _informer(self, kind: GroupVersionKind) -> Informer[View] | None:
        return self._informers.get(self._served_as.get(kind, kind))

    def _view(self, kind: GroupKind, tree: JsonObject) -> View:
        """The view of an object; the one of our own write where it is the same version, so that it is made and held once."""
        metadata = object_at(tree, "metadata")
        identity = ObjectId(kind.group, kind.kind, text_at(metadata, "namespace"), text_at(metadata, "name"))
        note = self._notes.get(identity)
        if note is not None and note.seen is not None and note.seen.version == text_at(metadata, "resourceVersion"):
            return note.seen
        return view_of(tree)

    def view(self, identity: ObjectId, kind: GroupVersionKind, tree: JsonObject) -> View:
        """The view of the server's answer; that of the informer where the event came before the answer."""
        informer = self._informer(kind)
        entry = (
            informer.cache.entry(NamespacedName(identity.namespace, identity.name)) if informer is not None else None
        )
        if entry is not None and entry.value.version == text_at(tree, "metadata", "resourceVersion"):
            return entry.value
        return view_of(tree)

    def _heard(self, kind: GroupKind, change: Change[View]) -> None:
        identity = ObjectId(kind.group, kind.kind, change.key.namespace, change.key.name)
        note = self._notes.get(identity)
        if change.kind == "deleted" and note is not None and change.old is not None and change.old.uid == note.uid:
            del self._notes[identity]
        marks = {entry.value.owner for entry in (change.old, change.new) if entry is not None and entry.value.owner}
        for mark in marks:
            owner = OwnerId.of_mark(mark, identity=identity)
            if owner is not None:
                self._on_change(owner, identity)

    def _lost(self, kind: GroupVersionKind) -> None:
        """A kind is out of sight, and its last events may never have come: its definition may be gone (fault H18)."""
        for unit, kinds in list(self._needs.items()):
            if any(self._served_as.get(needed, needed) == kind for needed in kinds):
                self._on_lost(unit)

    def see(self, identity: ObjectId, kind: GroupVersionKind) -> Seen:
        """What is known of an object: a view, None when it is surely not there, else UNSEEN."""
        if kind in self._absent:
            return None
        informer = self._informer(kind)
        cached: Seen = UNSEEN
        if informer is not None and informer.usable:
            cached = informer.cache.get(NamespacedName(identity.namespace, identity.name))
        note = self._notes.get(identity)
        if note is None:
            return cached
        if self.client.clock.boot_s() >= note.until_s or _shows(cached, note):
            del self._notes[identity]
            return cached
        return note.seen

    def note(self, identity: ObjectId, seen: View | None, *, uid: str) -> None:
        """Remember what a write of ours led to, until the cache shows it."""
        self._notes[identity] = _Note(seen, uid, self.client.clock.boot_s() + NOTE_S)

    def note_removal(self, identity: ObjectId, kind: GroupVersionKind, *, left: View | None, uid: str) -> None:
        """Remember what a delete of ours left: nothing, or an object that finalizers hold."""
        informer = self._informer(kind)
        cached = informer.cache.get(NamespacedName(identity.namespace, identity.name)) if informer is not None else None
        # The watch may be faster than the answer: what the cache has lost already is gone, whatever the answer says.
        if left is None or cached is not None:
            self.note(identity, left, uid=uid)

    def marked(self, owner: OwnerId) -> list[Entry]:
        """Objects of the watched kinds that carry the mark of an owner, as entries of a record that nobody has."""
        found = []
        for kind, informer in self._informers.items():
            for key, view in informer.cache.items():
                identity = ObjectId(kind.group, kind.kind, key.namespace, key.name)
                if view.owner == owner.mark(identity):
                    found.append(Entry(identity, kind.version))
        return found

    def is_watched(self, kind: GroupVersionKind) -> bool:
        """Whether changes of that kind are heard of."""
        informer = self._informer(kind)
        return informer is not None and informer.health.state not in (State.FORBIDDEN, State.ABSENT)

    def served_as(self, kind: GroupVersionKind) -> GroupVersionKind:
        """The version under which a kind of an entry is read and deleted."""
        return self._served_as.get(kind, kind)

    def troubles(self, unit: NamespacedName) -> Mapping[GroupVersionKind, str]:
        """Kinds of a unit whose changes are not heard of, with the reason; for a condition that names the missing rule."""
        informers = {kind: self._informer(kind) for kind in self._needs.get(unit, ())}
        return {
            kind: informer.health.error.message
            for kind, informer in informers.items()
            if informer is not None and informer.health.state is State.FORBIDDEN and informer.health.error is not None
        }


def _shows(cached: Seen, note: _Note) -> bool:
    """Whether a cache has caught up with a write.

    Versions of one resource are comparable decimals on the servers that we support; other texts are only compared for
    equality, and the deadline of the note does the rest.
    """
    if isinstance(cached, Unseen):
        return False
    if note.seen is None:
        return cached is None or cached.uid != note.uid
    if cached is None:
        return False
    if cached.uid != note.seen.uid:
        return True
    mine, theirs = note.seen.version, cached.version
    return int(theirs) >= int(mine) if mine.isdecimal() and theirs.isdecimal() else theirs == mine

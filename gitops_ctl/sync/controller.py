"""One pass over one Sync, from caches to one status write (gitops.md, sections 6 to 12).

Level-triggered: a pass compares Git, inventory and cluster and acts on what differs, whatever woke it.  A unit for which
nothing changed costs no API call.  A pass never waits for health or for another unit; it ends, and what it waits for wakes it.
"""

from dataclasses import replace

from gitops_ctl.api.names import FIELD_MANAGER, FIELD_MANAGER_STATUS, FINALIZER
from gitops_ctl.api.sync import Sync
from gitops_ctl.api.watched import request_of
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of, cut, listed
from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, InternalError, NotFound, TransientError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, text_at
from gitops_ctl.kube.events import NOTE_LIMIT, EventKind
from gitops_ctl.kube.lease import LeadershipLost
from gitops_ctl.kube.statuswriter import write_status
from gitops_ctl.sync.cluster import NOTE_S
from gitops_ctl.sync.depends import cycle_of, waits_for
from gitops_ctl.sync.finalize import finalize
from gitops_ctl.sync.inventory import InventoryStore, Unit
from gitops_ctl.sync.reconcile import Found, is_quiet, work
from gitops_ctl.sync.summarise import Outcome, status_of
from gitops_ctl.sync.unit import Memory
from gitops_ctl.sync.world import SYNC, World, WrittenStatus
from gitops_ctl.trust.provenance import AcceptedRevision

DEPENDENCY_S = 30.0
"""How often a unit that waits for another one looks by itself; usually that one wakes it."""

SOURCE_S = 5.0
"""How soon to look again for a source that this process knows nothing of; usually its first pass wakes the Sync."""


class SyncController:
    """The reconcile function of the kind Sync; `world` is shared by all passes."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Bring one Sync up to date; the seconds after which to look again.

        Raises:
            GitopsError: what ended the pass; its status says so already where it can.
        """
        world = self._world
        tree = world.syncs.tree(key)
        if tree is None:
            await self._forget(key)
            return None
        sync = world.syncs.get(key)
        if sync is None:
            return None
        memory = self._memory(key, sync)
        if sync.metadata.deletion_timestamp:
            return await self._finish(sync, tree, memory)
        try:
            outcome, again_s = await self._pass(sync, tree, memory)
        except LeadershipLost:
            raise
        except (Conflict, InternalError):
            memory.done = ()
            raise
        except GitopsError as error:
            memory.done = ()
            await self._write(tree, sync, Outcome(problem=_problem(error), revision=self._newest(sync)))
            raise
        if outcome is not None:
            await self._write(tree, sync, outcome)
        return again_s

    def _memory(self, key: NamespacedName, sync: Sync) -> Memory:
        found = self._world.units.get(key)
        if found is None or found.uid != sync.metadata.uid:
            owner = self._world.listing.owner_of(sync)
            unit = Unit(key.namespace, key.name, sync.metadata.uid, owner)
            found = Memory(key, sync.metadata.uid, InventoryStore(self._world.client, unit))
            found.requested = sync.status.last_handled_reconcile_at or ""
            self._world.units[key] = found
        return found

    async def _forget(self, key: NamespacedName) -> None:
        self._world.units.pop(key, None)
        self._world.statuses.pop(key, None)
        self._world.listing.forget(key)
        await self._world.clusters.forget(key)
        for other in self._world.syncs.all():
            # Whoever waited for an object of the Sync that is gone may have it now.
            self._world.wake(NamespacedName(other.metadata.namespace, other.metadata.name))

    def _newest(self, sync: Sync) -> str:
        revision = self._world.listing.revision_of(sync)
        return revision.commit if revision is not None else ""

    async def _pass(self, sync: Sync, tree: JsonObject, memory: Memory) -> tuple[Outcome | None, float | None]:
        requested = request_of(tree)
        answered = requested if requested != memory.requested else ""
        if sync.spec.suspend:
            memory.requested, memory.done = requested, ()
            return Outcome(suspended=True, requested=answered), None
        revision = self._revision(sync)
        if revision is None:
            return None, SOURCE_S
        if isinstance(revision, Outcome):
            memory.requested = requested
            return replace(revision, requested=answered), None
        waits = self._dependencies(sync, tree)
        if waits:
            memory.requested = requested
            return replace(waits, revision=revision.commit, requested=answered), DEPENDENCY_S
        if not answered and is_quiet(self._world, sync, revision, memory):
            return None, max(0.0, memory.due_s - self._world.clock.boot_s())
        await self._add_finalizer(tree)
        found = Found(sync, tree, revision, memory, forced=bool(answered), progress=self._progress)
        outcome, again_s = await work(self._world, found)
        memory.requested = requested
        return outcome, again_s

    async def _progress(self, sync: Sync, tree: JsonObject, outcome: Outcome) -> None:
        await self._write(tree, sync, outcome)

    def _revision(self, sync: Sync) -> AcceptedRevision | Outcome | None:
        """The revision to apply, or what to say without one; None while a new process has not looked at the source yet."""
        source = NamespacedName(sync.metadata.namespace, sync.spec.source_ref.name)
        found = self._world.listing.revisions.get(source)
        if found is None:
            state = self._world.listing.revisions.state(source)
            if not state and sync.status.conditions:
                return None  # what the process before wrote stands until more is known (promise P8)
            return Outcome(problem=_source_problem(source, state))
        if not found.trusted:
            return Outcome(problem=(ErrorCode.SOURCE_NOT_TRUSTED, f"GitSource {source} has no trust root"))
        if not found.effects_allowed:
            text = f"the accepted revision of GitSource {source} is refused now: nothing is applied from it"
            return Outcome(problem=(ErrorCode.SOURCE_NOT_ACCEPTED, text))
        return found

    def _dependencies(self, sync: Sync, tree: JsonObject) -> Outcome | None:
        """What to say while this Sync waits for others; None when it need not."""
        if not sync.spec.depends_on:
            return None
        namespace = sync.metadata.namespace
        syncs = self._world.syncs

        def edges(name: str) -> list[str]:
            other = syncs.tree(NamespacedName(namespace, name))
            names = list_at(other, "spec", "dependsOn") if other is not None else ()
            return [item for item in names if isinstance(item, str)]

        members = cycle_of(sync.metadata.name, edges=edges)
        if members:
            text = f"dependsOn is a cycle: {listed([*members, members[0]])}"
            return Outcome(problem=(ErrorCode.DEPENDENCY_NOT_READY, text), endless=True)

        def newest(other: JsonObject) -> str:
            parsed = syncs.get(NamespacedName.of(other))
            return self._newest(parsed) if parsed is not None else ""

        waits = listed(waits_for(sync.spec.depends_on, namespace=namespace, find=syncs.tree, newest=newest))
        return Outcome(problem=(ErrorCode.DEPENDENCY_NOT_READY, waits)) if waits else None

    async def _add_finalizer(self, tree: JsonObject) -> None:
        finalizers = list(list_at(tree, "metadata", "finalizers"))
        if FINALIZER in finalizers:
            return
        self._world.require()
        patch: JsonObject = {
            "metadata": {
                "resourceVersion": text_at(tree, "metadata", "resourceVersion"),
                "finalizers": [*finalizers, FINALIZER],
            }
        }
        await self._world.client.patch_merge(_path(tree), patch, manager=FIELD_MANAGER)

    async def _finish(self, sync: Sync, tree: JsonObject, memory: Memory) -> float | None:
        finalizers = [item for item in list_at(tree, "metadata", "finalizers") if item != FINALIZER]
        if len(finalizers) == len(list_at(tree, "metadata", "finalizers")):
            return None
        try:
            outcome, again_s = await finalize(self._world, sync, memory, tree=tree)
        except (LeadershipLost, Conflict, InternalError):
            raise
        except GitopsError as error:
            await self._write(tree, sync, Outcome(problem=_problem(error)))
            raise
        if outcome is not None:
            await self._write(tree, sync, outcome)
            return again_s
        self._world.require()
        patch: JsonObject = {
            "metadata": {
                "resourceVersion": text_at(tree, "metadata", "resourceVersion"),
                "finalizers": finalizers,
            }
        }
        try:
            await self._world.client.patch_merge(_path(tree), patch, manager=FIELD_MANAGER)
        except NotFound:
            return None
        return None

    async def _write(self, tree: JsonObject, sync: Sync, outcome: Outcome) -> None:
        """Write the status once, if it changed, and tell the change of state as an event."""
        world = self._world
        key = NamespacedName(sync.metadata.namespace, sync.metadata.name)
        newest = world.syncs.tree(key)
        previous = object_at(newest if newest is not None else tree, "status")
        written = world.statuses.get(key)
        if written is not None and written.uid == sync.metadata.uid and world.clock.boot_s() < written.until_s:
            previous = written.status
        status = status_of(
            outcome,
            name=sync.metadata.name,
            previous=previous,
            generation=sync.metadata.generation,
            now=world.clock.wall(),
        )
        world.require()
        shown = {**tree, "status": previous}
        stored = await write_status(world.client, SYNC, shown, status, manager=FIELD_MANAGER_STATUS)
        if stored is not None:
            version, until_s = text_at(stored, "metadata", "resourceVersion"), world.clock.boot_s() + NOTE_S
            world.statuses[key] = WrittenStatus(sync.metadata.uid, version, status, until_s)
            self._tell(tree, previous, status, revision=world.listing.revision_of(sync))
        elif written is None:
            version = text_at(tree, "metadata", "resourceVersion")
            world.statuses[key] = WrittenStatus(sync.metadata.uid, version, status, until_s=world.clock.boot_s())

    def _tell(
        self, tree: JsonObject, previous: JsonObject, status: JsonObject, *, revision: AcceptedRevision | None
    ) -> None:
        """One Event for a change of state, with whoever stands behind the commit that it is about."""
        before, after = condition_of(previous, "Ready") or {}, condition_of(status, "Ready") or {}
        same = text_at(before, "reason") == text_at(after, "reason")
        moved = text_at(previous, "lastAppliedRevision") != text_at(status, "lastAppliedRevision")
        if same and not moved:
            return
        kind: EventKind = "Warning" if text_at(after, "status") == "False" else "Normal"
        about = text_at(status, "lastAttemptedRevision")
        signer = revision.signer if revision is not None and revision.commit == about else ""
        by = f"; {about[:12]} is signed by {signer}" if signer else ""
        self._world.emit(
            tree, kind, text_at(after, "reason"), f"{cut(text_at(after, 'message'), limit=NOTE_LIMIT - len(by))}{by}"
        )


def _path(tree: JsonObject) -> str:
    return SYNC.path(text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))


def _source_problem(source: NamespacedName, state: str) -> tuple[ErrorCode, str]:
    if state == ErrorCode.SOURCE_NOT_FOUND.reason:
        return ErrorCode.SOURCE_NOT_FOUND, f"GitSource {source} does not exist"
    if state == ErrorCode.SOURCE_NOT_TRUSTED.reason:
        return ErrorCode.SOURCE_NOT_TRUSTED, f"GitSource {source} has no trust root"
    more = f": {state}" if state and state != ErrorCode.SOURCE_NOT_ACCEPTED.reason else ""
    return ErrorCode.SOURCE_NOT_ACCEPTED, f"GitSource {source} has no accepted revision yet{more}"


def _problem(error: GitopsError) -> tuple[ErrorCode, str]:
    """The reason of Ready for an error that ended a pass, one of those that a Sync may have (gitops.md, section 22.2)."""
    text = f"{error.code.label}: {error.message}; {error.hint}"
    if error.code is ErrorCode.RULE:
        return ErrorCode.HEALTH_CHECK_FAILED, text
    if isinstance(error, (TransientError, BlockedError)) or 2000 <= error.code.value.number < 2100:
        return ErrorCode.CLUSTER_UNREACHABLE, text
    return ErrorCode.SOURCE_NOT_ACCEPTED, text

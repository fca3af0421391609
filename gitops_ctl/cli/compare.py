"""What a Sync would do in its cluster if a checkout were its accepted revision, asked from the server without changing anything.

The checkout takes the place of the accepted revision, so documents, owners, other Syncs of the source and the prune guards are
judged by the code of the manager.  Each object costs a read and a dry run.  What only signed history can say is not judged
here: a consent counts as it is written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from gitops_ctl.api.names import ANNOTATION_ALLOW_PRUNE, ANNOTATION_RECREATE, FIELD_MANAGER
from gitops_ctl.api.sync import Sync
from gitops_ctl.cli.comparison import (
    Action,
    Comparison,
    Item,
    Removals,
    compared_item,
    in_order,
    item_of,
    waiting_items,
)
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import BlockedError, GitopsError, NotFound, TerminalError
from gitops_ctl.core.ids import GroupKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, text_at
from gitops_ctl.documents.identity import uncommitted
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.kube.answers import FieldConflict, KindNotServed, NamespaceMissing, ServerRefused
from gitops_ctl.kube.mapper import Discovery
from gitops_ctl.sync.apply import encoded_body
from gitops_ctl.sync.cluster import LiveCluster
from gitops_ctl.sync.digestview import our_fields, view_of
from gitops_ctl.sync.fieldpath import owns
from gitops_ctl.sync.holding import judged
from gitops_ctl.sync.listing import Listing
from gitops_ctl.sync.model import UNSEEN, Desired, DesiredState, Entry, Mode, OwnerId, Seen
from gitops_ctl.sync.prune import PruneFacts, PruneSpec, Survivors, candidates, guard, survivors
from gitops_ctl.trust.provenance import AcceptedRevision, Provenance

WIDTH: Final = 16
"""Objects that are asked for at a time."""

_NAMESPACE: Final = GroupKind("", "Namespace")
ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared with what.

    Attributes:
        listing: what Syncs ask for, with the checkout as their revision.
        entries: the inventory of the Sync.
        account: whom the server is asked as; None for the user.
    """

    sync: Sync
    cluster: LiveCluster
    listing: Listing
    revision: AcceptedRevision
    entries: Mapping[ObjectId, Entry]
    account: str | None = None


def checkout_revision(source: NamespacedName) -> AcceptedRevision:
    """The checkout in the place of an accepted revision; nobody is known to have introduced anything."""
    return AcceptedRevision(
        source=source,
        uid="",
        url="",
        ref="",
        commit="",
        tree="",
        store_path=Path(),
        provenance=Provenance(),
        generation=0,
        trusted=True,
        effects_allowed=True,
    )


async def compare(question: Question) -> Comparison:
    """Ask the server about every object of the Sync.

    Raises:
        GitopsError: the documents cannot be read as a whole, or discovery does not answer.
    """
    sync = question.sync
    discovery = await question.cluster.mapper.all()
    state = await question.listing.state_of(sync, revision=question.revision, discovery=discovery)
    work = _Comparing(question, discovery, state)
    items = list(waiting_items(state, question.entries))
    if not state.unit_held:
        asked = [desired for desired in state.objects.values() if desired.mode is not Mode.IGNORE]
        items += await _bounded(asked, work.judge)
    removals = await work.removals()
    key = NamespacedName(sync.metadata.namespace, sync.metadata.name)
    return Comparison(key, in_order([*items, *removals.items]), removals)


async def _bounded(values: Iterable[ValueT], ask: Callable[[ValueT], Awaitable[AnswerT]]) -> list[AnswerT]:
    """The answers, `WIDTH` questions at a time."""
    waiting, answers = iter(tuple(values)), list[AnswerT]()

    async def work() -> None:
        for value in waiting:
            answers.append(await ask(value))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(WIDTH):
                group.create_task(work())
    except* GitopsError as errors:
        raise errors.exceptions[0] from None
    return answers


class _Comparing:
    """One comparison; lives for one call of `compare`."""

    def __init__(self, question: Question, discovery: Discovery, state: DesiredState) -> None:
        self._question = question
        self._discovery = discovery
        self._state = state
        self._others: Mapping[ObjectId, set[OwnerId]] | None = None
        self._lock = asyncio.Lock()

    async def judge(self, desired: Desired) -> Item:
        """What would become of one declared object.

        Raises:
            TransientError: the server does not answer.
        """
        try:
            return await self._judge(desired)
        except (KindNotServed, NamespaceMissing) as error:
            return self._without_ground(desired, error)
        except ServerRefused as error:
            return _held(desired, ErrorCode.APPLY_REFUSED, error.message)
        except (BlockedError, TerminalError) as error:
            return item_of(desired, Action.UNKNOWN, reason=error.code.reason, message=error.message)

    def _without_ground(self, desired: Desired, error: NotFound) -> Item:
        """Its kind or its namespace is not there: created with it where the checkout brings it, else it waits."""
        namespace = ObjectId(_NAMESPACE.group, _NAMESPACE.kind, "", desired.id.namespace)
        if isinstance(error, KindNotServed):
            ground, comes = "definition", desired.gvk.group_kind in self._state.definitions
        else:
            ground, comes = "namespace", namespace in self._state.objects
        if comes:
            return item_of(desired, Action.CREATE, message=f"not checked by the server: its {ground} comes with it")
        return _held(desired, ErrorCode.DEPENDENCY_NOT_READY, error.message)

    async def _judge(self, desired: Desired) -> Item:
        cluster, account = self._question.cluster, self._question.account
        path = (await cluster.mapper.resource(desired.gvk)).path(desired.id.namespace, desired.id.name)
        live = await cluster.client.find(path, account=account)
        waits = await self._stranger(desired, live) if live is not None else None
        found = judged(desired, live=live, introducer=uncommitted(cluster.client.clock.wall()))
        if waits is not None:
            return waits
        if isinstance(found, Flaw):
            return _held(desired, found.code, found.message)
        if live is not None and desired.mode is Mode.IF_NOT_PRESENT:
            return item_of(desired, Action.SAME)
        return await self._answered(found, live, path)

    async def _answered(self, desired: Desired, live: JsonObject | None, path: str) -> Item:
        """The item by the server's answer to a dry run."""
        try:
            return compared_item(desired, live, await self._dry_run(path, desired))
        except FieldConflict as error:
            if not self._may_force(desired, live, error):
                return _conflict(desired, error)
            return compared_item(desired, live, await self._dry_run(path, desired, force=True))
        except ServerRefused as error:
            if live is None or not error.immutable_fields:
                raise
            return _immutable(desired, error, uid=text_at(live, "metadata", "uid"))

    async def _dry_run(self, path: str, desired: Desired, *, force: bool = False) -> JsonObject:
        client, account = self._question.cluster.client, self._question.account
        body = encoded_body(desired)
        return await client.apply(path, body, manager=FIELD_MANAGER, force=force, dry_run=True, account=account)

    def _may_force(self, desired: Desired, live: JsonObject | None, error: FieldConflict) -> bool:
        """Whether the manager would take the fields: by mode, because they are drift, or because they are ours as well."""
        entry = self._question.entries.get(desired.id)
        if desired.mode is Mode.OVERRIDE or (entry is not None and entry.declared == desired.digest):
            return True
        ours = our_fields(live or EMPTY)
        return all(owns(ours, cause.field) for cause in error.causes)

    async def _stranger(self, desired: Desired, live: JsonObject) -> Item | None:
        """The item of an object that another Sync has and still asks for."""
        owner = OwnerId.of_mark(view_of(live).owner, identity=desired.id)
        if owner is None or owner == desired.owner:
            return None
        if owner.cluster == desired.owner.cluster and owner not in (await self.others()).get(desired.id, set()):
            return None
        text = f"belongs to Sync {owner.key} of GitSource {owner.namespace}/{owner.source}"
        return _held(desired, ErrorCode.OWNED_ELSEWHERE, text)

    async def others(self) -> Mapping[ObjectId, set[OwnerId]]:
        """What other Syncs of the namespace ask for in the checkout; read once, when somebody wants to know."""
        async with self._lock:
            if self._others is None:
                listing = self._question.listing
                self._others = await listing.listed_by_others(self._question.sync, discovery=self._discovery)
            return self._others

    async def removals(self) -> Removals:
        """What no document stands behind any more, by the guards of a prune."""
        found = candidates(self._state, self._question.entries.values())
        if not found:
            return Removals()
        if not self._state.complete:
            text = "nothing is pruned while a document of the unit has an error"
            return Removals(tuple(_gone(entry.id, Action.KEPT, text) for entry in found), blocked=text)
        seen = dict(await _bounded(found, self._see))
        others = await self.others()
        spec = self._question.sync.spec.prune
        facts = PruneFacts(
            self._question.listing.owner_of(self._question.sync),
            lambda entry: seen[entry.id],
            lambda item: bool(others.get(item)),
            live_uids=frozenset(
                entry.uid for item, entry in self._question.entries.items() if item in self._state.objects
            )
            - {""},
            enabled=spec.enabled,
        )
        sorted_ = survivors(found, facts=facts)
        total = len({*self._question.entries, *self._state.objects})
        limits = PruneSpec(spec.enabled, spec.max_percent, spec.allow_empty, await self._consent())
        guarded = guard(sorted_.doomed, remaining=len(self._state.lists), total=total, spec=limits)
        digest = guarded.digest if sorted_.doomed else ""
        return Removals(tuple(_removed(sorted_, blocked=guarded.message)), digest, guarded.message)

    async def _see(self, entry: Entry) -> tuple[ObjectId, Seen]:
        cluster = self._question.cluster
        try:
            resource = await cluster.mapper.group_kind(entry.id.group_kind)
            path = resource.path(entry.id.namespace, entry.id.name)
            live = await cluster.client.find(path, account=self._question.account)
        except KindNotServed:
            return entry.id, None
        except (BlockedError, TerminalError):
            return entry.id, UNSEEN
        return entry.id, view_of(live) if live is not None else None

    async def _consent(self) -> str:
        """The set that the document of the Sync names in the checkout."""
        own = await self._question.listing.document_of(self._question.sync, discovery=self._discovery)
        return text_at(own.tree, "metadata", "annotations", ANNOTATION_ALLOW_PRUNE) if own is not None else ""


def _removed(found: Survivors, *, blocked: str) -> Iterable[Item]:
    for deletion in found.doomed:
        if blocked:
            yield _gone(deletion.entry.id, Action.KEPT, "would be pruned; the set needs a consent")
        else:
            yield _gone(deletion.entry.id, Action.PRUNE)
    for name, reason in found.kept.items():
        yield _gone(name, Action.KEPT, reason)
    for name in found.unknown:
        yield _gone(name, Action.UNKNOWN, "left Git; whether it is still there cannot be seen")
    for name in found.terminating:
        yield _gone(name, Action.KEPT, "is being deleted")


def _gone(name: ObjectId, action: Action, message: str = "") -> Item:
    return Item(name, action, message=message)


def _held(desired: Desired, code: ErrorCode, message: str) -> Item:
    return item_of(desired, Action.HELD, reason=code.reason, message=message)


def _conflict(desired: Desired, error: FieldConflict) -> Item:
    fields = listed([f"{cause.field} of {cause.manager or 'another manager'}" for cause in error.causes])
    return _held(desired, ErrorCode.FIELD_CONFLICT, f"would take {fields}")


def _immutable(desired: Desired, error: ServerRefused, *, uid: str) -> Item:
    fields = listed(error.immutable_fields)
    if text_at(desired.tree, "metadata", "annotations", ANNOTATION_RECREATE) == uid:
        return item_of(
            desired, Action.RECREATE, message=f"{fields} cannot change in place; the consent names this object"
        )
    text = f"{fields} cannot change in place; consent to recreate it is {ANNOTATION_RECREATE}: {uid}"
    return _held(desired, ErrorCode.RECREATE_REQUIRED, text)

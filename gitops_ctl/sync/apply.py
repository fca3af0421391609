"""Server-side apply of one object and of one wave (gitops.md, section 7).

The first request never forces.  What the server answers decides: a conflict about fields that were ours is drift and is
forced, any other holds the object; an immutable field needs a signed consent for the live UID; a namespace or a kind that is
not there is waited for.  An error belongs to one object, and the others go on.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gitops_ctl.api.names import ANNOTATION_RECREATE, FIELD_MANAGER
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, TransientError, Unavailable
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, text_at
from gitops_ctl.kube.answers import (
    AlreadyExists,
    FieldConflict,
    KindNotServed,
    NamespaceMissing,
    ServerRefused,
)
from gitops_ctl.kube.mapper import Mapper, Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.creation import creation_of, keep_safe, make_safe
from gitops_ctl.sync.desired import is_consented
from gitops_ctl.sync.digestview import our_fields, view_of
from gitops_ctl.sync.fieldpath import declares, owns
from gitops_ctl.sync.model import Applied, Apply, Desired, Entry, Held, Mode, OwnerId, View, Why
from gitops_ctl.sync.prune import propagation_of
from gitops_ctl.sync.takeover import migration_patch, needs_takeover, takeover_patch

WIDTH: Final = 16
"""Applies of one stage at a time."""

NOT_SERVED_YET_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Waits after a 404 of a kind that discovery shows: its path follows Established by some milliseconds (S10)."""

RECREATION_S: Final = 10.0
"""How long an object may take to go before the pass goes on without it."""

OUTAGE: Final = 16
"""So many transient failures without one success in between mean that the server is away."""

TAKEOVERS: Final = 5
"""How often the take-over from client-side tools is tried while somebody else writes to the object."""

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom a unit applies.

    Attributes:
        account: user name of the Sync's ServiceAccount; every request of the unit is made as it.  None, for commands: the
            identity of the client itself.
        before: what the unit declared of an object when it last applied it, None when that is not known; asked only when
            an apply meets a conflict.
        lists: whether another owner asks for an object.
        go_on: False as soon as a newer revision waits or the process ends; asked wherever something is waited for.
        view: what is kept of the server's answer.
    """

    client: KubeClient
    mapper: Mapper
    clock: Clock
    account: str | None
    before: Callable[[ObjectId], Awaitable[Desired | None]]
    lists: Callable[[OwnerId, ObjectId], bool]
    go_on: Callable[[], bool]
    view: Callable[[Desired, JsonObject], View] = lambda _desired, tree: view_of(tree)


@dataclass(slots=True)
class Outage:
    """Counts failures in a row, over all requests of one pass."""

    failures: int = 0
    last: GitopsError | None = None

    def note(self, applied: Applied) -> None:
        self.failures = self.failures + 1 if applied.transient else 0
        if self.failures >= OUTAGE:
            raise Unavailable(
                applied.held.message if applied.held else "the API server does not answer",
                code=ErrorCode.CLUSTER_UNREACHABLE,
            )


def encoded_body(desired: Desired) -> bytes:
    """The JSON that is sent for an object."""
    return _encode(desired.body())


async def apply_wave(
    actions: Sequence[Apply],
    *,
    target: Target,
    done: Callable[[Applied], None],
    outage: Outage,
    width: int = WIDTH,
) -> None:
    """Apply a wave, `width` objects at a time; `done` hears of each, in the order in which they end.

    The target's `go_on` is asked before each object; when it says no, what is in flight is finished and nothing else is begun.

    Raises:
        Unavailable: the server does not answer; objects that were not tried are not reported.
    """
    waiting = iter(actions)

    async def work() -> None:
        for action in waiting:
            if not target.go_on():
                return
            applied = await apply_one(action, target=target)
            done(applied)
            outage.note(applied)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(actions))):
                group.create_task(work())
    except* GitopsError as errors:
        raise errors.exceptions[0] from None


async def apply_one(action: Apply, *, target: Target) -> Applied:
    """Apply one object and say what came of it; never raises an error of ours."""
    try:
        return await _Attempt(action, target).run()
    except KindNotServed as error:
        return _held(action, ErrorCode.KIND_NOT_SERVED, error.message, retry=True)
    except NamespaceMissing as error:
        return _held(action, ErrorCode.DEPENDENCY_NOT_READY, error.message, retry=True)
    except TransientError as error:
        held = _held(action, error.code, error.message, retry=True, reason=ErrorCode.APPLY_REFUSED.reason)
        return Applied(action, held=held.held, retry=True, transient=True)
    except BlockedError as error:
        return _held(action, error.code, error.message, retry=True, reason=ErrorCode.APPLY_REFUSED.reason)
    except GitopsError as error:
        return _held(action, ErrorCode.APPLY_REFUSED, error.message)


def _held(action: Apply, code: ErrorCode, message: str, *, retry: bool = False, reason: str = "") -> Applied:
    desired = action.desired
    held = Held(desired.id, code, message, desired.file, desired.line, reason)
    return Applied(action, held=held, retry=retry)


@dataclass
class _Attempt:
    """One object on its way; lives for one call of `apply_one`."""

    action: Apply
    target: Target
    took_from: tuple[str, ...] = field(default=())

    async def run(self) -> Applied:
        desired = self.action.desired
        resource = await self.target.mapper.resource(desired.gvk)
        path = resource.path(desired.id.namespace, desired.id.name)
        if self.action.look_first or desired.mode is Mode.IF_NOT_PRESENT:
            found = await self.target.client.find(path, account=self.target.account)
            if found is not None:
                stranger = self._stranger(found)
                if stranger is not None:
                    return stranger
                if desired.mode is Mode.IF_NOT_PRESENT:
                    # What we created once stays in the inventory; what somebody else created never comes into it.
                    live = self.target.view(desired, found)
                    return Applied(self.action, live if live.owner == desired.owner.mark(desired.id) else None)
        await self._make_safe(path)
        return await self._apply(path, encoded_body(desired), resource)

    async def _make_safe(self, path: str) -> None:
        """What has to come before the document; whether the object is there is read from the server itself."""
        creation = creation_of(self.action.desired)
        if creation is None:
            return

        async def send(body: JsonObject, manager: str) -> JsonObject:
            return await self._send(path, _encode(body), manager=manager)

        live = await self.target.client.find(path, account=self.target.account)
        if live is None:
            await make_safe(creation, self.action.desired, send=send)
        else:
            await keep_safe(creation, live, send=send)

    def _stranger(self, found: JsonObject) -> Applied | None:
        identity = self.action.id
        owner = OwnerId.of_mark(view_of(found).owner, identity=identity)
        if owner is None or owner == self.action.desired.owner or not self.target.lists(owner, identity):
            return None
        return _held(self.action, ErrorCode.OWNED_ELSEWHERE, f"belongs to Sync {owner.key}: owner id {owner}")

    async def _apply(self, path: str, body: bytes, resource: Resource) -> Applied:
        try:
            answer = await self._send_migrated(path, body, resource)
        except FieldConflict as error:
            if not await self._may_force(error, path):
                return self._conflict(error)
            self.took_from = tuple(sorted({cause.manager for cause in error.causes if cause.manager}))
            answer = await self._send(path, body, force=True)
        except ServerRefused as error:
            if error.immutable_fields:
                return await self._recreate(path, body, resource, error)
            raise
        if self.action.why is Why.NEW and needs_takeover(answer):
            try:
                answer = await self._take_over(path, body, answer)
            except FieldConflict as error:
                return self._conflict(error, retry=True)
        return Applied(self.action, self.target.view(self.action.desired, answer), took_from=self.took_from)

    async def _send_migrated(self, path: str, body: bytes, resource: Resource) -> JsonObject:
        """Apply; where the managers' entries name a version that is gone, after they were renamed (S11)."""
        dropped: set[str] = set()
        while True:
            try:
                return await self._send(path, body)
            except ServerRefused as error:
                if not error.dropped_version or error.dropped_version in dropped:
                    raise
                dropped.add(error.dropped_version)
                if not await self._migrate(path, resource, dropped=dropped):
                    raise

    async def _send(self, path: str, body: bytes, *, force: bool = False, manager: str = FIELD_MANAGER) -> JsonObject:
        """Apply, with some patience for a path that is not served yet, and once more after a lost race."""
        client, account = self.target.client, self.target.account
        for wait_s in (*NOT_SERVED_YET_S, 0.0):
            try:
                return await client.apply(path, body, manager=manager, force=force, account=account)
            except KindNotServed:
                if not wait_s:
                    await self.target.mapper.refresh()
                    raise
                await self.target.clock.sleep(wait_s)
            except FieldConflict:
                raise
            except Conflict:
                if not wait_s:
                    raise
                await self.target.clock.sleep(wait_s)
        raise AssertionError("the last round returns or raises")

    async def _may_force(self, error: FieldConflict, path: str) -> bool:
        """Whether every field in conflict was ours before, or the document asks for all of them."""
        if self.action.was_ours or self.action.desired.mode is Mode.OVERRIDE:
            return True
        before = await self.target.before(self.action.id)
        sent = before.body() if before is not None else EMPTY
        others = [cause.field for cause in error.causes if not declares(sent, cause.field)]
        if not others:
            return True
        # A field that somebody applied with the value that we had applied is still in our entry.
        live = await self.target.client.find(path, account=self.target.account)
        ours = our_fields(live or EMPTY)
        return all(owns(ours, field) for field in others)

    def _conflict(self, error: FieldConflict, *, retry: bool = False) -> Applied:
        fields = listed([f"{cause.field} of {cause.manager or 'another manager'}" for cause in error.causes])
        return _held(self.action, ErrorCode.FIELD_CONFLICT, f"would take {fields}", retry=retry)

    async def _take_over(self, path: str, body: bytes, answer: JsonObject) -> JsonObject:
        """Make the fields of client-side tools ours and apply again, so that those go which Git does not declare."""
        client, account = self.target.client, self.target.account
        for _ in range(TAKEOVERS):
            try:
                await client.patch_json(path, takeover_patch(answer), manager=FIELD_MANAGER, account=account)
            except Conflict:  # somebody wrote in between
                answer = await client.get(path, account=account)
                continue
            return await self._send(path, body)
        raise TransientError("is written to all the time: the fields of client-side tools could not be taken over")

    async def _migrate(self, path: str, resource: Resource, *, dropped: Set[str]) -> bool:
        """Rename dropped versions in the managers' entries; whether there was anything to rename."""
        client, account = self.target.client, self.target.account
        live = await client.find(path, account=account)
        if live is None:
            return False
        known = await self.target.mapper.all()
        kind = resource.gvk.group_kind
        # Discovery lists a version for some moments after the handler of its definition has let it go.
        served = [
            gvk.api_version for gvk in known.resources if gvk.group_kind == kind and gvk.api_version not in dropped
        ]
        patch = migration_patch(live, served=served)
        if patch:
            await client.patch_json(path, patch, manager=FIELD_MANAGER, account=account)
        return bool(patch)

    async def _recreate(self, path: str, body: bytes, resource: Resource, error: ServerRefused) -> Applied:
        """Delete and create again, when a signed consent names the live UID and the new object would be accepted."""
        client, account, desired = self.target.client, self.target.account, self.action.desired
        live = await client.find(path, account=account)
        uid = text_at(live or {}, "metadata", "uid")
        if not is_consented(desired, ANNOTATION_RECREATE, uid):
            fields = listed(error.immutable_fields)
            text = f"{fields} cannot change in place; consent to recreate it is {ANNOTATION_RECREATE}: {uid}"
            return _held(self.action, ErrorCode.RECREATE_REQUIRED, text)
        collection = resource.path(desired.id.namespace)
        # The name is taken by the object that goes; a body that would be refused never gets as far as that check (S08).
        with contextlib.suppress(AlreadyExists):
            await client.create(collection, body, manager=FIELD_MANAGER, dry_run=True, account=account)
        view = view_of(live or {})
        propagation = propagation_of(Entry(desired.id, desired.gvk.version, uid), view)
        await client.delete(path, uid=uid, propagation=propagation, account=account)
        if not await self._is_gone(path, uid):
            return _held(self.action, ErrorCode.DEPENDENCY_NOT_READY, "waits for the old object to go", retry=True)
        await self._make_safe(path)
        return Applied(self.action, view_of(await self._send(path, body)), recreated=uid)

    async def _is_gone(self, path: str, uid: str) -> bool:
        deadline_s = self.target.clock.boot_s() + RECREATION_S
        while True:
            live = await self.target.client.find(path, account=self.target.account)
            if live is None or text_at(live, "metadata", "uid") != uid:
                return True
            if self.target.clock.boot_s() >= deadline_s or not self.target.go_on():
                return False
            await self.target.clock.sleep(0.1)


async def dry_run_wave(actions: Iterable[Apply], *, target: Target, width: int = WIDTH) -> tuple[Applied, ...]:
    """Ask the server about a wave without changing anything; the answer lists the objects that it refuses."""
    refused: list[Applied] = []
    waiting = iter(tuple(actions))

    async def ask(action: Apply) -> None:
        desired = action.desired
        resource = await target.mapper.resource(desired.gvk)
        path = resource.path(desired.id.namespace, desired.id.name)
        try:
            await target.client.apply(
                path, encoded_body(desired), manager=FIELD_MANAGER, dry_run=True, account=target.account
            )
        except ServerRefused as error:
            if not error.immutable_fields:
                refused.append(_held(action, ErrorCode.APPLY_REFUSED, f"dry run: {error.message}"))

    async def work() -> None:
        for action in waiting:
            try:
                await ask(action)
            except GitopsError:
                continue  # the apply itself meets the same error and says so

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(work())
    return tuple(refused)

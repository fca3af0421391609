"""The GitSource controller: poll, fetch, judge, record, hand over; one pass per source at a time.

The order that everything rests on: the accepted revision is written to the status first and handed to the Syncs second
(gitops.md, section 4.5), so that no effect can come from a revision that a restarted manager would not know.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

import structlog

from gitops_ctl.api.gitops import GitSource, parse_git_source
from gitops_ctl.api.names import FIELD_MANAGER_STATUS, POLICY_PATH
from gitops_ctl.api.watched import request_of
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.core.errors import BlockedError, GitopsError, InternalError, NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, text_at
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.forge import access
from gitops_ctl.git.repository import CloneCache, Collector, Snapshot
from gitops_ctl.git.transport import FetchLimits, FetchRequest, GitTransport, Ref, RemoteTip
from gitops_ctl.git.tree import TreeLimits
from gitops_ctl.git.url import GitUrl, parse_url
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.expectations import has_reached
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.statuswriter import swap_status
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.source.acceptance import judged_facts, observe, range_request
from gitops_ctl.source.durable import acceptance_of, facts_of, first_seen_of, observed_of, silent_s_of
from gitops_ctl.source.forge_reviews import ReaderOf, Reading
from gitops_ctl.source.judging import Judged, SourceCaches, holds, judge
from gitops_ctl.source.model import Facts
from gitops_ctl.source.plan import PENDING_RETRY_S, next_poll_s, old_tip, retry_s, reviews_retry_s, stale_after_s
from gitops_ctl.source.reviewing import judge_reviewed
from gitops_ctl.source.summarise import ACCEPTED, IN_PROGRESS, error_text, status_of
from gitops_ctl.trust.chain import VERIFIER_VERSION, RangeRequest, VerdictCache
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

PROGRESS_EVERY_S: Final = 10.0
"""A long range writes its counters at most this often (gitops.md, section 12.2)."""

TROUBLED: Final = 3
"""Sources whose last pass failed that are tried at one time: servers that hang never hold every worker (promise P10)."""

TROUBLED_S: Final = 1.0

_NOT_TRUSTED: Final = ErrorCode.SOURCE_NOT_TRUSTED.reason
_NOT_FOUND: Final = ErrorCode.SOURCE_NOT_FOUND.reason

log = structlog.get_logger(__name__)

Lookup = Callable[[NamespacedName], JsonObject | None]


class Git(GitTransport, Collector, Protocol):
    """What a source needs of Git: ask, fetch, and keep the copy small."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a pass reaches the world through."""

    client: KubeClient
    resource: Resource
    git: Git
    clones: CloneCache
    revisions: AcceptedRevisions
    events: EventRecorder
    clock: Clock
    draw: Callable[[], float]
    require_leader: Callable[[], None]
    reviews: ReaderOf


@dataclass(slots=True)
class _Memory:
    """What is remembered about one source between passes; a restart begins with the status alone.

    Attributes:
        poked, hinted: somebody asked for a poll; the pass at work answers that.
        judged: inputs of the last verdict that does not clear by itself; the same inputs are not judged twice.
        unread: readings of a forge's reviews that failed in a row; `unread_error` is the last one.
        readings: what the forge said in the last pass, by merge.
        lease: keeps the generation of the copy that the Syncs read.
        since_s: boot clock of the last successful poll, or of the first pass.
        stored: the object as our last write left it; read until the cache shows that write.
    """

    uid: str
    caches: SourceCaches
    facts: Facts
    generation: int = -1
    failures: int = 0
    unread: int = 0
    unread_error: GitopsError | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    poll_due_s: float = 0.0
    poked: bool = False
    hinted: bool = False
    since_s: float = 0.0
    judged: tuple[object, ...] = ()
    progress_s: float = float("-inf")
    lease: Snapshot | None = None
    stored: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What a pass found: facts for the status, and what to hand over when they are stored.

    `is_about_tip` is False when the accepted revision was looked at without asking the server; `may_be_reviewed` when reviews
    were read and did not suffice: they are read again at each poll, because another one may come.
    """

    facts: Facts
    judged: Judged | None = None
    request: FetchRequest | None = None
    is_about_tip: bool = True
    may_be_reviewed: bool = False


class SourceController:
    """Reconciles GitSources.  `poke` asks for a poll now: what webhooks do."""

    def __init__(self, ports: Ports, *, lookup: Lookup, documents: DocumentCache, allow_file: bool = False) -> None:
        """`lookup` reads the informer's cache; `documents` is shared with the Syncs; `allow_file` is the local flag."""
        self._ports = ports
        self._lookup = lookup
        self._documents = documents
        self._allow_file = allow_file
        self._memories: dict[NamespacedName, _Memory] = {}
        self._troubled = 0

    def poke(self, key: NamespacedName) -> None:
        """The next pass of this source polls, whatever its interval says."""
        if (memory := self._memories.get(key)) is not None:
            memory.poked = True

    async def webhook_secret(self, key: NamespacedName) -> bytes | None:
        """The secret that a delivery for this source must be signed with; None when it takes none."""
        tree = self._lookup(key)
        if tree is None:
            return None
        try:
            return await access.read_webhook_secret(self._ports.client, source=parse_git_source(tree))
        except GitopsError as error:
            log.warning("webhook secret not read", source=str(key), code=error.code.label)
            return None

    async def reconcile(self, key: NamespacedName) -> float | None:
        """One pass; gives the seconds until the next one.

        Raises:
            Refused: the object has wrong fields; nothing can be said in its status.
            TransientError, Conflict: the status could not be written; nothing was handed over, and the next pass polls.
        """
        tree = self._lookup(key)
        if tree is None or text_at(tree, "metadata", "deletionTimestamp"):
            self._forget(key)
            return None
        tree = self._newest(key, tree)
        source = parse_git_source(tree)
        generation = int_at(tree, "metadata", "generation")
        memory = self._memory_of(key, source, uid=text_at(tree, "metadata", "uid"))
        requested = request_of(tree)
        if not self._is_due(memory, generation=generation, requested=requested):
            return max(0.0, memory.poll_due_s - self._ports.clock.boot_s())
        if (memory.failures or memory.unread) and self._troubled >= TROUBLED:
            return TROUBLED_S
        memory.hinted, memory.poked, memory.generation = memory.poked, False, generation
        facts = self._remembered(source, memory=memory, requested=requested)
        troubled = int(memory.failures > 0 or memory.unread > 0)
        self._troubled += troubled
        try:
            found, delay_s = await self._attempt(key, source=source, memory=memory, facts=facts)
            await self._record(tree, source=source, facts=found.facts, memory=memory)
        except GitopsError:
            memory.poked = True
            raise
        finally:
            self._troubled -= troubled
        memory.facts = found.facts
        self._deliver(key, tree, found, memory=memory)
        memory.poll_due_s = self._ports.clock.boot_s() + delay_s
        return delay_s

    def _deliver(self, key: NamespacedName, tree: JsonObject, found: _Pass, *, memory: _Memory) -> None:
        """Tell the Syncs what the pass means to them; only after the status holds it."""
        revisions = self._ports.revisions
        if not found.facts.trusted and revisions.state(key) != _NOT_TRUSTED:
            revisions.withdraw(key, reason=_NOT_TRUSTED)
        if found.judged is not None and found.request is not None:
            self._hand_over(tree, found, memory=memory)
            inputs = self._inputs(memory.generation, found.facts, found.judged)
            final = found.is_about_tip and not found.facts.pending and not found.may_be_reviewed
            memory.judged = inputs if final else ()
        elif revisions.get(key) is None and revisions.state(key) in ("", _NOT_FOUND):
            revisions.withdraw(key, reason=ErrorCode.SOURCE_NOT_ACCEPTED.reason)

    def _forget(self, key: NamespacedName) -> None:
        memory = self._memories.pop(key, None)
        self._ports.revisions.withdraw(key, reason=_NOT_FOUND)
        if memory is not None and memory.lease is not None:
            memory.lease.close()

    def _memory_of(self, key: NamespacedName, source: GitSource, *, uid: str) -> _Memory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != uid:
            caches = SourceCaches(VerdictCache(), self._documents)
            interval_s, now = to_seconds(source.spec.interval), self._ports.clock.wall()
            silent_s = silent_s_of(source.status, interval_s=interval_s, now=now)
            facts = facts_of(source.status, trusted=source.spec.trust is not None)
            memory = _Memory(uid, caches, facts, since_s=self._ports.clock.boot_s() - silent_s)
            self._memories[key] = memory
        return memory

    def _newest(self, key: NamespacedName, tree: JsonObject) -> JsonObject:
        """The object as the cache shows it, or as our own last write left it when the cache is behind that."""
        memory = self._memories.get(key)
        if memory is None or text_at(memory.stored, "metadata", "uid") != text_at(tree, "metadata", "uid"):
            return tree
        shown, written = (text_at(object, "metadata", "resourceVersion") for object in (tree, memory.stored))
        return tree if has_reached(shown, wanted=written) else memory.stored

    def _remembered(self, source: GitSource, *, memory: _Memory, requested: str) -> Facts:
        """What the last pass found, with the durable part as it is stored: another manager may have moved it (H13)."""
        status = source.status
        facts = replace(
            memory.facts,
            trusted=source.spec.trust is not None,
            suspended=source.spec.suspend,
            first_seen=first_seen_of(status),
            observed=observed_of(status),
            accepted=acceptance_of(status),
            requested_at=requested or memory.facts.requested_at,
            error=None,
        )
        if facts.accepted != memory.facts.accepted:
            memory.judged = ()
        return facts

    def _is_due(self, memory: _Memory, *, generation: int, requested: str) -> bool:
        return (
            memory.poked
            or memory.generation != generation
            or requested not in ("", memory.facts.requested_at)
            or self._ports.clock.boot_s() >= memory.poll_due_s
        )

    async def _attempt(
        self, key: NamespacedName, *, source: GitSource, memory: _Memory, facts: Facts
    ) -> tuple[_Pass, float]:
        """What this pass found and the seconds until the next; no error of the world leaves."""
        interval_s = to_seconds(source.spec.interval)
        try:
            found = await self._pass(source, memory=memory, facts=facts)
            memory.failures = 0
            delay_s = self._pace(found.facts, memory=memory, interval_s=interval_s)
        except InternalError:
            raise
        except GitopsError as error:
            memory.failures += 1
            if error.code is ErrorCode.REPOSITORY_DAMAGED:
                self._ports.clones.discard(self._repository(source, parse_url(source.spec.url, allow_file=True)))
            found = await self._from_copy(source, memory=memory, facts=facts)
            found = replace(found, facts=replace(found.facts, error=error))
            delay_s = retry_s(error, failures=memory.failures, interval_s=interval_s, draw=self._ports.draw())
            log.info("source not polled", source=str(key), code=error.code.label, error=error_text(error))
        silent_s = self._ports.clock.boot_s() - memory.since_s
        stale = not facts.suspended and silent_s > stale_after_s(interval_s)
        seen, now = found.facts.observed, self._ports.clock.wall()
        old = "" if facts.suspended else old_tip(source.spec.max_tip_age, first_seen=seen.at if seen else None, now=now)
        told = replace(found.facts, stale_since_s=silent_s if stale else None, old_tip=old)
        return replace(found, facts=told), delay_s

    def _pace(self, facts: Facts, *, memory: _Memory, interval_s: float) -> float:
        delay_s = next_poll_s(interval_s, draw=self._ports.draw())
        if facts.verdict == IN_PROGRESS:
            return 0.0
        if memory.unread:
            asked_s = getattr(memory.unread_error, "retry_after_s", None)
            return reviews_retry_s(memory.unread, draw=self._ports.draw(), retry_after_s=asked_s)
        return min(delay_s, PENDING_RETRY_S) if facts.pending else delay_s

    async def _pass(self, source: GitSource, *, memory: _Memory, facts: Facts) -> _Pass:
        request = await self._fetch_request(source)
        if source.spec.suspend:
            return await self._again(source, request, memory=memory, facts=facts)
        # A push was announced: the fetch asks for the ref as well, and a process less is started.
        if not memory.hinted:
            tip = await self._ports.git.resolve(request)
            if tip.commit is None:
                ref = request.ref.full
                raise NotFound(f"the server has no {ref}", code=ErrorCode.REF_NOT_FOUND, subject=request.url.display)
            facts = observe(facts, commit=tip.commit, now=self._ports.clock.wall())
            if self._is_judged(memory, tip):
                return _Pass(facts)
        fetched = await self._ports.git.fetch(request)
        memory.since_s = self._ports.clock.boot_s()
        request = await self._collected(source, request, facts=facts)
        tip = RemoteTip(fetched.tip, fetched.tag)
        facts = observe(facts, commit=fetched.tip, now=self._ports.clock.wall())
        if self._is_judged(memory, tip):
            return _Pass(facts)
        return await self._judge(source, request, tip=tip, memory=memory, facts=facts)

    def _is_judged(self, memory: _Memory, tip: RemoteTip) -> bool:
        """Whether the last verdict is about this tip, under the same conditions; the poll was a success then."""
        known = memory.judged == (memory.generation, tip.commit, tip.tag, VERIFIER_VERSION)
        if known:
            memory.since_s = self._ports.clock.boot_s()
        return known

    @staticmethod
    def _inputs(generation: int, facts: Facts, judged: Judged) -> tuple[object, ...]:
        """Everything that a verdict depends on and that can change without a new process (fault X01)."""
        assert facts.observed is not None
        return (generation, facts.observed.revision, judged.tag, VERIFIER_VERSION)

    async def _fetch_request(self, source: GitSource) -> FetchRequest:
        spec, client = source.spec, self._ports.client
        url = parse_url(spec.url, allow_file=self._allow_file)
        return FetchRequest(
            url=url,
            repository=self._repository(source, url),
            ref=_ref_of(source),
            known=spec.trust.root.commit if spec.trust else None,
            credentials=await access.read_credentials(client, source=source),
            ca=await access.read_authorities(client, source=source),
            known_hosts=await access.read_known_hosts(client, source=source),
            limits=FetchLimits(
                objects=spec.limits.objects, bytes=spec.limits.bytes, timeout_s=to_seconds(spec.timeout)
            ),
            shallow_only=spec.trust is None,
        )

    def _repository(self, source: GitSource, url: GitUrl) -> Path:
        secret = source.spec.credentials_secret_ref.name if source.spec.credentials_secret_ref else ""
        # Two tenants share a copy only when both read the repository without credentials.
        tenant = f"{source.metadata.namespace}/{secret}" if secret else ""
        return self._ports.clones.path_for(url, tenant=tenant)

    async def _collected(self, source: GitSource, request: FetchRequest, *, facts: Facts) -> FetchRequest:
        """The same request on a smaller copy, when the present one has grown (fault G11)."""
        root = (source.spec.trust.root.commit,) if source.spec.trust else ()
        accepted = (facts.accepted.revision,) if facts.accepted else ()
        git = self._ports.git
        repository = await self._ports.clones.collect(request, keep=(*root, *accepted), collector=git)
        return replace(request, repository=repository)

    async def _from_copy(self, source: GitSource, *, memory: _Memory, facts: Facts) -> _Pass:
        """After a restart while the server cannot be polled: what was accepted is handed over from the local copy.

        Drift repair at the accepted revision needs no server, and a new root needs none to stop the effects of what it does
        not contain.  Whatever is wrong with the copy, the poll's error is told.
        """
        accepted = facts.accepted
        if accepted is None or source.spec.trust is None:
            return _Pass(facts)
        if memory.lease is not None and not _is_due_again(source, facts):
            return _Pass(facts)
        try:
            url = parse_url(source.spec.url, allow_file=self._allow_file)
            repository = self._repository(source, url)
            if not await asyncio.to_thread(holds, repository, accepted.revision):
                return _Pass(facts)
            request = FetchRequest(url=url, repository=repository, ref=_ref_of(source))
            tip = RemoteTip(accepted.revision, accepted.tag or None)
            found = await self._judge(source, request, tip=tip, memory=memory, facts=facts)
        except GitopsError as error:
            log.info("local copy not usable", code=error.code.label)
            return _Pass(facts)
        return replace(found, is_about_tip=False)

    async def _again(self, source: GitSource, request: FetchRequest, *, memory: _Memory, facts: Facts) -> _Pass:
        """While suspended nothing is fetched; what was accepted is handed over again after a restart."""
        if facts.accepted is None or source.spec.trust is None:
            return _Pass(facts)
        if memory.judged and not _is_due_again(source, facts):
            return _Pass(facts)
        if not request.repository.exists():
            raise BlockedError(
                f"{facts.accepted.revision} is not in the local copy, and nothing is fetched while suspended",
                code=ErrorCode.SUSPENDED,
            )
        tip = RemoteTip(facts.accepted.revision, facts.accepted.tag or None)
        return await self._judge(source, request, tip=tip, memory=memory, facts=facts)

    async def _judge(
        self, source: GitSource, request: FetchRequest, *, tip: RemoteTip, memory: _Memory, facts: Facts
    ) -> _Pass:
        if source.spec.trust is None:
            return _Pass(replace(facts, verdict="", accepted=None, refusal=None, pending=False, message=""))
        asked = range_request(source, facts=facts, tip=tip, url=request.url.display, now=self._ports.clock.wall())
        limits = TreeLimits(entries=source.spec.limits.entries, depth=source.spec.limits.depth)

        async def judge_once(wanted: RangeRequest) -> Judged:
            return await asyncio.to_thread(
                judge, request.repository, request=wanted, caches=memory.caches, limits=limits
            )

        found = await judge_reviewed(asked, judge=judge_once, read=self._ports.reviews(source), known=memory.readings)
        memory.readings = {each.evidence.merge: each for each in found.readings}
        memory.unread = memory.unread + 1 if found.failure is not None else 0
        memory.unread_error = found.failure
        facts = judged_facts(facts, judged=found.judged, request=found.request, readings=found.readings)
        refused = facts.refusal is not None and bool(found.readings)
        return _Pass(facts, found.judged, request, may_be_reviewed=refused)

    async def _record(self, tree: JsonObject, *, source: GitSource, facts: Facts, memory: _Memory) -> None:
        """Write the status, and say in an Event what changed; a long range is not told with every pass."""
        now_s = self._ports.clock.boot_s()
        before = memory.facts
        moved = (facts.accepted, facts.observed) != (before.accepted, before.observed)
        if facts.verdict == IN_PROGRESS and not moved and now_s - memory.progress_s < PROGRESS_EVERY_S:
            return
        memory.progress_s = now_s
        self._ports.require_leader()
        status = status_of(
            facts,
            previous=object_at(tree, "status"),
            generation=memory.generation,
            interval_s=to_seconds(source.spec.interval),
            now=self._ports.clock.wall(),
        )
        ports = self._ports
        stored = await swap_status(ports.client, ports.resource, tree, status, manager=FIELD_MANAGER_STATUS)
        memory.stored = stored or memory.stored
        self._tell(tree, facts=facts, before=before)

    def _tell(self, tree: JsonObject, *, facts: Facts, before: Facts) -> None:
        events = self._ports.events
        if facts.accepted is not None and (
            before.accepted is None or facts.accepted.revision != before.accepted.revision
        ):
            note = f"accepted {facts.accepted.revision}" + (f", signed by {facts.signer}" if facts.signer else "")
            events.emit(tree, type="Normal", reason=ACCEPTED, action="Judge", note=note)
        if facts.refusal is not None and facts.refusal != before.refusal and not facts.pending:
            events.emit(tree, type="Warning", reason=facts.verdict, action="Judge", note=facts.refusal.message)
        if facts.error is not None and (before.error is None or before.error.code is not facts.error.code):
            note = error_text(facts.error)
            events.emit(tree, type="Warning", reason=facts.error.reason, action="Fetch", note=note)
        if facts.stale_since_s is not None and before.stale_since_s is None:
            note = "no fetch has succeeded for long"
            events.emit(tree, type="Warning", reason="SourceStale", action="Fetch", note=note)
        if facts.old_tip and not before.old_tip:
            note = f"no newer tip was seen for more than {facts.old_tip}"
            events.emit(tree, type="Warning", reason="SourceStale", action="Fetch", note=note)

    def _hand_over(self, tree: JsonObject, found: _Pass, *, memory: _Memory) -> None:
        """Give the accepted revision to the Syncs; only after the status holds it."""
        judged, request, accepted = found.judged, found.request, found.facts.accepted
        assert judged is not None
        assert request is not None
        source = NamespacedName.of(tree)
        if accepted is None or not judged.tree:
            self._ports.revisions.withdraw(source, reason=ErrorCode.SOURCE_NOT_ACCEPTED.reason)
            return
        before, memory.lease = memory.lease, self._ports.clones.snapshot(request.repository)
        self._ports.revisions.publish(
            AcceptedRevision(
                source=source,
                uid=text_at(tree, "metadata", "uid"),
                url=request.url.display,
                ref=request.ref.full,
                commit=accepted.revision,
                tree=judged.tree,
                store_path=request.repository,
                provenance=judged.provenance,
                generation=int_at(tree, "metadata", "generation"),
                trusted=True,
                effects_allowed=found.facts.effects_allowed,
                signer=found.facts.signer,
                policy_path=text_at(tree, "spec", "trust", "policyPath", default=POLICY_PATH),
            )
        )
        if before is not None:
            before.close()


def _is_due_again(source: GitSource, facts: Facts) -> bool:
    """Whether the accepted range has to be judged again before the next effect (gitops.md, section 4.5)."""
    trust, accepted = source.spec.trust, facts.accepted
    if trust is None or accepted is None:
        return False
    return not facts.effects_allowed or accepted.root != trust.root.commit


def _ref_of(source: GitSource) -> Ref:
    ref = source.spec.ref
    return Ref("branch", ref.branch) if ref.branch else Ref("tag", ref.tag or "")

"""The Proposal controller: one pass per Proposal at a time, and one per source, since two of them share a repository.

What must be known before a push is written to the status first; the rest is written once at the end.  A finalizer keeps the object until
its pull request is closed, for ten minutes at most: a forge that is gone never holds a namespace.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import pygit2
import structlog

from gitops_ctl.api.gitops import GitSource, Proposal, parse_git_source, parse_proposal
from gitops_ctl.api.names import (
    ANNOTATION_REOPEN_AT,
    ANNOTATION_WHY,
    FIELD_MANAGER,
    FIELD_MANAGER_STATUS,
    FINALIZER,
)
from gitops_ctl.core.clock import Clock, from_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.core.errors import (
    BlockedError,
    Conflict,
    GitopsError,
    InternalError,
    NotFound,
    TransientError,
    Unavailable,
)
from gitops_ctl.core.http import HttpClient
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, int_at, list_at, object_at, text_at
from gitops_ctl.forge import access
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.branchname import branch_name
from gitops_ctl.forge.carrier import Asked, Carrier, Outcome
from gitops_ctl.forge.content import edits_of
from gitops_ctl.forge.desk import Authorship, Desk, Git
from gitops_ctl.forge.errors import TokenRejected
from gitops_ctl.forge.model import Action, Decision, Ended, Refresh, Remembered
from gitops_ctl.forge.summarise import NEEDS_A_PERSON, Found, durable, remembered_of, status_of
from gitops_ctl.forge.text import Told, by_hand
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import FetchLimits, FetchRequest, Ref
from gitops_ctl.git.url import parse_url
from gitops_ctl.git.writing import Identity
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.expectations import DEADLINE_S, has_reached
from gitops_ctl.kube.lease import LeadershipLost
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.statuswriter import swap_status
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.signing import load_signer

OPEN_POLL_S: Final = 60.0
"""An open pull request is looked at again at least this often; a new base tip wakes it earlier."""

REST_POLL_S: Final = 300.0
DELETION_S: Final = 600.0
LONGEST_WHY: Final = 32_000
MOST_BYTES: Final = 500 * 2**20
LONGEST_S: Final = 120.0
"""Of one fetch, where the source allows more (forges.md, section 14)."""

log = structlog.get_logger(__name__)

Lookup = Callable[[NamespacedName], JsonObject | None]
Adapter = Callable[[GitSource, str, bytes | None], ForgeAdapter | None]


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a pass reaches the world through."""

    client: KubeClient
    resource: Resource
    git: Git
    clones: CloneCache
    events: EventRecorder
    clock: Clock
    require_leader: Callable[[], None]
    adapter: Adapter


@dataclass(slots=True)
class _Memory:
    """Of one Proposal between passes.

    Attributes:
        stored: the object as our last write left it; read until the cache shows that write, or long enough for that.
        written_s: when that write was answered, on the boot clock.
        token: of the last pass.
        rejected: the token that the forge refused; nothing is tried with it again.
    """

    stored: JsonObject = field(default_factory=dict)
    written_s: float = -math.inf
    token: str = ""
    rejected: str = ""

    def wrote(self, stored: JsonObject, clock: Clock) -> None:
        """Keep what a write left."""
        self.stored, self.written_s = stored, clock.boot_s()

    def newest(self, shown: JsonObject, *, now_s: float) -> JsonObject:
        """The object as the cache shows it, or as our own last write left it while the cache may be behind that.

        A cache that does not show a write for so long never will: its server was restored from before it.
        """
        if now_s - self.written_s >= DEADLINE_S:
            return shown
        if text_at(self.stored, "metadata", "uid") != text_at(shown, "metadata", "uid"):
            return shown
        versions = (text_at(tree, "metadata", "resourceVersion") for tree in (shown, self.stored))
        return shown if has_reached(next(versions), wanted=next(versions)) else self.stored


def adapter_of(http: HttpClient, clock: Clock) -> Adapter:
    """Adapters as the sources name them; None for plain Git."""

    def make(source: GitSource, token: str, ca: bytes | None) -> ForgeAdapter | None:
        forge = source.spec.forge
        if forge is None or forge.provider == "plain":
            return None
        return forge_adapter(
            forge.provider,
            base_url=forge.base_url,
            project=forge.project,
            token=token,
            http=http,
            clock=clock,
            ca=ca,
        )

    return make


class ProposalController:
    """Reconciles Proposals."""

    def __init__(
        self,
        ports: Ports,
        *,
        lookup: Lookup,
        source: Lookup,
        all_proposals: Callable[[], Iterable[JsonObject]],
        allow_file: bool = False,
    ) -> None:
        """`lookup` and `source` read the informers' caches; `allow_file` is the local flag."""
        self._ports = ports
        self._lookup = lookup
        self._source = source
        self._all = all_proposals
        self._allow_file = allow_file
        self._memories: dict[NamespacedName, _Memory] = {}
        self._turns: WeakValueDictionary[NamespacedName, asyncio.Lock] = WeakValueDictionary()

    async def reconcile(self, key: NamespacedName) -> float | None:
        """One pass; gives the seconds until the next look.

        Raises:
            GitopsError: what ended it, after it was written to the status.
        """
        tree = self._lookup(key)
        if tree is None:
            self._memories.pop(key, None)
            return None
        memory = self._memories.setdefault(key, _Memory())
        tree = memory.newest(tree, now_s=self._ports.clock.boot_s())
        proposal = parse_proposal(tree)
        deleted = bool(text_at(tree, "metadata", "deletionTimestamp"))
        if deleted and FINALIZER not in list_at(tree, "metadata", "finalizers"):
            return None
        ended = self._ended(proposal, tree, deleted=deleted)
        turn = self._turn(NamespacedName(key.namespace, proposal.spec.source_ref.name))
        async with turn:
            if self._is_taken_over(proposal, tree, ended):
                return await self._rest(tree, proposal, memory)
            return await self._pass(tree, proposal=proposal, memory=memory, ended=ended)

    def _turn(self, source: NamespacedName) -> asyncio.Lock:
        found = self._turns.get(source)
        if found is None:
            found = self._turns[source] = asyncio.Lock()
        return found

    async def _pass(self, tree: JsonObject, *, proposal: Proposal, memory: _Memory, ended: Ended) -> float | None:
        if ended != "deleted":
            tree = await self._with_finalizer(tree, memory)
        found = await self._attempt(tree, proposal=proposal, memory=memory, ended=ended)
        if ended == "deleted":
            return await self._let_go(memory.stored or tree, found.error)
        await self._write(memory.stored or tree, found, memory=memory)
        if found.error is not None:
            raise found.error
        return self._next_look_s(proposal, found)

    async def _attempt(self, tree: JsonObject, *, proposal: Proposal, memory: _Memory, ended: Ended) -> Found:
        """What the pass found; errors of the world are a part of it."""
        before = remembered_of(proposal.status)
        memory.stored = tree
        carrier: Carrier | None = None
        hand = ""
        try:
            edits = edits_of(proposal.spec.changes)
            hand = by_hand(edits)
            source = self._source_of(proposal)
            asked = self._asked(proposal, tree, ended=ended, source=source)
            forge = await self._forge(source, memory)
            async with await self._desk(source, proposal) as desk:
                carrier = Carrier(
                    asked,
                    desk=desk,
                    forge=forge,
                    by=await self._authorship(source, proposal),
                    remembered=before,
                    record=lambda remembered: self._record(remembered, memory),
                    clock=self._ports.clock,
                )
                outcome = await carrier.run()
                return Found(
                    carrier.remembered, outcome, by_hand=hand, place=await self._place(source, carrier, outcome)
                )
        except (LeadershipLost, InternalError):
            raise
        except TokenRejected as error:
            memory.rejected = memory.token
            problem: GitopsError = error
        except GitopsError as error:
            problem = error
        except (OSError, pygit2.GitError) as error:
            text = (
                f"the manager's own disk cannot be worked on: {error.strerror if isinstance(error, OSError) else error}"
            )
            problem = Unavailable(text, code=ErrorCode.UNAVAILABLE)
        remembered = carrier.remembered if carrier is not None else before
        log.info("proposal not carried out", proposal=str(NamespacedName.of(tree)), code=problem.code.label)
        return Found(remembered, error=problem, by_hand=hand if _is_for_a_person(problem) else "")

    # -- what is asked -----------------------------------------------------------------------------------------------

    def _ended(self, proposal: Proposal, tree: JsonObject, *, deleted: bool) -> Ended:
        if deleted:
            return "deleted"
        if not proposal.spec.changes:
            return "withdrawn"
        if self._newer(proposal, tree):
            return "superseded"
        expires = proposal.spec.expires
        if expires and from_rfc3339(expires) <= self._ports.clock.wall():
            return "expired"
        return ""

    def _newer(self, proposal: Proposal, tree: JsonObject) -> tuple[JsonObject, ...]:
        """Younger Proposals of the same purpose for the same repository, however its address is spelt (fault P06)."""
        mine, spec = _age(tree), proposal.spec
        repository = self._repository(proposal.metadata.namespace, spec.source_ref.name)
        return tuple(
            other
            for other in self._all()
            if text_at(other, "metadata", "namespace") == proposal.metadata.namespace
            and text_at(other, "spec", "reason") == spec.reason
            and list_at(other, "spec", "changes")
            and not text_at(other, "metadata", "deletionTimestamp")
            and _age(other) > mine
            and self._repository(proposal.metadata.namespace, text_at(other, "spec", "sourceRef", "name")) == repository
        )

    def _repository(self, namespace: str, name: str) -> str:
        """What a source's repository is called, whichever source names it; the source's own name while it is not known."""
        tree = self._source(NamespacedName(namespace, name))
        url = text_at(tree, "spec", "url") if tree is not None else ""
        return repository_key(url) if url else name

    def _is_taken_over(self, proposal: Proposal, tree: JsonObject, ended: Ended) -> bool:
        """Whether a younger one goes on with the same branch: then this one touches nothing."""
        if ended not in ("superseded", "deleted", "withdrawn"):
            return False
        mine = branch_name(_subject(proposal), purpose=proposal.spec.reason)
        names = (
            branch_name(_subject(parse_proposal(other)), purpose=proposal.spec.reason)
            for other in self._newer(proposal, tree)
        )
        return mine in names

    async def _rest(self, tree: JsonObject, proposal: Proposal, memory: _Memory) -> float | None:
        if text_at(tree, "metadata", "deletionTimestamp"):
            return await self._let_go(tree, None)
        before = remembered_of(proposal.status)
        decision = Decision(Action.NOTHING, "Superseded", "Superseded", "a newer Proposal goes on with the branch")
        if before.phase == "Merged":
            decision = Decision(
                Action.NOTHING, "Merged", "Merged", "the base branch had the change; it is not watched any more"
            )
        remembered = replace(before, phase=decision.phase)
        await self._write(tree, Found(remembered, Outcome(decision)), memory=memory)
        return None

    def _asked(self, proposal: Proposal, tree: JsonObject, *, ended: Ended, source: GitSource) -> Asked:
        spec, proposer = proposal.spec, source.spec.proposer
        requested = text_at(tree, "metadata", "annotations", ANNOTATION_REOPEN_AT)[:256]
        told = Told(
            subject=_subject(proposal),
            purpose=spec.reason,
            why=text_at(tree, "metadata", "annotations", ANNOTATION_WHY)[:LONGEST_WHY],
            edits=edits_of(spec.changes),
            notes=(),
            branch="",
            base="",
            expires=from_rfc3339(spec.expires) if spec.expires else None,
        )
        return Asked(
            told=told,
            operation=spec.subject.uid or proposal.metadata.uid,
            ended=ended,
            reopen=requested if requested != (proposal.status.last_handled_reopen_at or "") else "",
            refresh=Refresh(proposer.refresh) if proposer else Refresh.ON_CONFLICT,
        )

    # -- with what ---------------------------------------------------------------------------------------------------

    def _source_of(self, proposal: Proposal) -> GitSource:
        key = NamespacedName(proposal.metadata.namespace, proposal.spec.source_ref.name)
        tree = self._source(key)
        if tree is None:
            raise NotFound("the GitSource does not exist", code=ErrorCode.SOURCE_NOT_FOUND, subject=f"GitSource/{key}")
        source = parse_git_source(tree)
        if source.spec.suspend:
            raise BlockedError("the source is suspended", code=ErrorCode.SUSPENDED, subject=f"GitSource/{key}")
        if not source.spec.ref.branch:
            what = "the source follows a tag: there is no branch that a change could go into"
            raise BlockedError(what, code=ErrorCode.PROPOSER_MISSING, subject=f"GitSource/{key}")
        return source

    async def _forge(self, source: GitSource, memory: _Memory) -> ForgeAdapter | None:
        forge = source.spec.forge
        if forge is None or forge.provider == "plain":
            return None
        token = await access.read_forge_token(self._ports.client, source=source)
        place = f"GitSource/{source.metadata.namespace}/{source.metadata.name}"
        if not token:
            what = "spec.forge names no Secret with a token"
            raise BlockedError(what, code=ErrorCode.CREDENTIALS_MISSING, subject=place)
        if token == memory.rejected:
            raise TokenRejected("the forge has refused this token; nothing is tried until it changes", subject=place)
        memory.token, memory.rejected = token, ""
        ca = await access.read_authorities(self._ports.client, source=source)
        return self._ports.adapter(source, token, ca)

    async def _desk(self, source: GitSource, proposal: Proposal) -> Desk:
        spec, client = source.spec, self._ports.client
        request = FetchRequest(
            url=parse_url(spec.url, allow_file=self._allow_file),
            repository=Path(),
            ref=Ref("branch", spec.ref.branch or ""),
            credentials=await access.read_credentials(client, source=source),
            ca=await access.read_authorities(client, source=source),
            known_hosts=await access.read_known_hosts(client, source=source),
            limits=FetchLimits(
                objects=spec.limits.objects,
                bytes=min(spec.limits.bytes, MOST_BYTES),
                timeout_s=min(to_seconds(spec.timeout), LONGEST_S),
            ),
        )
        push = await access.read_push_credentials(client, source=source)
        tenant = f"proposals/{proposal.metadata.namespace}/{source.metadata.name}"
        return Desk(self._ports.git, self._ports.clones, request, push_credentials=push, tenant=tenant)

    async def _authorship(self, source: GitSource, proposal: Proposal) -> Authorship:
        data, subject = await access.read_signing_key(self._ports.client, source=source)
        proposer = source.spec.proposer
        assert proposer is not None
        signer = load_signer(data, subject=subject, clock=self._ports.clock)
        created = proposal.metadata.creation_timestamp or ""
        return Authorship(Identity(proposer.name, proposer.email), from_rfc3339(created), signer)

    async def _place(self, source: GitSource, carrier: Carrier, outcome: Outcome) -> str:
        """For plain Git: where the branch is, and how a person opens the change."""
        if outcome.decision.phase != "Open" or carrier.remembered.number:
            return ""
        url, branch = parse_url(source.spec.url, allow_file=True).display, carrier.remembered.branch
        text = f"branch pushed, open a change by hand: {branch} of {url} at {carrier.remembered.head}"
        return f"{text}\n{outcome.diff}" if outcome.diff else text

    # -- status ------------------------------------------------------------------------------------------------------

    async def _record(self, remembered: Remembered, memory: _Memory) -> None:
        """Store what must be known before a push; conditions stay."""
        self._ports.require_leader()
        tree = memory.stored
        status = {**object_at(tree, "status"), **durable(remembered)}
        stored = await swap_status(self._ports.client, self._ports.resource, tree, status, manager=FIELD_MANAGER_STATUS)
        if stored is not None:
            memory.wrote(stored, self._ports.clock)

    async def _write(self, tree: JsonObject, found: Found, *, memory: _Memory) -> None:
        self._ports.require_leader()
        previous = object_at(tree, "status")
        status = status_of(
            found,
            previous=previous,
            generation=int_at(tree, "metadata", "generation"),
            now=self._ports.clock.wall(),
        )
        stored = await swap_status(self._ports.client, self._ports.resource, tree, status, manager=FIELD_MANAGER_STATUS)
        memory.stored = tree
        if stored is not None:
            memory.wrote(stored, self._ports.clock)
            self._tell(tree, previous=previous, status=status)

    def _tell(self, tree: JsonObject, *, previous: JsonObject, status: JsonObject) -> None:
        """One Event for each change of the reason."""
        before, after = _ready(previous), _ready(status)
        if text_at(before, "reason") == text_at(after, "reason"):
            return
        reason, note = text_at(after, "reason"), text_at(after, "message")
        bad = text_at(after, "status") != "True" or reason in NEEDS_A_PERSON
        self._ports.events.emit(tree, type="Warning" if bad else "Normal", reason=reason, action="Propose", note=note)

    async def _with_finalizer(self, tree: JsonObject, memory: _Memory) -> JsonObject:
        finalizers = list(list_at(tree, "metadata", "finalizers"))
        if FINALIZER in finalizers:
            return tree
        stored = await self._set_finalizers(tree, [*finalizers, FINALIZER])
        if stored is None:
            memory.stored = tree
        else:
            memory.wrote(stored, self._ports.clock)
        return memory.stored

    async def _let_go(self, tree: JsonObject, error: GitopsError | None) -> float | None:
        """Let the object go; a forge that may answer soon is waited for, up to a bound."""
        since = from_rfc3339(text_at(tree, "metadata", "deletionTimestamp"))
        waited_s = (self._ports.clock.wall() - since).total_seconds()
        if isinstance(error, TransientError | Conflict) and waited_s < DELETION_S:
            raise error
        left = [item for item in list_at(tree, "metadata", "finalizers") if item != FINALIZER]
        await self._set_finalizers(tree, left)
        return None

    async def _set_finalizers(self, tree: JsonObject, finalizers: Sequence[object]) -> JsonObject | None:
        self._ports.require_leader()
        metadata = {
            "resourceVersion": text_at(tree, "metadata", "resourceVersion"),
            "finalizers": [str(item) for item in finalizers],
        }
        place = self._ports.resource.path(text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))
        try:
            return await self._ports.client.patch_merge(place, {"metadata": metadata}, manager=FIELD_MANAGER)
        except NotFound:
            return None

    def _next_look_s(self, proposal: Proposal, found: Found) -> float:
        poll = OPEN_POLL_S if found.remembered.phase == "Open" else REST_POLL_S
        if not proposal.spec.expires:
            return poll
        left = (from_rfc3339(proposal.spec.expires) - self._ports.clock.wall()).total_seconds()
        return min(poll, max(left, 0.0)) if left > 0 else poll


def repository_key(url: str) -> str:
    """The same text for every spelling of a repository's address: https or ssh, with or without `.git` and closing slash."""
    place = parse_url(url, allow_file=True)
    return f"{place.host}{place.path.removesuffix('/').removesuffix('.git')}"


def _subject(proposal: Proposal) -> ObjectId:
    subject = proposal.spec.subject
    group = GroupVersionKind.of({"apiVersion": subject.api_version}).group
    return ObjectId(group, subject.kind, subject.namespace or "", subject.name)


def _age(tree: JsonObject) -> tuple[datetime, str]:
    return from_rfc3339(text_at(tree, "metadata", "creationTimestamp")), text_at(tree, "metadata", "name")


def _ready(status: JsonObject) -> JsonObject:
    found = (item for item in list_at(status, "conditions") if isinstance(item, dict) and item.get("type") == "Ready")
    return next(found, {})


def _is_for_a_person(error: GitopsError) -> bool:
    """Whether a person who makes the change by hand is helped by being told how."""
    return not isinstance(error, TransientError | Conflict)

"""Judges a range of commits: from the last accepted one, L, to the tip, T (gitops.md, sections 4.1, 4.3 and 4.5).

Rules:
  * T is L or descends from L, and L lies on the first-parent line of T; otherwise nothing moves (A2).
  * Every commit of L..T is judged, merged-in ones too, each after its parents; the oldest refused one stops the source (A3).
  * L moves along the first-parent line, as each commit on it and all that it brings in are accepted (A10).
  * A new `revoked` entry, a new pinned root or a new verifier version judges root..L again, before any effect (A6).
  * A bounded number of commits is judged per call; progress is kept in the `VerdictCache`.

Bytes in, verdicts out: no clock, no network.  An `ObjectStore` belongs to one thread, and so does a call.
"""

from collections.abc import Callable, Iterator, Sequence

from gitops_ctl.core.canonical import digest_lines
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.git.history import commits_between, first_parent_line, is_ancestor
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.bounded import Bounded
from gitops_ctl.trust.changes import BlobDocuments
from gitops_ctl.trust.judge import Judge, Scope
from gitops_ctl.trust.lines import Line, Lines
from gitops_ctl.trust.plain import KNOWN_BLOBS, Known, PlainFiles
from gitops_ctl.trust.policies import Policies, PolicyCache
from gitops_ctl.trust.ranges import RangeRequest, RangeVerdict, RefusedCommit, Root
from gitops_ctl.trust.rulebook import Revocation, TrustPolicy
from gitops_ctl.trust.sighting import Times
from gitops_ctl.trust.tags import judge_tag
from gitops_ctl.trust.unsigned import explain_unsigned
from gitops_ctl.trust.verdict import ACCEPTED, CommitRefused, refusal_from

__all__ = [
    "VERIFIER_VERSION",
    "RangeRequest",
    "RangeVerdict",
    "RefusedCommit",
    "Root",
    "VerdictCache",
    "explain",
    "judge_at",
    "judge_range",
]

VERIFIER_VERSION = "3"
"""Of the rules in this room.  A change that can turn a verdict around raises it: accepted ranges are then judged again."""

DOCUMENT_BYTES = 2**21
"""Text of parsed files that one source keeps for its judge: the newest versions of a few thousand files."""

PARTIAL_LIMIT = 500_000
"""Commits below one merge whose progress is kept between calls."""


class VerdictCache:
    """What one source keeps between calls.  Everything in it can be dropped at any time; it belongs to one thread."""

    def __init__(self) -> None:
        self.policies: PolicyCache = Bounded(64)
        self.documents = DocumentCache(limit_bytes=DOCUMENT_BYTES)
        self.plain: Known = Bounded(KNOWN_BLOBS)
        self.passed: Bounded[tuple[str, str], str] = Bounded(8)
        """(context, root) to the newest commit of the line up to which a range was judged again."""
        self._merge: tuple[str, str] = ("", "")
        self._done: set[str] = set()

    def done_below(self, context: str, merge: str) -> set[str]:
        """Accepted commits below a merge that is not finished; only those of the latest merge are kept."""
        if self._merge != (context, merge) or len(self._done) > PARTIAL_LIMIT:
            self._merge, self._done = (context, merge), set()
        return self._done


class _OutOfBudget(Exception):
    """This call has judged as many commits as it may."""


def judge_range(store: ObjectStore, *, request: RangeRequest, cache: VerdictCache) -> RangeVerdict:
    """Judge as much of the range as one call may.

    Raises:
        Refused: REPOSITORY_DAMAGED, the local copy cannot be read.
    """
    return _Range(store, request=request, cache=cache).run()


class _Range:
    """One call: what it has accepted so far."""

    def __init__(self, store: ObjectStore, *, request: RangeRequest, cache: VerdictCache) -> None:
        self._store = store
        self._request = request
        self._cache = cache
        self._policies = Policies(store, path=request.policy_path, cache=cache.policies)
        self._lines = Lines(store, root=request.root.commit, tip=request.tip)
        self._accepted = request.accepted
        self._ahead: tuple[str, ...] = ()
        self._judged = 0
        self._remaining = 0
        self._under: str | None = None
        self._effects = True
        self._signer = ""
        self._judge_of: Judge | None = None

    def run(self) -> RangeVerdict:
        try:
            self._start()
            self._judge_again_if_due()
            self._advance()
        except _OutOfBudget:
            message = f"{self._judged} commits judged in this pass, {self._remaining} remain"
            return self._verdict(ErrorCode.VERIFICATION_IN_PROGRESS.reason, pending=True, message=message)
        except CommitRefused as error:
            return self._refused(error)
        except NotFound as error:
            return self._refused(refusal_from(error, commit=error.subject or self._request.tip))
        except Refused as error:
            if error.code is ErrorCode.REPOSITORY_DAMAGED:
                raise
            return self._refused(refusal_from(error, commit=error.subject or self._request.tip))
        return self._verdict(ACCEPTED)

    def _start(self) -> None:
        """Check the pinned root, and let a new one replace L where it must."""
        root, request = self._request.root, self._request
        # Until the range is judged again nothing may happen, whatever stops this call before that (A6).
        self._effects = not self._is_under_others
        policy = self._required_policy(root.commit)
        if policy.digest != root.policy_digest:
            self._effects = False  # nothing that a source trusts has been established
            raise CommitRefused(
                f"the policy at the pinned root has the digest {policy.digest}, pinned is {root.policy_digest}",
                code=ErrorCode.POLICY_INVALID,
                commit=root.commit,
                hint="pin the digest that you have checked, or another root",
            )
        if self._accepted is not None and request.accepted_root not in (None, root.commit) and self._is_apart():
            self._accepted = None
        if self._accepted is None:
            self._accepted, self._effects = root.commit, True
            self._under = policy.key_set_digest
        elif self._store.contains(self._accepted):  # after a rewrite the server may not have it any more
            held = self._required_policy(self._accepted).key_set_digest
            self._under = request.accepted_key_set_digest or held
            self._effects = self._effects and self._under == held
        self._require_descent()

    def _required_policy(self, commit: str) -> TrustPolicy:
        """The policy that everything rests on; without it there are no effects.  History that is missing is only waited for."""
        try:
            return self._policies.at(commit)
        except Refused:
            self._effects = False
            raise

    @property
    def _is_under_others(self) -> bool:
        """Whether L was accepted under another root or by other rules than the present ones."""
        request = self._request
        same_root = request.accepted_root in (None, request.root.commit)
        return not (same_root and request.accepted_verifier_version in (None, VERIFIER_VERSION))

    def _is_apart(self) -> bool:
        """Whether a new root is not contained in L, or T does not descend from L."""
        assert self._accepted is not None
        inside = self._reaches(self._request.root.commit, self._accepted)
        return not inside or not self._reaches(self._accepted, self._request.tip)

    def _reaches(self, old: str, new: str) -> bool:
        return self._store.contains(old) and self._store.contains(new) and is_ancestor(self._store, old, new)

    def _require_descent(self) -> None:
        accepted, tip = self._accepted, self._request.tip
        assert accepted is not None
        try:
            self._ahead = first_parent_line(self._store, tip, stop=accepted)
        except Refused as error:
            if error.code is not ErrorCode.HISTORY_REWRITTEN:
                raise
            self._require_sound_end(tip)
            raise CommitRefused(
                f"the ref now points to {tip}, which does not descend from the last accepted commit {accepted}; "
                "the source stays there",
                code=ErrorCode.HISTORY_REWRITTEN,
                commit=tip,
                hint=self._rewind_hint(),
            ) from error

    def _require_sound_end(self, tip: str) -> None:
        """A commit whose odd headers hide its parents is malformed; the history was not rewritten then."""
        commit = tip
        while parents := self._store.links(commit).parents:
            commit = parents[0]
        if not is_ancestor(self._store, commit, self._request.root.commit):
            self._store.commit(commit)

    def _rewind_hint(self) -> str:
        tip = self._request.tip
        try:
            pin = f"spec.trust.root {{commit: {tip}, policyDigest: {self._policies.at(tip).digest}}}"
        except (NotFound, Refused):
            pin = f"spec.trust.root with the commit {tip} and the digest of its policy, which has to be mended first"
        return f"push a branch that contains {self._accepted} again, or pin {pin}"

    def _judge_again_if_due(self) -> None:
        """Root..L, when the root, the verifier or the revocations are not those under which L was accepted."""
        assert self._accepted is not None
        policy = self._policies.at(self._accepted)
        if self._is_under_others or self._under != policy.key_set_digest:
            self._judge_again(policy)

    def _judge_again(self, policy: TrustPolicy) -> None:
        assert self._accepted is not None
        root = self._request.root.commit
        scope = self._scope(revoked=policy.revoked)
        context = _context(scope)
        start = self._cache.passed.get((context, root)) or root
        if start not in self._lines.trunk or self._lines.trunk[start] > self._lines.trunk[self._accepted]:
            start = root
        self._effects = False
        try:
            again = first_parent_line(self._store, self._accepted, stop=start)
            for line in self._lines_after(start, again):
                self._judge_line(line, scope=scope, context=context)
                self._cache.passed.put((context, root), line.tip)
        except CommitRefused as error:
            if not error.is_pending:
                error.hint = (
                    f"look at what {self._accepted} declares; to go on from there, "
                    f"pin spec.trust.root {{commit: {self._accepted}, policyDigest: {policy.digest}}}"
                )
            raise
        self._effects = True
        self._under = policy.key_set_digest

    def _advance(self) -> None:
        request, scope = self._request, self._scope()
        context = _context(scope)
        assert self._accepted is not None
        if request.follows_tag and not self._is_tag_accepted():
            judge_tag(
                self._store,
                tag=request.tag,
                ref=request.ref,
                tip=request.tip,
                policy=self._policies.at(self._accepted),
                scope=scope,
            )
        for line in self._lines_after(self._accepted, self._ahead):
            before = self._policies.at(line.first_parent)
            self._judge_line(line, scope=scope, context=context)
            self._accepted = line.tip
            policy = self._policies.at(line.tip)
            if set(policy.revoked) - set(before.revoked):
                self._judge_again(policy)
            self._under = policy.key_set_digest

    def _is_tag_accepted(self) -> bool:
        """The tag object that brought L was judged by the policy before it; the one at L speaks about the next tag only."""
        request = self._request
        return request.tag is not None and request.tag == request.accepted_tag and request.tip == request.accepted

    def _lines_after(self, before: str, commits: Sequence[str]) -> Iterator[Line]:
        self._remaining = len(commits)
        for commit in commits:
            yield self._lines.line_at(commit, first_parent=before)
            before = commit

    def _judge_line(self, line: Line, *, scope: Scope, context: str) -> None:
        """One commit of the first-parent line and all that it brings in."""
        judge = self._judge(scope)
        done = self._cache.done_below(context, line.tip) if line.merged else set()
        for place, commit in enumerate((*line.merged, line.tip)):
            if commit in done:
                continue
            if self._judged >= self._request.limit:
                self._remaining += len(line.merged) - place
                raise _OutOfBudget
            try:
                found = judge.judge(commit, line=line)
            except CommitRefused as error:
                raise explain_unsigned(self._store, error, line=line) from error
            self._judged += 1
            done.add(commit)
            self._signer = found.signer_text
        self._remaining -= 1

    def _judge(self, scope: Scope) -> Judge:
        if self._judge_of is None or self._judge_of.scope is not scope:
            plain = PlainFiles(self._store, known=self._cache.plain, policy_path=self._request.policy_path)
            self._judge_of = _judge_for(
                self._store, request=self._request, cache=self._cache, scope=scope, lines=self._lines, plain=plain
            )
        return self._judge_of

    def _scope(self, *, revoked: tuple[Revocation, ...] = ()) -> Scope:
        since = None if revoked else self._accepted
        return _scope_of(self._store, request=self._request, lines=self._lines, revoked=revoked, since=since)

    def _refused(self, error: CommitRefused) -> RangeVerdict:
        where = error.where
        message = explain(self._request, error, accepted=self._accepted if self._effects else None)
        refused = RefusedCommit(
            commit=error.commit,
            reason=error.reason,
            path=where.path,
            verb=where.verb,
            rule=where.rule,
            hint=error.hint,
            message=message,
            merge=where.merge,
            head=where.head,
        )
        return self._verdict(error.reason, refused=refused, pending=error.is_pending, message=message)

    def _verdict(
        self, verdict: str, *, refused: RefusedCommit | None = None, pending: bool = False, message: str = ""
    ) -> RangeVerdict:
        digest = ""
        if self._accepted is not None:
            try:
                digest = self._policies.at(self._accepted).digest
            except (NotFound, Refused):
                digest = ""
        return RangeVerdict(
            accepted=self._accepted,
            verdict=verdict,
            refused=refused,
            pending=pending,
            judged=self._judged,
            remaining=self._remaining,
            policy_digest=digest,
            key_set_digest=self._under or "",
            objects_judged=f"commits and tag object {self._request.tag}" if self._request.tag else "commits",
            effects_allowed=self._effects,
            message=message,
            signer=self._signer,
        )


def judge_at(
    store: ObjectStore,
    *,
    request: RangeRequest,
    cache: VerdictCache,
    lines: Lines,
    policy: TrustPolicy | None = None,
    revoked: tuple[Revocation, ...] = (),
) -> Judge:
    """A judge for single questions about history; `policy` replaces every policy in it, `revoked` counts beside each."""
    scope = _scope_of(store, request=request, lines=lines, revoked=revoked)
    judge = _judge_for(store, request=request, cache=cache, scope=scope, lines=lines)
    judge.policies.fixed = policy
    return judge


def _judge_for(
    store: ObjectStore,
    *,
    request: RangeRequest,
    cache: VerdictCache,
    scope: Scope,
    lines: Lines,
    plain: PlainFiles | None = None,
) -> Judge:
    return Judge(
        store,
        scope=scope,
        policies=Policies(store, path=request.policy_path, cache=cache.policies),
        documents=BlobDocuments(store, cache=cache.documents, policy_path=request.policy_path),
        lines=lines,
        plain=plain,
    )


def _scope_of(
    store: ObjectStore,
    *,
    request: RangeRequest,
    lines: Lines,
    revoked: tuple[Revocation, ...] = (),
    since: str | None = None,
) -> Scope:
    """`since`: first-seen times of what is newer than this commit are worked out first; most passes need no others."""
    ranges: list[Callable[[], frozenset[str]]] = [lambda: lines.judged]
    if since is not None:
        ranges.insert(0, lambda: frozenset(commits_between(store, since, request.tip)))
    times = Times(store, first_seen=request.first_seen, now=request.now, ranges=ranges)
    return Scope(
        root=request.root.commit,
        policy_path=request.policy_path,
        now=request.now,
        first_seen=times.of,
        revoked=revoked,
        reviews=request.reviews,
    )


def _context(scope: Scope) -> str:
    """What verdicts kept between calls depend on beyond the commits."""
    return digest_lines(
        [VERIFIER_VERSION, scope.root, scope.policy_path, *(f"revoked {entry}" for entry in scope.revoked)]
    )


def explain(request: RangeRequest, error: CommitRefused, *, accepted: str | None) -> str:
    """Repository, ref, object, key, person, path and rule, and how to go on (section 4.5, "Messages")."""
    where = error.where
    parts = [f"{request.url} {request.ref}, commit {error.commit}: {error.message}"]
    parts += [f"key seen: {where.key_seen}"] if where.key_seen else []
    parts += [f"rule: {where.rule}"] if where.rule and where.rule not in error.message else []
    parts.append(f"to clear it: {error.hint}")
    if accepted and not error.is_pending and error.code is not ErrorCode.HISTORY_REWRITTEN:
        parts.append(f"to take it back: {_way_back(request, accepted)}")
    return "; ".join(parts)


def _way_back(request: RangeRequest, accepted: str) -> str:
    if request.follows_tag:
        name = request.ref.removeprefix("refs/tags/")
        return f"git tag --force --sign {name} {accepted} && git push --force origin {request.ref}"
    branch = request.ref.removeprefix("refs/heads/")
    return f"git checkout {branch} && git reset --hard {accepted} && git push --force-with-lease"

"""Judges one commit, in the eight steps of gitops.md, section 4.3.

Which policies must allow it: the policy of its own parent and, for a merged-in commit, also that of the first parent of the
merge on the first-parent line.  A parent below the pinned root was never judged; the root's policy takes its place.  Who is
judged: the signer; for a proposer's commit whoever is judged for the merge that brings it in (section 4.6).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, Refused
from gitops_ctl.git.merge import replay_merge
from gitops_ctl.git.objects import RawCommit
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import PathChange, entry_at, tree_changes
from gitops_ctl.trust.authority import Authors, View, authorise, authorise_merge
from gitops_ctl.trust.bounded import Bounded
from gitops_ctl.trust.changes import BlobDocuments, Change, changes_of
from gitops_ctl.trust.consent import Introduction, Moment, consenting
from gitops_ctl.trust.forgemerge import needs_reviews, not_enough
from gitops_ctl.trust.introducers import Introducers
from gitops_ctl.trust.keys import Owner, OwnerKind
from gitops_ctl.trust.lines import Line, Lines
from gitops_ctl.trust.lookalike import is_lookalike
from gitops_ctl.trust.plain import PlainFiles
from gitops_ctl.trust.policies import Policies
from gitops_ctl.trust.reviews import ReviewEvidence, reviewers
from gitops_ctl.trust.rulebook import Revocation, TrustPolicy
from gitops_ctl.trust.signature import Signer
from gitops_ctl.trust.signers import Sight, signer_of
from gitops_ctl.trust.verbs import CONSENT_KIND, authorised_fields, verb_of_field
from gitops_ctl.trust.verdict import Accepted, CommitRefused, Decision, refusal_from

MERGE_HINT = "merge it, don't fast-forward"
FORGE_HINT = "use merge commits: the forge's key may sign clean merges and nothing else"


@dataclass(frozen=True, slots=True)
class Scope:
    """What is the same for every commit of one pass.

    Attributes:
        root: the pinned commit.
        first_seen: the first-seen time of a commit.
        revoked: entries that are newer than the policies of the parents.
        reviews: merge commit to what the forge said.
    """

    root: str
    policy_path: str
    now: datetime
    first_seen: Callable[[str], datetime]
    revoked: tuple[Revocation, ...] = ()
    reviews: Mapping[str, ReviewEvidence] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Who:
    """Who is judged for a commit.

    Attributes:
        owner: whose key signed the commit itself.
        views: each policy that must allow it, with the persons that it judges.
        changing: the commit that counts for consents: itself, or the merge that brings in a proposer's commit.
    """

    owner: Owner
    fingerprint: str
    views: tuple[View, ...]
    changing: str

    @property
    def persons(self) -> tuple[str, ...]:
        return self.views[-1].persons if self.views else ()


class Judge:
    """Judges commits of one store within one scope.

    Args:
        store: the objects; nothing is written.
        scope: what holds for the whole pass.
        policies: policies by commit.
        documents: documents of single files.
        lines: how the commits hang together.
        plain: for whoever needs no decisions of accepted commits; None reads the documents of each.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        scope: Scope,
        policies: Policies,
        documents: BlobDocuments,
        lines: Lines,
        plain: PlainFiles | None = None,
    ) -> None:
        self.scope = scope
        self.policies = policies
        self._store = store
        self._documents = documents
        self._lines = lines
        self._plain = plain
        self._signers: Bounded[tuple[str, str], Signer] = Bounded(256)
        self._brought: tuple[str, dict[str, Who]] = ("", {})

    def judge(self, commit: str, *, line: Line) -> Accepted:
        """The verdict on a commit of the line, whose parents were judged before.

        Raises:
            CommitRefused: the code is the verdict; some verdicts are pending.
        """
        try:
            return self._judge(self._store.commit(commit), line=line)
        except CommitRefused:
            raise
        except GitopsError as error:
            if error.code is ErrorCode.REPOSITORY_DAMAGED:
                raise
            raise refusal_from(error, commit=commit) from error

    def who(self, commit: str, *, line: Line) -> Who:
        """Who is judged for a commit, by signatures alone; its changes are not looked at.

        Raises:
            CommitRefused: it has no acceptable signature, or nobody can be judged for it.
        """
        return self._who(self._store.commit(commit), line=line)

    def _who(self, raw: RawCommit, *, line: Line) -> Who:
        own = self._signed_by(raw, line=line)
        if own.owner.kind is not OwnerKind.PROPOSER:
            return own
        return replace(self._bringer(raw.id, line=line), owner=own.owner, fingerprint=own.fingerprint)

    def _signed_by(self, raw: RawCommit, *, line: Line) -> Who:
        """Whose keys the signature is; for a proposer nobody is judged yet."""
        policies = self._key_policies(raw, line=line)
        signers = [self.signer(raw, policy=policy) for policy in policies]
        kinds = {signer.key.owner.kind for signer in signers}
        owner = signers[-1].key.owner
        views: tuple[View, ...] = ()
        if len(kinds) > 1:
            raise self._unauthorised(
                raw.id, "the key belongs to a person in one of its two policies and not in the other"
            )
        if owner.kind is OwnerKind.PERSON:
            views = tuple(
                View(policy, (signer.key.owner.name,)) for policy, signer in zip(policies, signers, strict=True)
            )
        elif owner.kind is OwnerKind.FORGE:
            views = self._review_views(raw, policies=policies)
        return Who(owner, signers[-1].fingerprint, views, raw.id)

    def _bringer(self, commit: str, *, line: Line) -> Who:
        """Who is judged for a proposer's commit: whoever signed the first merge above it that is no proposer's.

        Proposers may merge each other's merges for as long as they like, so the way up is a loop, and is gone once.
        """
        if self._brought[0] != line.tip:
            self._brought = (line.tip, {})
        known, way = self._brought[1], [commit]
        while (found := known.get(way[-1])) is None:
            if way[-1] == line.tip:
                message = f"a commit by {self._signed_by(self._store.commit(line.tip), line=line).owner}"
                raise self._unauthorised(line.tip, f"{message} counts only through a merge", hint=MERGE_HINT)
            merge = line.brought_by[way[-1]]
            who = self._signed_by(self._store.commit(merge), line=line)
            if who.owner.kind is not OwnerKind.PROPOSER:
                known[way[-1]] = who
            else:
                way.append(merge)
        known.update(dict.fromkeys(way, found))
        return found

    def signer(self, raw: RawCommit, *, policy: TrustPolicy) -> Signer:
        """The signer by one policy, checked once."""
        known = self._signers.get((raw.id, policy.digest))
        if known is not None:
            return known
        sight = Sight(at=self.scope.first_seen(raw.id), now=self.scope.now)
        found = signer_of(self._store, raw, policy=policy, revoked=self.scope.revoked, sight=sight)
        return self._signers.put((raw.id, policy.digest), found)

    def _judge(self, raw: RawCommit, *, line: Line) -> Accepted:
        if not raw.parents:
            raise Refused("it has no parent; only the pinned root may have none", code=ErrorCode.MALFORMED_OBJECT)
        who = self._who(raw, line=line)
        try:
            return self._judge_for(who, raw, line=line)
        except CommitRefused as error:
            # Each message names the key, also where the key was good and the right is missing (fault X15).
            error.where = replace(error.where, key_seen=error.where.key_seen or who.fingerprint)
            raise

    def _judge_for(self, who: Who, raw: RawCommit, *, line: Line) -> Accepted:
        paths = self._path_changes(raw)
        self._require_one_policy(paths)
        decisions: tuple[Decision, ...] = ()
        if not self._is_plainly_allowed(raw, who=who, paths=paths):
            changes = changes_of(self._documents, paths, policy_path=self.scope.policy_path)
            decisions = self._decisions(raw, who=who, changes=changes, line=line)
        self._require_sound_policy(raw)
        return Accepted(
            commit=raw.id,
            owner=who.owner,
            fingerprint=who.fingerprint,
            persons=who.persons,
            first_seen=self.scope.first_seen(raw.id),
            decisions=decisions,
        )

    def _is_plainly_allowed(self, raw: RawCommit, *, who: Who, paths: Sequence[PathChange]) -> bool:
        if self._plain is None or who.owner.kind is not OwnerKind.PERSON or len(raw.parents) != 1:
            return False
        return self._plain.allow(paths, views=who.views)

    def _decisions(self, raw: RawCommit, *, who: Who, changes: Collection[Change], line: Line) -> tuple[Decision, ...]:
        if who.owner.kind is OwnerKind.FORGE:
            return self._judge_forge(raw, changes=changes)
        if who.owner.kind is OwnerKind.PROPOSER:
            self._require_proposer_paths(raw, line=line, changes=changes)
        return self._judge_changes(raw, who=who, changes=changes, line=line)

    def _key_policies(self, raw: RawCommit, *, line: Line) -> tuple[TrustPolicy, ...]:
        """By whose keys the signature is looked up; that of the first-parent line comes last, and stands for the record."""
        main = self.policies.at(line.first_parent)
        if raw.id == line.tip or not raw.parents:
            return (main,)
        own = self._policy_of_parent(raw.parents[0], line=line)
        return (main,) if own.digest == main.digest else (own, main)

    def _policy_of_parent(self, parent: str, *, line: Line) -> TrustPolicy:
        return self.policies.at(parent if parent in line.rooted else self.scope.root)

    def _review_views(self, raw: RawCommit, *, policies: Iterable[TrustPolicy]) -> tuple[View, ...]:
        """Those that judge the reviewers of a forge's merge; without evidence there are no reviewers yet."""
        if len(raw.parents) < 2:
            return ()
        evidence, head = self.scope.reviews.get(raw.id), raw.parents[1]
        return tuple(
            View(policy, reviewers(evidence, policy=policy, head=head) if evidence else (), by_reviews=True, head=head)
            for policy in policies
        )

    def _path_changes(self, raw: RawCommit) -> tuple[PathChange, ...]:
        first = self._store.links(raw.parents[0]).tree
        if len(raw.parents) == 1:
            return tuple(tree_changes(self._store, first, raw.tree))
        texts: dict[str, bytes] = {}
        replayed = replay_merge(self._store, *raw.parents, actual_tree=raw.tree, texts=texts)
        self._documents.lend(texts)
        found = [each for change in replayed for each in self._with_readable_old(change, raw=raw, texts=texts)]
        path = self.scope.policy_path
        held = entry_at(self._store, raw.tree, path)
        sides = [entry_at(self._store, self._store.links(parent).tree, path) for parent in raw.parents]
        if held not in sides and all(change.path != path for change in found):
            # A policy that is neither parent's was read by nobody, however cleanly its text merged (A4).
            found.append(PathChange(path, sides[0], held))
        return tuple(sorted(found, key=lambda change: change.path))

    def _with_readable_old(
        self, change: PathChange, *, raw: RawCommit, texts: Collection[str]
    ) -> tuple[PathChange, ...]:
        """A merged text that was too much to keep is in no store: the parents' files take its place, which judges more."""
        if change.old is None or change.old.id in texts or self._store.contains(change.old.id):
            return (change,)
        trees = (self._store.links(parent).tree for parent in raw.parents)
        return tuple(replace(change, old=entry_at(self._store, tree, change.path)) for tree in trees)

    def _judge_forge(self, raw: RawCommit, *, changes: Collection[Change]) -> tuple[Decision, ...]:
        if len(raw.parents) < 2:
            raise self._unauthorised(raw.id, "the forge's key signed a commit that is no merge", hint=FORGE_HINT)
        if changes:
            paths = ", ".join(dict.fromkeys(change.path for change in list(changes)[:5]))
            raise self._unauthorised(
                raw.id, f"the forge's key signed a merge that is not clean; it differs in {paths}", hint=FORGE_HINT
            )
        return (Decision(Change("", "merge", None, None, (), ""), "merges.forgeKeys", ()),)

    def _judge_changes(
        self, raw: RawCommit, *, who: Who, changes: Collection[Change], line: Line
    ) -> tuple[Decision, ...]:
        views = self._require_reviewed(raw, who=who, changes=changes)
        asks = _AskedOf(self, raw, who=who, line=line)
        decisions: list[Decision] = []
        for view in views:
            decisions = [authorise_merge(view=view, commit=raw.id)] if len(raw.parents) > 1 else []
            decisions += [authorise(change, view=view, asks=asks, commit=raw.id) for change in changes]
            if not decisions and not any(view.policy.holds_any_role(person) for person in view.persons):
                raise self._unauthorised(raw.id, f"{', '.join(view.persons)} holds no role in the policy")
        if len(raw.parents) > 1 and changes:
            self._judge_by_second_parent(raw, who=who, changes=changes, line=line)
        return tuple(decisions)

    def _judge_by_second_parent(self, raw: RawCommit, *, who: Who, changes: Collection[Change], line: Line) -> None:
        """A merge's own changes must be allowed by the policies of both parents."""
        if who.owner.kind is not OwnerKind.PERSON:
            raise self._unauthorised(raw.id, f"a merge by {who.owner} is not clean", hint="merge it as a person")
        policy = self._policy_of_parent(raw.parents[1], line=line)
        if any(policy.digest == view.policy.digest for view in who.views):
            return
        signer = self.signer(raw, policy=policy)
        if signer.key.owner.kind is not OwnerKind.PERSON:
            raise self._unauthorised(raw.id, "the key is no person's in the policy of the second parent")
        view = View(policy, (signer.key.owner.name,))
        asks = _AskedOf(self, raw, who=who, line=line)
        for change in changes:
            authorise(change, view=view, asks=asks, commit=raw.id)

    def _require_reviewed(self, raw: RawCommit, *, who: Who, changes: Collection[Change]) -> tuple[View, ...]:
        """The views; for a proposer's commit in a forge's merge they need evidence, and enough of it."""
        reviewed = [view for view in who.views if view.by_reviews]
        evidence = self.scope.reviews.get(who.changing)
        if reviewed and evidence is None:
            raise needs_reviews(reviewed, changes=changes, commit=raw.id, merge=who.changing)
        for view in reviewed:
            needed = view.policy.merges.require_reviews if view.policy.merges else 1
            if len(view.persons) < needed:
                raise not_enough(view, evidence=evidence, commit=raw.id, needed=needed)
        return who.views

    def _require_proposer_paths(self, raw: RawCommit, *, line: Line, changes: Iterable[Change]) -> None:
        for policy in self._key_policies(raw, line=line):
            owner = self.signer(raw, policy=policy).key.owner
            paths = policy.proposers[owner.name].paths
            for change in changes:
                if not any(glob.matches(change.path) for glob in paths):
                    raise self._unauthorised(raw.id, f"{owner} may not propose a change of {change.path}")

    def _require_one_policy(self, paths: Sequence[PathChange]) -> None:
        """No other file may stand for the policy in anybody's checkout; what is there already may go."""
        for change in paths:
            if change.new is not None and is_lookalike(change.path, of=self.scope.policy_path):
                raise Refused(
                    f"some file systems take {change.path!r} for the trust policy {self.scope.policy_path} or its folder",
                    code=ErrorCode.MALFORMED_OBJECT,
                    hint="give the file another name",
                )

    def _require_sound_policy(self, raw: RawCommit) -> None:
        """A new policy must parse and pass its own checks, also one that a merge takes over (step 7)."""
        if self.policies.blob_at(raw.parents[0]) != self.policies.blob_at(raw.id):
            self.policies.at(raw.id)

    def consenters(self, raw: RawCommit, *, who: Who, line: Line, change: Change) -> frozenset[str]:
        """People whose consents match; see `consent`."""
        parents = self._store.links(who.changing).parents
        blob = change.blob
        if who.changing != raw.id:  # the merge that brings in a proposer's commit is what the consent is about
            entry = entry_at(self._store, self._store.links(who.changing).tree, change.path)
            blob = entry.id if entry is not None else "0" * 40
        looks = self._introducers()

        def introducer(path: str, commit: str) -> Introduction | None:
            found = looks.of_file(path, commit=commit)
            if found is None:
                return None
            agreed = Change(path, "consent", CONSENT_KIND, None, (), "")
            return Introduction(found, self.introducer(found, near=line, change=agreed))

        return consenting(
            self._store,
            change=replace(change, blob=blob),
            moment=Moment(parents[0], line.first_parent, self.scope.first_seen(who.changing)),
            documents=self._documents,
            introducer_of=introducer,
        )

    def authors(self, raw: RawCommit, *, who: Who, line: Line, change: Change) -> Authors:
        """Introducers of the fields that the change authorises."""
        fields = authorised_fields(change.kind, change.verb)
        if fields is None or change.object is None:
            return Authors(frozenset(who.persons), of_fields=False)
        people: set[str] = set()
        looks = self._introducers()
        for pointer in fields:
            found = looks.at_field(change.object, pointer, path=change.path, commit=raw.id)
            if found is None:
                return Authors(frozenset(), of_fields=True, unknown=True)
            verb = verb_of_field(change.object.group_kind, pointer)
            field_change = Change(found[1], verb, change.kind, change.object, (pointer,), "")
            person = self.introducer(found[0], near=line, change=field_change)
            if not person:
                return Authors(frozenset(), of_fields=True, unknown=True)
            people.add(person)
        return Authors(frozenset(people), of_fields=True)

    def introducer(self, commit: str, *, near: Line, change: Change) -> str:
        """The person who stands behind a change that an introducing commit made; empty when its signature no longer counts.

        Of several reviewers it is the earliest of those whom the rule about the change counts.
        """
        line = near if commit in near else self._lines.line_of(commit)
        raw = self._store.commit(commit)
        try:
            who = self._who(raw, line=line)
        except CommitRefused:
            return ""
        if len(who.persons) < 2:
            return next(iter(who.persons), "")
        policy = who.views[-1].policy
        rule = policy.rule_for(path=change.path, verb=change.verb, kind=change.kind)
        able = [person for person in who.persons if rule is not None and policy.holds_role(person, rule.roles)]
        if rule is not None and rule.is_distinct(change.verb):
            authors = self.authors(raw, who=who, line=line, change=change).persons
            able = [person for person in able if person not in authors] or able
        return (able or list(who.persons))[0]

    def persons_of(self, commit: str, *, near: Line) -> tuple[str, ...]:
        """Judged persons of an introducing commit; nobody, when its signature no longer counts."""
        try:
            return self.who(commit, line=near if commit in near else self._lines.line_of(commit)).persons
        except CommitRefused:
            return ()

    def _introducers(self) -> Introducers:
        return Introducers(self._store, documents=self._documents, judged=lambda: self._lines.judged)

    def _unauthorised(self, commit: str, message: str, *, hint: str = "") -> CommitRefused:
        return CommitRefused(message, code=ErrorCode.PATH_NOT_AUTHORISED, commit=commit, hint=hint)


@dataclass(frozen=True, slots=True)
class _AskedOf:
    """The questions of a rule, answered for one commit."""

    judge: Judge
    raw: RawCommit
    who: Who
    line: Line

    def consenters(self, change: Change) -> frozenset[str]:
        return self.judge.consenters(self.raw, who=self.who, line=self.line, change=change)

    def authors(self, change: Change) -> Authors:
        return self.judge.authors(self.raw, who=self.who, line=self.line, change=change)

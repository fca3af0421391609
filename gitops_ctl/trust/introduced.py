"""Builds the `Provenance` of an accepted revision: who introduced its authorising fields, and what changed each object last.

A consent that is not spent yet is looked at with the eyes of the newest policy (gitops.md, sections 4.4 and 4.6): the person must
still hold a role of the rule, the signature must still count, and where the rule asks for it somebody else must have introduced
what the consent is about.  One that fails is listed as void, with the reason; it authorises nothing and refuses no commit.
"""

from collections.abc import Iterable

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.loader import Document
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, VerdictCache, judge_at
from gitops_ctl.trust.changes import BlobDocuments, Change
from gitops_ctl.trust.introducers import Introducers
from gitops_ctl.trust.judge import Judge
from gitops_ctl.trust.lines import Lines
from gitops_ctl.trust.policies import Policies
from gitops_ctl.trust.provenance import Introduced, Provenance
from gitops_ctl.trust.rulebook import TrustPolicy
from gitops_ctl.trust.touched import touched_by
from gitops_ctl.trust.verbs import consented_fields, followed_fields


def provenance_of(
    store: ObjectStore,
    *,
    request: RangeRequest,
    commit: str,
    documents: Iterable[Document],
    cache: VerdictCache,
    previous: tuple[str, Provenance] | None = None,
) -> Provenance:
    """Answers about one accepted commit.

    Args:
        store: the objects.
        request: under which the commit was accepted.
        commit: an accepted commit of the first-parent line.
        documents: those of the commit's tree that will be asked about.
        cache: of the source.
        previous: an earlier accepted commit of the same line with its answers, which makes this fast.

    Raises:
        NotFound: history is missing.
        Refused: the earlier commit does not lie on the line.
    """
    lines = Lines(store, root=request.root.commit, tip=commit)
    blobs = BlobDocuments(store, cache=cache.documents, policy_path=request.policy_path)
    listed = list(documents)
    newest = _policy_at(store, commit, request=request, cache=cache)
    judge = judge_at(
        store, request=request, cache=cache, lines=lines, revoked=newest.revoked if newest is not None else ()
    )
    builder = _Builder(store, judge=judge, lines=lines, blobs=blobs, newest=newest)
    for document in listed:
        builder.add(document, commit=commit)
    objects = touched_by(
        store,
        documents=listed,
        blobs=blobs,
        lines=lines,
        commit=commit,
        previous=None if previous is None else (previous[0], previous[1].objects),
    )
    return Provenance(builder.fields, objects, builder.void, frozenset(builder.lost))


def _policy_at(store: ObjectStore, commit: str, *, request: RangeRequest, cache: VerdictCache) -> TrustPolicy | None:
    """None when it cannot be read: then nothing may have effects, and nothing is consented to."""
    try:
        return Policies(store, path=request.policy_path, cache=cache.policies).at(commit)
    except GitopsError:
        return None


class _Builder:
    """Collects the answers, document by document."""

    def __init__(
        self, store: ObjectStore, *, judge: Judge, lines: Lines, blobs: BlobDocuments, newest: TrustPolicy | None
    ) -> None:
        self.fields: dict[tuple[ObjectId, str], Introduced] = {}
        self.void: dict[tuple[ObjectId, str], str] = {}
        self.lost: set[tuple[ObjectId, str]] = set()
        self._store = store
        self._judge = judge
        self._lines = lines
        self._newest = newest
        self._looks = Introducers(store, documents=blobs, judged=lambda: lines.judged)

    def add(self, document: Document, *, commit: str) -> None:
        wanted = followed_fields(document.tree, kind=document.id.group_kind)
        for verb, pointer in wanted:
            found = self._introduced(document, verb=verb, pointer=pointer, commit=commit)
            if isinstance(found, str):
                self.void[(document.id, pointer)] = found
            else:
                self.fields[(document.id, pointer)] = found
        for verb, pointer in wanted:
            introduced = self.fields.get((document.id, pointer)) if verb == "consent" else None
            if introduced is not None and (reason := self._why_void(document, pointer, by=introduced)):
                del self.fields[(document.id, pointer)]
                self.void[(document.id, pointer)] = reason

    def _introduced(self, document: Document, *, verb: str, pointer: str, commit: str) -> Introduced | str:
        """Who introduced the value, or why nobody did."""
        found = self._looks.at_field(document.id, pointer, path=document.file, commit=commit)
        if found is None:
            return "it stands there since the pinned root, so nobody introduced it"
        origin, path = found
        line = self._lines.line_of(origin)
        change = Change(path, verb, document.gvk.group_kind, document.id, (pointer,), "")
        person = self._judge.introducer(origin, near=line, change=change)
        if not person:
            self.lost.add((document.id, pointer))
            return f"the signature of {origin}, which introduced it, no longer counts"
        known = self._judge.policies.at(line.first_parent).people.get(person)
        return Introduced(
            commit=origin,
            person=person,
            verb=verb,
            kubernetes_user=known.kubernetes_user if known else f"gitops-ctl:{person}",
            at=self._store.commit(origin).committer_time,
            first_seen=self._judge.scope.first_seen(origin),
            judged=self._judge.persons_of(origin, near=line),
        )

    def _why_void(self, document: Document, pointer: str, *, by: Introduced) -> str:
        """Why a consent does not count by the newest policy; empty when it does."""
        kind = document.gvk.group_kind
        policy = self._newest
        rule = policy.rule_for(path=document.file, verb="consent", kind=kind) if policy is not None else None
        if policy is None or rule is None:
            return f"the policy gives the verb consent to nobody any more; {by.person} introduced it in {by.commit}"
        if not policy.holds_role(by.person, rule.roles):
            return f"{by.person}, who introduced it in {by.commit}, holds no role of {rule} any more"
        if not rule.is_distinct("consent"):
            return ""
        for field in consented_fields(kind, pointer):
            author = self._author(document, field)
            if author in ("", by.person):
                who = author or "nobody since the pinned root"
                return (
                    f"{by.person} introduced it in {by.commit}, and {field} was introduced by {who}; "
                    f"{rule} asks for two persons"
                )
        return ""

    def _author(self, document: Document, field: str) -> str:
        """The introducer of a field, whether it is followed or not."""
        known = self.fields.get((document.id, field))
        if known is not None:
            return known.person
        found = self._introduced(document, verb="edit", pointer=field, commit=self._lines.tip)
        return "" if isinstance(found, str) else found.person

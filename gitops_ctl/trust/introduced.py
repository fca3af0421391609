"""Builds the `Provenance` of an accepted revision: who introduced its authorising fields, and what changed each object last."""

from collections.abc import Iterable

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.loader import Document
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, VerdictCache, judge_at
from gitops_ctl.trust.changes import BlobDocuments
from gitops_ctl.trust.introducers import Introducers
from gitops_ctl.trust.judge import Judge
from gitops_ctl.trust.lines import Lines
from gitops_ctl.trust.provenance import Introduced, Provenance
from gitops_ctl.trust.touched import touched_by
from gitops_ctl.trust.verbs import authorising_fields


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
    judge = judge_at(store, request=request, cache=cache, lines=lines)
    listed = list(documents)
    looks = Introducers(store, documents=blobs, judged=lambda: lines.judged)
    fields: dict[tuple[ObjectId, str], Introduced] = {}
    for document in listed:
        for verb, pointer in authorising_fields(document.tree):
            found = looks.of_field(document.id, pointer, path=document.file, commit=commit)
            introduced = None if found is None else _introduced(store, judge, lines, commit=found, verb=verb)
            if introduced is not None:
                fields[(document.id, pointer)] = introduced
    objects = touched_by(
        store,
        documents=listed,
        blobs=blobs,
        lines=lines,
        commit=commit,
        previous=None if previous is None else (previous[0], previous[1].objects),
    )
    return Provenance(fields, objects)


def _introduced(store: ObjectStore, judge: Judge, lines: Lines, *, commit: str, verb: str) -> Introduced | None:
    """None when nobody can be judged for the commit any more."""
    line = lines.line_of(commit)
    persons = judge.persons_of(commit, near=line)
    if not persons:
        return None
    person = judge.policies.at(line.first_parent).people.get(persons[0])
    return Introduced(
        commit=commit,
        person=persons[0],
        verb=verb,
        kubernetes_user=person.kubernetes_user if person else f"gitops-ctl:{persons[0]}",
        at=store.commit(commit).committer_time,
        first_seen=judge.scope.first_seen(commit),
    )

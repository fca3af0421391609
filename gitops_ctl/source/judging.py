"""The part of a pass that reads objects: judge the range, then gather what a Sync will ask.  Runs in a thread of its own.

It opens the store, works, and closes it; nothing but values leaves.  An `ObjectStore` and a `VerdictCache` are used by one
thread at a time, which the caller sees to by running one pass per source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import TreeLimits
from gitops_ctl.trust.chain import RangeRequest, RangeVerdict, VerdictCache, judge_range
from gitops_ctl.trust.evidence import evidence_used
from gitops_ctl.trust.introduced import provenance_of
from gitops_ctl.trust.provenance import Provenance
from gitops_ctl.trust.reviews import Review


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a tip, and what is known about the accepted revision; `tree` is empty when there is none."""

    verdict: RangeVerdict
    tag: str | None = None
    tree: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    counted: Mapping[str, tuple[tuple[str, Review], ...]] = field(default_factory=dict)
    """Each forge's merge of the accepted history whose evidence was used, to (person, review) of what counted."""


@dataclass(slots=True)
class SourceCaches:
    """What a source keeps between passes; all of it can be dropped at any time."""

    verdicts: VerdictCache
    documents: DocumentCache
    provenance: tuple[str, str, Provenance] | None = None
    """The pinned root and the last accepted commit that answers were worked out for, and the answers."""


def holds(path: Path, commit: str) -> bool:
    """Whether the bare repository is there and has the commit."""
    if not (path / "HEAD").exists():
        return False
    with ObjectStore.open(path) as store:
        return store.contains(commit)


def judge(path: Path, *, request: RangeRequest, caches: SourceCaches, limits: TreeLimits) -> Judged:
    """Judge as much as one pass may, and prepare the accepted revision for its readers.

    Args:
        path: the bare repository.
        request: what to judge, from where.
        caches: of this source.
        limits: bounds of a tree walk (spec.limits).

    Raises:
        Refused: the local copy is damaged, or the tree is larger than the limits.
    """
    with ObjectStore.open(path) as store:
        verdict = judge_range(store, request=request, cache=caches.verdicts)
        if verdict.accepted is None or not store.contains(verdict.accepted):
            return Judged(verdict, request.tag)
        tree = store.links(verdict.accepted).tree
        if not verdict.effects_allowed:
            # Nothing rests on it now, and under a new root there may be no line along which introducers could be looked for.
            return Judged(verdict, request.tag, tree)
        provenance = _provenance(store, verdict.accepted, tree=tree, request=request, caches=caches, limits=limits)
        counted = evidence_used(store, verdict.accepted, request=request, caches=caches.verdicts)
        return Judged(verdict, request.tag, tree, provenance, counted)


def _provenance(
    store: ObjectStore,
    commit: str,
    *,
    tree: str,
    request: RangeRequest,
    caches: SourceCaches,
    limits: TreeLimits,
) -> Provenance:
    root = request.root.commit
    known = caches.provenance if caches.provenance is not None and caches.provenance[0] == root else None
    if known is not None and known[1] == commit:
        return known[2]
    documents = load_set(store, tree=tree, cache=caches.documents, tree_limits=limits).documents
    try:
        found = provenance_of(
            store,
            request=request,
            commit=commit,
            documents=documents,
            cache=caches.verdicts,
            previous=known[1:] if known is not None else None,
        )
    except GitopsError:
        # An earlier answer may belong to a history that is gone (a new root): begin without it.
        if known is None:
            raise
        found = provenance_of(store, request=request, commit=commit, documents=documents, cache=caches.verdicts)
    caches.provenance = (root, commit, found)
    return found

"""Reads the documents of accepted revisions for the sync room; the copy stays on disk while it is read (faults G08 and G09)."""

from dataclasses import replace
from threading import Lock

from gitops_ctl.documents.check import check_own_source
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.documents.problem import in_reading_order
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.tree import entry_at
from gitops_ctl.trust.provenance import AcceptedRevision
from gitops_ctl.trust.withdrawn import TakenUp, is_withdrawn


class RevisionReader:
    """Called with a revision and a folder, from any thread; one revision is read at a time."""

    def __init__(self, cache: DocumentCache, *, clones: CloneCache) -> None:
        self._cache = cache
        self._clones = clones
        self._lock = Lock()

    def __call__(self, revision: AcceptedRevision, path: str) -> DocumentSet:
        """The documents below `path`; one that would change where the revision comes from is an error.

        Raises:
            NotFound: the tree or the path is not there.
            Refused: the tree is malformed or too large.
        """
        with self._lock, self._clones.snapshot(revision.store_path) as copy, copy.open() as store:
            tree = revision.tree or store.links(revision.commit).tree
            found = load_set(store, tree=tree, path=path, cache=self._cache)
        own = check_own_source(found, own=revision.source)
        return replace(found, problems=in_reading_order([*found.problems, *own])) if own else found

    def is_withdrawn(self, revision: AcceptedRevision, taken: TakenUp) -> bool:
        """Whether the newest policy revokes who stood behind an older commit, from any thread."""
        with self._clones.snapshot(revision.store_path) as copy, copy.open() as store:
            return is_withdrawn(store, taken, tip=revision.commit, policy_path=revision.policy_path)

    def file(self, revision: AcceptedRevision, path: str) -> bytes:
        """The bytes of one file of a revision, from any thread; empty where there is none."""
        with self._clones.snapshot(revision.store_path) as copy, copy.open() as store:
            tree = revision.tree or store.links(revision.commit).tree
            entry = entry_at(store, tree, path)
            return store.blob(entry.id) if entry is not None else b""

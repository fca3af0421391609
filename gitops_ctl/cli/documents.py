"""How the manager and `diff` read the documents of a revision: loaded, checked, and every error beside its object."""

import threading
from collections.abc import Callable
from dataclasses import replace

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.documents.check import Checker, check_between_set
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.schema import SchemaCatalog, is_crd
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.trust.provenance import AcceptedRevision

CLEAN_LIMIT = 200_000
"""Documents that are remembered as free of errors, by digest."""


class DocumentLoader:
    """Reads revisions in threads; a file that is known is not parsed, and a document that was clean is not checked again."""

    def __init__(self, cache: DocumentCache, *, clones: CloneCache) -> None:
        """`clones` keeps a copy on disk while it is read (faults G08 and G09)."""
        self._cache = cache
        self._clones = clones
        self._clean: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def load(self, revision: AcceptedRevision, path: str) -> DocumentSet:
        """The documents of an accepted revision below `path`.

        Raises:
            NotFound: the tree or the path is not there.
            Refused: the tree is malformed or too large.
        """
        with self._lock, self._clones.snapshot(revision.store_path) as copy, copy.open() as store:
            found = load_set(store, tree=revision.tree, path=path, cache=self._cache)
            return self.checked(found, own_source=revision.source)

    def checked(self, found: DocumentSet, *, own_source: NamespacedName | None) -> DocumentSet:
        """The set with what checking adds; schemas of other releases of Kubernetes are taken leniently."""
        catalog = SchemaCatalog(crds=(document for document in found.documents if is_crd(document)), lenient=True)
        checker = Checker(catalog)
        problems = [*found.problems, *found.warnings, *check_between_set(found, own_source=own_source)]
        for document in (*found.documents, *found.git_only):
            problems.extend(self._problems(document, checker=checker, catalog=catalog.digest))
        ordered = in_reading_order(problems)
        return replace(
            found,
            problems=tuple(problem for problem in ordered if problem.is_error),
            warnings=tuple(problem for problem in ordered if not problem.is_error),
        )

    def _problems(self, document: Document, *, checker: Checker, catalog: str) -> list[Problem]:
        key = (document.digest, catalog)
        if key in self._clean:
            return []
        found = checker.check(document)
        if not found:
            if len(self._clean) >= CLEAN_LIMIT:
                self._clean.clear()
            self._clean.add(key)
        return found


def document_loader(cache: DocumentCache, *, clones: CloneCache) -> Callable[[AcceptedRevision, str], DocumentSet]:
    """What the sync room reads revisions with."""
    return DocumentLoader(cache, clones=clones).load

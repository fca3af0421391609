"""Documents of a revision with everything that is wrong in them, so that the server is only asked what it alone can answer.

Each document is checked once, as long as the schemas are the same: a commit that changes one file checks one document.  What
another unit or the cluster may know is no error here: kinds that are unknown, and references to objects that are elsewhere.
"""

from collections.abc import MutableMapping
from dataclasses import replace
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.check import Checker
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.schema import SchemaCatalog, is_crd
from gitops_ctl.sync.listing import Load
from gitops_ctl.trust.provenance import AcceptedRevision

_LEFT_TO_THE_SERVER: Final = frozenset({ErrorCode.KIND_UNKNOWN, ErrorCode.REFERENCE})


class CheckedLoader:
    """A `Load` around another one that only reads."""

    def __init__(self, read: Load) -> None:
        self._read = read
        self._lock = Lock()
        self._catalog = SchemaCatalog(lenient=True)
        self._known: MutableMapping[Document, tuple[str, tuple[Problem, ...]]] = WeakKeyDictionary()
        self.checked = 0
        """How many documents were checked, not remembered."""

    def __call__(self, revision: AcceptedRevision, path: str) -> DocumentSet:
        """The documents of a revision below a folder, checked.

        Raises:
            GitopsError: the tree cannot be read as a whole.
        """
        found = self._read(revision, path)
        with self._lock:
            checker = Checker(self._catalog_for(found))
            digest = checker.catalog.digest
            errors = [problem for document in found.documents for problem in self._errors(document, checker, digest)]
        return replace(found, problems=in_reading_order([*found.problems, *errors])) if errors else found

    def _catalog_for(self, found: DocumentSet) -> SchemaCatalog:
        """The catalog of a set; that of the last one when it would be the same, because its schemas are prepared."""
        catalog = SchemaCatalog(crds=[document for document in found.documents if is_crd(document)], lenient=True)
        if catalog.digest != self._catalog.digest:
            self._catalog = catalog
        return self._catalog

    def _errors(self, document: Document, checker: Checker, digest: str) -> tuple[Problem, ...]:
        known = self._known.get(document)
        if known is None or known[0] != digest:
            self.checked += 1
            errors = tuple(
                problem
                for problem in checker.check(document)
                if problem.is_error and problem.code not in _LEFT_TO_THE_SERVER
            )
            known = self._known[document] = (digest, errors)
        return known[1]

"""Which commit last changed each document of a revision (design: provenance; shown by `explain`).

One walk back along the first-parent line: a file is only read while one of its documents is still without an answer.  With the
answers of an earlier revision the walk ends there.
"""

from collections.abc import Iterable, Mapping

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.loader import Document
from gitops_ctl.git.history import first_parent_line
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import PathChange, tree_changes
from gitops_ctl.trust.changes import BlobDocuments
from gitops_ctl.trust.introducers import Introducers
from gitops_ctl.trust.lines import Lines


class _Walk:
    """Documents that wait for an answer, by the path at which they lie at the present commit of the walk."""

    def __init__(self, documents: Iterable[Document], *, blobs: BlobDocuments) -> None:
        self.found: dict[ObjectId, str] = {}
        self.waiting: dict[str, set[ObjectId]] = {}
        self._blobs = blobs
        for document in documents:
            self.waiting.setdefault(document.file, set()).add(document.id)

    def settle(self, path: str, name: ObjectId, commit: str) -> None:
        self.found[name] = commit
        self._leave(path, name)

    def move(self, name: ObjectId, *, old: str, new: str) -> None:
        self._leave(new, name)
        self.waiting.setdefault(old, set()).add(name)

    def _leave(self, path: str, name: ObjectId) -> None:
        self.waiting[path].discard(name)
        if not self.waiting[path]:
            del self.waiting[path]

    def digests(self, path: str, change: PathChange, *, old: bool) -> Mapping[ObjectId, str]:
        entry = change.old if old else change.new
        return {document.id: document.digest for document in self._blobs.of(path, entry)}


def touched_by(
    store: ObjectStore,
    *,
    documents: Iterable[Document],
    blobs: BlobDocuments,
    lines: Lines,
    commit: str,
    previous: tuple[str, Mapping[ObjectId, str]] | None = None,
) -> Mapping[ObjectId, str]:
    """Identity to the commit that gave the document its present content; not listed: it stood in the root's tree.

    Args:
        store: the objects.
        documents: of the revision.
        blobs: documents of single files.
        lines: the history, from the pinned root.
        commit: the revision, a commit of the first-parent line.
        previous: an earlier revision of the same line, and its answers.

    Raises:
        NotFound: history is missing.
        Refused: the earlier revision does not lie on the line.
    """
    walk = _Walk(documents, blobs=blobs)
    looks = Introducers(store, documents=blobs, judged=lambda: lines.judged)
    start = lines.root if previous is None else previous[0]
    order = (start, *first_parent_line(store, commit, stop=start))
    for parent, child in zip(order[-2::-1], order[:0:-1], strict=True):
        if not walk.waiting:
            break
        _look_at(store, walk, child=child, parent=parent, looks=looks)
    if previous is not None:
        rest = {name for names in walk.waiting.values() for name in names}
        walk.found.update({name: found for name, found in previous[1].items() if name in rest})
    return walk.found


def _look_at(store: ObjectStore, walk: _Walk, *, child: str, parent: str, looks: Introducers) -> None:
    changes = tree_changes(store, store.links(parent).tree, store.links(child).tree)
    origins: Mapping[tuple[ObjectId, str], str] | None = None
    for change in changes:
        names = walk.waiting.get(change.path)
        if not names or change.new is None:
            continue
        before = walk.digests(change.path, change, old=True)
        after = walk.digests(change.path, change, old=False)
        for name in sorted(names):
            if before.get(name) == after.get(name):
                continue
            origin = None
            if name not in before:
                origins = _origins(walk, changes) if origins is None else origins
                origin = origins.get((name, after.get(name, "")))
            if origin is not None:
                walk.move(name, old=origin, new=change.path)
                continue
            # Only a merge can have the content from a commit below it.
            merged = len(store.links(child).parents) > 1
            exact = looks.of_field(name, "", path=change.path, commit=child) if merged else child
            walk.settle(change.path, name, exact or child)


def _origins(walk: _Walk, changes: Iterable[PathChange]) -> Mapping[tuple[ObjectId, str], str]:
    """Where each document of the old versions of the changed files lay, by identity and content; the first place counts."""
    found: dict[tuple[ObjectId, str], str] = {}
    for change in changes:
        if change.old is not None:
            for name, digest in walk.digests(change.path, change, old=True).items():
                found.setdefault((name, digest), change.path)
    return found

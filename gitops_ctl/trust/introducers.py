"""Which commit gave a file, or a field of a document, its present value (gitops.md, section 4.6, "Introducer").

Values are followed by the identity of the document, so a move introduces nothing anew.  At a merge the first parent that has
the same value is followed.  What stood in the tree of the pinned root, or below it, has no introducer.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.loader import Document
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import entry_at, tree_changes
from gitops_ctl.trust.changes import BlobDocuments
from gitops_ctl.trust.verbs import value_at


@dataclass(frozen=True, slots=True)
class _Place:
    """A document in the tree of one commit, and the value of the field that is followed."""

    path: str
    blob: str
    value: bytes | None


class Introducers:
    """Looks back through judged history.

    Args:
        store: the objects.
        documents: the documents of single files.
        judged: gives every commit above the pinned root; a walk ends where it leaves them.  Asked for at the first walk.
    """

    def __init__(self, store: ObjectStore, *, documents: BlobDocuments, judged: Callable[[], Collection[str]]) -> None:
        self._store = store
        self._documents = documents
        self._judged = judged

    def of_file(self, path: str, *, commit: str) -> str | None:
        """The commit that gave the file the content that it has in the tree of `commit`."""

        def follows(child: str, parent: str) -> bool:
            return entry_at(self._store, self._tree(child), path) == entry_at(self._store, self._tree(parent), path)

        return self._walk(commit, follows)

    def of_field(self, name: ObjectId, pointer: str, *, path: str, commit: str) -> str | None:
        """The commit that gave a field of a document its present value; arguments as for `at_field`."""
        found = self.at_field(name, pointer, path=path, commit=commit)
        return None if found is None else found[0]

    def at_field(self, name: ObjectId, pointer: str, *, path: str, commit: str) -> tuple[str, str] | None:
        """The commit that gave a field of a document its present value, and the document's path in that commit.

        Args:
            name: identity of the document.
            pointer: the field; empty for the whole document.
            path: file of the document in the tree of `commit`.
            commit: where to start.
        """
        here = {commit: self._place(name, pointer, path=path, commit=commit)}

        def follows(child: str, parent: str) -> bool:
            place = here[child]
            if place is None:
                return False
            before = self._before(name, pointer, place=place, child=child, parent=parent)
            here[parent] = before
            return before is not None and before.value == place.value

        found = self._walk(commit, follows)
        place = here.get(found) if found is not None else None
        return None if found is None else (found, place.path if place is not None else path)

    def _walk(self, start: str, follows: Callable[[str, str], bool]) -> str | None:
        commit = start
        judged = self._judged()
        while commit in judged:
            parents = self._store.links(commit).parents
            same = next((parent for parent in parents if follows(commit, parent)), None)
            if same is None:
                return commit
            commit = same
        return None

    def _tree(self, commit: str) -> str:
        return self._store.links(commit).tree

    def _place(self, name: ObjectId, pointer: str, *, path: str, commit: str) -> _Place | None:
        entry = entry_at(self._store, self._tree(commit), path)
        if entry is None:
            return None
        return self._found(self._documents.of(path, entry), name, pointer, path=path, blob=entry.id)

    def _before(self, name: ObjectId, pointer: str, *, place: _Place, child: str, parent: str) -> _Place | None:
        """The document in the parent's tree: in the same file, or in one that differs between the two trees."""
        entry = entry_at(self._store, self._tree(parent), place.path)
        if entry is not None and entry.id == place.blob:
            return place
        if entry is not None:
            found = self._found(self._documents.of(place.path, entry), name, pointer, path=place.path, blob=entry.id)
            if found is not None:
                return found
        for change in tree_changes(self._store, self._tree(parent), self._tree(child)):
            if change.old is not None and change.path != place.path:
                documents = self._documents.of(change.path, change.old)
                found = self._found(documents, name, pointer, path=change.path, blob=change.old.id)
                if found is not None:
                    return found
        return None

    def _found(
        self, documents: Collection[Document], name: ObjectId, pointer: str, *, path: str, blob: str
    ) -> _Place | None:
        for document in documents:
            if document.id == name:
                value = value_at(document.tree, pointer)
                return _Place(path, blob, None if value is None else canonical_json(value))
        return None

r"""Changes of which the bytes alone tell that they are ordinary: `edit` and `delete`, nothing else (gitops.md, section 4.4, Verbs).

Reading documents costs most of the judging of a long history, and few of them have a verb of their own.  Here the rules are
asked first, by path, whether the signer may do everything that the change of a file could be; then nobody needs to know what
it is.  The answer is never a refusal: what is not allowed in this way is judged by its documents, and so is everything that
people read a record of.  It is exact, because:

  * A verb beyond those two comes from the kind of a document or from a consent annotation, whose names the text must hold
    (`verbs.marks`), and a rule with `kinds` about those two decides only for a kind whose name the text must hold.
  * YAML and JSON can write a name without its letters side by side only with an escape.  A text with a backslash, a `!` (a tag
    says how a scalar is read) or a NUL (UTF-16) is never plain.  Folded lines leave a space, which no name has.
  * Documents are compared across files, so a commit is plain as a whole or not at all.
  * The rule must be content with the signer alone: threshold 1, and not distinct from the author.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from gitops_ctl.documents.loader import LoadLimits
from gitops_ctl.documents.tree import is_document_name
from gitops_ctl.git.entries import TreeEntry
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import PathChange
from gitops_ctl.trust.authority import View
from gitops_ctl.trust.bounded import Bounded
from gitops_ctl.trust.verbs import marks

KNOWN_BLOBS: Final = 4096
MOST_KINDS: Final = 100
"""Kinds with rules of their own; each is searched for in every file, and beyond so many the documents are read."""

_MAY_HIDE: Final = re.compile(rb"[\\!\0]")

Known: TypeAlias = Bounded[tuple[str, frozenset[bytes]], bool]
"""(blob, names that matter) to whether the blob is plain."""


class PlainFiles:
    """Looks at the files of one store.

    Args:
        store: the objects.
        known: what was found before; kept by the caller.
        policy_path: the file that has a verb of its own.
    """

    def __init__(self, store: ObjectStore, *, known: Known, policy_path: str) -> None:
        self._store = store
        self._known = known
        self._policy_path = policy_path
        self._limit = LoadLimits().file_bytes
        self._marks = marks()
        self._wanted: dict[frozenset[str], frozenset[bytes]] = {}

    def allow(self, changes: Sequence[PathChange], *, views: Iterable[View]) -> bool:
        """Whether all that these changes could be is allowed to the judged person of each view; False says nothing.

        Raises:
            NotFound, Refused: a blob cannot be read.
        """
        views = tuple(views)
        kinds = frozenset[str]().union(*(view.policy.index.ordinary_kinds for view in views))
        if not changes or not views or len(kinds) > MOST_KINDS:
            return False
        wanted = self._wanted.get(kinds)
        if wanted is None:
            wanted = self._wanted[kinds] = frozenset(name.encode() for name in self._marks | kinds)
        return all(self._is_allowed(change, views=views, wanted=wanted) for change in changes)

    def _is_allowed(self, change: PathChange, *, views: Sequence[View], wanted: frozenset[bytes]) -> bool:
        path = change.path
        if path == self._policy_path:
            return False
        is_read = is_document_name(path)
        for verb in _possible(change, is_read=is_read):
            if not all(_is_content(view, path=path, verb=verb) for view in views):
                return False
        return not is_read or (self._is_plain(change.old, wanted) and self._is_plain(change.new, wanted))

    def _is_plain(self, entry: TreeEntry | None, wanted: frozenset[bytes]) -> bool:
        if entry is None or not entry.is_file:
            return True
        known = self._known.get((entry.id, wanted))
        return self._known.put((entry.id, wanted), self._has_none(entry.id, wanted)) if known is None else known

    def _has_none(self, blob: str, wanted: frozenset[bytes]) -> bool:
        if self._store.size(blob) > self._limit:  # no document is read from it either
            return True
        text = self._store.blob(blob)
        return _MAY_HIDE.search(text) is None and not any(name in text for name in wanted)


def _possible(change: PathChange, *, is_read: bool) -> tuple[str, ...]:
    """What the change of a file without marks can be: a document can leave a file that stays, or move from a file that goes."""
    if is_read and change.old is not None:
        return ("edit", "delete")
    return ("edit",) if change.new is not None else ("delete",)


def _is_content(view: View, *, path: str, verb: str) -> bool:
    """Whether the rule that decides about files without a kind is content with each single judged person."""
    rule = view.policy.rule_for(path=path, verb=verb, kind=None)
    if rule is None or rule.threshold > 1 or rule.is_distinct(verb) or view.by_reviews or not view.persons:
        return False
    return all(view.policy.holds_role(person, rule.roles) for person in view.persons)

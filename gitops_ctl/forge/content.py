"""From the changes of a Proposal to files as they will be (forges.md, sections 3.1 and 9.2).

Every file is edited anew from the base, never from our own older branch.  All edits or none.  A change whose result is there already
does nothing, so the same function says whether the base has the change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from gitops_ctl.api.proposal import Change
from gitops_ctl.core.canonical import digest
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.documents.splice import ABSENT, Edit, Inner, SpliceRefused, splice_with_notes

FileEdit: TypeAlias = tuple[str, Edit]
Read: TypeAlias = Callable[[str], tuple[int, bytes] | None]
"""Mode and bytes of the file at a path, None when there is none."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Files after their edits.

    Attributes:
        files: path to mode and bytes, for each file that the edits name and that is there.
        changed: the paths whose bytes differ from before.
        before: their bytes before.
        notes: lines that a person should look at, with their file.
    """

    files: Mapping[str, tuple[int, bytes]]
    changed: frozenset[str]
    before: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


def edits_of(changes: Sequence[Change]) -> tuple[FileEdit, ...]:
    """The changes as the splice editor takes them.

    Raises:
        Refused: CHANGE_INVALID, one says two things, or nothing.
    """
    return tuple((change.file, _edit(change, place)) for place, change in enumerate(changes))


def _edit(change: Change, place: int) -> Edit:
    # A null is not stored by the API server: it is the value null wherever a value must be.
    before, after = cast("JsonValue", change.before), cast("JsonValue", change.after)
    if change.op == "add" and before is not None:
        raise Refused("an add has no from", code=ErrorCode.CHANGE_INVALID, subject=f"changes[{place}]")
    if change.op == "remove" and after is not None:
        raise Refused("a remove has no to", code=ErrorCode.CHANGE_INVALID, subject=f"changes[{place}]")
    return Edit(
        document=change.document,
        pointer=change.pointer,
        op=change.op,
        before=ABSENT if change.op == "add" else before,
        after=ABSENT if change.op == "remove" else after,
        inner=tuple(Inner(inner.document, inner.pointer) for inner in change.inner),
    )


def change_of(edit: FileEdit) -> JsonObject:
    """The member of `spec.changes` that stands for an edit."""
    file, one = edit
    tree: dict[str, JsonValue] = {"file": file, "document": one.document, "pointer": one.pointer, "op": one.op}
    if one.inner:
        tree["inner"] = [{"document": inner.document, "pointer": inner.pointer} for inner in one.inner]
    if one.op != "add" and one.before is not ABSENT and one.before is not None:
        tree["from"] = cast("JsonValue", one.before)
    if one.op != "remove" and one.after is not ABSENT and one.after is not None:
        tree["to"] = cast("JsonValue", one.after)
    return tree


def edit_digest(edits: Sequence[FileEdit]) -> str:
    """Says whether two sets of edits are the same, whatever the base looks like."""
    return digest([change_of(edit) for edit in edits])


def edited(read: Read, edits: Sequence[FileEdit]) -> Edited:
    """The files after all edits.

    Raises:
        SpliceRefused: one cannot be made; its text names the file.
        Refused: from `read`: the place is no regular file, or too large.
    """
    files: dict[str, tuple[int, bytes]] = {}
    originals: dict[str, bytes] = {}
    notes: list[str] = []
    for path in dict.fromkeys(path for path, _ in edits):
        wanted = [edit for other, edit in edits if other == path]
        found = read(path)
        if found is None:
            if all(edit.op == "remove" for edit in wanted):
                continue  # it is gone already
            raise SpliceRefused("PathAbsent", f"{path}: there is no such file")
        mode, before = found
        try:
            done = splice_with_notes(before, wanted)
        except SpliceRefused as error:
            # The class has its own words for a reason; the file is what it cannot know.
            error.args = (f"{path}: {error.message}", *error.args[1:])
            raise
        files[path] = (mode, done.text)
        notes += [f"{path}: {note}" for note in done.notes]
        if done.text != before:
            originals[path] = before
    return Edited(files, frozenset(originals), originals, tuple(notes))

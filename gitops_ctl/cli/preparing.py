"""Prepares a signed change in a person's checkout: edits one document in place and says what to sign.

Nothing is committed and nothing is sent: signing belongs to the person's own Git (gitops.md, section 4.4).
"""

import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.splice import ABSENT, Edit, SpliceRefused, documents_in, splice, value_in

SAME, CHANGED = 0, 2


@dataclass(frozen=True, slots=True)
class Place:
    """One document of a file; `index` counts from 0, empty documents included."""

    file: Path
    text: bytes
    index: int
    tree: JsonObject

    @property
    def id(self) -> ObjectId:
        return ObjectId.of(self.tree)

    def is_named(self, name: str) -> bool:
        """Whether it is meant by `name`, or by `namespace/name`; an empty name means any."""
        return name in ("", self.id.name, f"{self.id.namespace}/{self.id.name}")

    def value(self, pointer: str) -> object:
        """What stands at a pointer; ABSENT for nothing."""
        return value_in(self.text, document=self.index, pointer=pointer)


def document_in(file: Path, *, kind: str, name: str) -> Place:
    """The one document of a file that is meant.

    Args:
        file: YAML of one or several documents.
        kind: only of this kind; empty for any.
        name: only with this `metadata.name`, or `namespace/name`; empty for any.

    Raises:
        Refused: there is none, or more than one; or the place is no regular file.
        SpliceRefused: the file cannot be read as YAML, or is too large.
    """
    text = plain_file(file)
    found = [place for place in _documents(file, text) if _is_meant(place, kind=kind, name=name)]
    if len(found) == 1:
        return found[0]
    wanted = " ".join(part for part in (kind or "document", name) if part)
    listed = ", ".join(str(place.id) for place in found)
    raise Refused(
        f"the file holds no {wanted}" if not found else f"the file holds several: {listed}",
        code=ErrorCode.USAGE,
        subject=str(file),
        hint="name the file that declares it" if not found else "choose one with --name NAME or NAMESPACE/NAME",
    )


def _documents(file: Path, text: bytes) -> Iterator[Place]:
    for index, tree in enumerate(documents_in(text)):
        if isinstance(tree, dict):
            yield Place(file, text, index, tree)


def places_in(file: Path, text: bytes) -> list[Place]:
    """The documents of one of many files that are looked through; none when it cannot be read, which `check` tells."""
    try:
        return list(_documents(file, text))
    except SpliceRefused:
        return []


def plain_file(file: Path) -> bytes:
    """The bytes of a regular file; a link is not followed, since the file that it leads to may lie outside the checkout.

    Raises:
        Refused: it is something else, or cannot be read.
    """
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            what = "a symbolic link" if file.is_symlink() else "no regular file"
            raise Refused(f"is {what}", code=ErrorCode.USAGE, subject=str(file), hint="name the file itself")
        return file.read_bytes()
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}", code=ErrorCode.USAGE, subject=str(file)) from error


def _is_meant(place: Place, *, kind: str, name: str) -> bool:
    found = GroupVersionKind.of(place.tree)
    if not found.kind or (kind and found.kind != kind):
        return False
    return place.is_named(name)


def annotation_edits(place: Place, *, name: str, value: str) -> tuple[Edit, ...]:
    """The edits that give a document an annotation; none when it has it."""
    pointer = pointer_of(("metadata", "annotations", name))
    present = place.value(pointer)
    if present == value:
        return ()
    if present is not ABSENT:
        return (Edit(place.index, pointer, "replace", after=value),)
    if place.value("/metadata/annotations") is ABSENT:
        return (Edit(place.index, "/metadata/annotations", "add", after={name: value}),)
    return (Edit(place.index, pointer, "add", after=value),)


def block_edits(place: Place, *, pointer: str, value: JsonValue) -> tuple[Edit, ...]:
    """The edit that adds a block; none when it stands there with this value.

    Raises:
        Refused: another value stands there.
    """
    present = place.value(pointer)
    if present == value:
        return ()
    if present is not ABSENT:
        raise Refused(
            f"{pointer} of {place.id} has another value already",
            code=ErrorCode.USAGE,
            subject=str(place.file),
            hint="read what it says; take it out in a commit of its own if it should be given anew",
        )
    return (Edit(place.index, pointer, "add", after=value),)


def carry_out(place: Place, edits: Sequence[Edit], *, meaning: str, known: str) -> int:
    """Write the edits into the file and say what they mean; the exit code.

    Raises:
        SpliceRefused: the text cannot be edited in place; nothing was written.
    """
    if not edits:
        click.echo(f"nothing to do: {known}")
        return SAME
    changed = splice(place.text, edits)
    replace_file(place.file, changed)
    show_change(place.file, before=place.text, after=changed)
    say_what_to_sign(place.file, meaning=meaning)
    return CHANGED


def replace_file(file: Path, data: bytes) -> None:
    """Write a whole file or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        if file.exists():
            temporary.chmod(file.stat().st_mode)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def show_change(file: Path, *, before: bytes, after: bytes) -> None:
    """The change as a unified diff."""
    lines = difflib.unified_diff(
        before.decode(errors="replace").splitlines(keepends=True),
        after.decode(errors="replace").splitlines(keepends=True),
        f"a/{file}" if before else "/dev/null",
        f"b/{file}",
    )
    for line in lines:
        click.echo(line.rstrip("\n"))


def say_what_to_sign(file: Path, *, meaning: str) -> None:
    """What the commit says, and how it is made."""
    click.echo(f"\n{meaning}\nRead the change, then sign it:\n  git add {file}\n  git commit -S")

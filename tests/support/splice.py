"""Edits of texts in tests: what changed, line by line."""

import difflib
import textwrap

import pytest

from gitops_ctl.documents.splice import ABSENT, Edit, Found, Inner, SpliceRefused, splice


def text(block: str) -> str:
    """An indented block of a test as a file."""
    return textwrap.dedent(block).lstrip("\n")


def put(
    pointer: str, after: Found, *, before: Found = ABSENT, document: int = 0, inner: tuple[Inner, ...] = ()
) -> Edit:
    return Edit(document, pointer, "replace", before=before, after=after, inner=inner)


def new(pointer: str, after: Found, *, document: int = 0, inner: tuple[Inner, ...] = ()) -> Edit:
    return Edit(document, pointer, "add", after=after, inner=inner)


def cut(pointer: str, *, before: Found = ABSENT, document: int = 0, inner: tuple[Inner, ...] = ()) -> Edit:
    return Edit(document, pointer, "remove", before=before, inner=inner)


def edited(old: str, *edits: Edit) -> str:
    return splice(old.encode(), edits).decode()


def changed_lines(old: str, fresh: str) -> list[str]:
    """Lines that went (`-`) and came (`+`), with their ends where they are not a line feed."""
    pair = (one.splitlines(keepends=True) for one in (old, fresh))
    return [line.removesuffix("\n") for line in difflib.ndiff(*pair) if line[0] in "-+"]


def refusal(old: str | bytes, *edits: Edit) -> SpliceRefused:
    """The refusal of edits that must be refused."""
    with pytest.raises(SpliceRefused) as caught:
        splice(old if isinstance(old, bytes) else old.encode(), edits)
    return caught.value

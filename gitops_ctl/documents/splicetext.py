"""The lines of a text and how they were written down: byte-order mark, kind of newline, last newline or none.

A splice replaces whole lines, so that everything else goes back byte by byte (cni-switch.md, section 13.2, steps 1 and 8).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.documents.splicerefusal import SpliceRefused

LARGEST_BYTES: Final = 2**20
_BOM: Final = "\ufeff"
_UNUSUAL_BREAKS: Final = ("\x85", "\u2028", "\u2029")


@dataclass(frozen=True, slots=True)
class Change:
    """Lines `[first, last)`, counted from 0, become `lines`."""

    first: int
    last: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpliceText:
    """A text as lines without their newlines.

    Attributes:
        mark: whether a byte-order mark stands before the first line.
        newline: what ends each line.
        ended: whether the last line has its newline too.
    """

    lines: tuple[str, ...]
    mark: bool = False
    newline: str = "\n"
    ended: bool = True

    @property
    def text(self) -> str:
        """The lines joined by line feeds; without the mark, so that columns count from the first character."""
        return "\n".join(self.lines) + ("\n" if self.ended and self.lines else "")

    def encoded(self) -> bytes:
        """The bytes, as they were read."""
        return ((_BOM if self.mark else "") + self.text.replace("\n", self.newline)).encode()

    def changed(self, changes: Iterable[Change]) -> "SpliceText":
        """The text with changes that do not overlap; of two at the same line the first one comes first."""
        lines = list(self.lines)
        placed = sorted(enumerate(changes), key=lambda one: (one[1].first, one[1].last, one[0]), reverse=True)
        for _, change in placed:
            lines[change.first : change.last] = change.lines
        return replace(self, lines=tuple(lines))


def read_text(data: bytes) -> SpliceText:
    """The lines of a file.

    Raises:
        SpliceRefused: too large, not UTF-8, or with newlines of more than one kind.
    """
    if len(data) > LARGEST_BYTES:
        raise SpliceRefused("TooLarge", f"the file is larger than {LARGEST_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpliceRefused("NotUtf8", "the file is not UTF-8", line=line) from None
    mark = text.startswith(_BOM)
    body = text.removeprefix(_BOM)
    newline = _newline(body)
    lines = body.split(newline)
    ended = lines[-1] == ""
    return SpliceText(tuple(lines[:-1] if ended else lines), mark=mark, newline=newline, ended=ended)


def _newline(body: str) -> str:
    for unusual in _UNUSUAL_BREAKS:
        if unusual in body:
            line = body.count("\n", 0, body.index(unusual)) + 1
            raise SpliceRefused(
                "UnusualLineBreak", f"the character U+{ord(unusual):04X} ends a line in YAML", line=line
            )
    windows = body.count("\r\n")
    if windows == 0 and "\r" not in body:
        return "\n"
    if windows == body.count("\n") == body.count("\r"):
        return "\r\n"
    raise SpliceRefused("MixedNewlines", "the file mixes kinds of newlines")

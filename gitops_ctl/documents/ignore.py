"""`.gitops-ctlignore`: files that are no documents (gitops.md, section 5.1).

Patterns as in `.gitignore`, without negation: an ignore file could otherwise bring back what a folder above left out, and
what is applied would depend on the order of lines.  Matching takes time linear in the path, whatever the pattern is.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.problem import Problem

IGNORE_FILE: Final = ".gitops-ctlignore"
_MAX_PATTERNS: Final = 1000
_MAX_PATTERN: Final = 500
_ANY_FOLDERS: Final = "**"


@dataclass(frozen=True, slots=True)
class _Segment:
    """A pattern for one name: pieces of fixed length with anything between them."""

    pieces: tuple[re.Pattern[str], ...]
    lengths: tuple[int, ...]

    def matches(self, name: str) -> bool:
        first, last = self.pieces[0], self.pieces[-1]
        if len(self.pieces) == 1:
            return first.fullmatch(name) is not None
        end = len(name) - self.lengths[-1]
        place = self.lengths[0]
        if place > end or not first.match(name) or not last.match(name, end):
            return False
        # The leftmost place of every piece between leaves the most room for the next one.
        for piece, length in zip(self.pieces[1:-1], self.lengths[1:-1], strict=True):
            found = piece.search(name, place, end)
            if found is None:
                return False
            place = found.start() + length
        return True


@dataclass(frozen=True, slots=True)
class _Pattern:
    segments: tuple[_Segment | None, ...]
    """None stands for any number of folders."""

    only_folders: bool

    def hides(self, names: list[str]) -> bool:
        """True when the path, or one of the folders it lies in, matches."""
        reached = {0}
        for count, name in enumerate(names, start=1):
            reached = self._after(name, self._closed(reached))
            is_folder = count < len(names)
            if len(self.segments) in self._closed(reached) and (is_folder or not self.only_folders):
                return True
        return False

    def _closed(self, reached: set[int]) -> set[int]:
        closed = set(reached)
        for place, segment in enumerate(self.segments):
            if place in closed and segment is None and place + 1 < len(self.segments):
                closed.add(place + 1)
        return closed

    def _after(self, name: str, reached: set[int]) -> set[int]:
        after: set[int] = set()
        for place in reached:
            if place == len(self.segments):
                continue
            segment = self.segments[place]
            if segment is None:
                after.add(place)
                if place + 1 == len(self.segments):
                    after.add(place + 1)
            elif segment.matches(name):
                after.add(place + 1)
        return after


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of one folder.  `folder` is its path, empty for the root."""

    folder: str
    patterns: tuple[_Pattern, ...]
    problems: tuple[Problem, ...] = ()

    def hides(self, path: str) -> bool:
        """True when `path`, which lies below the folder, is left out."""
        below = path[len(self.folder) + 1 :] if self.folder else path
        names = below.split("/")
        return any(pattern.hides(names) for pattern in self.patterns)


def parse_ignore(data: bytes, *, folder: str) -> IgnoreRules:
    """Rules of one file; lines that cannot be understood are problems and hide nothing."""
    file = f"{folder}/{IGNORE_FILE}" if folder else IGNORE_FILE
    patterns: list[_Pattern] = []
    problems: list[Problem] = []
    for number, raw in enumerate(data.decode(errors="replace").splitlines(), start=1):
        line = raw.rstrip()
        if not line or line.startswith("#"):
            continue
        try:
            patterns.append(_pattern(line, count=len(patterns)))
        except ValueError as error:
            hint = "list the files to leave out, without exceptions"
            problems.append(Problem(ErrorCode.RULE, str(error), file, number, 1, hint=hint))
    return IgnoreRules(folder, tuple(patterns), tuple(problems))


@lru_cache(maxsize=4096)
def _segment(text: str) -> _Segment:
    """Raises ValueError for a character class that cannot be read."""
    pieces: list[str] = [""]
    lengths = [0]
    place = 0
    while place < len(text):
        if text[place] == "*":
            pieces.append("")
            lengths.append(0)
            place += 1
            continue
        piece, place = _one(text, place)
        pieces[-1] += piece
        lengths[-1] += 1
    try:
        return _Segment(tuple(re.compile(piece, re.DOTALL) for piece in pieces), tuple(lengths))
    except re.error as error:
        raise ValueError(f"the pattern cannot be read: {error}") from error


def _pattern(line: str, *, count: int) -> _Pattern:
    if line.startswith("!"):
        raise ValueError("negated patterns are not supported")
    if len(line) > _MAX_PATTERN or count >= _MAX_PATTERNS:
        raise ValueError(f"allowed are {_MAX_PATTERNS} patterns of {_MAX_PATTERN} characters")
    names = [name for name in line.strip("/").split("/") if name]
    if not names:
        raise ValueError("the pattern names nothing")
    is_anchored = line.startswith("/") or len(names) > 1
    segments = [None if name == _ANY_FOLDERS else _segment(name) for name in names]
    if not is_anchored:
        segments.insert(0, None)
    return _Pattern(tuple(segments), line.endswith("/"))


def _one(text: str, place: int) -> tuple[str, int]:
    """The expression for the one character that stands at `place`, and where the next one begins."""
    character = text[place]
    if character == "?":
        return ".", place + 1
    if character == "[":
        end = text.find("]", place + 2)
        if end > 0:
            inside = text[place + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            negated = inside.startswith(("!", "^"))
            return f"[{'^' if negated else ''}{inside[1:] if negated else inside}]", end + 1
    if character == "\\" and place + 1 < len(text):
        return re.escape(text[place + 1]), place + 2
    return re.escape(character), place + 1

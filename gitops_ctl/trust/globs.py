"""Path patterns of a trust policy: `*` and `?` inside a segment, `**` for any number of segments (gitops.md, section 4.4).

Matching takes time linear in the product of both lengths, whatever the pattern: paths come from whoever can push.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

_ANY_DEPTH = "**"
_LITERAL = re.compile(r"[^*?]*")


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern, compared with whole repository-relative paths, case-sensitively.

    Most patterns of a policy are one path, or a folder and all below it: those are told by the first characters alone.
    """

    text: str
    _literal: str = field(init=False, repr=False, compare=False)
    """What every path that fits begins with; the whole path where the pattern has no wildcard."""
    _rest: str = field(init=False, repr=False, compare=False)
    """What follows it in the pattern."""

    def __post_init__(self) -> None:
        segments = self.text.split("/")
        if any(segment in ("", ".", "..") for segment in segments):
            raise ValueError("a pattern is relative to the repository, without empty segments, '.' and '..'")
        if any(_ANY_DEPTH in segment and segment != _ANY_DEPTH for segment in segments):
            raise ValueError("'**' stands alone between slashes")
        literal = _LITERAL.match(self.text)
        assert literal is not None
        object.__setattr__(self, "_literal", literal[0])
        object.__setattr__(self, "_rest", self.text[literal.end() :])

    @property
    def folder(self) -> str:
        """The deepest folder that every path that fits lies in, with a slash at its end; empty for the root."""
        return self._literal[: self._literal.rfind("/") + 1]

    def matches(self, path: str) -> bool:
        """Whether the whole path fits."""
        if not path.startswith(self._literal):
            return False
        if self._rest == _ANY_DEPTH:  # the literal ends with a slash, or is empty
            return len(path) > len(self._literal) or not self._literal
        return len(path) == len(self._literal) if not self._rest else _matches(self.text, path)


@lru_cache(maxsize=65_536)
def _matches(pattern: str, path: str) -> bool:
    if pattern == _ANY_DEPTH:
        return True
    segments = pattern.split("/")
    if segments[-1] == _ANY_DEPTH:  # what lies below a folder, not a file with the folder's name
        segments.append("*")
    return _wild(segments, path.split("/"), many=_ANY_DEPTH, same=_segment_matches)


def _segment_matches(pattern: str, segment: str) -> bool:
    return _wild(pattern, segment, many="*", same=lambda one, other: one in ("?", other))


def _wild(pattern: Sequence[T], text: Sequence[T], *, many: T, same: Callable[[T, T], bool]) -> bool:
    """Greedy matching with one point to fall back to: the latest `many`."""
    here = at = 0
    star, kept = -1, 0
    while at < len(text):
        if here < len(pattern) and pattern[here] == many:
            star, kept = here, at
            here += 1
        elif here < len(pattern) and same(pattern[here], text[at]):
            here, at = here + 1, at + 1
        elif star >= 0:
            kept += 1
            here, at = star + 1, kept
        else:
            return False
    return all(rest == many for rest in pattern[here:])

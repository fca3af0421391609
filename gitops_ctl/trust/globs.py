"""Path patterns of a trust policy: `*` and `?` inside a segment, `**` for any number of segments (gitops.md, section 4.4).

Matching takes time linear in the product of both lengths, whatever the pattern: paths come from whoever can push.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

_ANY_DEPTH = "**"


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern, compared with whole repository-relative paths, case-sensitively."""

    text: str

    def __post_init__(self) -> None:
        segments = self.text.split("/")
        if any(segment in ("", ".", "..") for segment in segments):
            raise ValueError("a pattern is relative to the repository, without empty segments, '.' and '..'")
        if any(_ANY_DEPTH in segment and segment != _ANY_DEPTH for segment in segments):
            raise ValueError("'**' stands alone between slashes")

    def matches(self, path: str) -> bool:
        """Whether the whole path fits."""
        return _matches(self.text, path)


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

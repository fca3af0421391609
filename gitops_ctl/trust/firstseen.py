"""When a commit was first seen, by our own clock (gitops.md, section 4.5, "First seen").

The list of observed tips is bounded: an entry leaves it in such a way that a time can only err towards later, and by little.
Pure; `sighting` works out the time of a commit.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

LIMIT = 200


@dataclass(frozen=True, slots=True)
class SeenTip:
    """A tip of the ref, a commit also where a tag is followed, and when it was first observed."""

    tip: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """Observed tips, oldest first, each once."""

    tips: tuple[SeenTip, ...] = ()

    def observed(self, tip: str, *, at: datetime) -> Self:
        """The list with this tip; itself when the tip is listed already."""
        if any(entry.tip == tip for entry in self.tips):
            return self
        return type(self)(_thinned((*self.tips, SeenTip(tip, at))))


def _thinned(tips: tuple[SeenTip, ...]) -> tuple[SeenTip, ...]:
    """Without the entries whose time is nearest to that of their successor; the newest always stays."""
    kept = list(tips)
    while len(kept) > LIMIT:
        gaps = [kept[place + 1].at - kept[place].at for place in range(len(kept) - 1)]
        del kept[gaps.index(min(gaps))]
    return tuple(kept)

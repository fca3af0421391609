"""Faults as a script: which request, from which one on, how often, and what goes wrong."""

from dataclasses import dataclass, field
from enum import Enum, auto


class Fault(Enum):
    """What the double does instead of answering, or beside it."""

    FORBIDDEN = auto()  # 403
    NOT_FOUND = auto()  # 404
    EXPIRED_IN_STREAM = auto()  # 200, then one ERROR event with 410
    EXPIRED_STATUS = auto()  # HTTP 410
    CLOSE_AT_ONCE = auto()  # 200 and end
    SLOW_STREAM = auto()  # one byte a second
    HALF_OPEN = auto()  # sends no more, keeps the socket
    FUTURE_VERSION = auto()  # accepts the watch and says nothing, not even bookmarks
    RATE_LIMITED = auto()  # 429, with Retry-After when `retry_after_s` is given
    SERVER_ERROR = auto()  # `code`, 500 unless told otherwise
    DUPLICATE_EVENTS = auto()  # repeats the last `events` events
    CUT_LINE = auto()  # closes in the middle of a line
    BIG_LINE = auto()  # the next event has 2 MB
    DELETE_DURING_LIST = auto()  # removes an object between two pages and expires the token
    LOST_REPLY = auto()  # does the write, then closes without a reply
    CONFLICT = auto()  # another writer gets in first
    UNAUTHORIZED = auto()  # 401 until another credential is shown
    RESTART = auto()  # drops all connections; the store is lost unless `keep`
    STALL = auto()  # carries on after `seconds`


@dataclass
class Entry:
    """One line of the script.  `at` counts matching requests from one, beginning when the line was written."""

    verb: str
    resource: str
    fault: Fault
    at: int
    count: int
    retry_after_s: int | None = None
    seconds: float = 0.0
    events: int = 3
    code: int = 500
    keep: bool = True
    seen: int = 0
    credential: str | None = None

    def matches(self, verb: str, resource: str) -> bool:
        """Whether a request is one that this line counts."""
        return self.verb in ("*", verb) and self.resource in ("*", resource)

    def strikes(self) -> bool:
        """Count a matching request; true when it is hit."""
        self.seen += 1
        return self.at <= self.seen < self.at + self.count


@dataclass
class Script:
    """All lines, and what has struck so far."""

    entries: list[Entry] = field(default_factory=list)
    struck: list[tuple[str, str, Fault]] = field(default_factory=list)

    def next(self, verb: str, resource: str) -> Entry | None:
        """The fault of this request; every matching line counts it, the first that strikes wins."""
        hits = [entry for entry in self.entries if entry.matches(verb, resource) and entry.strikes()]
        if not hits:
            return None
        self.struck.append((verb, resource, hits[0].fault))
        return hits[0]

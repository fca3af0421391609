"""Read-your-writes: a planner must not plan from a cache that has not seen what it just wrote.  Pure.

Each write leaves an expectation under the key that planned it.  The key may plan again when the cache shows the written version
or a higher one, when a list that began after the write has been taken in, when the object is gone or another one, or when the
deadline is over; then the planner reads the object itself.  Nothing is kept over a restart, which begins with full lists.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from gitops_ctl.kube.cache import Entry

K = TypeVar("K", bound=Hashable)

DEADLINE_S: Final = 30.0

_COMPARABLE = re.compile(r"[1-9][0-9]*")


def has_reached(version: str, *, wanted: str) -> bool:
    """Whether `version` is `wanted` or newer.

    Versions are opaque, except that since Kubernetes 1.35 those of one kind compare as decimal numbers; anything else is
    compared for equality.
    """
    if _COMPARABLE.fullmatch(version) and _COMPARABLE.fullmatch(wanted):
        return int(version) >= int(wanted)
    return version == wanted


@dataclass(frozen=True, slots=True)
class Written:
    """One write of ours: which object, at which version, and when it was answered on the boot clock."""

    uid: str
    version: str
    at_s: float


class Expectations(Generic[K]):
    """By planning key, the writes that its caches have yet to show."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._written: dict[K, dict[Hashable, Written]] = {}

    def wrote(self, key: K, *, target: Hashable, written: Written) -> None:
        """Remember a write of `key`; a later one to the same target replaces it."""
        self._written.setdefault(key, {})[target] = written

    def waits(self, key: K, *, now_s: float, seen: Callable[[Hashable], Entry[object] | None], listed_s: float) -> bool:
        """Whether `key` should not plan yet.

        Args:
            key: the planning key.
            now_s: the boot clock.
            seen: the cache's entry of a target.
            listed_s: when the last list that is in the cache began, on the boot clock.
        """
        left = {
            target: written
            for target, written in self._written.get(key, {}).items()
            if not self._is_met(written, seen(target), now_s=now_s, listed_s=listed_s)
        }
        if left:
            self._written[key] = left
        else:
            self._written.pop(key, None)
        return bool(left)

    def forget(self, key: K) -> None:
        """Nothing is expected for `key` any more: its object is gone."""
        self._written.pop(key, None)

    def _is_met(self, written: Written, entry: Entry[object] | None, *, now_s: float, listed_s: float) -> bool:
        if now_s - written.at_s >= self._deadline_s or listed_s > written.at_s:
            return True
        if entry is None:
            return False  # not created yet, as far as the cache knows; a delete of another ends at the deadline
        return entry.uid != written.uid or has_reached(entry.version, wanted=written.version)

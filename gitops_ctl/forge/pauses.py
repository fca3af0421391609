"""How long a forge asks us to wait, and waiting so long (forges.md, sections 2, 4 and 18).

A pause counts for one token at one host, whoever of us was told so: going on with another call would only lengthen it.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.http import HttpAnswer

LONGEST_S: Final = 3600.0
_UNNAMED_S: Final = 60.0
_SECONDARY: Final = b"secondary rate limit"
_CREDENTIALS: Final = ("authorization", "private-token")


def pause_asked(answer: HttpAnswer, *, now: datetime) -> float | None:
    """Seconds to wait when the answer is one of a rate limit, None when it is none; at most an hour.

    429 always is one.  GitHub also answers 403: with `retry-after`, with nothing remaining, or with a text about secondary limits.
    """
    limited = answer.status == 429 or (
        answer.status == 403
        and (
            "retry-after" in answer.headers
            or answer.headers.get("x-ratelimit-remaining") == "0"
            or _SECONDARY in answer.body[:4096].lower()
        )
    )
    if not limited:
        return None
    named = retry_after(answer.headers, now=now)
    if named is None:
        named = _until_reset(answer.headers, now=now)
    return _UNNAMED_S if named is None else named


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds that `retry-after` names, as a number or as a date; None without one, at most an hour."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(LONGEST_S, float(text[:9]))
    with suppress(ValueError, TypeError):
        return _bounded((parsedate_to_datetime(text) - now).total_seconds())
    return None


def _until_reset(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """GitHub and GitLab name the second at which the count starts anew."""
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        text = headers.get(name, "").strip()
        if text.isascii() and text.isdigit():
            return _bounded(float(text[:12]) - now.timestamp())
    return None


def _bounded(seconds: float) -> float:
    # Never zero: the clocks of two machines differ.
    return min(LONGEST_S, max(1.0, seconds))


class Pauses:
    """Who waits until when, and whose turn is when.  One object for all calls of a process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._turns: dict[str, float] = {}

    def remaining(self, host: str, headers: Mapping[str, str]) -> float:
        """Seconds that these credentials still have to wait at `host`, 0 when they need not."""
        return max(0.0, self._until.get(_who(host, headers), 0.0) - self._clock.boot_s())

    def begin(self, host: str, headers: Mapping[str, str], *, seconds: float) -> None:
        """Remember a pause that was asked for."""
        now = self._clock.boot_s()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until[_who(host, headers)] = now + seconds

    async def turn(self, host: str, *, gap_s: float) -> None:
        """Return when `gap_s` have gone by since the last turn at `host`; turns are given in the order in which they are asked for."""
        now = self._clock.boot_s()
        self._turns = {key: free for key, free in self._turns.items() if free > now}
        begin = self._turns.get(host, now)
        self._turns[host] = begin + gap_s
        if begin > now:
            await self._clock.sleep(begin - now)


def _who(host: str, headers: Mapping[str, str]) -> str:
    """A key that tells tokens apart and does not keep them."""
    secret = "\n".join(value for name, value in headers.items() if name.lower() in _CREDENTIALS)
    return f"{host} {hashlib.sha256(secret.encode()).hexdigest()}"

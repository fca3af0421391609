"""Durations in the grammar of Go, as exact nanoseconds (topology-scheduling.md, 3.2, D7)."""

import re
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign
    "\u03bcs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)")
_LARGEST: Final = 2**63 - 1
_LONGEST: Final = 64
"""Characters: exact arithmetic over longer numbers would be work for nothing."""


def nanoseconds(text: str) -> int:
    """Nanoseconds of a duration such as `1h30m` or `1.5h`; negative with a leading minus.

    Raises:
        ValueError: the text is no duration, or does not fit in 64 bits.
    """
    if len(text) > _LONGEST or _WHOLE.fullmatch(text) is None:
        raise ValueError("must be a duration such as 30s, 10m or 1h30m")
    value = sum(_exactly(number, _UNITS[unit]) for number, unit in _PART.findall(text))
    if value > _LARGEST:
        raise ValueError("is too long: 64 bits of nanoseconds are about 292 years")
    return -value if text.startswith("-") else value


def _exactly(number: str, unit: int) -> int:
    """Whole nanoseconds in so many units; `1.` and `.5` are numbers too."""
    whole, _, rest = number.partition(".")
    scale: int = 10 ** len(rest)
    return int(whole or "0") * unit + int(rest or "0") * unit // scale

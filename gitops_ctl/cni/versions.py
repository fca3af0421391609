"""Version ranges of the deny list: `>=1.19.0 <1.19.5 || 1.20.x` (cni-switch.md, sections 3.1 and 6.4).

Pure.  A pre-release counts as the release that it precedes: a range that names 1.19.0 also names 1.19.0-rc.1.
"""

import re
from dataclasses import dataclass

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?(?:[-+][0-9A-Za-z.+-]*)?")
_BOUND = re.compile(rf"(>=|<=|>|<|=|\^|~)?\s*({_VERSION.pattern}|[xX*])")

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Interval:
    """From `low` on, and below `high`; None is no bound."""

    low: Triple | None
    high: Triple | None

    def holds(self, version: Triple) -> bool:
        return (self.low is None or version >= self.low) and (self.high is None or version < self.high)


def version_of(text: str) -> Triple | None:
    """The release that a text names, such as `v1.19.4` or `1.36.3+build`; None when it names none."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    parts = [int(part) if part is not None and part.isdecimal() else 0 for part in found.groups()]
    return (parts[0], parts[1], parts[2])


def is_in(version: Triple, ranges: str) -> bool | None:
    """Whether a version lies in one of the ranges; None when the text is none."""
    found = [_intervals(part) for part in ranges.split("||")]
    if any(part is None for part in found):
        return None
    return any(all(interval.holds(version) for interval in part) for part in found if part is not None)


def _intervals(text: str) -> list[_Interval] | None:
    found: list[_Interval] = []
    rest = text.strip().strip(",").strip()
    if not rest:
        return None
    while rest:
        bound = _BOUND.match(rest)
        if bound is None:
            return None
        found.append(_interval(bound.group(1) or "", bound.group(2)))
        rest = rest[bound.end() :]
        if rest and rest[0] not in " ,":
            return None
        rest = rest.lstrip(" ,")
    return found


def _interval(sign: str, text: str) -> _Interval:
    low, width = _parts(text)
    after = _next(low, width)
    found = {
        ">=": _Interval(low, None),
        ">": _Interval(after, None),
        "<=": _Interval(None, after),
        "<": _Interval(None, low),
        "^": _Interval(low, _next(low, _caret(low, width))),
        "~": _Interval(low, _next(low, min(width, 2))),
    }
    return found.get(sign, _Interval(low if width else None, after))


def _caret(low: Triple, width: int) -> int:
    """Parts that a caret keeps: up to the first one that is not zero."""
    return next((number + 1 for number in range(width) if low[number]), width)


def _parts(text: str) -> tuple[Triple, int]:
    """The parts that are numbers, and how many they are."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return (0, 0, 0), 0
    numbers: list[int] = []
    for part in found.groups():
        if part is None or not part.isdecimal():
            break
        numbers.append(int(part))
    low = (*numbers, 0, 0, 0)[:3]
    return (low[0], low[1], low[2]), len(numbers)


def _next(low: Triple, width: int) -> Triple | None:
    """The first version behind all that share the first `width` parts; none behind all versions."""
    if width == 0:
        return None
    parts = [*low[:width]]
    parts[-1] += 1
    whole = (*parts, 0, 0, 0)[:3]
    return (whole[0], whole[1], whole[2])

"""Durations as Kubernetes users write them: `90s`, `1m30s`, `24h`."""

import re

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
"""RE2 syntax, usable in a CRD."""

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def to_seconds(text: str) -> float:
    """Seconds of a duration text.

    Raises:
        ValueError: the text is no duration.
    """
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is no duration such as 90s, 1m30s or 24h")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def to_text(seconds: float) -> str:
    """The shortest readable text, for messages: `1m30s`, `0.5s`."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return "".join(f"{value}{unit}" for value, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if value)

"""Where the stand-in for Kueue puts pods: one domain, or the smallest set of hosts (topology-scheduling.md, section 7.7).

Kueue's own choice between domains that fit alike is not copied; nobody may rely on it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

HOSTNAME = "kubernetes.io/hostname"
_SUFFIXES: dict[str, Fraction] = {
    "m": Fraction(1, 1000),
    **{name: Fraction(1000**power) for power, name in enumerate(("", *"kMGT"))},
    **{f"{name}i": Fraction(1024**power) for power, name in enumerate("KMGT", start=1)},
}


def amount(text: Any) -> Fraction:
    """A quantity by value."""
    found = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", str(text))
    assert found, text
    return Fraction(found[1]) * _SUFFIXES[found[2]]


def shown(value: Fraction) -> str:
    """A quantity as Kueue writes it: whole, or in thousandths."""
    return str(value.numerator) if value.denominator == 1 else f"{value * 1000}m"


@dataclass(frozen=True, slots=True)
class Host:
    """A Node that counts for a flavor, and what is free on it."""

    name: str
    domain: tuple[str, ...]
    free: Mapping[str, Fraction]

    def room(self, requests: Mapping[str, Fraction]) -> int:
        """How many such pods fit."""
        wanted = {"pods": Fraction(1), **{name: value for name, value in requests.items() if value}}
        return max(0, min(int(self.free.get(name, Fraction(0)) / value) for name, value in wanted.items()))


@dataclass(frozen=True, slots=True)
class PodSet:
    """What is to be placed.  `level` is the number of the level that must or may hold all of it, None for anywhere."""

    count: int
    requests: Mapping[str, Fraction]
    level: int | None = None
    required: bool = False


def place(pods: PodSet, hosts: Sequence[Host]) -> dict[str, int] | None:
    """Pods by host, None when they do not fit."""
    if pods.level is not None:
        for depth in range(pods.level, -1, -1):
            fitting = [each for each in _domains(hosts, depth) if _room(pods, each) >= pods.count]
            if fitting:
                return _spread(pods, min(fitting, key=lambda each: (_room(pods, each), each[0].domain)))
            if pods.required:
                return None
    return _spread(pods, hosts) if _room(pods, hosts) >= pods.count else None


def most(pods: PodSet, hosts: Sequence[Host]) -> int:
    """How many of the pods would fit into the best domain."""
    if pods.level is None or not pods.required:
        return _room(pods, hosts)
    return max((_room(pods, each) for each in _domains(hosts, pods.level)), default=0)


def _domains(hosts: Sequence[Host], depth: int) -> list[list[Host]]:
    found: dict[tuple[str, ...], list[Host]] = {}
    for host in hosts:
        found.setdefault(host.domain[: depth + 1], []).append(host)
    return list(found.values())


def _room(pods: PodSet, hosts: Sequence[Host]) -> int:
    return sum(host.room(pods.requests) for host in hosts)


def _spread(pods: PodSet, hosts: Sequence[Host]) -> dict[str, int]:
    """The roomiest hosts first."""
    left, result = pods.count, {}
    for host in sorted(hosts, key=lambda each: (-each.room(pods.requests), each.name)):
        taken = min(left, host.room(pods.requests))
        if taken:
            result[host.name] = taken
        left -= taken
    return result

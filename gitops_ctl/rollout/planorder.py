"""The plan of a rollout in the order in which it is hashed (rollouts.md, sections 10.1 and 10.2).

The plan is taken as the API server stores it, with its defaults.  Members stand in a declared order and lists stay as they are;
only maps are sorted.  A member without a value is left out, unless its absence and its zero mean different things.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue
from gitops_ctl.core.moment import from_rfc3339, to_rfc3339

_Encode = Callable[[JsonValue], JsonValue]


@dataclass(frozen=True, slots=True)
class _Member:
    """One member: its name, what its value is written as, and when it is written at all.

    Attributes:
        keeps_zero: written whenever it is there, also as zero, false or empty.
        absent: what is written when it is not there; None leaves it out.
    """

    name: str
    encode: _Encode
    keeps_zero: bool = False
    absent: JsonValue = None


def ordered_plan(plan: JsonObject) -> JsonObject:
    """`spec.plan` with the members that are hashed, in their order.

    Raises:
        ValueError: a time is not RFC 3339, which the API server does not store.
    """
    return _object(_PLAN)(plan)


def ordered_intent(plan: JsonObject) -> JsonObject:
    """The same without who asked for it and when."""
    return {name: value for name, value in ordered_plan(plan).items() if name not in _IDENTITY}


def _as_it_is(value: JsonValue) -> JsonValue:
    return value


def _time(value: JsonValue) -> JsonValue:
    return to_rfc3339(from_rfc3339(value)) if isinstance(value, str) else value


def _sorted_map(value: JsonValue) -> JsonValue:
    return dict(sorted(value.items())) if isinstance(value, Mapping) else value


def _object(members: tuple[_Member, ...]) -> Callable[[JsonValue], JsonObject]:
    def encode(value: JsonValue) -> JsonObject:
        tree = value if isinstance(value, Mapping) else EMPTY
        return dict(_written(tree, members))

    return encode


def _written(tree: JsonObject, members: tuple[_Member, ...]) -> Iterator[tuple[str, JsonValue]]:
    for member in members:
        stored = tree.get(member.name)
        value = member.absent if stored is None else member.encode(stored)
        if value is not None and (member.keeps_zero or value):
            yield member.name, value


def _each(members: tuple[_Member, ...]) -> _Encode:
    encode = _object(members)

    def listed(value: JsonValue) -> JsonValue:
        return [encode(item) for item in value] if isinstance(value, (list, tuple)) else []

    return listed


def _plain(*names: str) -> tuple[_Member, ...]:
    return tuple(_Member(name, _as_it_is) for name in names)


def _pointer(name: str, encode: _Encode = _as_it_is) -> _Member:
    return _Member(name, encode, keeps_zero=True)


def _part(name: str, *members: _Member) -> _Member:
    """A part that is written even when nothing is in it."""
    encode = _object(members)
    return _Member(name, encode, keeps_zero=True, absent=encode({}))


_IDENTITY: Final = frozenset({"requestedBy", "requestedAt"})
_SELECTOR: Final = (
    _Member("matchLabels", _sorted_map),
    _Member("matchExpressions", _each(_plain("key", "operator", "values"))),
)
_SOURCE: Final = (
    _pointer("catalystCenter"),
    *_plain("name"),
    _pointer("deviceSelector", _object(_SELECTOR)),
    _Member("priority", _as_it_is, keeps_zero=True, absent=0),
    *_plain("url"),
    _pointer("urlSecretRef", _object(_plain("name"))),
)
_NETWORK: Final = (
    _Member("enabled", _as_it_is, keeps_zero=True, absent=False),
    *_plain(
        "requireCompleteEvidence",
        "requiredInterfaces",
        "requiredNeighbors",
        "requireInterfacesUp",
        "requireNeighborsFull",
    ),
    _pointer("minimumHeadroomPercent"),
)
_DRAIN: Final = _plain("namespaces", "timeoutSeconds", "maxPods", "maxTerminationGraceSeconds")
_BUDGET: Final = _plain("topologyKey", "maxConcurrentTransfers", "maxUnavailable")
_PLAN: Final = (
    *_plain("requestedBy"),
    _Member("requestedAt", _time),
    _part("targets", _part("selector", *_SELECTOR), *_plain("allowAll", "maxTargets")),
    _part("image", *_plain("sha256", "imageFamily"), _Member("sources", _each(_SOURCE))),
    *_plain("targetVersion", "strategy"),
    _pointer("rollbackOnFailure"),
    *_plain("installTimeoutSeconds", "rebootTimeoutSeconds"),
    _pointer("maintenanceWindow", _object((_pointer("notBefore", _time), _pointer("notAfter", _time)))),
    _Member("canaries", _each(_plain("name", "devices"))),
    _pointer("pauseAfterCanary"),
    _part("budgets", *_plain("maxConcurrentTransfers", "maxUnavailable"), _Member("domains", _each(_BUDGET))),
    _part("workloads", *_plain("policy"), _pointer("drain", _object(_DRAIN))),
    _part(
        "health",
        *_plain("maxObservationAgeSeconds", "canarySoakSeconds", "waveSoakSeconds"),
        _pointer("network", _object(_NETWORK)),
    ),
)

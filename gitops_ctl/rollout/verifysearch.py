"""Which member of a plan explains a hash that does not match: the one whose change gives the published hash.

A hash cannot be turned round, but most mismatches come from one member: a value that was edited, a default that one side fills in, a list
that one side sorts.  Each is tried alone.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.encoding import compact_json, sha256_of
from gitops_ctl.fleet.identity import child_name, reservation_id
from gitops_ctl.rollout.planhash import published_hash_input
from gitops_ctl.rollout.planorder import ordered_plan

Path = tuple[str | int, ...]
Variant = tuple[Path, JsonValue, str]
"""Where, the other value (None leaves the member out), and what that means in words."""

_LONGEST: Final = 80
_NOT_ONE: Final = "no change of a single member gives the published hash: several differ, or one that was not tried"
_PLAN_DEFAULTS: Final[tuple[tuple[Path, JsonValue], ...]] = (
    (("plan", "targets", "allowAll"), False),
    (("plan", "targets", "maxTargets"), 100),
    (("plan", "strategy"), "Reload"),
    (("plan", "rollbackOnFailure"), True),
    (("plan", "rollbackOnFailure"), False),
    (("plan", "pauseAfterCanary"), True),
    (("plan", "pauseAfterCanary"), False),
    (("plan", "installTimeoutSeconds"), 3600),
    (("plan", "rebootTimeoutSeconds"), 1800),
    (("plan", "health", "maxObservationAgeSeconds"), 300),
    (("plan", "health", "canarySoakSeconds"), 600),
    (("plan", "health", "waveSoakSeconds"), 300),
    (("plan", "health", "network", "requireCompleteEvidence"), True),
    (("plan", "budgets", "maxConcurrentTransfers"), 1),
    (("plan", "budgets", "maxUnavailable"), 1),
)


def explained(rollout: JsonObject, published: str, others: Iterable[Variant] = ()) -> str:
    """In words, which single member differs.

    Args:
        published: the hash that should come out.
        others: values that objects beside the rollout give for members of its plan.
    """
    plan_input = published_hash_input(rollout)
    for path, value, words in (*others, *_variants(rollout, plan_input)):
        if sha256_of(_with(plan_input, path, value)) == published:
            return f"the published hash comes out with {pointer(path)} {words}"
    return _NOT_ONE


def pointer(path: Path) -> str:
    """The JSON pointer of a member of the hash input."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def valued(path: Path, value: JsonValue) -> Variant:
    """The variant in which a member has another value."""
    text = json.dumps(value, ensure_ascii=False)
    return path, value, f"= {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"


def _variants(rollout: JsonObject, plan_input: JsonObject) -> Iterator[Variant]:
    yield from (valued(path, value) for path, value in _PLAN_DEFAULTS)
    yield from _of_the_object(rollout)
    for path, value in _members(plan_input.get("plan"), ("plan",)):
        yield path, None, "left out"
        yield from _otherwise(path, value)
    for path, value in _members(plan_input.get("policy"), ("policy",)):
        yield from _otherwise(path, value)
    yield ("riskGroupMembershipHash",), None, "left out"
    by_name = sorted(objects_at(plan_input, "targets"), key=lambda target: text_at(target, "deviceName"))
    yield ("targets",), by_name, "sorted by deviceName"


def _of_the_object(rollout: JsonObject) -> Iterator[Variant]:
    """What the object says elsewhere about members of the plan."""
    uid, name = text_at(rollout, "metadata", "uid"), text_at(rollout, "metadata", "name")
    generation = int_at(rollout, "metadata", "generation")
    yield from (valued(("generation",), other) for other in {generation, 1} if other)
    for place, target in enumerate(objects_at(rollout, "status", "frozenPlan", "targets")):
        child = child_name(name, text_at(target, "deviceName"), reservation_id(uid, text_at(target, "deviceUID")))
        yield valued(("targets", place, "childName"), child)
        wave = int_at(target, "wave")
        yield valued(("targets", place, "wave"), 1 - wave)
    effective = object_at(rollout, "status", "effectivePolicy", "policy")
    yield from (valued(("policy", member), value) for member, value in effective.items())


def _otherwise(path: Path, value: JsonValue) -> Iterator[Variant]:
    if isinstance(value, bool):
        yield valued(path, not value)
    elif isinstance(value, (list, tuple)) and len(value) > 1:
        yield path, sorted(value, key=compact_json), "sorted"


def _members(value: JsonValue, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    """Every member below, outer ones first."""
    steps: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, (list, tuple)):
        steps = enumerate(value)
    for step, inner in steps:
        yield (*path, step), inner
        yield from _members(inner, (*path, step))


def _with(plan_input: JsonObject, path: Path, value: JsonValue) -> JsonObject:
    """The input with one member changed, and the members of the plan in their order again."""
    changed = _changed(plan_input, path, value)
    assert isinstance(changed, dict)
    if path[0] != "plan":
        return changed
    try:
        return {**changed, "plan": ordered_plan(object_at(changed, "plan"))}
    except ValueError:
        return changed


def _changed(tree: JsonValue, path: Path, value: JsonValue) -> JsonValue:
    """The tree with one member set or, for None, left out; a place that is not there changes nothing."""
    step, rest = path[0], path[1:]
    if isinstance(tree, dict) and isinstance(step, str):
        inner = value if not rest else _changed(tree.get(step), rest, value)
        if inner is None:
            return {name: member for name, member in tree.items() if name != step}
        return {**tree, step: inner}
    if isinstance(tree, (list, tuple)) and isinstance(step, int) and step < len(tree):
        inner = value if not rest else _changed(tree[step], rest, value)
        return [*tree[:step], *([] if inner is None else [inner]), *tree[step + 1 :]]
    return tree

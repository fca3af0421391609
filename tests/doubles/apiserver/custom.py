"""Checks of custom resources: schema, lists with keys, CEL rules with and without the old value."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from tests.doubles.apiserver.answers import Cause, Tree, not_implemented
from tests.doubles.apiserver.cel import RuleFailed, Rules, bound, escaped, is_transition
from tests.doubles.apiserver.schema_facts import Fact, Schema
from tests.doubles.apiserver.structural import BLOCKING, child_schema, duplicates
from tests.doubles.apiserver.structural import problems as schema_problems
from tests.doubles.apiserver.structure import same

TYPE_AND_METADATA = frozenset({"apiVersion", "kind", "metadata"})
UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
MOST_VERDICTS = 5000
_MISSING: Any = object()
_REASONS = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


def problems(schema: Schema, new: Tree, old: Tree | None, *, rules: Rules) -> list[Cause]:
    """Everything that a server finds wrong with a custom resource; `old` is the stored one on an update.

    What was wrong before and did not change is let pass (ratcheting).  The same question is answered once: nothing but the two trees decides.
    """
    question = hashlib.blake2b(msgspec.json.encode((_judged(new), _judged(old))), digest_size=16).digest()
    known = _verdicts(schema)
    if question not in known:
        if len(known) >= MOST_VERDICTS:
            known.clear()
        known[question] = tuple(_problems(schema, new, old, rules=rules))
    return list(known[question])


def _judged(tree: Tree | None) -> Tree | None:
    """`tree` without what every write changes and no rule sees."""
    if tree is None:
        return None
    seen = {name: item for name, item in tree["metadata"].items() if name not in ("managedFields", "resourceVersion")}
    return {**tree, "metadata": seen}


def _unknown(_: Schema) -> dict[bytes, tuple[Cause, ...]]:
    return {}


_verdicts = Fact(_unknown)
"""What was found, by what was asked."""


def _problems(schema: Schema, new: Tree, old: Tree | None, *, rules: Rules) -> list[Cause]:
    found = list(schema_problems(schema, new, skip=TYPE_AND_METADATA))
    found += duplicates(schema, new)
    if old is not None:
        found = [cause for cause in found if not _unchanged(cause.field, new, old)]
    if not has_rules(schema):
        return found
    if any(cause.reason in BLOCKING for cause in found):
        return [*found, Cause("FieldValueInvalid", f"Invalid value: null: {UNCHECKED}", "<nil>")]
    walker = _Walker(rules)
    return [*found, *walker.walk(schema, new, _MISSING if old is None else old, "")]


@Fact
def has_rules(schema: Schema) -> bool:
    """Whether a rule is anywhere in the schema."""
    return any(True for _ in every_rule(schema))


def every_rule(schema: Any) -> Iterator[Mapping[str, Any]]:
    """All rules of a schema."""
    if isinstance(schema, Mapping):
        for name, value in schema.items():
            if name == "x-kubernetes-validations":
                yield from value
            else:
                yield from every_rule(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from every_rule(value)


def _unchanged(path: str, new: Tree, old: Tree) -> bool:
    """Whether the value at a path is the same in both; a missing member is judged by its parent."""
    before, now = _at(old, path), _at(new, path)
    if now is _MISSING:
        parent = path.rpartition(".")[0]
        before, now = _at(old, parent), _at(new, parent)
    return before is not _MISSING and now is not _MISSING and same(before, now)


def _at(tree: Any, path: str) -> Any:
    for step in path.replace("[", ".[").split(".") if path else ():
        if step.startswith("[") and isinstance(tree, list) and step[1:-1].isdigit() and int(step[1:-1]) < len(tree):
            tree = tree[int(step[1:-1])]
        elif isinstance(tree, Mapping) and step in tree:
            tree = tree[step]
        else:
            return _MISSING
    return tree


class _Walker:
    """Evaluates rules from the root down."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def walk(self, schema: Schema, new: Any, old: Any, path: str) -> Iterator[Cause]:
        before = None if old is _MISSING else bound(schema, old)
        yield from self._walk(schema, _Pair(new, old, bound(schema, new), before), path)

    def _walk(self, schema: Schema, pair: "_Pair", path: str) -> Iterator[Cause]:
        new, old = pair.new, pair.old
        for rule in schema.get("x-kubernetes-validations", ()):
            if not (old is not _MISSING and not is_transition(rule["rule"]) and same(new, old)):
                yield from self._rule(rule, pair, path)
        if isinstance(new, dict):
            known = schema.get("properties", {})
            for name, item in new.items():
                child = child_schema(schema, name)
                if child is not None and item is not None:
                    where = f"{path}.{name}" if path else name
                    if "additionalProperties" in schema and name not in known:
                        where = f"{path}[{name}]"
                    yield from self._walk(child, pair.member(name, escaped(name) if name in known else name), where)
        elif isinstance(new, list):
            for number, item in enumerate(new):
                place = _partner(schema, item, old)
                yield from self._walk(schema.get("items", {}), pair.item(number, place), f"{path}[{number}]")

    def _rule(self, rule: Mapping[str, Any], pair: "_Pair", path: str) -> Iterator[Cause]:
        text = rule["rule"]
        if rule.get("optionalOldSelf"):
            raise not_implemented("optionalOldSelf")
        if is_transition(text) and pair.old is _MISSING:
            return
        value = pair.value if path else _with_metadata(pair.value, pair.new)
        before = pair.before if path else _with_metadata(pair.before, pair.old)
        try:
            if self._rules.holds(text, value=value, old=before):
                return
            message = rule.get("message") or f"failed rule: {text.strip()}"
            if "messageExpression" in rule:
                message = self._rules.message(rule["messageExpression"], value=value, old=before) or message
        except RuleFailed as error:
            message = f"rule evaluation error: {error}"
        yield _cause(rule, message, pair.new, path)


class _Pair(NamedTuple):
    """A value and the stored one at the same place, each also as the rules see it; bound once, at the root."""

    new: Any
    old: Any
    value: Any
    before: Any

    def member(self, name: str, seen: str) -> "_Pair":
        old = _member(self.old, name)
        return _Pair(self.new[name], old, self.value[seen], None if old is _MISSING else self.before[seen])

    def item(self, number: int, place: int) -> "_Pair":
        old, before = (_MISSING, None) if place < 0 else (self.old[place], self.before[place])
        return _Pair(self.new[number], old, self.value[number], before)


def _with_metadata(value: Any, tree: Any) -> Any:
    """The root as rules see it: of the metadata only the names."""
    if not isinstance(value, Mapping):
        return value
    metadata = {key: item for key, item in tree.get("metadata", {}).items() if key in ("name", "generateName")}
    return {**value, "apiVersion": tree.get("apiVersion"), "kind": tree.get("kind"), "metadata": metadata}


def _member(old: Any, name: str) -> Any:
    return old.get(name, _MISSING) if isinstance(old, dict) else _MISSING


def _partner(schema: Schema, item: Any, old: Any) -> int:
    """Place of the old item with the same keys, -1 without one; other lists have no partners."""
    keys = schema.get("x-kubernetes-list-map-keys", ())
    if not keys or not isinstance(old, list) or not isinstance(item, Mapping):
        return -1
    for place, other in enumerate(old):
        if isinstance(other, Mapping) and all(same(other.get(key), item.get(key)) for key in keys):
            return place
    return -1


def _cause(rule: Mapping[str, Any], message: str, value: Any, path: str) -> Cause:
    reason = rule.get("reason", "FieldValueInvalid")
    where = path + rule.get("fieldPath", "")
    if reason in ("FieldValueForbidden", "FieldValueRequired") or isinstance(value, (Mapping, list)):
        return Cause(reason, f"{_REASONS[reason]}: {message}", where.removeprefix("."))
    return Cause(reason, f"{_REASONS[reason]}: {json.dumps(value)}: {message}", where.removeprefix("."))

"""The model and the definition of a kind never differ: what one accepts the other accepts.

The law is tried on objects that have every member, with some members replaced by values near and far from what is allowed.  The definition is
judged as the API server judges it: nulls are absent, then the schema, unique list keys, and the CEL rules of every node that is there.
"""

import copy
import json
import math
import re
from typing import Any

import hypothesis.strategies as st
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings

from gitops_ctl.api import patterns
from gitops_ctl.api.crd import kind_of, structural_schema
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.model import parse
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.expressions import EvaluationError, Expression, compile_expression
from tests.support.api_violations import full_objects
from tests.support.examples import examples

pytestmark = pytest.mark.property

FULL = full_objects()
MODELS = {kind_of(model).kind: model for model in ALL_KINDS}
SCHEMAS: dict[str, dict[str, Any]] = {kind: structural_schema(model) for kind, model in MODELS.items()}
CHECKS = {
    kind: jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
    )
    for kind, schema in SCHEMAS.items()
}
COMPILED: dict[str, Expression] = {}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def without_null_characters(value: Any) -> Any:
    """Another control character in their place: the engine cannot hold them and refuses, the API server can."""
    return json.loads(json.dumps(value).replace("\\u0000", "\\u0001"))


def definition_accepts(kind: str, tree: dict[str, Any]) -> bool:
    seen = without_null_characters(without_nulls(tree))
    return CHECKS[kind].is_valid(seen) and rules_hold(SCHEMAS[kind], seen)


def rules_hold(node: dict[str, Any], value: Any) -> bool:
    for item in node.get("x-kubernetes-validations", []):
        text = item["rule"]
        if "oldSelf" in text:  # the server asks it only when there is an old version
            continue
        if text not in COMPILED:
            COMPILED[text] = compile_expression(text, variables={"self"})
        try:
            if not COMPILED[text].is_true({"self": value}):
                return False
        except EvaluationError:
            return False
    if isinstance(value, list):
        return has_unique_keys(node, value) and all(rules_hold(node.get("items", {}), item) for item in value)
    if isinstance(value, dict):
        parts = node.get("properties", {})
        return all(rules_hold(parts[name], member) for name, member in value.items() if name in parts)
    return True


def has_unique_keys(node: dict[str, Any], items: list[Any]) -> bool:
    match node.get("x-kubernetes-list-type"):
        case "set":
            return len(set(items)) == len(items)
        case "map":
            keys = [tuple(item[key] for key in node["x-kubernetes-list-map-keys"]) for item in items]
            return len(set(keys)) == len(keys)
    return True


def model_accepts(kind: str, tree: dict[str, Any]) -> bool:
    try:
        parse(MODELS[kind], tree)
    except Refused:
        return False
    return True


def places(
    node: dict[str, Any], value: Any, path: tuple[str | int, ...]
) -> list[tuple[tuple[str | int, ...], dict[str, Any]]]:
    found = [(path, node)]
    for name, part in node.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            found += places(part, value[name], (*path, name))
    if "items" in node and value:
        found += places(node["items"], value[0], (*path, 0))
    return found


PLACES = {
    kind: [
        place
        for part in ("spec", "status")
        if part in FULL[kind]
        for place in places(SCHEMAS[kind]["properties"][part], FULL[kind][part], (part,))
    ]
    for kind in FULL
}

ABSENT = object()
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1.0, 0.5, -0.0, 2.0**60, 10**30]),
    st.text(max_size=6),
    st.sampled_from(
        [
            "",
            "a",
            "A",
            "..",
            "a/b",
            "a b",
            "é",
            "a\n",
            "\x00",
            "main",
            "https://a@b",
            "ssh://a/b",
            "1h",
            "90m",
            "refs/x",
            "-x",
        ]
    ),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(0, 1), max_size=2),
    st.just(ABSENT),
)


def values_for(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What the node is about, as often as anything at all."""
    near: list[st.SearchStrategy[Any]] = [ANYTHING]
    if "pattern" in node:
        # Python's `$` allows a line break before the end; the others do not.
        near.append(st.from_regex(re.compile(node["pattern"].replace("$", r"\Z")), fullmatch=True))
    if "enum" in node:
        near.append(st.sampled_from(node["enum"]))
    if "maxLength" in node:
        near.append(st.sampled_from(["a" * (node["maxLength"] + extra) for extra in (-1, 0, 1)]))
    if "maximum" in node:
        limits = (node["minimum"], node["maximum"])
        near.append(st.sampled_from([limit + extra for limit in limits for extra in (-1, 0, 1)]))
    return st.one_of(near)


@st.composite
def altered(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    tree = copy.deepcopy(FULL[kind])
    for _ in range(draw(st.integers(1, 3))):
        path, node = draw(st.sampled_from(PLACES[kind]))
        replace(tree, path, draw(values_for(node)))
    return tree


def replace(tree: Any, path: tuple[str | int, ...], value: Any) -> None:
    """An earlier change may have removed the place; then there is nothing to replace."""
    for step in path[:-1]:
        inside = (isinstance(tree, dict) and step in tree) or (
            isinstance(tree, list) and isinstance(step, int) and step < len(tree)
        )
        if not inside:
            return
        tree = tree[step]
    last = path[-1]
    if isinstance(tree, dict) and isinstance(last, str):
        tree.pop(last, None)
        if value is not ABSENT:
            tree[last] = value
    elif isinstance(tree, list) and isinstance(last, int) and last < len(tree):
        tree[last : last + 1] = [] if value is ABSENT else [value]


@pytest.mark.parametrize("kind", FULL)
@given(data=st.data())
@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_model_and_the_definition_say_the_same(kind: str, data: st.DataObject):
    tree = data.draw(altered(kind))
    assert model_accepts(kind, tree) == definition_accepts(kind, tree)


@pytest.mark.parametrize("value", [1, 1.0, 0, "true", False])
def test_only_true_is_true(value: Any) -> None:
    tree = copy.deepcopy(FULL["CiscoDevice"])
    tree["spec"]["gnoi"]["certificateProvisioning"]["replaceTargetCABundle"] = value
    assert not model_accepts("CiscoDevice", tree)
    assert not definition_accepts("CiscoDevice", tree)


@pytest.mark.parametrize("kind", FULL)
def test_a_full_object_is_accepted_by_both(kind: str):
    assert model_accepts(kind, FULL[kind])
    assert definition_accepts(kind, FULL[kind])


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_what_is_parsed_is_written_back_and_parsed_again_equal(data: st.DataObject):
    kind = data.draw(st.sampled_from(sorted(FULL)))
    tree = data.draw(altered(kind))
    if model_accepts(kind, tree):
        parsed = parse(MODELS[kind], tree)
        assert parse(MODELS[kind], parsed.to_tree()) == parsed
        assert parse(MODELS[kind], parsed.to_tree(minimal=True)) == parsed


def test_a_number_that_json_cannot_carry_is_refused_with_its_object():
    tree = copy.deepcopy(FULL["Inventory"])
    tree["spec"]["shard"] = math.nan
    with pytest.raises(Refused, match="not JSON") as refused:
        parse(MODELS["Inventory"], tree)
    assert refused.value.subject == "Inventory team-a/fabric-0"


def test_every_pattern_is_explained_in_words():
    stated = {
        value
        for name, value in vars(patterns).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    }
    assert stated <= set(patterns.MEANING)
    used = {node["pattern"] for kind in PLACES for _, node in PLACES[kind] if "pattern" in node}
    assert used <= set(patterns.MEANING)

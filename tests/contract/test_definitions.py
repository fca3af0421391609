"""Custom kinds: schema, pruning, defaults, rules with and without the old value, and the life of a definition."""

import copy
import secrets
from typing import Any

import pytest

from tests.contract.client import DEFINITIONS, Api
from tests.contract.widgets import Widgets, definition

pytestmark = pytest.mark.contract

UNCHECKED = (
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


async def test_defaults_are_filled_in_and_owned(api: Api, widgets: Widgets) -> None:
    reply = await api.create(widgets.path, widgets.one("one", {"size": 1, "ports": [{"name": "a"}]}))
    assert (reply.status, reply.metadata["generation"]) == (201, 1)
    assert reply.body["spec"] == {
        "size": 1,
        "mode": "Fast",
        "nested": {"depth": 3},
        "ports": [{"name": "a", "protocol": "TCP"}],
    }
    owned = reply.managers()["contract", "Update", ""]["f:spec"]
    assert owned["f:nested"] == {".": {}, "f:depth": {}}
    assert owned["f:ports"] == {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:protocol": {}}}


async def test_an_apply_does_not_own_the_defaults(api: Api, widgets: Widgets) -> None:
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1}), "author")
    assert reply.body["spec"] == {"size": 1, "mode": "Fast", "nested": {"depth": 3}}
    assert reply.managers() == {("author", "Apply", ""): {"f:spec": {"f:size": {}}}}


async def test_unknown_fields_are_pruned_but_not_where_they_are_kept(api: Api, widgets: Widgets) -> None:
    spec = {"size": 1, "foo": 1, "open": {"a": [1, {"b": None}]}, "ports": [{"name": "a", "zz": 1}]}
    reply = await api.create(widgets.path, {**widgets.one("one", spec), "extra": 1})
    assert reply.body["spec"]["open"] == {"a": [1, {"b": None}]}
    assert "foo" not in reply.body["spec"]
    assert "extra" not in reply.body
    assert reply.body["spec"]["ports"] == [{"name": "a", "protocol": "TCP"}]


async def test_unknown_fields_are_named_when_strict(api: Api, widgets: Widgets) -> None:
    body = widgets.one("one", {"size": 1, "foo": 1, "ports": [{"name": "a", "zz": 1}]})
    reply = await api.create(widgets.path, body, fieldValidation="Strict")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.foo", unknown '
        'field "spec.ports[0].zz"'
    )


async def test_a_null_is_dropped_unless_it_means_something(api: Api, widgets: Widgets) -> None:
    spec = {"size": 1, "plain": None, "mode": None, "nullable": None}
    reply = await api.create(widgets.path, widgets.one("one", spec))
    assert reply.body["spec"] == {"size": 1, "mode": "Fast", "nullable": None, "nested": {"depth": 3}}


@pytest.mark.parametrize(
    ("spec", "cause", "blocks"),
    [
        ({}, ("FieldValueRequired", "spec.size", "Required value"), True),
        (
            {"size": "x"},
            (
                "FieldValueTypeInvalid",
                "spec.size",
                'Invalid value: "string": spec.size in body must be of type integer: "string"',
            ),
            True,
        ),
        (
            {"size": 0},
            (
                "FieldValueInvalid",
                "spec.size",
                "Invalid value: 0: spec.size in body should be greater than or equal to 1",
            ),
            False,
        ),
        (
            {"size": 1, "mode": "X"},
            ("FieldValueNotSupported", "spec.mode", 'Unsupported value: "X": supported values: "Fast", "Slow"'),
            True,
        ),
        (
            {"size": 1, "name": "a"},
            ("FieldValueInvalid", "spec.name", 'Invalid value: "a": spec.name in body should be at least 2 chars long'),
            False,
        ),
        (
            {"size": 1, "name": "abcdef"},
            ("FieldValueTooLong", "spec.name", "Too long: may not be more than 5 bytes"),
            True,
        ),
        (
            {"size": 1, "name": "A1"},
            ("FieldValueInvalid", "spec.name", "Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'"),
            False,
        ),
        (
            {"size": 1, "ratio": 0},
            ("FieldValueInvalid", "spec.ratio", "Invalid value: 0: spec.ratio in body should be greater than 0"),
            False,
        ),
        (
            {"size": 1, "either": True},
            (
                "FieldValueTypeInvalid",
                "spec.either",
                'Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"',
            ),
            True,
        ),
        (
            {"size": 1, "tags": ["a", "b", "c", "d"]},
            ("FieldValueTooMany", "spec.tags", "Too many: 4: must have at most 3 items"),
            True,
        ),
        ({"size": 1, "tags": ["a", "a"]}, ("FieldValueDuplicate", "spec.tags[1]", 'Duplicate value: "a"'), False),
        (
            {"size": 1, "ports": []},
            ("FieldValueInvalid", "spec.ports", "Invalid value: 0: spec.ports in body should have at least 1 items"),
            False,
        ),
        (
            {"size": 1, "ports": [{"name": "a"}, {"name": "a"}]},
            ("FieldValueDuplicate", "spec.ports[1]", 'Duplicate value: {"name":"a"}'),
            False,
        ),
        ({"size": 1, "ports": [{"port": 1}]}, ("FieldValueRequired", "spec.ports[0].name", "Required value"), True),
        (
            {"size": 1, "labels": {"a": "1", "b": "2", "c": "3"}},
            ("FieldValueTooMany", "spec.labels", "Too many: 3: must have at most 2 items"),
            True,
        ),
        (
            {"size": 1, "labels": {"a": 1}},
            (
                "FieldValueTypeInvalid",
                "spec.labels.a",
                'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
            ),
            True,
        ),
        ({"size": 9}, ("FieldValueInvalid", "spec.size", "Invalid value: size must stay below nine"), False),
        ({"size": 1, "name": "bad"}, ("FieldValueForbidden", "spec", "Forbidden: the name bad is taken"), False),
    ],
)
async def test_what_breaks_the_schema_is_invalid_and_says_where(
    api: Api, widgets: Widgets, spec: Any, cause: tuple[str, str, str], blocks: bool
) -> None:
    reply = await api.create(widgets.path, widgets.one("one", spec))
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert {key: reply.body["details"][key] for key in ("name", "group", "kind")} == {
        "name": "one",
        "group": widgets.group,
        "kind": "Widget",
    }
    assert reply.causes == sorted([cause, *([UNCHECKED] if blocks else [])])


async def test_the_end_of_a_pattern_is_the_end_of_the_text(api: Api, widgets: Widgets) -> None:
    assert (await api.create(widgets.path, widgets.one("one", {"size": 1, "line": "a\nb"}))).status == 201
    reply = await api.create(widgets.path, widgets.one("two", {"size": 1, "line": "a \n"}))
    assert [cause[1] for cause in reply.causes] == ["spec.line"]
    reply = await api.create(widgets.path, widgets.one("three", {"size": 1, "name": "abc\n"}))
    assert [cause[1] for cause in reply.causes] == ["spec.name"]


async def test_several_faults_are_told_at_once(api: Api, widgets: Widgets) -> None:
    reply = await api.create(widgets.path, widgets.one("one", {"size": "x", "mode": "X", "name": "A"}))
    assert [cause[1] for cause in reply.causes] == ["<nil>", "spec.name", "spec.mode", "spec.size"]
    assert reply.body["message"].startswith(f'Widget.{widgets.group} "one" is invalid: [')


async def test_a_transition_rule_compares_with_the_stored_value(api: Api, widgets: Widgets) -> None:
    await api.create(widgets.path, widgets.one("one", {"size": 1}))
    assert (await api.merge(widgets.at("one"), {"spec": {"fixed": "a"}})).status == 200
    reply = await api.merge(widgets.at("one"), {"spec": {"fixed": "b"}})
    text = 'Invalid value: "b": fixed is immutable'
    assert (reply.status, reply.causes) == (422, [("FieldValueInvalid", "spec.fixed", text)])
    assert (await api.merge(widgets.at("one"), {"spec": {"fixed": None}})).status == 200


async def test_a_transition_rule_in_a_keyed_list_finds_the_item_by_its_key(api: Api, widgets: Widgets) -> None:
    def ports(*pairs: tuple[str, int]) -> dict[str, Any]:
        return {"size": 1, "ports": [{"name": name, "port": port} for name, port in pairs]}

    await api.apply(widgets.at("one"), widgets.one("one", ports(("a", 5), ("b", 9))), "author")
    moved = await api.apply(widgets.at("one"), widgets.one("one", ports(("b", 9), ("a", 6), ("c", 1))), "author")
    assert moved.status == 200
    reply = await api.apply(widgets.at("one"), widgets.one("one", ports(("b", 8), ("a", 6))), "author")
    assert reply.causes == [("FieldValueInvalid", "spec.ports[0].port", "Invalid value: 8: ports only grow")]


async def test_rules_hold_for_applies_and_dry_runs_too(api: Api, widgets: Widgets) -> None:
    for query in ({}, {"dryRun": "All"}):
        reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 9}), "author", **query)
        assert (reply.status, [cause[1] for cause in reply.causes]) == (422, ["spec.size"])


async def test_the_body_must_be_of_the_kind_and_the_version(api: Api, widgets: Widgets) -> None:
    other = {**widgets.one("one", {"size": 1}), "kind": "Other"}
    reply = await api.create(widgets.path, other)
    assert (reply.status, reply.causes) == (
        422,
        [("FieldValueInvalid", "kind", 'Invalid value: "Other": must be Widget')],
    )
    newer = {**widgets.one("one", {"size": 1}), "apiVersion": f"{widgets.group}/v2"}
    reply = await api.create(widgets.path, newer)
    text = (
        f"the API version in the data ({widgets.group}/v2) does not match the expected API version ({widgets.group}/v1)"
    )
    assert (reply.status, reply.body["message"]) == (400, text)
    reply = await api.create(widgets.path, {"metadata": {"name": "one"}})
    assert reply.status == 400
    assert "Object 'Kind' is missing" in reply.body["message"]


async def established(api: Api, group: str) -> dict[str, Any]:
    """The definition of `group` once it says that it is established."""
    path = f"{DEFINITIONS}/widgets.{group}"
    found: dict[str, Any] = {}

    async def done() -> bool:
        found.update((await api.get(path)).body)
        conditions = found["status"].get("conditions") or ()
        return ("Established", "True") in {(item["type"], item["status"]) for item in conditions}

    await api.until(done)
    return found


async def test_a_definition_is_accepted_served_changed_and_removed(api: Api, place: str) -> None:
    group = f"w{secrets.token_hex(4)}.example.net"
    kind = Widgets(group, place.rpartition("/")[2])
    before = await api.get(kind.path)
    assert (before.status, before.media_type, before.body.strip()) == (404, "text/plain", "404 page not found")
    made = await api.create(DEFINITIONS, definition(group), fieldValidation="Strict")
    assert made.body["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    found = await established(api, group)
    assert found["spec"]["conversion"] == {"strategy": "None"}
    assert found["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert found["metadata"]["generation"] == 1

    async def served() -> bool:
        return (await api.get(kind.path)).status == 200

    await api.until(served)
    await api.create(kind.path, kind.one("one", {"size": 1}))
    change = copy.deepcopy(found["spec"])
    spec = change["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["colour"] = {"type": "string", "default": "red"}
    changed = await api.merge(f"{DEFINITIONS}/widgets.{group}", {"spec": change})
    assert changed.metadata["generation"] == 2

    async def has_the_new_default() -> bool:
        reply = await api.get(kind.at("one"))
        return reply.status == 200 and reply.body["spec"].get("colour") == "red"

    await api.until(has_the_new_default)
    gone = await api.delete(f"{DEFINITIONS}/widgets.{group}")
    assert gone.metadata["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    await api.until(lambda: api.is_gone(f"{DEFINITIONS}/widgets.{group}"))

    async def unserved() -> bool:
        reply = await api.get(kind.path)
        return (reply.status, reply.media_type) == (404, "text/plain")

    await api.until(unserved)


async def test_a_definition_must_have_the_name_of_its_group(api: Api) -> None:
    body = definition("wrong.example.net")
    body["metadata"]["name"] = "widgets.example.org"
    reply = await api.create(DEFINITIONS, body)
    assert (reply.status, [cause[1] for cause in reply.causes]) == (422, ["metadata.name"])


async def test_a_version_that_is_no_longer_served_loses_its_owners(api: Api, place: str) -> None:
    group = f"w{secrets.token_hex(4)}.example.net"
    body = definition(group)
    old = body["spec"]["versions"][0]
    body["spec"]["versions"] = [{**old, "name": "v1", "storage": False}, {**copy.deepcopy(old), "name": "v2"}]
    await api.create(DEFINITIONS, body)
    await established(api, group)
    namespace = place.rpartition("/")[2]
    first, second = (f"/apis/{group}/{version}/namespaces/{namespace}/widgets" for version in ("v1", "v2"))

    async def served() -> bool:
        return (await api.get(second)).status == 200 == (await api.get(first)).status

    await api.until(served)

    def one(version: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": {"name": "one"}, "spec": spec}

    reply = await api.apply(f"{first}/one", one("v1", {"size": 1, "plain": "x"}), "first")
    assert (reply.status, reply.body["apiVersion"]) == (201, f"{group}/v1")
    assert (await api.get(f"{second}/one")).body["apiVersion"] == f"{group}/v2"
    clash = await api.apply(f"{second}/one", one("v2", {"size": 2}), "second")
    assert clash.causes == [("FieldManagerConflict", ".spec.size", 'conflict with "first"')]
    versions = [{**old, "name": "v1", "storage": False, "served": False}, {**copy.deepcopy(old), "name": "v2"}]
    await api.merge(f"{DEFINITIONS}/widgets.{group}", {"spec": {"versions": versions}})

    async def unserved() -> bool:
        return (await api.get(first)).status == 404 and (await api.get(second)).status == 200

    await api.until(unserved)
    reply = await api.get(f"{second}/one")
    assert reply.metadata["managedFields"][0]["apiVersion"] == f"{group}/v1"
    await api.delete(f"{DEFINITIONS}/widgets.{group}")

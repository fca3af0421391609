"""Server-side apply: who owns what, who may take it, what is left when somebody lets go."""

from typing import Any

import pytest

from tests.contract.client import APPLY, Api, config_map
from tests.contract.widgets import Widgets

pytestmark = pytest.mark.contract


def owned(*names: str) -> dict[str, Any]:
    return {"f:data": {f"f:{name}": {} for name in names}}


async def test_the_first_apply_creates_and_owns_what_it_says(api: Api, maps: str) -> None:
    reply = await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}, labels={"site": "north"}), "author")
    assert reply.status == 201
    assert reply.managers() == {
        ("author", "Apply", ""): {"f:data": {"f:mtu": {}}, "f:metadata": {"f:labels": {"f:site": {}}}}
    }


async def test_the_same_apply_again_writes_nothing(api: Api, maps: str) -> None:
    first = await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}), "author")
    again = await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}), "author")
    assert (again.status, again.body) == (200, first.body)


async def test_a_post_owns_everything_that_it_sent(api: Api, maps: str) -> None:
    reply = await api.create(maps, config_map("one", {"mtu": "9000"}, labels={"site": "north"}))
    assert reply.managers() == {
        ("contract", "Update", ""): {
            "f:data": {".": {}, "f:mtu": {}},
            "f:metadata": {"f:labels": {".": {}, "f:site": {}}},
        }
    }


async def test_a_field_of_somebody_else_is_a_conflict_with_its_name(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one", {"mtu": "9000"}))
    reply = await api.apply(f"{maps}/one", config_map("one", {"mtu": "1500"}), "author")
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.causes == [("FieldManagerConflict", ".data.mtu", 'conflict with "contract" using v1')]
    assert reply.body["message"] == 'Apply failed with 1 conflict: conflict with "contract" using v1: .data.mtu'


async def test_conflicts_with_several_managers_are_all_named(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"a": "1"}), "first")
    await api.apply(f"{maps}/one", config_map("one", {"b": "1"}), "second")
    reply = await api.apply(f"{maps}/one", config_map("one", {"a": "2", "b": "2"}), "third")
    assert reply.causes == [
        ("FieldManagerConflict", ".data.a", 'conflict with "first"'),
        ("FieldManagerConflict", ".data.b", 'conflict with "second"'),
    ]
    expected = 'Apply failed with 2 conflicts: conflicts with "first":\n- .data.a\nconflicts with "second":\n- .data.b'
    assert reply.body["message"] == expected


async def test_the_same_value_is_no_conflict_and_makes_co_owners(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}), "first")
    reply = await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}), "second")
    assert reply.status == 200
    assert reply.managers() == {("first", "Apply", ""): owned("mtu"), ("second", "Apply", ""): owned("mtu")}


async def test_a_field_with_a_co_owner_stays_when_one_lets_go(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000", "vlan": "7"}), "first")
    await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}), "second")
    reply = await api.apply(f"{maps}/one", config_map("one", {}), "first")
    assert reply.body["data"] == {"mtu": "9000"}
    assert reply.managers()["second", "Apply", ""] == owned("mtu")


async def test_force_takes_the_field_from_the_other(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000", "vlan": "7"}), "first")
    reply = await api.apply(f"{maps}/one", config_map("one", {"mtu": "1500"}), "second", force="true")
    assert reply.body["data"] == {"mtu": "1500", "vlan": "7"}
    assert reply.managers() == {("first", "Apply", ""): owned("vlan"), ("second", "Apply", ""): owned("mtu")}


async def test_a_field_that_is_left_out_goes_and_foreign_fields_stay(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000", "vlan": "7"}), "author")
    await api.merge(f"{maps}/one", {"data": {"extra": "1"}}, fieldManager="editor")
    reply = await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000"}), "author")
    assert reply.body["data"] == {"extra": "1", "mtu": "9000"}
    assert reply.managers() == {("author", "Apply", ""): owned("mtu"), ("editor", "Update", ""): owned("extra")}


async def test_an_edit_takes_a_field_from_the_applier(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"mtu": "9000", "vlan": "7"}), "author")
    reply = await api.merge(f"{maps}/one", {"data": {"mtu": "1500"}}, fieldManager="editor")
    assert reply.managers() == {("author", "Apply", ""): owned("vlan"), ("editor", "Update", ""): owned("mtu")}


async def test_objects_without_entries_get_them_before_the_first_apply(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one", {"mtu": "9000"}))
    cleared = await api.merge(f"{maps}/one", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in cleared.metadata
    reply = await api.apply(f"{maps}/one", config_map("one", {"mtu": "1500"}), "author")
    assert reply.causes == [("FieldManagerConflict", ".data.mtu", 'conflict with "before-first-apply" using v1')]


async def test_an_object_that_is_not_tracked_stays_so_until_an_apply(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one", {"mtu": "9000"}))
    await api.merge(f"{maps}/one", {"metadata": {"managedFields": [{}]}})
    reply = await api.merge(f"{maps}/one", {"data": {"mtu": "1500"}}, fieldManager="editor")
    assert "managedFields" not in reply.metadata
    reply = await api.apply(f"{maps}/one", config_map("one", {"vlan": "7"}), "author")
    assert reply.managers() == {
        ("author", "Apply", ""): owned("vlan"),
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:mtu": {}}},
    }


async def test_a_null_in_an_apply_is_a_wrong_type_unless_it_means_something(api: Api, widgets: Widgets) -> None:
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "plain": None}), "author")
    assert (reply.status, [cause[:2] for cause in reply.causes]) == (
        422,
        [("FieldValueInvalid", "<nil>"), ("FieldValueTypeInvalid", "spec.plain")],
    )
    reply = await api.apply(
        widgets.at("one"), widgets.one("one", {"size": 1, "mode": None, "nullable": None}), "author"
    )
    assert (reply.status, reply.body["spec"]["mode"], reply.body["spec"]["nullable"]) == (201, "Fast", None)


async def test_a_null_in_an_apply_of_a_built_in_kind_is_an_absent_value_with_an_owner(api: Api, maps: str) -> None:
    reply = await api.apply(f"{maps}/one", config_map("one", None) | {"data": None}, "author")
    assert (reply.status, "data" in reply.body) == (201, False)
    assert reply.managers() == {("author", "Apply", ""): {"f:data": {}}}


async def test_another_order_of_a_set_is_a_write_without_a_conflict(api: Api, widgets: Widgets) -> None:
    first = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "tags": ["a", "b"]}), "first")
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "tags": ["b", "a"]}), "second")
    assert (reply.status, reply.body["spec"]["tags"]) == (200, ["b", "a"])
    assert reply.metadata["generation"] == first.metadata["generation"] + 1


async def test_a_map_that_becomes_a_number_loses_its_members(api: Api, widgets: Widgets) -> None:
    await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "open": {"k": {"z": 1}}}), "first")
    reply = await api.apply(
        widgets.at("one"), widgets.one("one", {"size": 1, "open": {"k": 1}}), "second", force="true"
    )
    assert reply.body["spec"]["open"] == {"k": 1}
    assert reply.managers()["second", "Apply", ""]["f:spec"]["f:open"] == {"f:k": {}}
    assert "f:open" not in reply.managers()["first", "Apply", ""]["f:spec"]


async def test_items_of_keyed_lists_have_owners_of_their_own(api: Api, widgets: Widgets) -> None:
    await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "ports": [{"name": "a", "port": 1}]}), "first")
    second = widgets.one("one", {"size": 1, "ports": [{"name": "b", "port": 2}]})
    reply = await api.apply(widgets.at("one"), second, "second")
    assert [item["name"] for item in reply.body["spec"]["ports"]] == ["a", "b"]
    assert reply.managers()["second", "Apply", ""]["f:spec"]["f:ports"] == {
        'k:{"name":"b"}': {".": {}, "f:name": {}, "f:port": {}}
    }
    clash = widgets.one("one", {"size": 1, "ports": [{"name": "a", "port": 3}]})
    reply = await api.apply(widgets.at("one"), clash, "second")
    assert reply.causes == [("FieldManagerConflict", '.spec.ports[name="a"].port', 'conflict with "first"')]
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1}), "second")
    assert [item["name"] for item in reply.body["spec"]["ports"]] == ["a"]


async def test_a_keyed_list_follows_the_applied_order_around_foreign_items(api: Api, widgets: Widgets) -> None:
    def ports(*names: str) -> dict[str, Any]:
        return widgets.one("one", {"size": 1, "ports": [{"name": name} for name in names]})

    await api.apply(widgets.at("one"), ports("a", "b", "c"), "first")
    await api.apply(widgets.at("one"), ports("x"), "second")
    reply = await api.apply(widgets.at("one"), ports("c", "a", "d"), "first")
    assert [item["name"] for item in reply.body["spec"]["ports"]] == ["c", "x", "a", "d"]


async def test_sets_are_shared_value_by_value(api: Api, widgets: Widgets) -> None:
    await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "tags": ["a", "b"]}), "first")
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "tags": ["b", "c"]}), "second")
    assert reply.body["spec"]["tags"] == ["a", "b", "c"]
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1}), "first")
    assert reply.body["spec"]["tags"] == ["b", "c"]
    assert reply.managers()["second", "Apply", ""]["f:spec"]["f:tags"] == {'v:"b"': {}, 'v:"c"': {}}


@pytest.mark.parametrize(
    ("field", "before", "after"), [("numbers", [1, 2], [1]), ("whole", {"a": "1"}, {"a": "1", "b": "2"})]
)
async def test_atomic_values_have_one_owner(
    api: Api, widgets: Widgets, field: str, before: object, after: object
) -> None:
    await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, field: before}), "first")
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, field: after}), "second")
    assert reply.causes == [("FieldManagerConflict", f".spec.{field}", 'conflict with "first"')]
    reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, field: after}), "second", force="true")
    assert reply.body["spec"][field] == after
    assert f"f:{field}" not in reply.managers()["first", "Apply", ""]["f:spec"]


async def test_ports_of_a_service_are_keyed_with_the_default_protocol(api: Api, place: str) -> None:
    def service(*ports: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": list(ports)}}

    path = f"{place}/services/web"
    await api.apply(path, service({"port": 80, "name": "http"}), "first")
    reply = await api.apply(path, service({"port": 80, "name": "dns", "protocol": "UDP"}), "second")
    assert reply.status == 200
    assert [(item["name"], item["protocol"]) for item in reply.body["spec"]["ports"]] == [
        ("http", "TCP"),
        ("dns", "UDP"),
    ]
    entry = reply.managers()["first", "Apply", ""]["f:spec"]["f:ports"]
    assert entry == {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}}


async def test_containers_and_variables_of_a_deployment_are_keyed_by_name(api: Api, place: str) -> None:
    path = f"/apis/apps/v1/namespaces/{place.rpartition('/')[2]}/deployments/web"

    def deployment(*variables: tuple[str, str]) -> dict[str, Any]:
        env = [{"name": name, "value": value} for name, value in variables]
        containers = [{"name": "c", "image": "x:1", "env": env}]
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    first = await api.apply(path, deployment(("A", "1"), ("B", "1")), "first")
    assert (first.status, first.metadata["generation"]) == (201, 1)
    reply = await api.apply(path, deployment(("A", "2")), "first")
    container = reply.body["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "2"}]
    assert (container["imagePullPolicy"], container["terminationMessagePolicy"]) == ("IfNotPresent", "File")
    assert reply.body["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert reply.metadata["generation"] == 2
    clash = await api.apply(path, deployment(("A", "3")), "second")
    field = '.spec.template.spec.containers[name="c"].env[name="A"].value'
    assert clash.causes == [("FieldManagerConflict", field, 'conflict with "first"')]


async def test_apply_needs_a_manager_of_at_most_128_bytes(api: Api, maps: str) -> None:
    missing = await api.call("PATCH", f"{maps}/one", config_map("one"), media_type=APPLY)
    assert (missing.status, missing.causes) == (
        422,
        [("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")],
    )
    longer = await api.apply(f"{maps}/one", config_map("one"), "m" * 129)
    assert (longer.status, longer.causes) == (
        422,
        [("FieldValueTooLong", "fieldManager", "Too long: may not be more than 128 bytes")],
    )
    assert (await api.apply(f"{maps}/one", config_map("one"), "m" * 128)).status == 201


async def test_a_stale_version_in_an_apply_is_a_conflict_without_causes(api: Api, maps: str) -> None:
    await api.apply(f"{maps}/one", config_map("one", {"a": "1"}), "author")
    reply = await api.apply(f"{maps}/one", config_map("one", {"a": "2"}, resourceVersion="1"), "author")
    assert (reply.status, reply.body["reason"], reply.causes) == (409, "Conflict", [])


async def test_another_uid_in_an_apply_is_invalid(api: Api, maps: str) -> None:
    wrong = config_map("one", {"a": "2"}, uid="00000000-0000-0000-0000-000000000000")
    absent = await api.apply(f"{maps}/one", wrong, "author")
    assert (absent.status, absent.body["reason"]) == (409, "Conflict")
    assert "uid mismatch" in absent.body["message"]
    await api.apply(f"{maps}/one", config_map("one", {"a": "1"}), "author")
    reply = await api.apply(f"{maps}/one", wrong, "author")
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert {(cause[1], cause[2].partition(": ")[0]) for cause in reply.causes} == {("metadata.uid", "Invalid value")}
    assert reply.body["message"].endswith("field is immutable")


async def test_managed_fields_in_an_apply_are_refused(api: Api, maps: str) -> None:
    reply = await api.apply(f"{maps}/one", config_map("one", managedFields=[]), "author")
    assert (reply.status, reply.body["message"]) == (400, "metadata.managedFields must be nil")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"datax": {}}, ".datax: field not declared in schema"),
        ({"data": {"mtu": 9000}}, ".data.mtu: expected string, got &value.valueUnstructured{Value:9000}"),
        ({"data": ["x"]}, ".data: expected map, got &{[x]}"),
    ],
)
async def test_an_apply_that_fits_no_type_is_500_without_a_reason(
    api: Api, maps: str, change: dict[str, Any], text: str
) -> None:
    reply = await api.apply(f"{maps}/one", {**config_map("one"), **change}, "author", fieldValidation="Strict")
    assert (reply.status, reply.body.get("reason")) == (500, None)
    assert reply.body["message"] == f"failed to create typed patch object (/one; /v1, Kind=ConfigMap): {text}"


async def test_an_item_without_its_key_and_one_twice_are_500(api: Api, widgets: Widgets) -> None:
    for ports, text in (
        ([{"port": 1}], 'element 0: associative list with keys has an element that omits all key fields ["name"]'),
        ([{"name": "a"}, {"name": "a"}], 'duplicate entries for key [name="a"]'),
    ):
        reply = await api.apply(widgets.at("one"), widgets.one("one", {"size": 1, "ports": ports}), "author")
        assert reply.status == 500
        assert f".spec.ports: {text}" in reply.body["message"]


async def test_a_dry_run_says_what_would_be_and_stores_nothing(api: Api, maps: str) -> None:
    reply = await api.apply(f"{maps}/one", config_map("one", {"a": "1"}), "author", dryRun="All")
    assert reply.status == 201
    assert reply.metadata["uid"]
    assert "resourceVersion" not in reply.metadata
    assert await api.is_gone(f"{maps}/one")
    made = await api.apply(f"{maps}/one", config_map("one", {"a": "1"}), "author")
    dry = await api.apply(f"{maps}/one", config_map("one", {"a": "2"}), "author", dryRun="All")
    assert (dry.body["data"], dry.version) == ({"a": "2"}, made.version)
    assert (await api.get(f"{maps}/one")).body == made.body


async def test_the_name_and_kind_in_the_body_must_be_those_of_the_path(api: Api, maps: str) -> None:
    reply = await api.apply(f"{maps}/one", config_map("two"), "author")
    text = "the name of the object (two) does not match the name on the URL (one)"
    assert (reply.status, reply.body["message"]) == (400, text)
    reply = await api.apply(f"{maps}/one", {**config_map("one"), "kind": "Secret"}, "author")
    assert (reply.status, reply.body["message"]) == (400, "invalid object type: /v1, Kind=Secret")


async def test_yaml_is_read_and_a_key_twice_is_refused_when_strict(api: Api, maps: str) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n"
    reply = await api.call("PATCH", f"{maps}/one", text, media_type=APPLY, fieldManager="author")
    assert (reply.status, reply.body["data"]) == (201, {"a": "1"})
    twice = await api.call(
        "PATCH", f"{maps}/one", text + b"  a: '2'\n", media_type=APPLY, fieldManager="author", fieldValidation="Strict"
    )
    assert twice.status == 400
    assert twice.body["message"].endswith('line 7: key "a" already set in map')

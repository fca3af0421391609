"""Creation, replacement and the two patches: compare-and-swap, status isolation, generation, immutable fields."""

import json
from typing import Any

import pytest

from tests.contract.client import Api, config_map
from tests.contract.widgets import Widgets

pytestmark = pytest.mark.contract


async def test_an_object_gets_identity_and_no_generation_without_a_spec(api: Api, maps: str) -> None:
    reply = await api.create(maps, config_map("one", {"a": "1"}))
    assert reply.status == 201
    assert {"uid", "resourceVersion", "creationTimestamp", "managedFields", "name", "namespace"} == set(reply.metadata)
    assert (reply.body["kind"], reply.body["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_name_can_be_made_by_the_server(api: Api, maps: str) -> None:
    reply = await api.create(maps, {"metadata": {"generateName": "some-"}})
    assert reply.metadata["name"].startswith("some-")
    assert len(reply.metadata["name"]) == len("some-") + 5


async def test_the_same_name_twice_is_already_exists(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one"))
    reply = await api.create(maps, config_map("one"))
    assert (reply.status, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.body["details"] == {"name": "one", "kind": "configmaps"}


async def test_a_bad_name_and_a_bad_label_are_invalid(api: Api, maps: str) -> None:
    reply = await api.create(maps, config_map("One_"))
    assert (reply.status, [cause[:2] for cause in reply.causes]) == (422, [("FieldValueInvalid", "metadata.name")])
    reply = await api.create(maps, config_map("one", labels={"a": "b c"}))
    assert (reply.status, [cause[:2] for cause in reply.causes]) == (422, [("FieldValueInvalid", "metadata.labels")])


async def test_keys_of_a_config_map_are_file_names(api: Api, maps: str) -> None:
    reply = await api.create(maps, config_map("one", {"a/b": "1"}))
    assert [cause[:2] for cause in reply.causes] == [("FieldValueInvalid", "data[a/b]")]
    assert reply.causes[0][2].startswith('Invalid value: "a/b": a valid config key must consist of')


async def test_unknown_fields_are_dropped_unless_strict(api: Api, maps: str) -> None:
    reply = await api.create(maps, {**config_map("one"), "datax": {}})
    assert (reply.status, "datax" in reply.body) == (201, False)
    reply = await api.create(maps, {**config_map("two"), "datax": {}}, fieldValidation="Strict")
    text = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "datax"'
    assert (reply.status, reply.body["reason"], reply.body["message"]) == (400, "BadRequest", text)


async def test_a_wrong_type_in_a_post_is_a_bad_request(api: Api, maps: str) -> None:
    reply = await api.create(maps, {**config_map("one"), "data": {"a": 1}})
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    start = (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field'
    )
    assert reply.body["message"].startswith(start)


async def test_a_key_twice_is_refused_when_strict(api: Api, maps: str) -> None:
    body = b'{"metadata":{"name":"one"},"data":{"a":"1","a":"2"}}'
    reply = await api.call("POST", maps, body, fieldValidation="Strict")
    assert reply.status == 400
    assert 'strict decoding error: duplicate field "data.a"' in reply.body["message"]
    assert (await api.call("POST", maps, body)).body["data"] == {"a": "2"}


async def test_a_dry_run_of_a_creation_stores_nothing(api: Api, maps: str) -> None:
    reply = await api.create(maps, config_map("one"), dryRun="All")
    assert (reply.status, "resourceVersion" in reply.metadata) == (201, False)
    assert await api.is_gone(f"{maps}/one")


async def test_a_replacement_of_an_old_version_is_a_conflict(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one", {"a": "1"}))
    changed = await api.replace(f"{maps}/one", {**made.body, "data": {"a": "2"}})
    assert (changed.status, changed.body["data"]) == (200, {"a": "2"})
    assert changed.version != made.version
    reply = await api.replace(f"{maps}/one", {**made.body, "data": {"a": "3"}})
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.body["message"] == (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )


async def test_a_replacement_of_a_custom_resource_must_name_a_version(api: Api, widgets: Widgets) -> None:
    await api.create(widgets.path, widgets.one("one", {"size": 1}))
    reply = await api.replace(widgets.at("one"), widgets.one("one", {"size": 2}))
    text = "Invalid value: 0: must be specified for an update"
    assert (reply.status, reply.causes) == (422, [("FieldValueInvalid", "metadata.resourceVersion", text)])


async def test_a_replacement_of_what_is_not_there_is_not_found(api: Api, maps: str) -> None:
    reply = await api.replace(f"{maps}/one", config_map("one"))
    assert (reply.status, reply.body["reason"]) == (404, "NotFound")


async def test_a_replacement_with_another_uid_is_a_conflict(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one"))
    reply = await api.replace(f"{maps}/one", config_map("one", uid="00000000-0000-0000-0000-000000000000"))
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 00000000-" in reply.body["message"]


async def test_a_write_that_changes_nothing_keeps_the_version(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one", {"a": "1"}))
    assert (await api.merge(f"{maps}/one", {"data": {"a": "1"}})).body == made.body
    assert (await api.replace(f"{maps}/one", made.body)).body == made.body


async def test_a_merge_patch_sets_and_removes(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one", {"a": "1", "b": "1"}, labels={"x": "y"}))
    reply = await api.merge(f"{maps}/one", {"data": {"a": None, "c": "2"}, "metadata": {"labels": None}})
    assert reply.body["data"] == {"b": "1", "c": "2"}
    assert "labels" not in reply.metadata


async def test_a_merge_patch_with_an_old_version_is_a_conflict(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one", {"a": "1"}))
    stale = {"metadata": {"resourceVersion": made.version}, "data": {"a": "2"}}
    assert (await api.merge(f"{maps}/one", stale)).status == 200
    reply = await api.merge(f"{maps}/one", {**stale, "data": {"a": "3"}})
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")


async def test_a_json_patch_runs_in_order(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one", {"a": "1"}))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/example.net~1b", "value": "2"},
        {"op": "move", "from": "/data/a", "path": "/data/z"},
    ]
    reply = await api.json_patch(f"{maps}/one", operations)
    assert (reply.body["data"], reply.metadata["annotations"]) == ({"z": "1"}, {"example.net/b": "2"})


@pytest.mark.parametrize(
    "operation",
    [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data/none"}],
    ids=["test", "remove"],
)
async def test_a_json_patch_that_does_not_fit_is_422_with_a_useless_text(
    api: Api, maps: str, operation: dict[str, Any]
) -> None:
    await api.create(maps, config_map("one", {"a": "1"}))
    reply = await api.json_patch(f"{maps}/one", [operation])
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert reply.body["message"] == "the server rejected our request due to an error in our request"
    assert reply.body["details"] == {}


async def test_a_patch_of_what_is_not_there_is_not_found(api: Api, maps: str) -> None:
    assert (await api.merge(f"{maps}/one", {})).status == 404
    assert (await api.json_patch(f"{maps}/one", [])).status == 404


async def test_an_unknown_patch_type_and_force_without_apply_are_refused(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one"))
    reply = await api.call("PATCH", f"{maps}/one", {}, media_type="application/unknown")
    assert (reply.status, reply.body["reason"]) == (415, "UnsupportedMediaType")
    reply = await api.merge(f"{maps}/one", {}, force="true")
    assert (reply.status, reply.causes) == (
        422,
        [("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch")],
    )


async def test_status_and_spec_have_paths_of_their_own(api: Api, widgets: Widgets) -> None:
    made = await api.create(widgets.path, widgets.one("one", {"size": 1}, status={"phase": "Early"}))
    assert "status" not in made.body
    change = {"spec": {"size": 2}, "status": {"phase": "Done"}, "metadata": {"labels": {"a": "b"}}}
    reply = await api.merge(f"{widgets.at('one')}/status", change)
    assert (reply.body["spec"]["size"], reply.body["status"]) == (1, {"phase": "Done"})
    assert "labels" not in reply.metadata
    reply = await api.merge(widgets.at("one"), change)
    assert (reply.body["spec"]["size"], reply.metadata["labels"]) == (2, {"a": "b"})
    reply = await api.merge(widgets.at("one"), {"status": {"phase": "Changed"}})
    assert reply.body["status"] == {"phase": "Done"}


async def test_status_has_owners_of_its_own(api: Api, widgets: Widgets) -> None:
    await api.create(widgets.path, widgets.one("one", {"size": 1}))
    path = f"{widgets.at('one')}/status"
    reply = await api.apply(path, widgets.one("one", {"size": 5}, status={"phase": "Done"}), "controller")
    assert reply.managers()["controller", "Apply", "status"] == {"f:status": {"f:phase": {}}}
    assert reply.body["spec"]["size"] == 1
    clash = await api.apply(path, widgets.one("one", status={"phase": "Other"}), "second")
    assert clash.causes == [
        ("FieldManagerConflict", ".status.phase", 'conflict with "controller" with subresource "status"')
    ]


async def test_an_apply_to_the_status_of_nothing_creates_nothing(api: Api, widgets: Widgets) -> None:
    reply = await api.apply(f"{widgets.at('one')}/status", widgets.one("one", status={"phase": "Done"}), "controller")
    assert (reply.status, reply.body["reason"]) == (404, "NotFound")
    assert await api.is_gone(widgets.at("one"))


async def test_generation_counts_changes_of_the_spec_alone(api: Api, widgets: Widgets) -> None:
    seen = [(await api.create(widgets.path, widgets.one("one", {"size": 1}))).metadata["generation"]]
    for path, change in (
        (widgets.at("one"), {"spec": {"size": 2}}),
        (widgets.at("one"), {"metadata": {"labels": {"a": "b"}}}),
        (f"{widgets.at('one')}/status", {"status": {"phase": "Done"}}),
        (widgets.at("one"), {"metadata": {"generation": 40}}),
        (widgets.at("one"), {"spec": {"size": 2}}),
        (widgets.at("one"), {"spec": {"size": 3}}),
    ):
        seen.append((await api.merge(path, change)).metadata["generation"])
    assert seen == [1, 2, 2, 2, 2, 2, 3]


async def test_an_immutable_config_map_stays_as_it_is(api: Api, maps: str) -> None:
    await api.create(maps, {**config_map("one", {"a": "1"}), "immutable": True})
    for change, field in (({"data": {"a": "2"}}, "data"), ({"immutable": None}, "immutable")):
        reply = await api.merge(f"{maps}/one", change)
        text = "Forbidden: field is immutable when `immutable` is set"
        assert (reply.status, reply.causes) == (422, [("FieldValueForbidden", field, text)])
    assert (await api.merge(f"{maps}/one", {"metadata": {"labels": {"a": "b"}}})).status == 200


async def test_the_type_of_a_secret_stays(api: Api, place: str) -> None:
    made = await api.create(f"{place}/secrets", {"metadata": {"name": "one"}, "stringData": {"a": "b"}})
    assert (made.body["type"], made.body["data"]) == ("Opaque", {"a": "Yg=="})
    assert "stringData" not in made.body
    reply = await api.merge(f"{place}/secrets/one", {"type": "example.net/other"})
    assert [cause[:2] for cause in reply.causes] == [("FieldValueInvalid", "type")]
    assert reply.causes[0][2].endswith("field is immutable")


async def test_the_address_of_a_service_stays(api: Api, place: str) -> None:
    body = {"metadata": {"name": "one"}, "spec": {"ports": [{"port": 80}]}}
    made = await api.create(f"{place}/services", body)
    assert made.body["spec"]["clusterIPs"] == [made.body["spec"]["clusterIP"]]
    assert made.body["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    other = "10.0.0.251" if made.body["spec"]["clusterIP"] != "10.0.0.251" else "10.0.0.250"
    reply = await api.merge(f"{place}/services/one", {"spec": {"clusterIP": other}})
    text = f"Invalid value: {json.dumps([other])}: may not change once set"
    assert (reply.status, reply.causes) == (422, [("FieldValueInvalid", "spec.clusterIPs[0]", text)])


async def test_the_selector_of_a_deployment_and_the_role_of_a_binding_stay(api: Api, place: str) -> None:
    namespace = place.rpartition("/")[2]
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    await api.create(deployments, {"metadata": {"name": "one"}, "spec": spec})
    change = {"spec": {"selector": {"matchLabels": {"c": "d"}}, "template": {"metadata": {"labels": {"c": "d"}}}}}
    reply = await api.merge(f"{deployments}/one", change)
    assert [cause[:2] for cause in reply.causes] == [("FieldValueInvalid", "spec.selector")]
    assert reply.causes[0][2].endswith("field is immutable")
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}
    body = {"metadata": {"name": "one"}, "roleRef": {"kind": "Role", "name": "reader"}, "subjects": [subject]}
    made = await api.create(bindings, body)
    assert made.body["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    reply = await api.merge(f"{bindings}/one", {"roleRef": {"name": "writer"}})
    assert [cause[:2] for cause in reply.causes] == [("FieldValueInvalid", "roleRef")]
    assert reply.causes[0][2].endswith("cannot change roleRef")


async def test_a_lease_can_be_made_by_a_replacement(api: Api, place: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.rpartition('/')[2]}/leases/one"
    body = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    assert (await api.replace(path, body)).status == 201
    reply = await api.replace(path, body)
    assert (reply.status, [cause[1] for cause in reply.causes]) == (422, ["metadata.resourceVersion"])


async def test_limits_of_size(api: Api, maps: str) -> None:
    reply = await api.create(maps, config_map("one", annotations={"example.net/a": "x" * 262_144}))
    assert (reply.status, [cause[:2] for cause in reply.causes]) == (
        422,
        [("FieldValueTooLong", "metadata.annotations")],
    )
    reply = await api.create(maps, config_map("one", {"a": "x" * 1_048_577}))
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    reply = await api.create(maps, config_map("one", {"a": "x" * 3_200_000}))
    assert (reply.status, reply.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_custom_resource_that_is_too_large_is_500(api: Api, widgets: Widgets) -> None:
    reply = await api.create(widgets.path, widgets.one("one", {"size": 1, "open": {"a": "x" * 1_600_000}}))
    assert (reply.status, reply.body["message"]) == (500, "etcdserver: request is too large")

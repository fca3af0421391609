"""Discovery, paths that lead nowhere, and acting as somebody else."""

import json

import pytest

from tests.contract.client import DEFINITIONS, Api, config_map
from tests.contract.widgets import Widgets

pytestmark = pytest.mark.contract

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


async def test_a_group_that_is_not_served_is_plain_text(api: Api) -> None:
    reply = await api.get("/apis/none.example.net/v1/things")
    assert (reply.status, reply.media_type, reply.body.strip()) == (404, "text/plain", "404 page not found")


async def test_a_resource_that_a_built_in_group_lacks_is_a_status(api: Api, place: str) -> None:
    for path in (f"{place}/things", "/apis/apps/v9/deployments", f"{place}/nodes", f"{place}/configmaps/a/status"):
        reply = await api.get(path)
        assert (reply.status, reply.body["reason"], reply.body["details"]) == (404, "NotFound", {})
        assert reply.body["message"] == "the server could not find the requested resource"


async def test_a_resource_that_a_custom_group_lacks_is_plain_text(api: Api, widgets: Widgets) -> None:
    for path in (f"/apis/{widgets.group}/v1/things", widgets.path.replace("/v1/", "/v2/")):
        reply = await api.get(path)
        assert (reply.status, reply.media_type) == (404, "text/plain")


async def test_a_missing_object_is_named(api: Api, maps: str, widgets: Widgets) -> None:
    reply = await api.get(f"{maps}/one")
    assert (reply.body["message"], reply.body["details"]) == (
        'configmaps "one" not found',
        {"name": "one", "kind": "configmaps"},
    )
    reply = await api.get(widgets.at("one"))
    assert reply.body["message"] == f'widgets.{widgets.group} "one" not found'
    assert reply.body["details"] == {"name": "one", "group": widgets.group, "kind": "widgets"}


async def test_methods_that_do_not_fit_are_refused(api: Api, maps: str) -> None:
    for reply in (
        await api.create(f"{maps}/one", {}),
        await api.replace(maps, {}),
        await api.create("/api/v1/configmaps", {}),
    ):
        assert (reply.status, reply.body["reason"]) == (405, "MethodNotAllowed")


async def test_a_server_that_is_ready_says_ok(api: Api) -> None:
    reply = await api.get("/readyz")
    assert (reply.status, reply.body.strip()) == (200, "ok")
    assert json.loads(json.dumps((await api.get("/version")).body))["gitVersion"].startswith("v1.")


async def test_the_older_discovery_lists_groups_versions_and_resources(api: Api, widgets: Widgets) -> None:
    assert (await api.get("/api")).body["versions"] == ["v1"]
    groups = {item["name"]: item for item in (await api.get("/apis")).body["groups"]}
    assert {"apps", widgets.group} <= groups.keys()
    assert groups[widgets.group]["preferredVersion"] == {"groupVersion": f"{widgets.group}/v1", "version": "v1"}
    core = {item["name"]: item for item in (await api.get("/api/v1")).body["resources"]}
    assert (core["configmaps"]["kind"], core["configmaps"]["namespaced"]) == ("ConfigMap", True)
    assert core["namespaces"]["shortNames"] == ["ns"]
    assert "deletecollection" not in core["namespaces"]["verbs"]
    custom = {item["name"]: item for item in (await api.get(f"/apis/{widgets.group}/v1")).body["resources"]}
    assert (custom["widgets"]["shortNames"], custom["widgets"]["categories"]) == (["wd"], ["gitops"])
    assert sorted(custom["widgets/status"]["verbs"]) == ["get", "patch", "update"]


async def test_the_aggregated_discovery_is_one_document(api: Api, widgets: Widgets) -> None:
    core = await api.call("GET", "/api", headers=AGGREGATED)
    assert core.body["kind"] == "APIGroupDiscoveryList"
    version = core.body["items"][0]["versions"][0]
    found = {item["resource"]: item for item in version["resources"]}
    assert (version["version"], found["configmaps"]["scope"], found["nodes"]["scope"]) == (
        "v1",
        "Namespaced",
        "Cluster",
    )
    assert found["configmaps"]["responseKind"] == {"group": "", "version": "", "kind": "ConfigMap"}
    groups = await api.call("GET", "/apis", headers=AGGREGATED)
    custom = next(item for item in groups.body["items"] if item["metadata"]["name"] == widgets.group)
    widget = custom["versions"][0]["resources"][0]
    kind = {"group": widgets.group, "version": "v1", "kind": "Widget"}
    assert custom["versions"][0]["freshness"] == "Current"
    assert (widget["responseKind"], widget["scope"], widget["singularResource"]) == (kind, "Namespaced", "widget")
    assert [item["subresource"] for item in widget["subresources"]] == ["status"]


async def test_built_in_definitions_are_found_by_group_document(api: Api) -> None:
    reply = await api.get("/apis/apiextensions.k8s.io")
    assert (reply.body["kind"], reply.body["preferredVersion"]["version"]) == ("APIGroup", "v1")
    assert (await api.get(DEFINITIONS)).body["kind"] == "CustomResourceDefinitionList"


async def test_somebody_without_rights_is_told_what_is_missing(api: Api, maps: str) -> None:
    namespace = maps.split("/")[-2]
    user = f"system:serviceaccount:{namespace}:robot"
    acting = {"Impersonate-User": user}
    reply = await api.call("GET", maps, headers=acting)
    assert (reply.status, reply.body["reason"], reply.body["details"]) == (403, "Forbidden", {"kind": "configmaps"})
    assert reply.body["message"] == (
        f'configmaps is forbidden: User "{user}" cannot list resource "configmaps" in API group "" in the namespace '
        f'"{namespace}"'
    )
    reply = await api.call("GET", "/api/v1/nodes/one", headers=acting)
    assert reply.body["message"] == (
        f'nodes "one" is forbidden: User "{user}" cannot get resource "nodes" in API group "" at the cluster scope'
    )


async def test_a_binding_gives_the_rights_of_its_role_and_no_more(api: Api, maps: str) -> None:
    namespace = maps.split("/")[-2]
    acting = {"Impersonate-User": f"system:serviceaccount:{namespace}:robot"}
    rule = {"verbs": ["get", "patch", "create"], "apiGroups": [""], "resources": ["configmaps"]}
    await api.create(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": "writer"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}
    binding = {
        "metadata": {"name": "writer"},
        "roleRef": {"kind": "Role", "name": "writer", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [subject],
    }
    await api.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)

    async def allowed() -> bool:
        reply = await api.call(
            "PATCH",
            f"{maps}/one",
            config_map("one", {"a": "1"}),
            media_type="application/apply-patch+yaml",
            headers=acting,
            fieldManager="author",
        )
        return reply.status in (200, 201)

    await api.until(allowed)
    made = await api.get(f"{maps}/one")
    assert [key[0] for key in made.managers()] == ["author"]
    for method, path in (("DELETE", f"{maps}/one"), ("GET", maps), ("GET", f"{maps.rpartition('/')[0]}/secrets/one")):
        assert (await api.call(method, path, headers=acting)).status == 403

"""Deletion: preconditions, finalizers, and what is collected with an owner or a namespace."""

import pytest

from tests.contract.client import Api, config_map, random_name
from tests.contract.widgets import Widgets

pytestmark = pytest.mark.contract

ZERO = "00000000-0000-0000-0000-000000000000"


def owner(reply_body: dict[str, object], *, blocks: bool = False) -> dict[str, object]:
    """An owner reference to an object."""
    metadata = reply_body["metadata"]
    assert isinstance(metadata, dict)
    return {
        "apiVersion": reply_body["apiVersion"],
        "kind": reply_body["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": blocks,
    }


async def test_a_deletion_answers_with_the_uid(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one"))
    reply = await api.delete(f"{maps}/one")
    assert (reply.status, reply.body["kind"], reply.body["status"]) == (200, "Status", "Success")
    assert reply.body["details"] == {"name": "one", "kind": "configmaps", "uid": made.metadata["uid"]}
    again = await api.delete(f"{maps}/one")
    assert (again.status, again.body["reason"]) == (404, "NotFound")


async def test_some_kinds_answer_with_the_object(api: Api, place: str) -> None:
    made = await api.create(f"{place}/serviceaccounts", {"metadata": {"name": "one"}})
    reply = await api.delete(f"{place}/serviceaccounts/one")
    assert (reply.status, reply.body["kind"]) == (200, "ServiceAccount")
    assert reply.metadata["uid"] == made.metadata["uid"]


async def test_preconditions_hold_or_nothing_goes(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one"))
    for wrong, text in (
        ({"uid": ZERO}, f"the UID in the precondition ({ZERO}) does not match the UID in record"),
        ({"resourceVersion": "1"}, "the ResourceVersion in the precondition (1) does not match the ResourceVersion"),
    ):
        reply = await api.delete(f"{maps}/one", {"preconditions": wrong})
        assert (reply.status, reply.body["reason"]) == (409, "Conflict")
        assert text in reply.body["message"]
    right = {"uid": made.metadata["uid"], "resourceVersion": made.version}
    assert (await api.delete(f"{maps}/one", {"preconditions": right})).status == 200


async def test_a_dry_run_of_a_deletion_deletes_nothing(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one"))
    assert (await api.delete(f"{maps}/one", dryRun="All")).status == 200
    assert (await api.get(f"{maps}/one")).status == 200


async def test_a_finalizer_keeps_the_object_until_it_is_taken_away(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one", finalizers=["example.net/hold"]))
    reply = await api.delete(f"{maps}/one")
    assert (reply.status, reply.body["kind"]) == (200, "ConfigMap")
    assert reply.metadata["deletionTimestamp"]
    assert reply.version != made.version
    again = await api.delete(f"{maps}/one")
    assert again.body == reply.body
    extra = await api.merge(f"{maps}/one", {"metadata": {"finalizers": ["example.net/hold", "example.net/more"]}})
    assert (extra.status, {cause[:2] for cause in extra.causes}) == (
        422,
        {("FieldValueForbidden", "metadata.finalizers")},
    )
    last = await api.merge(f"{maps}/one", {"metadata": {"finalizers": None}})
    assert last.status == 200
    assert await api.is_gone(f"{maps}/one")


async def test_deletion_of_a_custom_resource_with_a_finalizer_counts_in_generation(api: Api, widgets: Widgets) -> None:
    body = widgets.one("one", {"size": 1})
    body["metadata"]["finalizers"] = ["example.net/hold"]
    await api.create(widgets.path, body)
    reply = await api.delete(widgets.at("one"))
    assert (reply.metadata["generation"], reply.metadata["deletionGracePeriodSeconds"]) == (2, 0)
    await api.merge(widgets.at("one"), {"metadata": {"finalizers": []}})
    assert await api.is_gone(widgets.at("one"))


async def test_what_is_owned_goes_with_its_last_owner(api: Api, maps: str) -> None:
    first = await api.create(maps, config_map("first"))
    second = await api.create(maps, config_map("second"))
    await api.create(maps, config_map("child", ownerReferences=[owner(first.body), owner(second.body)]))
    await api.create(maps, config_map("stranger"))
    await api.delete(f"{maps}/first", {"propagationPolicy": "Background"})
    await api.delete(f"{maps}/second", {"propagationPolicy": "Background"})
    await api.until(lambda: api.is_gone(f"{maps}/child"))
    assert (await api.get(f"{maps}/stranger")).status == 200


async def test_an_owner_with_another_uid_does_not_count(api: Api, maps: str) -> None:
    first = await api.create(maps, config_map("owner"))
    await api.create(maps, config_map("child", ownerReferences=[{**owner(first.body), "uid": ZERO}]))
    await api.until(lambda: api.is_gone(f"{maps}/child"))
    assert (await api.get(f"{maps}/owner")).status == 200


async def test_foreground_deletion_waits_for_what_blocks_it(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("owner"))
    child = config_map("child", ownerReferences=[owner(made.body, blocks=True)], finalizers=["example.net/hold"])
    await api.create(maps, child)
    reply = await api.delete(f"{maps}/owner", {"propagationPolicy": "Foreground"})
    assert reply.metadata["finalizers"] == ["foregroundDeletion"]

    async def child_is_leaving() -> bool:
        return "deletionTimestamp" in (await api.get(f"{maps}/child")).metadata

    await api.until(child_is_leaving)
    assert (await api.get(f"{maps}/owner")).status == 200
    await api.merge(f"{maps}/child", {"metadata": {"finalizers": None}})
    await api.until(lambda: api.is_gone(f"{maps}/owner"))


async def test_orphans_stay_without_their_owner(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("owner"))
    await api.create(maps, config_map("child", ownerReferences=[owner(made.body)]))
    reply = await api.delete(f"{maps}/owner", {"propagationPolicy": "Orphan"})
    assert reply.metadata["finalizers"] == ["orphan"]
    await api.until(lambda: api.is_gone(f"{maps}/owner"))
    assert "ownerReferences" not in (await api.get(f"{maps}/child")).metadata


async def test_a_collection_is_deleted_by_selector(api: Api, maps: str) -> None:
    await api.create(maps, config_map("one", labels={"a": "b"}))
    await api.create(maps, config_map("two"))
    assert (await api.delete(maps, labelSelector="a=b")).status == 200
    assert await api.is_gone(f"{maps}/one")
    assert (await api.get(f"{maps}/two")).status == 200


async def test_a_missing_namespace_is_named(api: Api) -> None:
    path = "/api/v1/namespaces/none-at-all/configmaps"
    for reply in (
        await api.create(path, config_map("one")),
        await api.apply(f"{path}/one", config_map("one"), "author"),
    ):
        assert (reply.status, reply.body["reason"]) == (404, "NotFound")
        assert reply.body["details"] == {"name": "none-at-all", "kind": "namespaces"}
    listed = await api.get(path)
    assert (listed.status, listed.body["items"]) == (200, [])


async def test_a_namespace_takes_its_content_along_and_takes_nothing_new(api: Api) -> None:
    name = random_name("contract")
    made = await api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made.metadata["labels"] == {"kubernetes.io/metadata.name": name}
    assert (made.body["spec"], made.body["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    path = f"/api/v1/namespaces/{name}"
    await api.create(f"{path}/configmaps", config_map("one", finalizers=["example.net/hold"]))
    reply = await api.delete(path)
    assert (reply.status, reply.body["status"]["phase"]) == (200, "Terminating")
    refused = await api.create(f"{path}/configmaps", config_map("two"))
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert [cause[:2] for cause in refused.causes] == [("NamespaceTerminating", "metadata.namespace")]

    async def content_is_leaving() -> bool:
        return "deletionTimestamp" in (await api.get(f"{path}/configmaps/one")).metadata

    await api.until(content_is_leaving)
    assert (await api.get(path)).status == 200
    await api.merge(f"{path}/configmaps/one", {"metadata": {"finalizers": None}})
    await api.until(lambda: api.is_gone(path))


async def test_some_namespaces_stay(api: Api) -> None:
    reply = await api.delete("/api/v1/namespaces/kube-system")
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")

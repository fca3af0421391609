"""Lists: pages of one snapshot, tokens, versions, selectors."""

import base64
import json

import pytest

from tests.contract.client import Api, config_map
from tests.contract.widgets import Widgets

pytestmark = pytest.mark.contract


async def some(api: Api, maps: str, *names: str) -> None:
    """ConfigMaps beside the one that a cluster puts into each namespace; all carry a label."""
    for name in names:
        made = await api.create(maps, config_map(name, {"a": "1"}, labels={"mine": "yes", "name": name}))
        assert made.status == 201


def names_of(body: dict[str, object]) -> list[str]:
    items = body["items"]
    assert isinstance(items, list)
    return [item["metadata"]["name"] for item in items]


def token(version: int, start: str) -> str:
    """A continue token as the server writes them."""
    content = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start + "\0"}).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


async def test_items_of_built_in_kinds_have_no_kind(api: Api, maps: str) -> None:
    await some(api, maps, "b", "a")
    reply = await api.get(maps, labelSelector="mine=yes")
    assert (reply.body["kind"], reply.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert names_of(reply.body) == ["a", "b"]
    assert all(not {"kind", "apiVersion"} & item.keys() for item in reply.body["items"])


async def test_items_of_custom_kinds_have_their_kind(api: Api, widgets: Widgets) -> None:
    await api.create(widgets.path, widgets.one("one", {"size": 1}))
    reply = await api.get(widgets.path)
    assert (reply.body["kind"], reply.metadata["continue"]) == ("WidgetList", "")
    assert [(item["kind"], item["apiVersion"]) for item in reply.body["items"]] == [("Widget", f"{widgets.group}/v1")]


async def test_pages_show_one_snapshot(api: Api, maps: str) -> None:
    await some(api, maps, "a", "b", "c", "d", "e")
    first = await api.get(maps, limit="2")
    await api.delete(f"{maps}/d")
    await some(api, maps, "cc")
    await api.merge(f"{maps}/e", {"data": {"a": "2"}})
    found, page = names_of(first.body), first
    rest = [first.metadata.get("remainingItemCount")]
    values = {}
    while page.metadata.get("continue"):
        page = await api.get(maps, limit="2", **{"continue": page.metadata["continue"]})
        assert page.version == first.version
        found += names_of(page.body)
        rest.append(page.metadata.get("remainingItemCount"))
        values.update({item["metadata"]["name"]: item["data"] for item in page.body["items"]})
    mine = [name for name in found if name != "kube-root-ca.crt"]
    assert mine == ["a", "b", "c", "d", "e"]
    assert values["e"] == {"a": "1"}
    assert rest[0] == len(found) - 2
    assert rest[-1] is None


async def test_with_a_selector_nobody_counts_the_rest(api: Api, maps: str) -> None:
    await some(api, maps, "a", "b", "c")
    reply = await api.get(maps, limit="2", labelSelector="mine=yes")
    assert names_of(reply.body) == ["a", "b"]
    assert reply.metadata["continue"]
    assert "remainingItemCount" not in reply.metadata


async def test_version_zero_ignores_the_limit(api: Api, maps: str) -> None:
    await some(api, maps, "a", "b", "c")
    reply = await api.get(maps, limit="1", resourceVersion="0", labelSelector="mine=yes")

    async def all_there() -> bool:
        return names_of((await api.get(maps, limit="1", resourceVersion="0", labelSelector="mine=yes")).body) == [
            "a",
            "b",
            "c",
        ]

    await api.until(all_there)
    assert not reply.metadata.get("continue")


async def test_a_broken_token_is_a_bad_request(api: Api, maps: str) -> None:
    reply = await api.get(maps, limit="1", **{"continue": "zzz"})
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"].startswith("invalid continue token: continue key is not valid")


async def test_a_token_and_a_version_do_not_go_together(api: Api, maps: str) -> None:
    await some(api, maps, "a", "b")
    first = await api.get(maps, limit="1")
    reply = await api.get(maps, limit="1", resourceVersion="1", **{"continue": first.metadata["continue"]})
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


async def test_a_token_from_before_the_compaction_is_expired(api: Api, maps: str) -> None:
    await some(api, maps, "a", "b")
    await api.compact()
    replies = []

    async def expired() -> bool:
        replies.append(await api.get(maps, limit="1", **{"continue": token(2, "/a")}))
        return replies[-1].status == 410

    await api.until(expired)
    assert replies[-1].body["reason"] == "Expired"
    rest = await api.get(maps, labelSelector="mine=yes", **{"continue": replies[-1].metadata["continue"]})
    assert (rest.status, names_of(rest.body)) == (200, ["b"])


async def test_a_version_of_the_future_is_a_timeout(api: Api, maps: str) -> None:
    reply = await api.get(maps, resourceVersion="99999999", resourceVersionMatch="NotOlderThan")
    assert (reply.status, reply.body["reason"]) == (504, "Timeout")
    assert reply.body["details"]["retryAfterSeconds"] == 1
    assert [cause[0] for cause in reply.causes] == ["ResourceVersionTooLarge"]


async def test_an_exact_version_shows_what_was(api: Api, maps: str) -> None:
    made = await api.create(maps, config_map("one", {"a": "1"}))
    await api.merge(f"{maps}/one", {"data": {"a": "2"}})
    reply = await api.get(
        maps, resourceVersion=made.version, resourceVersionMatch="Exact", fieldSelector="metadata.name=one"
    )
    assert reply.version == made.version
    assert [item["data"] for item in reply.body["items"]] == [{"a": "1"}]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("name=a", ["a"]),
        ("name==a", ["a"]),
        ("mine,name!=a", ["b", "c"]),
        ("name in (a, c)", ["a", "c"]),
        ("mine=yes,name notin (a,c)", ["b"]),
        ("mine,!name", []),
        ("none", []),
    ],
)
async def test_label_selectors(api: Api, maps: str, selector: str, expected: list[str]) -> None:
    await some(api, maps, "a", "b", "c")
    assert names_of((await api.get(maps, labelSelector=selector)).body) == expected


async def test_field_selectors_know_the_name_and_no_other_field(api: Api, maps: str) -> None:
    await some(api, maps, "a", "b")
    assert names_of((await api.get(maps, fieldSelector="metadata.name=b")).body) == ["b"]
    everywhere = await api.get("/api/v1/configmaps", fieldSelector=f"metadata.namespace={maps.split('/')[-2]}")
    assert {"a", "b"} <= set(names_of(everywhere.body))
    reply = await api.get(maps, fieldSelector="data.a=1")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


async def test_pods_and_only_pods_are_chosen_by_their_node(api: Api, place: str, maps: str) -> None:
    nobody = await api.get(f"{place}/pods", fieldSelector="spec.nodeName=no-such-node")
    assert (nobody.status, nobody.body["items"]) == (200, [])
    for path, field in ((maps, "spec.nodeName"), (f"{place}/pods", "spec.nothing")):
        reply = await api.get(path, fieldSelector=f"{field}=a")
        assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


async def test_a_list_over_all_namespaces_is_ordered_by_namespace(api: Api, maps: str) -> None:
    await some(api, maps, "z", "a")
    reply = await api.get("/api/v1/configmaps", labelSelector="mine=yes")
    found = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in reply.body["items"]]
    assert found == sorted(found)
    assert {(maps.split("/")[-2], "a"), (maps.split("/")[-2], "z")} <= set(found)

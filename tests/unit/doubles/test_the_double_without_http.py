"""The double as an object: the store, the audit log, and the product's client on it with a fault at every request."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import ReplyLost
from gitops_ctl.kube.answers import AlreadyExists, FieldConflict, Gone
from gitops_ctl.kube.exchange import Call
from tests.doubles.apiserver import ApiServer, Request
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.apiserver.store import Change, Compacted, Store

MAPS = "/api/v1/namespaces/default/configmaps"
KIND = ("", "configmaps")


def tree(name: str, value: str = "1") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}}


def test_the_store_shows_what_was_at_any_version_of_its_log() -> None:
    store = Store(seed=7)
    states = []
    for name, value in (("a", "1"), ("b", "1"), ("a", "2"), ("b", ""), ("c", "1")):
        if value:
            store.put(KIND, ("default", name), tree(name, value))
        else:
            store.remove(KIND, ("default", name))
        states.append((store.version, store.all(KIND)))
    for version, expected in states:
        shown = store.at(KIND, "", version)
        assert [(key, item["data"]) for key, item in shown] == [(key, item["data"]) for key, item in expected]
    store.compact()
    with pytest.raises(Compacted):
        store.at(KIND, "", states[0][0])


def test_the_log_is_bounded_and_says_from_where() -> None:
    store = Store(seed=7, window=3)
    versions = [
        int(store.put(KIND, ("default", "a"), tree("a", str(n)))["metadata"]["resourceVersion"]) for n in range(5)
    ]
    assert [change.version for change in store.after(KIND, versions[1])] == versions[2:]
    with pytest.raises(Compacted):
        store.after(KIND, versions[0])


def test_stored_trees_are_no_longer_the_writers() -> None:
    store = Store()
    mine = tree("a")
    store.put(KIND, ("default", "a"), mine)
    mine["data"]["a"] = "changed"
    found = store.get(KIND, ("default", "a"))
    assert found is not None
    assert found["data"] == {"a": "1"}


def test_every_request_is_in_the_audit_log() -> None:
    api = ApiServer()
    api.handle(Request("GET", f"{MAPS}/none", headers={"user-agent": "author/1", "impersonate-user": "network-author"}))
    api.handle(Request("DELETE", f"{MAPS}/none", {"dryRun": "All"}))
    first, second = api.audit
    assert (first.verb, first.resource, first.namespace, first.name) == ("get", "configmaps", "default", "none")
    assert (first.user, first.user_agent, first.code) == ("network-author", "author/1", 403)
    assert (second.verb, second.dry_run, second.code) == ("delete", True, 404)


def test_cluster_admin_may_everything_and_a_name_is_a_limit() -> None:
    api = ApiServer()
    api.handle(Request("POST", MAPS, body=b'{"metadata":{"name":"one"}}'))
    group = "/apis/rbac.authorization.k8s.io/v1"
    role = b'{"metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["one"]}]}'
    api.handle(Request("POST", f"{group}/clusterroles", body=role))
    for name, kind, subject in (
        ("r", "User", "reader"),
        ("cluster-admin", "Group", "admins"),
    ):
        binding = (
            f'{{"metadata":{{"name":"{name}"}},"roleRef":{{"kind":"ClusterRole","name":"{name}"}},'
            f'"subjects":[{{"kind":"{kind}","name":"{subject}"}}]}}'
        )
        assert api.handle(Request("POST", f"{group}/clusterrolebindings", body=binding.encode())).code == 201

    def code(path: str, user: str, group: str = "") -> int:
        return api.handle(Request("GET", path, headers={"impersonate-user": user, "impersonate-group": group})).code

    assert (code(f"{MAPS}/one", "reader"), code(f"{MAPS}/two", "reader"), code(MAPS, "reader")) == (200, 403, 403)
    assert (code(MAPS, "anybody", "admins"), code("/api/v1/nodes", "anybody", "admins")) == (200, 200)


async def test_the_client_of_the_product_works_without_sockets() -> None:
    api = ApiServer()
    async with direct_client(api, component="test", clock=SystemClock()) as client:
        await client.apply(f"{MAPS}/one", tree("one"), manager="first")
        with pytest.raises(FieldConflict):
            await client.apply(f"{MAPS}/one", tree("one", "2"), manager="second")
        listed = await client.list_all(MAPS)
        assert [item["kind"] for item in listed.items] == ["ConfigMap"]
        async with aclosing(client.watch(MAPS, resource_version=listed.resource_version, timeout_s=20)) as events:
            following = asyncio.ensure_future(anext(events))
            await client.create(MAPS, tree("two"))
            event = await following
            assert (event.type, event.object["data"]) == ("ADDED", {"a": "1"})
        api.store.compact()
        with pytest.raises(Gone):
            async with aclosing(client.watch(MAPS, resource_version="1", timeout_s=20)) as events:
                await anext(events)
        assert client.calls["watch", "configmaps"] == 2


@pytest.mark.parametrize(("side", "there"), [("before", False), ("after", True)])
async def test_a_fault_strikes_before_or_after_the_effect(side: Side, there: bool) -> None:
    api = ApiServer()

    def point(call: Call, at: Side) -> None:
        if call.verb == "create" and at == side:
            raise ReplyLost("gone", subject=call.subject)

    async with direct_client(api, component="test", clock=SystemClock(), point=point) as client:
        with pytest.raises(ReplyLost):
            await client.create(MAPS, tree("one"))
        assert (await client.find(f"{MAPS}/one") is not None) is there
        if there:
            assert api.store.get(KIND, ("default", "one")) is not None


async def test_a_repeated_create_meets_its_own_object() -> None:
    async with direct_client(ApiServer(), component="test", clock=SystemClock()) as client:
        await client.create(MAPS, tree("one"))
        with pytest.raises(AlreadyExists):
            await client.create(MAPS, tree("one"))


async def test_listeners_hear_of_a_store_that_was_replaced() -> None:
    api = ApiServer()
    seen: list[Change] = []
    api.store.listeners.append(seen.append)
    backup = api.snapshot()
    api.handle(Request("POST", MAPS, body=b'{"metadata":{"name":"one"}}'))
    api.restore(backup)
    api.handle(Request("POST", MAPS, body=b'{"metadata":{"name":"two"}}'))
    assert [change.key[1] for change in seen] == ["one", "two"]

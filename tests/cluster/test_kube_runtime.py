"""Discovery, informers, leases, Events and status against a real kube-apiserver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from gitops_ctl.core.errors import Conflict, Unavailable
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import objects_at, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Informer, State, Timing
from gitops_ctl.kube.lease import Leader, LeaseTiming
from gitops_ctl.kube.mapper import Mapper, Resource
from gitops_ctl.kube.statuswriter import write_status
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_informer import until
from tests.support.kube_proxy import holding_proxy

pytestmark = pytest.mark.cluster

MAPS = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
QUICK = LeaseTiming(duration_s=3.0, renew_deadline_s=2.0, retry_s=0.4, call_s=0.8)


def a_definition(group: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


async def define(client: KubeClient, mapper: Mapper, group: str) -> Resource:
    """Make the kind Thing in `group` and wait until its path is served."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}"
    await client.apply(path, a_definition(group), manager="tests")
    async with asyncio.timeout(30):
        while True:
            await mapper.refresh()
            found = (await mapper.all()).resources.get(GroupVersionKind(group, "v1", "Thing"))
            if found is not None and await is_served(client, found):
                return found


async def is_served(client: KubeClient, resource: Resource) -> bool:
    """The server says Established a moment before the path answers."""
    try:
        await client.list_all(resource.path())
    except KindNotServed:
        return False
    return True


@asynccontextmanager
async def informing(
    client: KubeClient, resource: Resource, *, namespace: str = "", timing: Timing | None = None
) -> AsyncIterator[tuple[Informer[str], list[Change[str]]]]:
    changes: list[Change[str]] = []
    informer = Informer(
        client, resource, trim=lambda tree: text_at(tree, "data", "x"), namespace=namespace, timing=timing
    )
    informer.add_handler(changes.append)
    task = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.settled.wait(), 20)
        yield informer, changes
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_an_informer_follows_what_happens(kube_admin: KubeClient, namespace: str) -> None:
    await kube_admin.apply(MAPS.path(namespace, "before"), a_map("before"), manager="m")
    async with informing(kube_admin, MAPS, namespace=namespace) as (informer, changes):
        assert "before" in {key.name for key in informer.cache}
        await kube_admin.apply(MAPS.path(namespace, "a"), a_map("a", x="1"), manager="m")
        await kube_admin.apply(MAPS.path(namespace, "a"), a_map("a", x="2"), manager="m")
        await kube_admin.delete(MAPS.path(namespace, "a"))
        await until(lambda: [change.kind for change in changes if change.key.name == "a"][-1:] == ["deleted"])
    kinds = [change.kind for change in changes if change.key.name == "a"]
    assert kinds == ["added", "modified", "deleted"]


async def test_a_list_of_several_pages_is_complete(kube_admin: KubeClient, namespace: str) -> None:
    await asyncio.gather(
        *(kube_admin.apply(MAPS.path(namespace, f"m{n}"), a_map(f"m{n}"), manager="m") for n in range(30))
    )
    pages = [page async for page in kube_admin.list_pages(MAPS.path(namespace), limit=7)]
    names = [text_at(item, "metadata", "name") for page in pages for item in page.items]
    assert len(pages) >= 5
    assert {f"m{n}" for n in range(30)} <= set(names)
    assert len(names) == len(set(names))
    assert len({page.resource_version for page in pages}) == 1
    assert {text_at(item, "kind") for page in pages for item in page.items} == {"ConfigMap"}


async def test_H09_streams_that_the_server_ends_are_resumed_without_loss_or_repetition(
    kube_admin: KubeClient, namespace: str
) -> None:
    timing = Timing(stream_s=(2.0, 2.0), backoff_s=0.1, healthy_s=1.0)
    async with informing(kube_admin, MAPS, namespace=namespace, timing=timing) as (informer, changes):
        for number in range(4):
            await kube_admin.apply(MAPS.path(namespace, "a"), a_map("a", x=str(number)), manager="m")
            await until(lambda seen=informer.counts["watch"]: informer.counts["watch"] > seen)
        await until(lambda: [entry.value for _, entry in informer.cache.entries().items() if entry.value] == ["3"])
        assert informer.counts["list"] == 1
    values = [change.new.value for change in changes if change.key.name == "a" and change.new]
    assert values == ["0", "1", "2", "3"]


async def test_H18_a_kind_whose_definition_is_deleted_is_parked_and_comes_back(
    kube_admin: KubeClient, namespace: str
) -> None:
    group, mapper = f"{namespace}.example.net", Mapper(kube_admin)
    things = await define(kube_admin, mapper, group)
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}}
    await kube_admin.apply(things.path(namespace, "t"), body, manager="m")
    timing = Timing(absent_s=0.2, backoff_s=0.2)
    async with (
        informing(kube_admin, things, timing=timing) as (informer, _),
        informing(kube_admin, MAPS, namespace=namespace) as (others, changes),
    ):
        assert len(informer.cache) == 1
        await kube_admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}")
        await until(lambda: informer.health.state is State.ABSENT, deadline_s=60)
        assert not informer.usable
        await kube_admin.apply(MAPS.path(namespace, "other"), a_map("other"), manager="m")
        await until(lambda: "other" in {change.key.name for change in changes})
        assert others.usable
        await define(kube_admin, mapper, group)
        await until(lambda: informer.usable, deadline_s=60)
        assert len(informer.cache) == 0
    await kube_admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}")


async def test_H08_a_half_open_connection_is_noticed_and_replaced(
    control_plane: Any, kube_admin: KubeClient, namespace: str
) -> None:
    port = urlsplit(control_plane.url).port
    assert port is not None
    config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
    async with holding_proxy("127.0.0.1", port) as proxy:
        behind = replace(config, host=f"https://127.0.0.1:{proxy.port}")
        async with (
            KubeClient(behind, component="tests") as client,
            informing(client, MAPS, namespace=namespace, timing=Timing(idle_s=2.0)) as (informer, changes),
        ):
            await kube_admin.apply(MAPS.path(namespace, "shown"), a_map("shown"), manager="m")
            await until(lambda: "shown" in {change.key.name for change in changes})
            proxy.hold_present()
            await kube_admin.apply(MAPS.path(namespace, "hidden"), a_map("hidden"), manager="m")
            await until(lambda: "hidden" in {change.key.name for change in changes}, deadline_s=30)
            assert informer.counts["silent"] >= 1


async def test_403_on_a_watch_is_a_state_with_the_missing_right(kube_user: Any, namespace: str) -> None:
    client: KubeClient = await kube_user("network-author")
    async with informing(client, MAPS, namespace=namespace) as (informer, _):
        assert informer.health.state is State.FORBIDDEN
        assert 'cannot list resource "configmaps"' in str(informer.health.error)


async def test_H14_a_lease_passes_from_one_leader_to_the_next_at_its_release(
    kube_admin: KubeClient, namespace: str
) -> None:
    first = Leader(kube_admin, namespace=namespace, name="manager", identity="first", timing=QUICK)
    second = Leader(kube_admin, namespace=namespace, name="manager", identity="second", timing=QUICK)
    tasks = [asyncio.create_task(first.run())]
    await asyncio.wait_for(first.leading.wait(), 10)
    tasks.append(asyncio.create_task(second.run()))
    first.require()
    assert not second.leading.is_set()
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    await first.release()
    await asyncio.wait_for(second.leading.wait(), 10)
    second.require()
    lease = await kube_admin.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/manager")
    assert text_at(lease, "spec", "holderIdentity") == "second"
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)


async def test_H13_a_leader_whose_lease_was_taken_ends_at_its_next_renewal(
    kube_admin: KubeClient, namespace: str
) -> None:
    leader = Leader(kube_admin, namespace=namespace, name="manager", identity="first", timing=QUICK)
    task = asyncio.create_task(leader.run())
    await asyncio.wait_for(leader.leading.wait(), 10)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/manager"
    await take_lease(kube_admin, path)
    await asyncio.wait_for(leader.lost.wait(), 10)
    await asyncio.wait_for(task, 10)
    assert text_at(await kube_admin.get(path), "spec", "holderIdentity") == "thief"


async def take_lease(client: KubeClient, path: str) -> None:
    """Write another holder, as often as the leader's renewal comes in between."""
    async with asyncio.timeout(10):
        while True:
            lease = dict(await client.get(path))
            lease["spec"] = {**lease["spec"], "holderIdentity": "thief"}  # type: ignore[dict-item]
            try:
                await client.replace(path, lease)
            except Conflict:
                continue
            return


async def test_events_are_accepted_and_become_a_series(kube_admin: KubeClient, namespace: str) -> None:
    events = EventRecorder(kube_admin, instance="manager-0")
    made = await kube_admin.apply(MAPS.path(namespace, "a"), a_map("a"), manager="m")
    events.emit(made, type="Warning", reason="FieldConflict", action="Apply", note="x" * 5000)
    await events.flush()
    listed = await kube_admin.list_all(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    (event,) = [item for item in listed.items if text_at(item, "reason") == "FieldConflict"]
    assert len(text_at(event, "note")) == 1000
    assert events.counts["failed"] == 0


async def test_promise_08_a_status_is_written_once_and_then_costs_nothing(
    kube_admin: KubeClient, namespace: str
) -> None:
    group, mapper = f"{namespace}.example.net", Mapper(kube_admin)
    things = await define(kube_admin, mapper, group)
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}}
    made = await kube_admin.apply(things.path(namespace, "t"), body, manager="m")
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    assert await write_status(kube_admin, things, made, status, manager="gitops-ctl-sync") is not None
    stored = await kube_admin.get(things.path(namespace, "t"))
    assert [text_at(item, "type") for item in objects_at(stored, "status", "conditions")] == ["Ready"]
    assert text_at(stored, "metadata", "generation") == text_at(made, "metadata", "generation")
    before = kube_admin.calls["apply", "things/status"]
    assert not await write_status(kube_admin, things, stored, status, manager="gitops-ctl-sync")
    assert kube_admin.calls["apply", "things/status"] == before
    await kube_admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}")


async def test_H19_an_aggregated_api_that_is_down_hides_its_kinds_and_no_others(
    kube_admin: KubeClient, namespace: str
) -> None:
    group = f"{namespace}.example.net"
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}"
    body = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": namespace, "name": "nobody"},
        },
    }
    mapper = Mapper(kube_admin)
    await kube_admin.apply(path, body, manager="tests")
    try:
        async with asyncio.timeout(30):
            while group not in mapper.unavailable_groups:
                await mapper.refresh()
        with pytest.raises(Unavailable, match="does not answer"):
            await mapper.resource(GroupVersionKind(group, "v1", "Reading"))
        with pytest.raises(KindNotServed):
            await mapper.resource(GroupVersionKind("nowhere.example.net", "v1", "Reading"))
        assert (await mapper.resource(GroupVersionKind("apps", "v1", "Deployment"))).plural == "deployments"
    finally:
        await kube_admin.delete(path)

"""Transport, mapper, informer and queue together against the API server double, with each fault of its script in turn.

The single rules are tested with a scripted server in the other files; here a fault hits the whole path while objects change.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.config import ClusterConfig, Credentials
from gitops_ctl.kube.controller import Controller
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from tests.doubles.apiserver import FakeApiServer, Fault
from tests.support.kube_clock import TickingClock
from tests.support.kube_informer import until

PATH = "/api/v1/namespaces/default/configmaps"
TIMING = Timing(idle_s=0.3, confirm_s=0.1)

WATCH_FAULTS = [
    Fault.EXPIRED_IN_STREAM,
    Fault.EXPIRED_STATUS,
    Fault.CLOSE_AT_ONCE,
    Fault.SLOW_STREAM,
    Fault.HALF_OPEN,
    Fault.FUTURE_VERSION,
    Fault.DUPLICATE_EVENTS,
    Fault.CUT_LINE,
    Fault.BIG_LINE,
    Fault.RATE_LIMITED,
    Fault.SERVER_ERROR,
    Fault.FORBIDDEN,
    Fault.NOT_FOUND,
    Fault.RESTART,
]
LIST_FAULTS = [
    Fault.EXPIRED_STATUS,
    Fault.RATE_LIMITED,
    Fault.SERVER_ERROR,
    Fault.FORBIDDEN,
    Fault.NOT_FOUND,
    Fault.LOST_REPLY,
    Fault.RESTART,
]
WRITE_FAULTS = [Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.LOST_REPLY, Fault.RESTART]


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer(bookmark_s=0.1) as running:
        yield running


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[KubeClient]:
    async def read() -> str:
        return "Bearer second"

    config = replace(ClusterConfig(server.url), credentials=Credentials("Bearer first", read=read))
    async with KubeClient(config, component="test", clock=TickingClock(), draw=lambda: 0.5) as made:
        yield made


async def put(client: KubeClient, name: str, value: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}
    await client.apply(f"{PATH}/{name}", body, manager="m")


async def stored(client: KubeClient) -> dict[str, str]:
    page = await client.list_all(PATH)
    return {text_at(item, "metadata", "name"): text_at(item, "data", "value") for item in page.items}


async def follow(server: FakeApiServer, client: KubeClient, script: dict[str, Any]) -> None:
    """Objects change while `script` strikes; the cache, and what a reconcile saw last, end up equal to the store."""
    for name in "abc":
        await put(client, name, "1")
    resource = await Mapper(client).resource(GroupVersionKind("", "v1", "ConfigMap"))
    server.script(resource="configmaps", **script)
    informer = Informer(
        client, resource, trim=lambda tree: text_at(tree, "data", "value"), namespace="default", timing=TIMING
    )
    queue: AsyncQueue[NamespacedName] = AsyncQueue(WorkQueue(workers=2), clock=client.clock)
    reconciled: dict[str, str | None] = {}

    async def reconcile(key: NamespacedName) -> None:
        reconciled[key.name] = informer.cache.get(key)

    informer.add_handler(lambda change: queue.add(change.key))
    controller = Controller("test", queue, reconcile, workers=2)
    tasks = [asyncio.create_task(informer.run()), asyncio.create_task(controller.run())]
    try:
        await asyncio.wait_for(informer.synced.wait(), 20)
        await put(client, "a", "2")
        await client.delete(f"{PATH}/b")
        await put(client, "d", "1")
        wanted = await stored(client)
        await until(lambda: {key.name: value for key, value in informer.cache.items()} == wanted, deadline_s=30)
        await until(lambda: {name: value for name, value in reconciled.items() if value is not None} == wanted)
        assert informer.usable
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert server.faults.struck


@pytest.mark.parametrize("fault", WATCH_FAULTS, ids=lambda fault: fault.name.lower())
async def test_H09_a_fault_of_the_watch_costs_nothing_but_time(
    server: FakeApiServer, client: KubeClient, fault: Fault
) -> None:
    await follow(server, client, {"verb": "watch", "fault": fault, "count": 2})


@pytest.mark.parametrize("fault", LIST_FAULTS, ids=lambda fault: fault.name.lower())
async def test_H09_a_fault_of_the_list_costs_nothing_but_time(
    server: FakeApiServer, client: KubeClient, fault: Fault
) -> None:
    await follow(server, client, {"verb": "list", "fault": fault, "count": 2})


@pytest.mark.parametrize("fault", WRITE_FAULTS, ids=lambda fault: fault.name.lower())
async def test_S22_a_fault_of_an_apply_is_repeated_until_the_object_is_there_once(
    server: FakeApiServer, client: KubeClient, fault: Fault
) -> None:
    server.script(verb="patch", resource="configmaps", fault=fault, count=2)
    await put(client, "a", "1")
    assert server.faults.struck
    assert await stored(client) == {"a": "1"}


async def test_a_credential_that_is_refused_is_read_again(server: FakeApiServer, client: KubeClient) -> None:
    server.script(resource="configmaps", fault=Fault.UNAUTHORIZED)
    await put(client, "a", "1")
    assert server.faults.struck
    assert await stored(client) == {"a": "1"}


async def test_an_object_that_is_deleted_between_two_pages_is_in_no_list(
    server: FakeApiServer, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitops_ctl.kube.transport.PAGE_SIZE", 5)
    for number in range(12):
        await put(client, f"m{number:02d}", "1")
    server.script(verb="list", resource="configmaps", fault=Fault.DELETE_DURING_LIST)
    listed = await stored(client)
    assert server.faults.struck
    assert len(listed) == 11
    assert listed == await stored(client)

"""The manager as a process: SIGTERM, SIGSTOP, SIGKILL, and two replicas (faults H13 and H14, promise P7).

Everything with the shipped rights and the real API server; the Lease is scaled down.
"""

import signal
from typing import Any

import pytest

from tests.support.git_servers import Fault
from tests.support.manager_process import Managed, managed_tenant, manager_plane  # noqa: F401
from tests.support.product import config_map, people  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(420)]

MANY = 400


def many(value: str = "1") -> dict[str, str]:
    return {"site/many.yaml": "".join(config_map(f"many-{number}", value) for number in range(MANY))}


async def applied(managed: Managed) -> dict[str, str]:
    """Name to UID of the many that exist."""
    page = await managed.admin.list_all(f"/api/v1/namespaces/{managed.tenant.namespace}/configmaps")
    trees: Any = page.items
    return {
        tree["metadata"]["name"]: tree["metadata"]["uid"]
        for tree in trees
        if tree["metadata"]["name"].startswith("many-")
    }


async def recorded(managed: Managed) -> dict[str, str]:
    """Name to UID of the entries that speak of them; an object that was only going to be applied has none yet."""
    page = await managed.admin.list_all(
        f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{managed.tenant.namespace}/inventories"
    )
    trees: Any = page.items
    entries = [entry for tree in trees for entry in tree["spec"].get("entries", ())]
    return {entry["name"]: entry["uid"] for entry in entries if entry["name"].startswith("many-") and entry.get("uid")}


async def until_some(managed: Managed, count: int = 5) -> None:
    async def some() -> bool:
        return len(await applied(managed)) >= count

    await until(some, what="the apply has begun", timeout_s=90)


async def test_H14_sigterm_on_a_standby_ends_it_without_a_write(managed: Managed) -> None:
    await managed.start("leader")
    await managed.until_leads("leader")
    standby = await managed.start("standby")
    await until(lambda: bool(managed.entries("standby")), what="the standby looks at the Lease", timeout_s=60)
    await managed.tenant.until_applied(managed.tenant.root)
    assert await standby.terminate() == 0
    assert managed.entries("standby", writes=True) == []
    assert (await managed.holder()).startswith("leader/")
    commit = await managed.push({"site/more.yaml": config_map("more")})
    await managed.tenant.until_applied(commit)


async def test_H14_sigterm_in_the_middle_of_an_apply_records_what_was_done_and_releases_the_lease(
    managed: Managed,
) -> None:
    first = await managed.start("first")
    await managed.tenant.until_applied(managed.tenant.root)
    commit = await managed.push(many())
    await until_some(managed)
    assert await first.terminate() == 0
    done = await applied(managed)
    assert await recorded(managed) == done
    assert await managed.holder() == ""
    await managed.start("second")
    await managed.tenant.until_applied(commit)
    now = await applied(managed)
    assert len(now) == MANY
    assert {name: now[name] for name in done} == done


async def test_H13_a_stopped_leader_that_goes_on_later_writes_nothing_and_ends(managed: Managed) -> None:
    old = await managed.start("old", lease_s=6.0)
    await managed.until_leads("old")
    await managed.tenant.until_applied(managed.tenant.root)
    old.signal(signal.SIGSTOP)
    await managed.start("new", lease_s=6.0)
    await managed.until_leads("new")
    commit = await managed.push(many())
    await managed.tenant.until_applied(commit)
    managed.audit.mark()
    old.signal(signal.SIGCONT)
    assert await old.ended() == 1
    tried = [
        (event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"])
        for event in managed.entries("old", writes=True)
    ]
    assert tried in ([], [("update", "leases", 409)]), "at most it asked for the Lease, and did not get it"
    assert (await managed.holder()).startswith("new/")
    assert await managed.tenant.accepted() == commit


@pytest.mark.parametrize("count", [1, 60, 250], ids=["at the first object", "early", "late"])
async def test_promise_07_sigkill_in_the_middle_of_an_apply_loses_nothing(managed: Managed, count: int) -> None:
    first = await managed.start("first", lease_s=4.0)
    await managed.tenant.until_applied(managed.tenant.root)
    commit = await managed.push(many())
    await until_some(managed, count)
    first.signal(signal.SIGKILL)
    assert await first.ended() == -signal.SIGKILL
    done = await applied(managed)
    await managed.start("second", lease_s=4.0)
    await managed.tenant.until_applied(commit)
    now = await applied(managed)
    assert len(now) == MANY
    assert {name: now[name] for name in done} == done, "nothing was made again"
    assert await recorded(managed) == now


async def test_the_git_server_may_go_and_come_back(managed: Managed) -> None:
    await managed.start()
    await managed.tenant.until_applied(managed.tenant.root)
    managed.server.script(Fault(status=503, times=-1))
    commit = managed.tenant.commit({"site/more.yaml": config_map("more")})
    await managed.poll()
    ready = await managed.tenant.until_reason("FetchFailed")
    assert "503" in ready["message"]
    managed.server.faults.clear()
    await managed.tenant.until_applied(commit)

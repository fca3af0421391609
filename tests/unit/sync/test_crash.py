"""The whole room against the double: a crash, a lost reply or a conflict at every write in turn, and a restored store.

In the end everything is as without the fault, nothing that exists is missing from the inventory, and nothing was deleted that
Git still declares.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.kube.transport import WRITE_VERBS
from tests.doubles.apiserver import FakeApiServer, Fault
from tests.support.sync_cluster import Bench, fake_bench, until

pytestmark = pytest.mark.simulation

PRUNE = {"enabled": True, "maxPercent": 100}


async def story(site: Bench) -> None:
    """Apply, change, remove: every kind of write that a pass makes."""
    site.push(site.config_maps(3))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    site.push(
        {"n0000.yaml": site.config_map("n0000", "2"), "late.yaml": site.config_map("late")}, delete=["n0001.yaml"]
    )
    await site.until_ready()
    await site.until_idle()


async def world(site: Bench) -> dict[str, Any]:
    """What is true in the end, without what every run numbers anew."""
    page: Any = await site.admin.list_all(site.path("configmaps"), label_selector="gitops-ctl.dev/owner")
    objects = {item["metadata"]["name"]: item["data"] for item in page.items}
    status = await site.status()
    ready = await site.condition()
    return {
        "objects": objects,
        "inventory": sorted(entry["name"] for entry in await site.inventory()),
        "ready": (ready["status"], ready["reason"]),
        "counts": status["counts"],
    }


EXPECTED = {
    "objects": {"n0000": {"key": "2"}, "n0002": {"key": "1"}, "late": {"key": "1"}},
    "inventory": ["late", "n0000", "n0002"],
    "ready": ("True", "Succeeded"),
    "counts": {"objects": 3, "applied": 3, "held": 0, "drifted": 0, "unhealthy": 0, "kept": 0, "terminating": 0},
}
WRITES = 15


async def test_the_story_without_a_fault(tmp_path: Path) -> None:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as site:
        site.manager.calls.clear()
        await story(site)
        assert await world(site) == EXPECTED
        assert site.writes <= WRITES


class Killer:
    """Stops the process at one write, before or after its effect, and starts another one."""

    def __init__(self, site: Bench, *, at: int, after: bool) -> None:
        self.site = site
        self.at = at
        self.after = after
        self.count = 0
        self.struck = asyncio.Event()
        self._real = site.manager._exchange._once
        site.manager._exchange._once = self._once  # type: ignore[method-assign]

    async def _once(self, call: Any, authorization: str) -> bytes:
        if call.verb not in WRITE_VERBS or self.struck.is_set():
            return await self._real(call, authorization)
        self.count += 1
        if self.count == self.at:
            if self.after:
                await self._real(call, authorization)
            self.struck.set()
            await asyncio.Event().wait()
        return await self._real(call, authorization)

    async def watch(self) -> None:
        await self.struck.wait()
        await self.site.kill()
        recorded = {entry["name"] for entry in await self.site.inventory()}
        page: Any = await self.site.admin.list_all(self.site.path("configmaps"), label_selector="gitops-ctl.dev/owner")
        assert {item["metadata"]["name"] for item in page.items} <= recorded
        await self.site.start()


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
@pytest.mark.parametrize("at", range(1, WRITES))
async def test_R05_a_crash_at_any_write_changes_nothing_in_the_end(tmp_path: Path, at: int, after: bool) -> None:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as site:
        killer = Killer(site, at=at, after=after)
        watching = asyncio.create_task(killer.watch())
        await story(site)
        if killer.struck.is_set():
            await watching
        watching.cancel()
        await site.until_ready()
        await site.until_idle()
        assert await world(site) == EXPECTED


@pytest.mark.parametrize(
    "fault", [Fault.LOST_REPLY, Fault.CONFLICT, Fault.SERVER_ERROR], ids=lambda fault: fault.name.lower()
)
@pytest.mark.parametrize("resource", ["configmaps", "inventories", "syncs"])
async def test_S22_lost_replies_conflicts_and_failures_of_the_server_change_nothing_in_the_end(
    tmp_path: Path, fault: Fault, resource: str
) -> None:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as site:
        for at in (1, 3):
            verb = "patch" if resource != "inventories" else "update"
            server.script(verb=verb, resource=resource, at=at, fault=fault)
        await story(site)
        assert {struck[2] for struck in server.faults.struck} == {fault}
        assert await world(site) == EXPECTED


async def test_H17_a_store_restored_from_a_backup_is_brought_up_to_date_and_nothing_is_pruned(tmp_path: Path) -> None:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as site:
        site.push(site.config_maps(30))
        await site.sync(prune=PRUNE)
        await site.until_ready()
        await site.until_idle()
        backup = server.api.snapshot()
        site.push({**site.config_maps(40), "n0000.yaml": site.config_map("n0000", "2")})
        await site.until_ready()
        await site.until_idle()
        site.manager.calls.clear()
        server.api.restore(backup)
        server.drop_watches()

        async def restored() -> bool:
            page: Any = await site.admin.list_all(site.path("configmaps"), label_selector="gitops-ctl.dev/owner")
            data = {item["metadata"]["name"]: item["data"]["key"] for item in page.items}
            return len(data) == 40 and data["n0000"] == "2"

        async def asked() -> bool:
            for informer in site.room.clusters.local._informers.values():  # type: ignore[union-attr]
                informer.relist()
            server.drop_watches()
            return await restored()

        await until(asked, what="everything is there again")
        assert site.manager.calls["delete", "configmaps"] == 0

"""P8: an idle system writes nothing: no status, no patch, no event, whatever makes it look again (fault R15)."""

from typing import Any

import pytest

from gitops_ctl.core.ids import NamespacedName
from tests.support.cluster import AuditLog
from tests.support.product import (  # noqa: F401
    AUTHOR,
    SOURCE,
    Product,
    ShiftedClock,
    config_map,
    people,
    product_world,
)
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


async def until_idle(world: Product) -> None:
    """No pass is at work or due, in either room."""
    assert world.rooms is not None
    queues = (world.rooms.sources.queue, world.rooms.syncs.queue)

    def idle() -> bool:
        gauges = [item for queue in queues for item in queue.gauges().items()]
        return not any(value for name, value in gauges if name.startswith(("depth", "unfinished")))

    await until(idle, what="both rooms are idle")


async def look_again(world: Product) -> None:
    """A poll and a pass over the Sync, as a webhook and a heard change cause them."""
    assert world.rooms is not None
    world.poke()
    world.rooms.syncs.wake(NamespacedName(world.namespace, "site"))
    await until_idle(world)


async def versions(world: Product) -> dict[str, str]:
    """resourceVersion of everything in the namespace that we may write."""
    paths = {
        "source": world.source_path,
        "sync": world.sync_path(),
        "inventory": f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{world.namespace}/inventories/site-0",
        "base": f"/api/v1/namespaces/{world.namespace}/configmaps/base",
    }
    found: dict[str, str] = {}
    for name, path in paths.items():
        tree: Any = await world.admin.get(path)
        found[name] = tree["metadata"]["resourceVersion"]
    return found


def writes(audit: AuditLog, world: Product) -> list[tuple[str, str]]:
    events = audit.writes(user_agent="product-", namespace=world.namespace)
    return [(event["verb"], event["requestURI"]) for event in events]


async def test_R15_an_hour_of_passes_over_an_unchanged_system_writes_nothing(
    world: Product, audit_log: AuditLog
) -> None:
    clock = ShiftedClock()
    await world.reborn(clock)
    await world.until_applied(world.root)
    await look_again(world)
    before = await versions(world)
    audit_log.mark()
    for _ in range(20):
        clock.ahead_s += 180
        clock.wall_s += 180
        await look_again(world)
    assert writes(audit_log, world) == []
    assert await versions(world) == before


async def test_promise_08_a_new_process_with_fresh_lists_writes_nothing(world: Product, audit_log: AuditLog) -> None:
    await look_again(world)
    before = await versions(world)
    audit_log.mark()
    for _ in range(2):
        await world.reborn()
        await until_idle(world)
        await look_again(world)
    assert writes(audit_log, world) == []
    assert await versions(world) == before


async def test_promise_08_a_refused_commit_is_told_once(world: Product, audit_log: AuditLog) -> None:
    world.push({"site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    await world.until_reason("PathNotAuthorised")
    await look_again(world)
    before = await versions(world)
    audit_log.mark()
    for _ in range(5):
        await look_again(world)
    assert writes(audit_log, world) == []
    assert await versions(world) == before


async def test_promise_08_a_foreign_change_of_a_field_that_is_not_ours_is_no_reason_to_write(
    world: Product, audit_log: AuditLog
) -> None:
    await look_again(world)
    path = f"/api/v1/namespaces/{world.namespace}/configmaps/base"
    audit_log.mark()
    for number in range(3):
        await world.admin.patch_merge(path, {"data": {"other": str(number)}}, manager="somebody")
        await look_again(world)
    assert writes(audit_log, world) == []
    found: Any = await world.admin.get(path)
    assert found["data"] == {"value": "1", "other": "2"}
    assert SOURCE in world.source_path

"""`/metrics` of a running product shows what is true."""

import aiohttp
import pytest

from gitops_ctl.cli.measure import refresher
from gitops_ctl.telemetry.endpoints import Endpoints, metrics_app
from gitops_ctl.telemetry.metrics import Metrics
from tests.support.product import Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


async def test_metrics_show_requests_queues_syncs_and_objects(world: Product) -> None:
    assert world.rooms is not None
    syncs, sources = world.rooms.syncs, world.rooms.sources
    metrics = Metrics(requests=lambda: world.manager.calls)
    refresh = refresher(metrics, queues={"gitsource": sources.queue, "sync": syncs.queue}, syncs=syncs.syncs)
    world.push({"site/broken.yaml": config_map("broken").replace('"1"', "1")})
    async with Endpoints({"metrics": (metrics_app(metrics, refresh=refresh), "127.0.0.1:0")}) as served:
        async with aiohttp.ClientSession() as session:

            async def values() -> dict[str, float]:
                async with session.get(f"http://{served.addresses['metrics']}/metrics") as reply:
                    lines = (await reply.text()).splitlines()
                return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

            async def held() -> dict[str, float]:
                found = await values()
                return found if found['gitops_ctl_objects{state="held"}'] == 1.0 else {}

            found = await until(held, what="the held object is counted")
    assert found['rest_client_requests_total{resource="configmaps",verb="apply"}'] >= 1.0
    assert found['gitops_ctl_syncs{ready="False"}'] == 1.0
    assert found['gitops_ctl_syncs{ready="True"}'] == 0.0
    assert found['gitops_ctl_objects{state="applied"}'] == 1.0
    assert found['workqueue_depth{name="sync"}'] == 0.0
    assert {'workqueue_depth{name="gitsource"}', 'workqueue_unfinished_work_seconds{name="sync"}'} <= found.keys()

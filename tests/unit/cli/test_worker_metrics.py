"""What the worker of clusters serves about itself; what it counts is in tests/unit/cni."""

from collections import Counter
from pathlib import Path

import aiohttp

from gitops_ctl.cli.worker import Settings, _apps
from gitops_ctl.telemetry.endpoints import Endpoints
from gitops_ctl.telemetry.workermetrics import WorkerMetrics


class Unit:
    """Stands for a cluster with two machines."""

    running = 1

    def machine_states(self) -> Counter[str]:
        return Counter(reachable=1, unseen=1)


class Room:
    is_ready = True
    units = (Unit(), Unit())


def settings(metrics: str) -> Settings:
    return Settings(None, None, "net", "w", Path("/etc"), "off", 0, 10.0, "127.0.0.1:0", metrics)


async def test_metrics_are_served_where_an_address_is_given() -> None:
    calls = {("get", "taloscluster"): 3}
    metrics = WorkerMetrics(requests=lambda: calls)
    metrics.effects.labels("apply-mode", "Done").inc()
    async with (
        Endpoints(_apps(settings("127.0.0.1:0"), Room(), metrics)) as served,  # type: ignore[arg-type]
        aiohttp.ClientSession() as session,
        session.get(f"http://{served.addresses['metrics']}/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()
    assert "gitops_ctl_worker_clusters 2.0" in lines
    assert 'gitops_ctl_worker_machines{state="reachable"} 2.0' in lines
    assert 'gitops_ctl_worker_machines{state="unreachable"} 0.0' in lines
    assert 'gitops_ctl_worker_machines{state="unseen"} 2.0' in lines
    assert "gitops_ctl_worker_effects_running 2.0" in lines
    assert 'gitops_ctl_worker_effects_total{action="apply-mode",result="Done"} 1.0' in lines
    assert 'rest_client_requests_total{resource="taloscluster",verb="get"} 3.0' in lines


def test_without_an_address_there_are_none() -> None:
    assert set(_apps(settings(""), Room(), WorkerMetrics())) == {"health"}  # type: ignore[arg-type]

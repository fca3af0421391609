"""What a worker of clusters measures about itself; labels are bounded as those of the manager are."""

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gitops_ctl.telemetry.metrics import SECONDS, Requests

MACHINE_STATES: Final = ("reachable", "unreachable", "unseen")


class WorkerMetrics:
    """One registry with every metric of the worker."""

    def __init__(self, *, requests: Callable[[], Mapping[tuple[str, str], int]] = dict) -> None:
        """`requests` gives how often each verb was sent for each resource of the worker's own cluster since the start."""
        self.registry = CollectorRegistry()
        self.registry.register(Requests(requests))
        self.clusters = Gauge(
            "gitops_ctl_worker_clusters", "TalosClusters that this worker works for.", registry=self.registry
        )
        self.machines = Gauge(
            "gitops_ctl_worker_machines",
            "Machines by what the newest look at them said.",
            ["state"],
            registry=self.registry,
        )
        self.effects_running = Gauge(
            "gitops_ctl_worker_effects_running",
            "Requests that are being carried out by this worker.",
            registry=self.registry,
        )
        self.effects = Counter(
            "gitops_ctl_worker_effects",
            "Requests that got their receipt from this worker, by what was asked and how it ended.",
            ["action", "result"],
            registry=self.registry,
        )
        self.loop_lag_seconds = Histogram(
            "gitops_ctl_event_loop_lag_seconds",
            "How much later than asked for a task was run.",
            buckets=SECONDS,
            registry=self.registry,
        )

    def set_gauges(self, *, clusters: int, machines: Mapping[str, int], running: int) -> None:
        """Set what is counted when it is asked for; `machines` by state."""
        self.clusters.set(clusters)
        self.effects_running.set(running)
        for state in MACHINE_STATES:
            self.machines.labels(state).set(machines.get(state, 0))

    def render(self) -> bytes:
        """The text exposition of every metric."""
        return generate_latest(self.registry)

"""Metrics under the names that controller-runtime gave them, so that existing dashboards work.

Labels are bounded: kinds, verbs, results and reasons, never object names and never values (fault H22).
"""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """One registry with every metric of the manager; handed to whoever counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_total = Counter(
            "controller_runtime_reconcile_total",
            "Passes of a controller by result.",
            ["controller", "result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Time of one pass.",
            ["controller"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.queue_depth = Gauge("workqueue_depth", "Keys that are due.", ["name"], registry=self.registry)
        self.queue_seconds = Histogram(
            "workqueue_queue_duration_seconds",
            "Time a key waited before a worker took it.",
            ["name"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.requests_total = Counter(
            "rest_client_requests_total",
            "Requests to the API server by verb and answer.",
            ["verb", "code"],
            registry=self.registry,
        )
        self.commits_judged_total = Counter(
            "gitops_ctl_commits_judged_total", "Commits judged, by verdict.", ["verdict"], registry=self.registry
        )
        self.objects_applied_total = Counter(
            "gitops_ctl_objects_applied_total", "Objects by what an apply did.", ["result"], registry=self.registry
        )
        self.fetch_seconds = Histogram(
            "gitops_ctl_fetch_seconds", "Time of one fetch.", ["result"], buckets=_SECONDS, registry=self.registry
        )

    def render(self) -> bytes:
        """The text exposition of every metric."""
        return generate_latest(self.registry)

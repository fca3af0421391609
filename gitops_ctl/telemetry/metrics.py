"""Metrics under the names that controller-runtime gave them, so that existing dashboards work.

Labels are bounded: kinds, verbs, results and states, never object names and never values (fault H22).  Gauges are set just before
they are read, from caches; the requests are those that the client counts itself.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """One registry with every metric of the manager; handed to whoever measures."""

    def __init__(self, *, requests: Callable[[], Mapping[tuple[str, str], int]] = dict) -> None:
        """`requests` gives how often each verb was sent for each resource since the start."""
        self.registry = CollectorRegistry()
        self.registry.register(Requests(requests))
        gauge = partial(Gauge, registry=self.registry)
        self.queue_depth = gauge("workqueue_depth", "Keys that are due.", ["name"])
        self.queue_unfinished_seconds = gauge(
            "workqueue_unfinished_work_seconds", "Time that the passes at work have taken so far.", ["name"]
        )
        self.queue_longest_seconds = gauge(
            "workqueue_longest_running_processor_seconds",
            "Time that the longest pass at work has taken so far.",
            ["name"],
        )
        self.syncs = Gauge(
            "gitops_ctl_syncs", "Syncs by the status of their Ready condition.", ["ready"], registry=self.registry
        )
        self.objects = Gauge(
            "gitops_ctl_objects", "Objects of all Syncs by their state.", ["state"], registry=self.registry
        )
        self.drains = gauge("gitops_ctl_drains", "Queues that are being drained.")
        self.oldest_drain_seconds = gauge("gitops_ctl_oldest_drain_seconds", "Age of the longest drain of a queue.")
        self.kueue_unsupported = gauge(
            "gitops_ctl_kueue_unsupported",
            "1 while Kueue serves no version that plans can be made for: nothing is planned.",
        )
        self._count_devices(gauge)
        self._time()

    def _count_devices(self, gauge: Callable[..., Gauge]) -> None:
        """Devices and software rollouts."""
        self.projections = Counted(
            "cisco_vk_topology_projection_reconciliations",
            "Passes over devices by the phase they left.",
            label="result",
        )
        self.registry.register(self.projections)
        self.rollout_passes = Counted(
            "cisco_vk_topology_rollout_reconciliations",
            "Passes over software rollouts by the phase they left.",
            label="result",
        )
        self.target_transitions = Counted(
            "cisco_vk_topology_rollout_target_transitions",
            "Devices of rollouts that came into a phase.",
            label="phase",
        )
        self.admission_waits = Counted(
            "cisco_vk_topology_rollout_admission_waits",
            "Devices of rollouts that a pass left waiting, by the reason.",
            label="reason",
        )
        for counted in (self.rollout_passes, self.target_transitions, self.admission_waits):
            self.registry.register(counted)
        self.ledger_reservations = gauge(
            "cisco_vk_topology_rollout_ledger_active_reservations", "Reservations in the ledger when it was seen last."
        )
        self.ledger_bytes = gauge(
            "cisco_vk_topology_rollout_ledger_serialized_bytes", "Bytes of the ledger when it was seen last."
        )

    def _time(self) -> None:
        """How long something takes."""
        self.loop_lag_seconds = Histogram(
            "gitops_ctl_event_loop_lag_seconds",
            "How much later than asked for a task of the manager was run.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.fetch_seconds = Histogram(
            "gitops_ctl_fetch_seconds",
            "Time of one question to a Git server, of one fetch from it, or of one cleaning of a copy.",
            ["step", "result"],
            buckets=SECONDS,
            registry=self.registry,
        )

    def render(self) -> bytes:
        """The text exposition of every metric."""
        return generate_latest(self.registry)


class Requests(Collector):
    """What a client counts already is not counted twice."""

    def __init__(self, requests: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        self._requests = requests

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server by verb and resource.", labels=["verb", "resource"]
        )
        for (verb, resource), count in sorted(self._requests().items()):
            family.add_metric([verb, resource], count)
        yield family


class Counted(Collector):
    """What a room counts already; `read` is set by whoever makes the room, and gives the counts by the value of the label."""

    def __init__(self, name: str, text: str, *, label: str) -> None:
        self._name, self._text, self._label = name, text, label
        self.read: Callable[[], Mapping[str, int]] = dict

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._text, labels=[self._label])
        for value, count in sorted(self.read().items()):
            family.add_metric([value], count)
        yield family

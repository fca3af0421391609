"""What a worker of devices measures about itself; no label names a device, so that their number does not grow with the fleet."""

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gitops_ctl.telemetry.metrics import SECONDS, Requests

DEVICE_STATES: Final = ("loaded", "unusable", "unseen")


class DeviceMetrics:
    """One registry with every metric of a plane."""

    def __init__(self, *, requests: Callable[[], Mapping[tuple[str, str], int]] = dict) -> None:
        """`requests` gives how often each verb was sent for each resource of the cluster since the start."""
        self.registry = CollectorRegistry()
        self.registry.register(Requests(requests))
        self.devices = Gauge(
            "gitops_ctl_device_worker_devices",
            "CiscoDevices of the namespace, by whether their Secrets are loaded and usable.",
            ["state"],
            registry=self.registry,
        )
        self.looks = Counter(
            "gitops_ctl_device_worker_looks",
            "Looks at devices, by what for (sample, preflight, node) and whether they went well.",
            ["duty", "result"],
            registry=self.registry,
        )
        self.loop_lag_seconds = Histogram(
            "gitops_ctl_event_loop_lag_seconds",
            "How much later than asked for a task was run.",
            buckets=SECONDS,
            registry=self.registry,
        )

    def count(self, duty: str, well: bool) -> None:
        """One look is over."""
        self.looks.labels(duty, "success" if well else "failure").inc()

    def set_devices(self, states: Mapping[str, int]) -> None:
        """Set how many devices are in each state."""
        for state in DEVICE_STATES:
            self.devices.labels(state).set(states.get(state, 0))

    def render(self) -> bytes:
        """The text exposition of every metric."""
        return generate_latest(self.registry)

"""`gitops-ctl worker cluster`: the only process that talks to Talos machines and to target clusters (cni-switch.md, section 2.1).

It needs no Lease: whoever claims a request first acts on it.  Order at the end: nothing new begins, effects that run finish within their
time, and what is not finished then is settled by the next worker, which looks at what is there.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.cli.deviceworker import device
from gitops_ctl.core.memory import forbid_core_dumps
from gitops_ctl.core.process import asked_to_end, replica_identity
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.looplag import watch_lag
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.telemetry.endpoints import Endpoints, health_app, metrics_app
from gitops_ctl.telemetry.logs import configure_logs, logger
from gitops_ctl.telemetry.workermetrics import WorkerMetrics

if TYPE_CHECKING:
    from aiohttp import web

    from gitops_ctl.cni.worker.probe import When
    from gitops_ctl.cni.worker.room import WorkerRoom
    from gitops_ctl.cni.worker.unit import Ports

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line decides."""

    kubeconfig: Path | None
    context: str | None
    namespace: str
    identity: str
    credentials: Path
    probe: "When"
    probe_port: int
    interval_s: float
    health: str
    metrics: str = ""


@click.group()
def worker() -> None:
    """Run one of the processes that hold credentials of what they change."""


worker.add_command(device)


@worker.command()
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Outside of a pod.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Whose TalosClusters it works for.")
@click.option("--identity", help="Name of this worker in claims; host and process when left out.")
@click.option(
    "--credentials-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/etc/gitops-ctl"),
    show_default=True,
    help="Where Secrets are mounted: clusters/<name>/ and machines/<name>/.",
)
@click.option(
    "--service-probe",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="Ask the Service kubernetes after a switch; auto: when the worker runs in the cluster.",
)
@click.option(
    "--service-probe-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Instead of the Service's port.",
)
@click.option(
    "--observation-interval",
    type=click.FloatRange(0.5, 60.0),
    default=10.0,
    show_default=True,
    help="Seconds between two looks while an operation runs.",
)
@click.option("--health-address", default="127.0.0.1:0", show_default=True)
@click.option("--metrics-address", default="", help="Serve /metrics here; off when left out.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
def cluster(  # noqa: PLR0913  each is an option
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    identity: str | None,
    credentials_dir: Path,
    service_probe: "When",
    service_probe_port: int,
    observation_interval: float,
    health_address: str,
    metrics_address: str,
    log_level: str,
) -> int:
    """Observe machines and target clusters, and carry out what operations ask for, until SIGTERM."""
    forbid_core_dumps()
    configure_logs(json_lines=not sys.stderr.isatty(), level=log_level)
    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        identity=replica_identity(identity),
        credentials=credentials_dir,
        probe=service_probe,
        probe_port=service_probe_port,
        interval_s=observation_interval,
        health=health_address,
        metrics=metrics_address,
    )
    return asyncio.run(run_worker(settings))


async def run_worker(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT.

    Raises:
        GitopsError: the worker's own cluster is not configured; nothing was started.
    """
    from gitops_ctl.cni.worker.room import WorkerRoom  # noqa: PLC0415 - the Talos client is not needed to print a help text

    asked = asked_to_end()
    config = await load_cluster(settings.kubeconfig, settings.context, allow_exec=False)
    async with KubeClient(config, component="cluster-worker") as own:
        metrics = WorkerMetrics(requests=lambda: own.calls)
        room = WorkerRoom(make_ports(own, settings, metrics), namespace=settings.namespace)
        async with Endpoints(_apps(settings, room, metrics)) as endpoints:
            log.info("working", namespace=settings.namespace, identity=settings.identity, **endpoints.addresses)
            working = asyncio.create_task(room.run(), name="room")
            lag = asyncio.create_task(watch_lag(own.clock, observe=metrics.loop_lag_seconds.observe), name="lag")
            ending = asyncio.create_task(asked.wait(), name="signal")
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            room.stop()
            ending.cancel()
            try:
                await working
            finally:
                lag.cancel()
    return 0


def _apps(
    settings: Settings, room: "WorkerRoom", metrics: WorkerMetrics
) -> Mapping[str, tuple["web.Application", str]]:
    """What is served, and where."""
    apps = {"health": (health_app(is_ready=lambda: room.is_ready), settings.health)}
    if settings.metrics:
        apps["metrics"] = (metrics_app(metrics, refresh=lambda: _count(room, metrics)), settings.metrics)
    return apps


def _count(room: "WorkerRoom", metrics: WorkerMetrics) -> None:
    machines: Counter[str] = Counter()
    for unit in room.units:
        machines += unit.machine_states()
    metrics.set_gauges(clusters=len(room.units), machines=machines, running=sum(unit.running for unit in room.units))


def make_ports(own: KubeClient, settings: Settings, metrics: WorkerMetrics) -> "Ports":
    """What the units of this process work with."""
    from gitops_ctl.cni.worker.connecting import talos_machines  # noqa: PLC0415 - as above
    from gitops_ctl.cni.worker.credentials import Credentials  # noqa: PLC0415 - as above
    from gitops_ctl.cni.worker.probe import ProbeOptions  # noqa: PLC0415 - as above
    from gitops_ctl.cni.worker.unit import Pace, Ports  # noqa: PLC0415 - as above

    pace = Pace(look_s=settings.interval_s, write_s=settings.interval_s)

    return Ports(
        own=own,
        worker=settings.identity,
        credentials=Credentials(settings.credentials),
        connect=talos_machines(own.clock),
        probe=ProbeOptions(settings.probe, settings.probe_port),
        pace=pace,
        settled=lambda action, result: metrics.effects.labels(action, result).inc(),
    )

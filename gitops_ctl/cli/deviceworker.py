"""`gitops-ctl worker device`: the only processes that talk to switches, one for each plane of a namespace (rollouts.md, section 17.1).

They hold no Lease of their own: a plane is one Pod, and what it writes counts only for the Pod that its token names.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click

from gitops_ctl.cli.deviceoptions import Network
from gitops_ctl.core.memory import forbid_core_dumps
from gitops_ctl.core.process import asked_to_end
from gitops_ctl.fleet import names
from gitops_ctl.fleet.health import DEFAULT_OBSERVATION_AGE_S
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.looplag import watch_lag
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.telemetry.devicemetrics import DeviceMetrics
from gitops_ctl.telemetry.endpoints import Endpoints, health_app, metrics_app
from gitops_ctl.telemetry.logs import configure_logs, logger

if TYPE_CHECKING:
    from aiohttp import web

    from gitops_ctl.device.worker.networkroom import NetworkRoom
    from gitops_ctl.device.worker.noderoom import NodeRoom

log = logger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MOST_NETWORKS: Final = 16
_SPOOL_LIMIT: Final = 16 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line decides; each is an option of the same name."""

    plane: Literal["network", "node"]
    namespace: str
    kubeconfig: Path | None = None
    context: str | None = None
    lease_namespace: str = ""
    read_only: bool = False
    template_digest: str
    journal_dir: Path
    spool_dir: Path
    spool_limit: int = _SPOOL_LIMIT
    image_source_allow: tuple[str, ...] = ()
    unsaved_configuration: Literal["block", "warn"] = "block"
    evidence_freshness: int = DEFAULT_OBSERVATION_AGE_S
    worker_poll: float = 15.0
    preflight_interval: float = 3600.0
    secret_interval: float = 300.0
    heartbeat_interval: float = 60.0
    node_lease_interval: float = 10.0
    start_spread: float = 10.0
    health_address: str = "127.0.0.1:0"
    metrics_address: str = ""


def _seconds(name: str, default: float, text: str, *, least: float = 0.1) -> Callable[[F], F]:
    return click.option(
        name, type=click.FloatRange(min=least), default=default, show_default=True, help=f"Seconds {text}"
    )


@click.command()
@click.option("--plane", type=click.Choice(["network", "node"]), required=True, help="What it does; see the guide.")
@click.option("--namespace", envvar=names.ENV_WORKER_NAMESPACE, required=True, help="Whose CiscoDevices it serves.")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Outside of a pod.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--lease-namespace", default="", help="Where mutation Leases are; the namespace when left out.")
@click.option("--read-only", is_flag=True, help="Look, check and report; claim nothing and change no device.")
@click.option(
    "--template-digest",
    envvar=names.ENV_WORKER_TEMPLATE_DIGEST,
    required=True,
    help="Digest of the Pod's template; the Deployment sets it.",
)
@click.option(
    "--journal-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/lib/gitops-ctl/journal"),
    show_default=True,
    help="Journal of claims; it has to outlive the worker.",
)
@click.option(
    "--spool-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/cache/gitops-ctl/spool"),
    show_default=True,
    help="Images on their way to devices.",
)
@click.option(
    "--spool-limit", type=click.IntRange(min=1), default=_SPOOL_LIMIT, show_default=True, help="Bytes of all images."
)
@click.option(
    "--image-source-allow",
    type=Network(),
    multiple=True,
    help="Network that image servers may be in although it is not public; can be given up to 16 times.",
)
@click.option(
    "--unsaved-configuration",
    type=click.Choice(["block", "warn"]),
    default="block",
    show_default=True,
    help="What a running configuration that is not saved does to an upgrade.",
)
@click.option(
    "--evidence-freshness",
    type=click.IntRange(min=30),
    default=DEFAULT_OBSERVATION_AGE_S,
    show_default=True,
    help="Seconds that evidence stays good by the fleet policy; samples are renewed at a third of it.",
)
@_seconds("--worker-poll", 15.0, "until what waits is looked at again, at the latest.")
@_seconds("--preflight-interval", 3600.0, "after which the checks before an upgrade are made again.")
@_seconds("--secret-interval", 300.0, "after which Secrets are read again though nothing says that they changed.")
@_seconds("--heartbeat-interval", 60.0, "between two looks at a device by the node plane.")
@_seconds("--node-lease-interval", 10.0, "between two renewals of a Node's Lease.")
@_seconds("--start-spread", 10.0, "that the first looks are spread over.", least=0.0)
@click.option("--health-address", default="127.0.0.1:0", show_default=True)
@click.option("--metrics-address", default="", help="Serve /metrics here; off when left out.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
def device(*, log_level: str, **given: Any) -> int:
    """Look at the devices of a namespace and carry out what their upgrades ask for, until SIGTERM."""
    forbid_core_dumps()
    configure_logs(json_lines=not sys.stderr.isatty(), level=log_level)
    given["image_source_allow"] = tuple(given["image_source_allow"])
    settings = Settings(**given)
    _require_sense(settings)
    return asyncio.run(run_worker(settings))


def _require_sense(settings: Settings) -> None:
    if not _DIGEST.fullmatch(settings.template_digest):
        raise click.UsageError("--template-digest is no digest: write sha256: and 64 hexadecimal digits")
    if len(settings.image_source_allow) > _MOST_NETWORKS:
        count = len(settings.image_source_allow)
        raise click.UsageError(f"--image-source-allow is given {count} times, {_MOST_NETWORKS} are allowed")
    if settings.plane == "node" and settings.read_only:
        raise click.UsageError("--plane node writes Nodes and does nothing else: it cannot be --read-only")


async def run_worker(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT.

    Raises:
        GitopsError: the cluster is not configured, the token is bound to no Pod, or the journal cannot be used.
    """
    from gitops_ctl.cli import deviceplanes  # noqa: PLC0415 - the clients of devices are not needed for a help text

    asked = asked_to_end()
    config = await load_cluster(settings.kubeconfig, settings.context, allow_exec=False)
    async with KubeClient(config, component=f"device-worker-{settings.plane}") as client:
        metrics = DeviceMetrics(requests=lambda: client.calls)
        served = await deviceplanes.served_by(client, settings, counted=metrics.count)
        with deviceplanes.journal_of(settings) as journal:
            room = deviceplanes.make_room(served, settings, journal)
            async with Endpoints(_apps(settings, room, metrics)) as endpoints:
                log.info(
                    "working",
                    plane=settings.plane,
                    namespace=settings.namespace,
                    pod=served.who.pod_name,
                    **endpoints.addresses,
                )
                await _until(asked, room, client, metrics)
    return 0


async def _until(
    asked: asyncio.Event, room: "NetworkRoom | NodeRoom", client: KubeClient, metrics: DeviceMetrics
) -> None:
    working = asyncio.create_task(room.run(), name="room")
    lag = asyncio.create_task(watch_lag(client.clock, observe=metrics.loop_lag_seconds.observe), name="lag")
    ending = asyncio.create_task(asked.wait(), name="signal")
    await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
    room.stop()
    ending.cancel()
    try:
        await working
    finally:
        lag.cancel()


def _apps(
    settings: Settings, room: "NetworkRoom | NodeRoom", metrics: DeviceMetrics
) -> Mapping[str, tuple["web.Application", str]]:
    """What is served, and where."""
    apps = {"health": (health_app(is_ready=lambda: room.is_ready), settings.health_address)}
    if settings.metrics_address:
        apps["metrics"] = (metrics_app(metrics, refresh=lambda: _count(room, metrics)), settings.metrics_address)
    return apps


def _count(room: "NetworkRoom | NodeRoom", metrics: DeviceMetrics) -> None:
    states: Counter[str] = Counter()
    for place in room.places:
        material = place.material
        states["unseen" if material is None else "unusable" if material.problem else "loaded"] += 1
    metrics.set_devices(states)

"""`gitops-ctl manager`: the controllers in one process, one leader by Lease.

Order at the start: the definitions of the cluster are checked, the endpoints listen, then the process waits for the Lease.
Order at the end: no further pass begins, running ones finish and write what they record, then the Lease is released.  A process
that lost the Lease stops and exits with 1; it never leads again (fault H13).
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import click

import gitops_ctl.cli.rolloutrules
import gitops_ctl.cni.holds  # noqa: F401 - what may hold a TalosCluster
from gitops_ctl.api.compat import require_fields
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.cli.deviceoptions import device_options
from gitops_ctl.cli.measure import MeasuredGit, measure_rollouts, measure_scheduling, refresher
from gitops_ctl.cli.pullcheck import pull_child
from gitops_ctl.cli.revisions import RevisionReader
from gitops_ctl.cli.rolloutfleet import ManagedFleet
from gitops_ctl.cli.rolloutoptions import rollout_options
from gitops_ctl.cli.topologyoptions import topology_options
from gitops_ctl.cli.topologyrules import register_scheduling
from gitops_ctl.cni.proposals_reading import ProposalDesk
from gitops_ctl.cni.room import Options as SwitchOptions
from gitops_ctl.cni.room import SwitchRoom
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, NotFound
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.memory import forbid_core_dumps
from gitops_ctl.core.process import asked_to_end, replica_identity
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.forge.desk import Git as ManagersGit
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.forge.room import Options as ProposalOptions
from gitops_ctl.forge.room import ProposalRoom
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import ChildTransport
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.events import EventKind, EventRecorder
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.lease import Leader, LeaseTiming
from gitops_ctl.kube.looplag import watch_lag
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.bootstrap import bind
from gitops_ctl.rollout.controller import Intervals
from gitops_ctl.rollout.room import Options as RolloutOptions
from gitops_ctl.rollout.room import RolloutRoom
from gitops_ctl.scheduling.options import Options as TopologyOptions
from gitops_ctl.scheduling.room import SchedulingRoom
from gitops_ctl.source.room import Options as SourceOptions
from gitops_ctl.source.room import SourceRoom
from gitops_ctl.source.tellingroom import Options as TellingOptions
from gitops_ctl.source.tellingroom import Places, TellingRoom
from gitops_ctl.source.webhook import webhook_app
from gitops_ctl.sync.loading import CheckedLoader
from gitops_ctl.sync.room import Options as SyncOptions
from gitops_ctl.sync.room import SyncRoom
from gitops_ctl.telemetry.endpoints import Endpoints, health_app, metrics_app
from gitops_ctl.telemetry.logs import configure_logs, logger
from gitops_ctl.telemetry.metrics import Metrics
from gitops_ctl.topology.options import Options as DeviceOptions
from gitops_ctl.topology.room import TopologyRoom
from gitops_ctl.trust.provenance import AcceptedRevisions

LEASE_NAME = "gitops-ctl-manager"

_CYCLE_SEARCH = (50_000, 20, 20)
"""Objects that are made between two searches for cycles, and how often the older ones are searched too."""

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line decides.  Empty addresses are not served."""

    kubeconfig: Path | None
    context: str | None
    namespace: str
    identity: str
    cache: Path
    allow_file: bool
    health: str
    metrics: str
    webhook: str
    lease: LeaseTiming
    scheduling: TopologyOptions
    devices: DeviceOptions | None
    rollouts: Intervals


@click.command()
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Outside of a pod.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Where the Lease is.")
@click.option("--identity", help="Name of this replica in the Lease; host and process when left out.")
@click.option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/cache/gitops-ctl"),
    show_default=True,
    help="Clones of the sources; can be removed at any time.",
)
@click.option("--allow-file-urls", is_flag=True, help="Accept file:// sources; for one machine only.")
@click.option("--health-address", default="127.0.0.1:0", show_default=True)
@click.option("--metrics-address", default="", help="Serve /metrics here; off when left out.")
@click.option("--webhook-address", default="", help="Take push webhooks here; off when left out.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option("--lease-duration", default=15.0, show_default=True, help="Seconds; the renew deadline is two thirds.")
@device_options
@rollout_options
@topology_options
def manager(  # noqa: PLR0913  each is an option
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    identity: str | None,
    cache_dir: Path,
    allow_file_urls: bool,
    health_address: str,
    metrics_address: str,
    webhook_address: str,
    log_level: str,
    lease_duration: float,
    options: TopologyOptions,
    devices: DeviceOptions | None,
    rollouts: Intervals,
) -> int:
    """Run the controllers until SIGTERM."""
    forbid_core_dumps()
    configure_logs(json_lines=not sys.stderr.isatty(), level=log_level)
    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        identity=replica_identity(identity),
        cache=cache_dir,
        allow_file=allow_file_urls,
        health=health_address,
        metrics=metrics_address,
        webhook=webhook_address,
        lease=lease_timing(lease_duration),
        scheduling=options,
        devices=devices,
        rollouts=rollouts,
    )
    # What was imported stays, and trees hold no cycles: searching for them at every step costs more than all planning.
    gc.freeze()
    gc.set_threshold(*_CYCLE_SEARCH)
    return asyncio.run(run_manager(settings))


def lease_timing(duration_s: float) -> LeaseTiming:
    """Timing in the proportions of gitops.md, section 13, around another duration."""
    return LeaseTiming(
        duration_s=duration_s,
        renew_deadline_s=duration_s * 2 / 3,
        retry_s=duration_s * 2 / 15,
        call_s=duration_s * 4 / 15,
    )


async def run_manager(settings: Settings) -> int:
    """Run until a signal (0) or until the Lease is lost (1).

    Raises:
        GitopsError: the cluster cannot be reached or its definitions are older than this release; nothing was started.
    """
    asked = asked_to_end()
    settings.cache.mkdir(parents=True, exist_ok=True)
    config = await load_cluster(settings.kubeconfig, settings.context, allow_exec=False)
    async with KubeClient(config, component="manager") as client:
        await require_definitions(client)
        leader = Leader(
            client, namespace=settings.namespace, name=LEASE_NAME, identity=settings.identity, timing=settings.lease
        )
        events = EventRecorder(client, instance=settings.identity, require=leader.require)
        metrics = Metrics(requests=lambda: client.calls)
        transport = ChildTransport(keeps_spare=True)
        rooms = make_rooms(
            client,
            cache=settings.cache,
            events=events,
            require=leader.require,
            allow_file=settings.allow_file,
            scheduling=settings.scheduling,
            devices=settings.devices,
            rollouts=settings.rollouts,
            git=MeasuredGit(transport, metrics, client.clock),
        )
        lag = asyncio.create_task(watch_lag(client.clock, observe=metrics.loop_lag_seconds.observe), name="lag")
        try:
            async with rooms.syncs, _endpoints(settings, leader=leader, rooms=rooms, client=client, metrics=metrics):
                return await _lead(leader, rooms=rooms, events=events, asked=asked)
        finally:
            lag.cancel()
            await asyncio.gather(lag, return_exceptions=True)
            await transport.close()


class Room(Protocol):
    """Controllers that run until they are stopped."""

    async def run(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Rooms:
    """The controllers of one process; `syncs` is entered as a context before either runs."""

    sources: SourceRoom
    syncs: SyncRoom
    proposals: ProposalRoom
    switches: SwitchRoom
    tellings: TellingRoom
    scheduling: SchedulingRoom | None
    devices: TopologyRoom | None
    rollouts: RolloutRoom | None
    http: HttpxClient

    @property
    def running(self) -> tuple[Room, ...]:
        """Every room that this process has."""
        rooms = (self.sources, self.syncs, self.proposals, self.switches, self.tellings)
        chosen = (self.scheduling, self.devices, self.rollouts)
        return (*rooms, *(room for room in chosen if room is not None))

    def drains(self) -> Mapping[str, float | None]:
        """The age in seconds of the drain of each queue, None where nobody knows."""
        return {} if self.scheduling is None else self.scheduling.drains()


def make_rooms(  # noqa: PLR0913  what a process may choose
    client: KubeClient,
    *,
    cache: Path,
    events: EventRecorder,
    require: Callable[[], None],
    allow_file: bool = False,
    namespace: str = "",
    timing: Timing | None = None,
    git: ManagersGit | None = None,
    scheduling: TopologyOptions | None = None,
    devices: DeviceOptions | None = None,
    rollouts: Intervals | None = None,
) -> Rooms:
    """The rooms of one process; source and sync are joined by the revisions that the one accepts and the other applies.

    Args:
        cache, events: folder of the clones; where changes of state are told.
        client, require: with the manager's own identity; raises LeadershipLost when the process may not write any more.
        allow_file, namespace: the local flag; only objects of this namespace, empty for all.
        timing, git: of the informers; how repositories are read, in a child process when None.
        scheduling, devices: options of topology-aware scheduling and of managed devices; None for a process without.
        rollouts: the waits of software rollouts, which a process with managed devices carries out.
    """
    register_scheduling(topology := scheduling or TopologyOptions())
    revisions = AcceptedRevisions()
    http = HttpxClient(clock=client.clock, draw=client.draw)
    clones, git = CloneCache(cache), git or ChildTransport()
    documents = DocumentCache()  # one for both rooms: they read the same files of the same revisions
    sources = SourceRoom(
        client,
        git=git,
        clones=clones,
        revisions=revisions,
        events=events,
        documents=documents,
        http=http,
        options=SourceOptions(allow_file=allow_file, require=require, namespace=namespace, timing=timing),
    )
    emit = partial(_emit, events)
    reader = RevisionReader(documents, clones=clones)
    syncs = SyncRoom(
        client,
        revisions=revisions,
        load=CheckedLoader(reader),
        options=SyncOptions(emit=emit, require=require, draw=client.draw, namespace=namespace, timing=timing),
    )
    proposals = ProposalRoom(
        client,
        git=git,
        clones=clones,
        events=events,
        http=http,
        options=ProposalOptions(allow_file=allow_file, require=require, namespace=namespace, timing=timing),
    )
    switching = SwitchOptions(emit=partial(emit, action="Switch"), require=require, namespace=namespace, timing=timing)
    switches = switch_room(client, clones, revisions=revisions, read=reader, options=switching)
    telling = TellingOptions(allow_file=allow_file, require=require)
    places = Places(sources.informer, syncs.informer, git, clones, revisions)
    tellings = TellingRoom(client, places, events=events, check=pull_child(topology), http=http, options=telling)
    schedules = schedule(client, scheduling, emit=partial(emit, action="Schedule"), require=require, timing=timing)
    managed = inventory(client, devices, emit=partial(emit, action="Project"), require=require, timing=timing)
    campaigns = campaign_room(client, managed, revisions=revisions, read=reader, emit=emit, waits=rollouts)
    return Rooms(sources, syncs, proposals, switches, tellings, schedules, managed, campaigns, http)


def switch_room(
    client: KubeClient,
    clones: CloneCache,
    *,
    revisions: AcceptedRevisions,
    read: RevisionReader,
    options: SwitchOptions,
) -> SwitchRoom:
    """The room that steers switches of kube-proxy, with the desk that asks for their changes in Git."""
    desk = ProposalDesk(client, revisions=revisions, clones=clones)
    return SwitchRoom(client, revisions=revisions, read=read, proposals=desk, options=options)


def schedule(client: KubeClient, options: TopologyOptions | None, **given: Any) -> SchedulingRoom | None:
    """The room of topology-aware scheduling; None without options."""
    return None if options is None else SchedulingRoom(client, options=options, **given)


def inventory(client: KubeClient, options: DeviceOptions | None, **given: Any) -> TopologyRoom | None:
    """The room of managed devices, which takes its policy from the one that reserves by it; None without options."""
    bound = partial(_bound_policy, client)
    return None if options is None else TopologyRoom(client, bind=bound, options=options, **given)


def campaign_room(
    client: KubeClient,
    managed: TopologyRoom | None,
    *,
    revisions: AcceptedRevisions,
    read: RevisionReader,
    emit: Callable[..., None],
    waits: Intervals | None,
) -> RolloutRoom | None:
    """The room of software rollouts, over the devices, the policy and the leadership of the room that manages devices."""
    if managed is None:
        return None
    place = managed.options
    return RolloutRoom(
        client,
        revisions=revisions,
        read=read,
        read_file=read.file,
        withdrawn=read.is_withdrawn,
        inventory=ManagedFleet(managed.caches, place),
        options=RolloutOptions(
            namespace=place.namespace,
            policy=place.policy,
            intervals=waits or Intervals(),
            emit=partial(emit, action="Roll"),
            require=managed.require,
            timing=managed.timing,
        ),
    )


async def _bound_policy(client: KubeClient, namespace: str, name: str) -> FleetPolicy:
    """The fleet policy of a ConfigMap, bound to its ledger."""
    return (await bind(client, namespace=namespace, name=name)).record.policy


def _emit(
    events: EventRecorder, tree: JsonObject, kind: EventKind, reason: str, note: str, *, action: str = "Sync"
) -> None:
    events.emit(tree, type=kind, reason=reason, action=action, note=note)


async def require_definitions(client: KubeClient) -> None:
    """Check that the cluster's definitions of our kinds have every field of this release.

    Raises:
        BlockedError: one is missing.  Refused: one lacks a field.
    """
    for kind in ALL_KINDS:
        needed = crd_of(kind)
        name = text_at(needed, "metadata", "name")
        try:
            served = await client.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        except NotFound as error:
            raise BlockedError(
                "the definition is not installed",
                code=ErrorCode.CRD_OUTDATED,
                subject=f"CustomResourceDefinition/{name}",
            ) from error
        require_fields(served, needed=needed)


async def _lead(leader: Leader, *, rooms: Rooms, events: EventRecorder, asked: asyncio.Event) -> int:
    """Wait for the Lease, work, and leave in order."""
    holding = asyncio.create_task(leader.run(), name="lease")
    telling = asyncio.create_task(events.run(), name="events")
    ends = [
        asyncio.create_task(asked.wait(), name="signal"),
        asyncio.create_task(leader.lost.wait(), name="lease lost"),
    ]
    leading = asyncio.create_task(leader.leading.wait(), name="leading")
    try:
        await asyncio.wait([leading, holding, *ends], return_when=asyncio.FIRST_COMPLETED)
        if leading.done() and not any(end.done() for end in ends):
            log.info("leading", identity=leader.identity)
            await run_rooms(rooms, until=[*ends, holding])
        lost = leader.lost.is_set() or (holding.done() and not asked.is_set())
        if holding.done() and not holding.cancelled() and (error := holding.exception()) is not None:
            raise error
        return 1 if lost else 0
    finally:
        for task in (leading, *ends, telling, holding):
            task.cancel()
        await asyncio.gather(leading, *ends, telling, holding, return_exceptions=True)
        await leader.release()


async def run_rooms(rooms: Rooms, *, until: Iterable["asyncio.Task[Any]"]) -> None:
    """Run all rooms until one of `until` ends, then let their passes finish."""
    running = [asyncio.create_task(room.run(), name=type(room).__name__) for room in rooms.running]
    await asyncio.wait([*running, *until], return_when=asyncio.FIRST_COMPLETED)
    for room in rooms.running:
        room.stop()
    async with rooms.http:
        await asyncio.gather(*running)


def _endpoints(settings: Settings, *, leader: Leader, rooms: Rooms, client: KubeClient, metrics: Metrics) -> Endpoints:
    apps = {"health": (health_app(is_ready=lambda: not leader.lost.is_set()), settings.health)}
    if settings.metrics:
        queues = {
            "gitsource": rooms.sources.queue,
            "sync": rooms.syncs.queue,
            "proposal": rooms.proposals.queue,
            "taloscluster": rooms.switches.queue,
            "telling": rooms.tellings.queue,
            **(rooms.scheduling.queues if rooms.scheduling is not None else {}),
            **(rooms.devices.queues if rooms.devices is not None else {}),
            **({"iosxesoftwarerollout": rooms.rollouts.queue} if rooms.rollouts is not None else {}),
        }
        if rooms.devices is not None:
            metrics.projections.read = rooms.devices.passes
        if rooms.scheduling is not None:
            measure_scheduling(metrics, rooms.scheduling)
        if rooms.rollouts is not None:
            measure_rollouts(metrics, rooms.rollouts.controller)
        apps["metrics"] = (
            metrics_app(
                metrics, refresh=refresher(metrics, queues=queues, syncs=rooms.syncs.syncs, drains=rooms.drains)
            ),
            settings.metrics,
        )
    if settings.webhook:
        app = webhook_app(
            secret_of=rooms.sources.controller.webhook_secret, trigger=rooms.sources.poke, clock=client.clock
        )
        apps["webhook"] = (app, settings.webhook)
    return Endpoints(apps)

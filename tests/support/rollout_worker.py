"""The network worker of a simulated campaign: the product's own, on switches in memory, with a journal that outlives it."""

import asyncio
import atexit
import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal

from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.journal import Disk, Journal, Reported
from gitops_ctl.device.journalrecords import Claim, ClaimKey, Step
from gitops_ctl.device.spool import Spool
from gitops_ctl.device.worker.leafports import Access, LeafPorts, Trust
from gitops_ctl.device.worker.lifecycle import Lifecycle
from gitops_ctl.fleet.gate import Runtime
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.leafplan import leaf_path
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.doubles.netconf import DirectNetconf
from tests.support.admission_world import DEVICES, LEAVES, AdmissionWorld
from tests.support.kube_clock import JumpingClock
from tests.support.rollout_planning import NAMESPACE, REVISION
from tools.peers.gnoi.package import Package, write_package

OLD, NEW = "17.12.04.0.1", "17.18.03.0.5496"
ACCOUNT: Final = "system:serviceaccount:prod:network-management"
POD = "network-worker-0"
POLL_S = 15.0
Tell = Callable[[str, str, Literal["before", "after"]], Awaitable[None]]


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def image(*, boots: bool = True) -> Package:
    """The image of a rollout; with one that does not boot, a switch comes back with its former version."""
    members = {} if boots else {"fail_activation": True}
    return write_package(_folder() / f"{'good' if boots else 'bad'}.bin", NEW, **members)


class WaitingClock(JumpingClock):
    """Short sleeps jump; a poll beside a transfer never comes, because the transfer ends at once."""

    def __init__(self, like: JumpingClock) -> None:
        super().__init__()
        self.now_s, self.wall_offset = like.now_s, like.wall_offset

    async def sleep(self, seconds: float) -> None:
        if seconds >= POLL_S:
            await asyncio.Event().wait()
        await super().sleep(seconds)


class MemoryJournal(Journal):
    """A claim journal without a disk."""

    def __init__(self, claims: Mapping[ClaimKey, Claim] | None = None, *, new_id: str = "journal-id") -> None:
        super().__init__(Path("memory"), Disk(), -1)
        self.id = new_id
        for claim in sorted((claims or {}).values(), key=lambda one: one.sequence):
            self._take(claim, "")

    def _append(self, claim: Claim, step: Step) -> Claim:
        record = claim.at(step, self._sequence + 1)
        self._take(record, "")
        return record


class _Netconf:
    """Sessions whose calls are heard of."""

    def __init__(self, sessions: DirectNetconf, tell: Tell) -> None:
        self._sessions = sessions
        self._tell = tell

    @asynccontextmanager
    async def session(self, endpoint: Any) -> AsyncIterator[Any]:
        async with self._sessions.session(endpoint) as session:
            yield _NetconfSession(session, endpoint.name, self._tell)


class _NetconfSession:
    """As the session beneath it; what changes the device is told before and after."""

    def __init__(self, session: Any, name: str, tell: Tell) -> None:
        self._session = session
        self._name = name
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def call(self, operation: Any, *, timeout_s: float | None = None) -> Any:
        await self._tell(self._name, "Commit", "before")
        reply = await self._session.call(operation, timeout_s=timeout_s)
        await self._tell(self._name, "Commit", "after")
        return reply


class _Maintenance:
    """Acknowledged at once: the topology half is another simulation."""

    async def ask(self, _leaf: Leaf) -> bool:
        return True

    async def let_go(self, _leaf: Leaf) -> None:
        return None


@dataclass
class Equipment:
    """What every worker of the world has, the dead ones and the next one.

    Attributes:
        switches: by name of the device.
        tell: hears of each call to a device, before and after it: serial number or name, method, side.
    """

    switches: dict[str, MemorySwitch]
    tell: Tell
    package: Package
    spool: Path
    journal: MemoryJournal

    def ports(self, client: KubeClient, clock: JumpingClock) -> LeafPorts:
        """Of one process."""
        tokens = itertools.count(1)
        gnoi: Any = DirectGnoi({f"{name}:9339": one for name, one in self.switches.items()}, point=self.tell)
        netconf: Any = _Netconf(DirectNetconf(self.switches), self.tell)
        return LeafPorts(
            client=client,
            clock=clock,
            journal=self.journal,
            gnoi=gnoi,
            netconf=netconf,
            spool=Spool(self.spool),
            poll_s=POLL_S,
            new_id=lambda: f"00000000-0000-4000-8000-{next(tokens):012d}",
        )

    def report_journal(self, world: AdmissionWorld, name: str) -> None:
        """The device shows which journal serves it; a lost one keeps its id while something is open or the device is not quiet."""
        tree = world.tree(DEVICES, name)
        report, uid = tree["status"]["workerReport"]["journal"], tree["metadata"]["uid"]
        found = {"id": self.journal.id, "sequence": self.journal.sequence_of(uid), "state": "Ready"}
        lost = self.journal.state_for(uid, Reported(report["id"], report["sequence"])) != "Ready"
        if lost and ("topologyLock" in tree["status"] or self._is_open(world, name)):
            found = {**report, "state": "HistoryLost"}
        elif lost:
            # Seen quiet with nothing open: what was sent before is history, and another campaign may send it again.
            with self.switches[name].change() as device:
                device["gnoi"]["counted"] = []
        if found != report:
            world.change(DEVICES, name, "status", "workerReport", "journal", to=found)

    def _is_open(self, world: AdmissionWorld, name: str) -> bool:
        leaves = [leaf_of(tree) for _, tree in world.api.store.all(LEAVES)]
        device = self.switches[name].read()
        quiet = device["running"] == device["committed"] and not device["pending"] and device["autoAbort"] is None
        return not quiet or any(leaf.device_name == name and not leaf.is_outcome_resolved for leaf in leaves)


class Worker:
    """One process.  `step` takes the leaves of one device as far as they go now."""

    def __init__(self, client: KubeClient, equipment: Equipment, clock: JumpingClock) -> None:
        self._client = client
        self._equipment = equipment
        self._lifecycle = Lifecycle(equipment.ports(client, clock))

    async def step(self, device: str) -> None:
        """Look at every leaf of the device.

        Raises:
            GitopsError: the next step looks again.
        """

        async def access(_leaf: Leaf) -> Access:
            return self._access(device)

        listed = await self._client.list_all(leaf_path(NAMESPACE))
        for leaf in map(leaf_of, listed.items):
            if leaf.device_name == device:
                await self._lifecycle.step(access, namespace=NAMESPACE, name=leaf.name)

    def _access(self, device: str) -> Access:
        endpoint: Any = SimpleNamespace(name=device)
        return Access(
            runtime=Runtime(NAMESPACE, ACCOUNT, POD, "pod-uid", REVISION, has_current_secrets=True),
            gnoi=GnoiTarget(device, 9339),
            netconf=endpoint,
            trust=Trust("11", "12", ""),
            chassis=device,
            maintenance=_Maintenance(),
            opening=self._download,
        )

    @asynccontextmanager
    async def _download(self) -> AsyncIterator[Download]:
        data = self._equipment.package.path.read_bytes()

        async def chunks() -> AsyncIterator[bytes]:
            yield data

        yield Download(len(data), chunks())

"""A granted leaf, its switch in memory, and the worker that executes it; hours pass in milliseconds.

world = LeafWorld(folder)
await world.grant()
await world.run()            # until nothing is left to do
world.status["phase"], world.mutations
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.journal import Journal
from gitops_ctl.device.spool import Spool
from gitops_ctl.device.worker.leafports import Access, LeafPorts, Trust
from gitops_ctl.device.worker.lifecycle import Lifecycle
from gitops_ctl.fleet import names
from gitops_ctl.fleet.gate import Runtime
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.kube.exchange import Call
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.doubles.netconf import DirectNetconf
from tests.support.admission_world import LEAVES, NODES, AdmissionWorld, granted
from tests.support.kube_clock import JumpingClock
from tests.support.ledger_bench import Faults
from tests.support.rollout_planning import NAMESPACE, REVISION
from tools.peers.gnoi.package import write_package
from tools.peers.iosxe.state import new_device

OLD, NEW = "17.18.02.0.4112.1766116039", "17.18.03.0.5496.1776157760"
ODD = "17.15.01.0.1000.1700000000"
REBOOT_S = 300.0
POLL_S = 60.0
POD = "network-management-1"


class LeafClock(JumpingClock):
    """Short sleeps jump; a poll beside a transfer waits until the test lets it look, so that no hours pass behind its back."""

    def __init__(self, like: JumpingClock) -> None:
        super().__init__()
        self.now_s, self.wall_offset = like.now_s, like.wall_offset
        self.look = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds < POLL_S:
            await super().sleep(seconds)
            return
        await self.look.wait()
        self.look.clear()


class FreeMaintenance:
    """Maintenance that is acknowledged at once, unless a test says otherwise."""

    def __init__(self) -> None:
        self.acknowledged, self.held = True, ""

    async def ask(self, leaf: Leaf) -> bool:
        self.held = leaf.uid
        return self.acknowledged

    async def let_go(self, leaf: Leaf) -> None:
        if self.held == leaf.uid:
            self.held = ""


class LeafWorld(AdmissionWorld):
    """One campaign over `count` switches; the worker is that of `edge-1` unless a device is named.

    Attributes:
        worker_faults: of the worker's writes.
        calls: every gNOI call that was made, as `serial method`.
        on_call: hears of each call and may raise.
        downloads: attempts to fetch the image.
        chassis: declared ones by device; its name when left out, as the switches have it.
        strategy: of the leaves, for one that no plan may have; that of the plan when empty.
    """

    def __init__(self, folder: Path, count: int = 1, *, filler: int = 1000, plan: Any = None, **settings: Any) -> None:
        self.package = write_package(folder / "image.bin", NEW, filler=filler)
        image = {
            "sha256": self.package.sha256,
            "imageFamily": "cat9k",
            "sources": [{"name": "north", "priority": 10, "url": "https://images.example.net/cat9k.bin"}],
        }
        super().__init__(count, image=image, **(plan or {}))
        self.clock: LeafClock = LeafClock(self.clock)
        self.folder = folder
        self.switches: dict[str, MemorySwitch] = {}
        for number in range(1, count + 1):
            name = f"edge-{number}"
            self.bind_pod(name)
            supervisors = 1 if settings.get("layout", "single") == "single" else 2
            device = new_device(name, version=OLD, supervisors=supervisors)
            self.switches[name] = MemorySwitch(device, now=self.seconds, **{"rebootS": REBOOT_S, **settings})
        self.gnoi = DirectGnoi({f"{name}:9339": one for name, one in self.switches.items()}, point=self._called)
        self.netconf = DirectNetconf(self.switches)
        self.worker_faults, self.calls, self.downloads = Faults(), list[str](), 0
        self.on_call: Any = None
        self.on_download: Any = None
        self.maintenance = FreeMaintenance()
        self.chassis = dict[str, str]()
        self.strategy = ""
        self.runtime: dict[str, Any] = {}
        self._tokens = itertools.count(1)
        self._turns: dict[str, asyncio.Lock] = {}
        self.journal = self._open_journal()
        self.spool = Spool(folder / "spool")
        self.lifecycle = self._lifecycle()

    def seconds(self) -> float:
        return self.clock.wall().timestamp()

    def bind_pod(self, name: str) -> None:
        """The manager bound the worker's Pod to the Node."""
        for key, value in ((names.NETWORK_WORKER_POD_NAME, POD), (names.NETWORK_WORKER_POD_UID, "pod-uid")):
            self.change(NODES, name, "metadata", "annotations", key, to=value, namespace="")

    async def grant(self, name: str = "edge-1") -> None:
        await granted(self, name)
        if self.strategy:
            self.set_leaf("spec", "strategy", to=self.strategy, name=name)

    # ---- the worker ----

    def _open_journal(self) -> Journal:
        return Journal.open(self.folder / "journal", new_id="journal-id")

    def _lifecycle(self) -> Lifecycle:
        client = direct_client(self.api, component="worker", clock=self.clock, point=self._written)
        ports: Any = LeafPorts(
            client=client,
            clock=self.clock,
            journal=self.journal,
            gnoi=self.gnoi,
            netconf=self.netconf,  # type: ignore[arg-type]  the double has the methods
            spool=self.spool,
            poll_s=POLL_S,
            new_id=lambda: f"00000000-0000-4000-8000-{next(self._tokens):012d}",
        )
        self._client = client
        return Lifecycle(ports)

    def _written(self, call: Call, side: Side) -> None:
        self.worker_faults.point(call, side)

    async def _called(self, serial: str, method: str, when: Literal["before", "after"]) -> None:
        if self.worker_faults.dead:
            self.worker_faults.point(SimpleNamespace(verb="get", path=""), when)  # type: ignore[arg-type]
        if when == "before":
            self.calls.append(f"{serial} {method}")
        if self.on_call is not None:
            await self.on_call(method, when)

    def access(self, name: str = "edge-1") -> Access:
        runtime = {
            "namespace": NAMESPACE,
            "username": f"system:serviceaccount:{NAMESPACE}:network-management",
            "pod_name": POD,
            "pod_uid": "pod-uid",
            "loaded_revision": REVISION,
            "has_current_secrets": True,
            **self.runtime,
        }
        endpoint: Any = SimpleNamespace(name=name)
        return Access(
            runtime=Runtime(**runtime),
            gnoi=GnoiTarget(name, 9339),
            netconf=endpoint,
            trust=Trust("11", "12", ""),
            chassis=self.chassis.get(name, name),
            maintenance=self.maintenance,
            opening=self._download,
            turn=self._turns.setdefault(name, asyncio.Lock()),
        )

    @asynccontextmanager
    async def _download(self) -> AsyncIterator[Download]:
        self.downloads += 1
        if self.on_download is not None:
            await self.on_download("download", "before")
        data = self.package.path.read_bytes()

        async def chunks() -> AsyncIterator[bytes]:
            yield data

        yield Download(len(data), chunks())

    async def step(self, name: str = "edge-1", leaf: str = "") -> float | None:
        """One call of the worker's entry."""

        async def access(_leaf: Leaf) -> Access:
            return self.access(name)

        async with self._client:
            return await self.lifecycle.step(access, namespace=NAMESPACE, name=leaf or self.target(name).child_name)

    async def run(self, name: str = "edge-1", *, leaf: str = "", hours: float = 4.0) -> None:
        """Step until the worker has nothing left to do, or the hours are over."""
        until_s = self.clock.now_s + hours * 3600
        while self.clock.now_s < until_s:
            wait_s = await self.step(name, leaf)
            if wait_s is None:
                return
            self.clock.now_s += wait_s

    def restart(self) -> None:
        """The process is gone; another one takes over its journal and its spool."""
        self.journal.close()
        self.worker_faults, self.on_call = Faults(), None
        self.journal = self._open_journal()
        self.spool = Spool(self.folder / "spool")
        self.lifecycle = self._lifecycle()

    # ---- what is there ----

    @property
    def switch(self) -> MemorySwitch:
        return self.switches["edge-1"]

    @property
    def status(self) -> Any:
        return self.leaf()["status"]

    def condition(self, kind: str, name: str = "edge-1") -> Any:
        found = [one for one in self.leaf(name)["status"].get("conditions", []) if one["type"] == kind]
        return found[0] if found else None

    @property
    def stages(self) -> list[str]:
        return [one["stage"] for one in self.status.get("managedMutationClaims", [])]

    def mutations(self, name: str = "edge-1") -> list[str]:
        """Changing calls that the switch saw, installs and activations, then commits."""
        device = self.switches[name].read()
        return [one["method"] for one in device["mutations"]] + ["Commit"] * len(device["commits"])

    def violations(self) -> list[Any]:
        return [one for switch in self.switches.values() for one in switch.read()["gnoi"]["violations"]]

    def set_leaf(self, *path: str, to: Any, name: str = "edge-1") -> None:
        """Somebody else writes the leaf."""
        self.change(LEAVES, self.target(name).child_name, *path, to=to)

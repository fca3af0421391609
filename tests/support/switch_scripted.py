"""The real cluster worker in a simulated switch: machines that are Python objects, and a target cluster on an API server in memory.

Everything that the worker asks of the target is an I/O point too, and so is the apply on a machine.
"""

import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from gitops_ctl.cni.worker import unit
from gitops_ctl.cni.worker.credentials import Credentials
from gitops_ctl.cni.worker.machine import MachineLink, problem_of
from gitops_ctl.cni.worker.probe import ProbeOptions
from gitops_ctl.cni.worker.room import WorkerRoom
from gitops_ctl.cni.worker.target import TargetLook
from gitops_ctl.cni.worker.unit import Pace, Ports
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.talos.machineconfig import kube_proxy_part
from gitops_ctl.talos.model import ApplyResult, Expected
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.apiserver.store import Change
from tests.support.simulation_faults import Side
from tests.support.simulation_loop import BEGIN
from tests.support.simulation_process import Process
from tests.support.switch_simulation import CLUSTER, NAMESPACE, PLANES, WORKERS, World
from tests.support.talos_configs import machine_config
from tests.support.target_cluster_fakes import APPS, IMAGE, FakeMachine, FakeTarget, WorkerWorld, rolled_out

DAEMONSETS = ("apps", "daemonsets")


class ScriptedTarget(FakeTarget):
    """The target cluster as the worker's own `Target` shows it: a failure is part of a look."""

    def __init__(self, client: KubeClient, clock: Clock) -> None:
        super().__init__(client)
        self._clock = clock

    async def look(self, *, nodes: Sequence[str]) -> TargetLook:
        began_s = self._clock.boot_s()
        try:
            return await super().look(nodes=nodes)
        except GitopsError as error:
            return TargetLook(began_s, problem=problem_of(error))


class ScriptedMachine(FakeMachine):
    """A machine that outlives the worker; `proxy` is what its active configuration says."""

    @property
    def proxy(self) -> str:
        return "enabled" if kube_proxy_part(self.active).enabled is not False else "disabled"


class Scripted:
    """What `Live` is for the model of a worker, for the real one."""

    def __init__(self, api: ApiServer, before: str) -> None:
        self._api = api
        self.now: datetime = BEGIN
        self._fakes = WorkerWorld(Path(tempfile.gettempdir()))
        self._fakes.target_api = ApiServer(seed=8, lag=0, now=lambda: self.now)
        self.broken: list[str] = []
        self.agents_run = before
        self.machines = {name: _machine(name, "controlplane", before) for name in PLANES}
        self.machines |= {name: _machine(name, "worker", before) for name in WORKERS}
        self._fakes.machines = dict(self.machines)
        for name in self.machines:
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            self._fakes.put(f"/api/v1/nodes/{name}", node, status=ready)
        self._fakes.cilium("true" if before == "replaced" else "false", checksum="old")
        if before == "enabled":
            self._fakes.kube_proxy()
            self._roll_out_proxy()
        self.target.store.listeners.append(self._changed)

    @property
    def target(self) -> ApiServer:
        return self._fakes.target_api

    @property
    def proxy(self) -> bool:
        return self._fakes.there(f"{APPS}/daemonsets/kube-proxy")

    @property
    def effects(self) -> list[str]:
        """Ids that were claimed."""
        found = [tree for _, tree in self._api.store.all(("ichor.maesh.dev", "talosoperations"))]
        return [claim["id"] for tree in found for claim in tree.get("status", {}).get("claims", ())]

    def change_cni(self, value: str) -> None:
        """The owner of the CNI rolls the value out."""
        self.agents_run = "replaced" if value == "true" else "enabled"
        self._fakes.cilium(value, checksum=f"for {value}")

    def tick(self) -> None:
        """The node's side: pods of a DaemonSet that is there become ready."""
        if self.proxy:
            self._roll_out_proxy()

    @asynccontextmanager
    async def connect(self, address: str, talosconfig: bytes, expected: Expected) -> AsyncIterator[MachineLink]:
        async with self._fakes.connect(address, talosconfig, expected) as machine:
            yield machine

    def _roll_out_proxy(self) -> None:
        made = self._fakes.send(self.target, "GET", f"{APPS}/daemonsets/kube-proxy")
        wanted = rolled_out(len(self.machines), generation=made["metadata"]["generation"])
        if made.get("status") != wanted:
            self._fakes.send(self.target, "PATCH", f"{APPS}/daemonsets/kube-proxy/status", {"status": wanted})

    def _changed(self, change: Change) -> None:
        """The rule of all rules, at the moment of the removal."""
        if change.collection != DAEMONSETS or change.last["metadata"]["name"] != "kube-proxy" or change.new is not None:
            return
        if self.agents_run != "replaced":
            self.broken.append("kube-proxy was removed while an agent runs the old mode")
        if any(self.machines[name].proxy != "disabled" for name in PLANES):
            self.broken.append("kube-proxy was removed while a control plane renders it")


class TickingClock:
    """Virtual time that no two readings share, as on a real machine: what began before is told from what began after."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._readings = 0

    def boot_s(self) -> float:
        self._readings += 1
        return self._clock.boot_s() + self._readings * 1e-9

    def wall(self) -> datetime:
        return self._clock.wall()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class RealWorker(Process[World]):
    """The worker of the product."""

    def __init__(self, world: World) -> None:
        super().__init__(world, name="worker", clock=TickingClock(world.clock))
        self._scripted: Scripted = world.live
        folder = _credentials()
        self._target: Any = direct_client(
            self._scripted.target, component="worker", clock=self.client.clock, point=self._on_target
        )
        for machine in self._scripted.machines.values():
            machine.busy = 0
            machine.apply_configuration = self._applied(machine)  # type: ignore[method-assign]
        ports = Ports(
            own=self.client,
            worker=f"worker-{world.deaths}",
            credentials=Credentials(folder),
            connect=self._scripted.connect,
            probe=ProbeOptions("off"),
            pace=Pace(),
        )
        unit.Target = lambda **_: ScriptedTarget(self._target, self.client.clock)  # type: ignore[assignment,misc]
        self._room = WorkerRoom(ports, namespace=NAMESPACE)

    def start(self) -> None:
        self.run(self._work)

    async def _work(self) -> None:
        async with self._target:
            await self._room.run()

    def _on_target(self, call: Call, side: str) -> None:
        if call.verb not in ("get", "list", "watch") and "cilium" in call.path:
            self._scripted.broken.append(f"the worker wrote to the CNI: {call.subject}")
        self.pass_by(f"target {call.subject}" if call.verb in ("get", "list") else call.subject, Side(side))

    def _applied(self, machine: ScriptedMachine) -> Any:
        apply = FakeMachine.apply_configuration

        async def applied(data: bytes, *, dry_run: bool) -> ApplyResult:
            name = f"machine {machine.name} {'dry run' if dry_run else 'apply'}"
            self.pass_by(name, Side.BEFORE)
            if not dry_run:
                self._require_one_claim(machine)
            answer = await apply(machine, data, dry_run=dry_run)
            self.pass_by(name, Side.AFTER)
            return answer

        return applied

    def _require_one_claim(self, machine: ScriptedMachine) -> None:
        """An apply has a claim of its own, and no other machine is between claim and receipt."""
        world = self._world
        status = world.operation.get("status", {})
        done = {one["id"] for one in status.get("receipts", ())}
        open_claims = [one["id"] for one in status.get("claims", ()) if one["id"] not in done]
        if len(open_claims) != 1 or f"/{machine.name}#" not in open_claims[0]:
            self._scripted.broken.append(f"an apply on {machine.name} with the claims {open_claims}")
        claimed = sum(f"/{machine.name}#" in one for one in self._scripted.effects)
        if machine.applies + 1 > claimed:
            self._scripted.broken.append(f"{machine.name} was applied more often than it was claimed")


@cache
def _credentials() -> Path:
    """What every worker finds mounted: one folder, which nobody writes to, until the test process ends."""
    folder = Path(tempfile.mkdtemp(prefix="switch-worker-"))
    mounted = folder / "clusters" / CLUSTER
    mounted.mkdir(parents=True)
    (mounted / "talosconfig").write_text("context: north\n")
    for name in PLANES:
        base = folder / "machines" / name
        base.mkdir(parents=True)
        (base / "machineconfig.yaml").write_bytes(supplied_base())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def supplied_base() -> bytes:
    """What somebody rendered for a control plane, ahead of it: Cilium serves, and one path more that rides along."""
    rendered = machine_config("controlplane", form="document", enabled=False, image=IMAGE)
    return rendered.replace(b"debug: false", b"debug: true", 1)


def _machine(name: str, role: Any, mode: str) -> ScriptedMachine:
    if role == "worker":
        return ScriptedMachine(name, role)
    config = machine_config(role, form="document", enabled=mode == "enabled", image=IMAGE)
    return ScriptedMachine(name, role, active=config)

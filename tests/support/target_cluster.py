"""A real target cluster with Talos peers for its machines, and the cluster worker as a process under its shipped rights.

The control plane is started once per run; whoever uses it holds a file lock, since kube-proxy and Cilium have fixed names.  The test
plays the executor: `world.ask(...)` writes requests, `world.receipt(id)` waits for what came of them.  Import the fixtures
`target_plane`, `kwok` and `target_world` into a test module.
"""

import asyncio
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.kwok import Kwok, find_kwok
from gitops_ctl.local.progress import stderr_progress
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervise import tied_argv
from gitops_ctl.local.supervisor import Job, start_supervisor
from gitops_ctl.local.targetcluster import (
    CONTROL_PLANES,
    WORKERS,
    CiliumValues,
    Forwarder,
    roll_out,
    target_options,
    worker_rights,
)
from gitops_ctl.talos.machineconfig import config_hash, edited
from tests.support.cluster import _RUNNER, AuditLog, ControlPlaneHandle
from tests.support.sync_cluster import install_crds, until
from tests.support.talos_configs import machine_config
from tests.support.talos_peer import TalosPeer, start_machine
from tests.support.talos_pki import TalosPki
from tools.render_install import chart_objects

CLUSTER, OPERATION = "north", "north-replaced"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GROUP = "/apis/ichor.maesh.dev/v1alpha1/namespaces"
SYSTEM = "/api/v1/namespaces/kube-system"
APPS = "/apis/apps/v1/namespaces/kube-system"
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kube-proxy"
INVENTORY = f"{SYSTEM}/configmaps/talos-bootstrap-manifests-inventory"
SPEED = 0.5


@dataclass
class WorkerProcess:
    """One running `gitops-ctl worker cluster`."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """At once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    async def terminate(self) -> int:
        """In order; its exit code."""
        os.kill(self.process.pid, signal.SIGTERM)
        await until(lambda: self.process.poll() is not None, what="the worker ends")
        return int(self.process.returncode)


@dataclass
class TargetWorld:
    """The target cluster, its machines, and the namespace of the worker.

    Attributes:
        admin: administrator of the target cluster.
        own: administrator of the worker's own cluster, which may be the same.
    """

    plane: ControlPlaneHandle
    own_plane: ControlPlaneHandle
    admin: KubeClient
    own: KubeClient
    namespace: str
    folder: Path
    pki: TalosPki
    machines: dict[str, TalosPeer]
    forwarder: Forwarder
    audit: AuditLog
    workers: list[WorkerProcess] = field(default_factory=list)
    members: dict[str, Any] = field(default_factory=dict)
    uid: str = ""
    # Another one in each test: Talos' controller makes the objects anew only when what it renders has changed.
    image: str = field(default_factory=lambda: f"registry.k8s.io/kube-proxy:v1.36.3-{os.urandom(4).hex()}")

    # The worker.

    @property
    def mounts(self) -> Path:
        return self.folder / "mounts"

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:gitops-ctl-worker"

    def start_worker(self, *options: str, probe: str = "on") -> WorkerProcess:
        """Start it under the rights of the chart."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated")
        kubeconfig = self.own_plane.kubeconfig_for(self.user, groups)
        log = self.folder / f"worker-{len(self.workers)}.log"
        argv = (
            *(sys.executable, "-m", "gitops_ctl", "worker", "cluster", f"--kubeconfig={kubeconfig}"),
            *(f"--namespace={self.namespace}", f"--credentials-dir={self.mounts}", f"--observation-interval={SPEED}"),
            *(f"--service-probe={probe}", f"--service-probe-port={self.forwarder.port}", *options),
        )
        with log.open("ab") as stream:
            process = subprocess.Popen(
                tied_argv(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
            )
        made = WorkerProcess(process, log)
        self.workers.append(made)
        return made

    # The executor, played by the test.

    def path(self, plural: str, name: str) -> str:
        return f"{GROUP}/{self.namespace}/{plural}/{name}"

    async def begin(self, *, target: str = "replaced", phase: str = "Preflight") -> None:
        """Make the operation, give it the lock, and set the mode."""
        spec = {"clusterRef": {"name": CLUSTER}, "kind": "cni", "target": target, "sourceCommit": COMMIT}
        name = f"{CLUSTER}-{target}"
        made = await self._make("talosoperations", "TalosOperation", name, spec)
        self.uid, self.members = made["metadata"]["uid"], {"phase": phase, "requests": []}
        self.operation = self.path("talosoperations", name)
        lock = {"holder": name, "operationUID": self.uid, "kind": "cni", "since": "2026-01-01T00:00:00Z"}
        await self._status(self.path("talosclusters", CLUSTER), {"lock": lock, "cni": {"kubeProxy": target}})
        await self.write()

    async def write(self, **members: Any) -> None:
        """Change the executor's members."""
        self.members.update(members)
        await self._status(self.operation, self.members)

    async def end(self) -> None:
        """The operation is over and lets go of the cluster."""
        await self.write(phase="Succeeded", requests=[])

    async def ask(self, *requests: dict[str, Any]) -> None:
        """These requests stand, and no other."""
        await self.write(requests=list(requests))

    async def status(self) -> Any:
        """The stored status of the operation."""
        tree: Any = await self.own.get(self.operation)
        return tree.get("status", {})

    async def receipt(self, request_id: str, *, timeout_s: float = 60.0) -> Any:
        """Wait for the receipt of a request."""

        async def found() -> Any:
            status = await self.status()
            return next((item for item in status.get("receipts", ()) if item["id"] == request_id), None)

        return await until(found, what=f"receipt of {request_id}", timeout_s=timeout_s)

    async def observed(self, n: int, *, mode: str = "replaced", step: str = "1-preflight") -> Any:
        """Ask for a look and wait for it."""
        identity = f"{mode}/{step}/{CLUSTER}#{n}"
        await self.ask({"id": identity, "action": "observe", "mode": mode})

        async def answered() -> Any:
            seen = (await self.status()).get("observed", {})
            return seen if seen.get("request") == identity else None

        return await until(answered, what=f"answer to {identity}", timeout_s=60)

    def apply_request(self, machine: str, *, mode: Any = "replaced", n: int = 1) -> dict[str, Any]:
        """A request for one machine with the hashes of its configuration as it was installed."""
        before = installed(machine, enabled=mode == "replaced", image=self.image)
        role: Any = "controlplane" if machine in CONTROL_PLANES else "worker"
        wanted = edited(before, mode=mode, contract="v1.14", role=role, image=self.image)
        return {
            "id": f"{mode}/5-switch-machines/{machine}#{n}",
            "action": "apply-mode",
            "machine": machine,
            "mode": mode,
            "hashBefore": config_hash(before),
            "hashWanted": config_hash(wanted),
        }

    # The target cluster.

    async def serves(self, daemonset: str) -> Any:
        """The DaemonSet when all its pods are up to date and ready."""
        tree: Any = await self.admin.find(f"{APPS}/daemonsets/{daemonset}")
        status = (tree or {}).get("status", {})
        counts = {status.get(name, 0) for name in ("updatedNumberScheduled", "numberReady", "numberAvailable")}
        is_current = tree is not None and status.get("observedGeneration") == tree["metadata"]["generation"]
        return tree if is_current and counts == {len(self.machines)} else None

    async def until_serves(self, daemonset: str) -> None:
        await until(lambda: self.serves(daemonset), what=f"{daemonset} is rolled out", timeout_s=60)

    async def cilium(self, replacement: bool, *, roll_out_pods: bool = True) -> None:
        """Whoever owns Cilium applies values, and everything that follows from them has happened."""
        await roll_out(self.admin, CiliumValues(replacement, roll_out_pods, host="localhost", port=7445))
        await self.until_serves("cilium")

    async def _make(self, plural: str, kind: str, name: str, spec: Any) -> Any:
        tree = {
            "apiVersion": "ichor.maesh.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        return await self.own.apply(self.path(plural, name), tree, manager="tests", force=True)

    async def _status(self, path: str, status: JsonObject) -> None:
        kind = {"talosclusters": "TalosCluster", "talosoperations": "TalosOperation"}[path.split("/")[-2]]
        name = path.rpartition("/")[2]
        tree = {
            "apiVersion": "ichor.maesh.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "status": status,
        }
        await self.own.apply(path, tree, manager="gitops-ctl-cni", force=True, subresource="status")

    async def install(self, *, narrow: bool = True) -> None:
        """The objects of the cluster and its mounted credentials; `narrow`: with a kubeconfig of its own."""
        mounted = self.mounts / "clusters" / CLUSTER
        mounted.mkdir(parents=True, exist_ok=True)
        (mounted / "talosconfig").write_bytes(self.pki.talosconfig())
        spec: dict[str, Any] = {"talosconfigSecretRef": {"name": "north-talos"}, "cni": {"kubeProxy": "replaced"}}
        if narrow:
            spec["kubeconfigSecretRef"] = {"name": "north-kube"}
            user = f"target-worker-{self.namespace}"
            await put_all(self.admin, [*worker_rights(user)])
            (mounted / "kubeconfig").write_bytes(self.plane.kubeconfig_for(user).read_bytes())
        await self._make("talosclusters", "TalosCluster", CLUSTER, spec)
        for name, machine in self.machines.items():
            spec = {"clusterRef": {"name": CLUSTER}, "address": machine.address, "role": machine.role}
            await self._make("talosmachines", "TalosMachine", name, spec)

    async def clean(self) -> None:
        """Machines as they were installed with kube-proxy, Cilium beside it, and no inventory of an earlier test."""
        paths = [f"{APPS}/daemonsets/kube-proxy", f"{SYSTEM}/serviceaccounts/kube-proxy", BINDING, INVENTORY]
        listed = await self.admin.list_all(f"{SYSTEM}/configmaps")
        names = [str(item["metadata"]["name"]) for item in listed.items]  # type: ignore[index,call-overload]
        paths += [f"{SYSTEM}/configmaps/{name}" for name in names if name.startswith("kube-proxy")]
        for path in paths:
            await self.admin.delete(path)
        for name, machine in self.machines.items():
            machine.reset(installed(name, enabled=True, image=self.image))
        await self.cilium(False, roll_out_pods=False)
        await self.until_serves("kube-proxy")


def installed(machine: str, *, enabled: bool, image: str) -> bytes:
    """The configuration of a machine before a switch; in the document form, so that a worker's says nothing."""
    if machine in CONTROL_PLANES:
        return machine_config("controlplane", form="document", enabled=enabled, image=image)
    return machine_config("worker")


async def put_all(client: KubeClient, trees: list[Any]) -> None:
    """Apply objects of any kind."""
    mapper = Mapper(client)
    for tree in trees:
        resource, id = await mapper.resource(GroupVersionKind.of(tree)), ObjectId.of(tree)
        await client.apply(resource.path(id.namespace, id.name), tree, manager="tests", force=True)


@pytest.fixture(scope="session")
def kwok() -> Kwok:
    """The program and its stages."""
    return asyncio.run(find_kwok(progress=stderr_progress()))


@pytest.fixture(scope="session")
def target_plane(kwok: Kwok, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> ControlPlaneHandle:
    """The control plane of the target cluster, once per run."""
    base = tmp_path_factory.getbasetemp()
    directory = (base if worker_id == "master" else base.parent) / "target-plane"

    async def start() -> ControlPlaneHandle:
        folder, binaries = SystemFolder(directory), await find_binaries(progress=stderr_progress())
        with directory.with_suffix(".lock").open("ab") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            state = folder.state()
            if state is None:
                options = target_options(audit=True)
                job = Job(directory, binaries, options, owner=int(os.environ[_RUNNER]), kwok=kwok)
                state = await start_supervisor(job, clock=SystemClock())
        return ControlPlaneHandle(folder, state, binaries)

    return asyncio.run(start())


@dataclass
class Peers:
    """The machines of one test module and their authority."""

    pki: TalosPki
    machines: dict[str, TalosPeer]


@pytest.fixture(scope="module")
def peers(target_plane: ControlPlaneHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    """Three control planes and two workers, and the target cluster for this module alone."""
    with target_plane.folder.path.with_suffix(".turn").open("ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        folder = tmp_path_factory.mktemp("machines")
        pki = TalosPki(folder / "pki")
        machines: dict[str, TalosPeer] = {}
        try:
            for name in (*CONTROL_PLANES, *WORKERS):
                role = "controlplane" if name in CONTROL_PLANES else "worker"
                config = installed(name, enabled=False, image="")
                kubeconfig = target_plane.kubeconfig
                machine = start_machine(folder, name=name, role=role, pki=pki, config=config, kubeconfig=kubeconfig)
                machine.start()
                machines[name] = machine
            yield Peers(pki, machines)
        finally:
            for machine in machines.values():
                machine.stop()


@asynccontextmanager
async def target_world_on(
    plane: ControlPlaneHandle, own_plane: ControlPlaneHandle, peers: Peers, folder: Path
) -> AsyncIterator[TargetWorld]:
    """A namespace with the cluster, ready for a worker; the worker's own cluster is `own_plane`."""
    namespace = f"worker-{os.urandom(4).hex()}"
    async with AsyncExitStack() as stack:
        admin, own = [
            await stack.enter_async_context(
                KubeClient(await load_cluster(item.kubeconfig, allow_exec=False), component="tests")
            )
            for item in (plane, own_plane)
        ]
        await install_crds(own)
        await own.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        workers = [{"namespace": namespace, "clusters": [{"name": CLUSTER, "talosconfig": "north-talos"}]}]
        rights = [tree for tree in chart_objects({"workers": workers}) if _is_right_of_worker(tree)]
        if own_plane is plane:
            await _install_policy(own, workers)
        await put_all(own, rights)
        forwarder = Forwarder(re.sub("^https://", "", plane.url))
        await forwarder.start()
        world = TargetWorld(
            plane,
            own_plane,
            admin,
            own,
            namespace,
            folder,
            peers.pki,
            peers.machines,
            forwarder,
            AuditLog(own_plane.audit),
        )
        try:
            await world.clean()
            yield world
        finally:
            for process in world.workers:
                process.kill()
                print(process.log.read_text()[-4000:])
            # Its namespace goes with the control plane: nobody works in it any more, and to remove it takes a hundred requests.
            await forwarder.stop()


async def _install_policy(own: KubeClient, workers: list[Any]) -> None:
    """The policy about statuses, on a server that is not shared: there the worker writes its own members or nothing.

    The test, which plays the executor, is listed like somebody who restores a backup.
    """
    values = {"workers": workers, "admission": {"restorers": ["gitops-ctl:admin"]}}
    names = ("gitops-ctl-switch-records", "gitops-ctl-admission")
    found = [tree for tree in chart_objects(values) if tree["metadata"]["name"] in names]
    await put_all(own, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}, *found])


def _is_right_of_worker(tree: JsonObject) -> bool:
    kinds = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    metadata: Any = tree["metadata"]
    return tree["kind"] in kinds and metadata["name"] == "gitops-ctl-worker"


@pytest.fixture
async def target_world(target_plane: ControlPlaneHandle, peers: Peers, tmp_path: Path) -> AsyncIterator[TargetWorld]:
    """The target cluster is the worker's own cluster, too."""
    async with target_world_on(target_plane, target_plane, peers, tmp_path) as world:
        await world.install()
        yield world

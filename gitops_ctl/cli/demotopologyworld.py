"""The world of `gitops-ctl demo topology`: four simulated Nodes, real Node Feature Discovery, real Kueue, a Git server and the manager.

Nothing runs on the Nodes, so two parts are played here: what describes the CPU of a Node, and what runs Workloads and stops those that
Kueue evicts.  Everything goes with the context.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import yaml

from gitops_ctl.cli.demotopologyrepository import NAME, NAMESPACE, NODES, first_commits, install_tenant
from gitops_ctl.cli.demoworld import DemoWorld, alone, logs_kept
from gitops_ctl.cli.topologyworld import SOURCES, kueue_path
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import Condition, is_true, merge_conditions
from gitops_ctl.core.errors import Conflict, NotFound, TerminalError, TransientError
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.certificates import Authority
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.gitserver import GitServer, Login
from gitops_ctl.local.kueue import KUEUE_CRDS, find_kueue, kueue_process
from gitops_ctl.local.nfd import NFD_CRDS, NFD_NAMESPACE, find_nfd, nfd_process
from gitops_ctl.local.product import put
from gitops_ctl.local.progress import progress_for
from gitops_ctl.local.published import Published, published_files
from gitops_ctl.local.state import SystemFolder, SystemState, state_home
from gitops_ctl.local.supervise import Family
from gitops_ctl.local.system import Provider, Request, bring_up, take_down
from gitops_ctl.local.workshop import Workshop
from gitops_ctl.scheduling.nodefeature import NODE_FEATURE_API_VERSION, NODE_NAME
from gitops_ctl.scheduling.topology import KUEUE_API_VERSION

QUEUE: Final = "epyc"
TRAINING: Final = "training"
DEMO_MANAGER: Final = "gitops-ctl-demo"
_LOGIN: Final = Login("controller", "only-for-the-demo")
_POLL_S: Final = 0.1
_DEADLINE_S: Final = 180.0
_SERVED_S: Final = 60.0
_CPU: Final = {"vendor_id": "AMD", "family": "23", "id": "49"}
_ROOM: Final = {"cpu": "96", "memory": "512Gi", "pods": "110"}


@dataclass(frozen=True, slots=True)
class TopologyWorld:
    """What the steps act on and look at.

    Attributes:
        runner: plays what runs Workloads.
    """

    basic: DemoWorld
    runner: "WorkloadRunner"

    @property
    def client(self) -> KubeClient:
        return self.basic.client

    @property
    def workshop(self) -> Workshop:
        return self.basic.workshop

    @property
    def say(self) -> Callable[[str], None]:
        return self.basic.say

    async def queue(self) -> JsonObject:
        return await self.client.find(kueue_path(f"clusterqueues/{QUEUE}")) or EMPTY

    async def workload(self, name: str) -> JsonObject:
        return await self.client.find(kueue_path(f"namespaces/{TRAINING}/workloads/{name}")) or EMPTY

    async def until(self, claim: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the claim holds.

        Raises:
            TerminalError: it did not come in time; the message says what sources and queues say instead.
        """
        try:
            await self.basic.until(claim, holds)
        except TerminalError as error:
            said = "; ".join([text async for text in self._said()])
            raise TerminalError(f"{error.message}; {said}", code=error.code, subject=error.subject) from None

    def kubectl(self, *arguments: str) -> None:
        self.basic.kubectl(*arguments)

    def product(self, *arguments: str, code: int = 0) -> None:
        """Run `gitops-ctl` in the checkout, as a person does whose KUBECONFIG names the cluster, and show what it says.

        Raises:
            TerminalError: it ended with another code.
        """
        self._run(arguments, ("--kubeconfig", str(self.basic.kubeconfig)), code)

    def product_alone(self, *arguments: str, code: int = 0) -> None:
        """The same, for a command that asks no cluster."""
        self._run(arguments, (), code)

    def _run(self, arguments: tuple[str, ...], more: tuple[str, ...], code: int) -> None:
        self.say(f"   $ gitops-ctl {' '.join(arguments)}")
        found, text = self.workshop.product(*arguments, *more)
        for line in text.splitlines():
            self.say(f"   {line}".rstrip())
        if found != code:
            raise TerminalError(f"it ended with {found}: {text.strip()}", code=ErrorCode.LOCAL_SYSTEM)

    async def _said(self) -> AsyncIterator[str]:
        for path in (SOURCES, kueue_path("clusterqueues"), kueue_path("workloads")):
            for item in (await self.client.list_all(path)).items:
                conditions = objects_at(item, "status", "conditions")
                told = [f"{text_at(one, 'reason')} {text_at(one, 'message')}".strip() for one in conditions]
                yield f"{text_at(item, 'metadata', 'name')}: {', '.join(told)}"


class WorkloadRunner:
    """Stands for what runs Workloads: it stops those that Kueue evicts, which gives their quota back."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._working: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; before that an eviction waits, as it does for Pods that take their time to end."""
        self._working = asyncio.create_task(self._work(), name="run workloads")

    async def stop(self) -> None:
        """End; nothing happens when it was never begun."""
        if self._working is not None:
            self._working.cancel()
            with suppress(asyncio.CancelledError):
                await self._working
        self._working = None

    async def _work(self) -> None:
        clock = self._client.clock
        while True:
            for tree in (await self._client.list_all(kueue_path("workloads"))).items:
                stopped = stopped_workload(tree, now=clock.wall())
                namespace, name = (text_at(tree, "metadata", member) for member in ("namespace", "name"))
                if stopped is not None:
                    # Kueue writes the same status: the next round sees what it wrote.
                    with suppress(Conflict, NotFound, TransientError):
                        path = kueue_path(f"namespaces/{namespace}/workloads/{name}")
                        await self._client.replace(path, stopped, subresource="status")
            await clock.sleep(_POLL_S)


def stopped_workload(tree: JsonObject, *, now: datetime) -> JsonObject | None:
    """The Workload once its Pods have ended; None when nothing evicts it, or its reservation is gone already."""
    status = object_at(tree, "status")
    if not is_true(status, "Evicted") or "admission" not in status:
        return None
    gone = (
        Condition("QuotaReserved", "False", "Pending", "its Pods have ended"),
        Condition("Admitted", "False", "NoReservation", "its Pods have ended"),
    )
    ours = merge_conditions(status, wanted=gone, generation=int_at(tree, "metadata", "generation"), now=now)
    others = [one for one in objects_at(status, "conditions") if text_at(one, "type") not in {one.type for one in gone}]
    left = {name: value for name, value in status.items() if name != "admission"}
    return {
        **tree,
        "apiVersion": KUEUE_API_VERSION,
        "kind": "Workload",
        "status": {**left, "conditions": [*others, *ours]},
    }


@asynccontextmanager
async def topology_world(*, say: Callable[[str], None]) -> AsyncIterator[TopologyWorld]:
    """Start everything in a folder of its own; nothing of it is left when the context ends, but the logs of a failure.

    Raises:
        GitopsError: a tool, disk or memory is short, something did not start, or another demo runs (LOCAL_BUSY).
    """
    home = state_home() / "demo-topology"
    folder, clock = SystemFolder(home / "system"), SystemClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(alone("demo-topology"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        # What a killed demo left behind.
        await take_down(folder, purge=True)
        stack.push_async_callback(take_down, folder, purge=True)
        options = Options(nodes=len(NODES), node_names=NODES, durable=False)
        request = Request(folder.path, provider=Provider.PROCESSES, options=options, manager=True, owner=os.getpid())
        with progress_for(sys.stderr) as progress:
            programs = (await find_nfd(progress=progress), await find_kueue(progress=progress))
            state = await bring_up(request, progress=progress, clock=clock)
        with logs_kept(home):
            yield await _world(stack, home, state=state, programs=programs, say=say)


async def _world(
    stack: AsyncExitStack, home: Path, *, state: SystemState, programs: tuple[Path, Path], say: Callable[[str], None]
) -> TopologyWorld:
    clock, kubeconfig = SystemClock(), Path(state.kubeconfig)
    config = await load_cluster(kubeconfig, allow_exec=False)
    client = await stack.enter_async_context(KubeClient(config, component="demo", clock=clock))
    await _install_peers(client)
    await _start_peers(stack, home, kubeconfig=kubeconfig, programs=programs)
    await _describe_nodes(client)
    authority = Authority(home / "certs", "git-ca", clock=clock)
    server = GitServer.start(home / "repositories", certificate=authority.server("git"), login=_LOGIN)
    stack.callback(server.stop)
    workshop = Workshop(home, authority.certificate_path, _LOGIN)
    url = server.create(NAME)
    pinned = first_commits(workshop, url)
    await install_tenant(client, url, login=_LOGIN, pinned=pinned, ca=authority.certificate_path.read_text())
    runner = WorkloadRunner(client)
    stack.push_async_callback(runner.stop)
    say(f"control plane: Kubernetes {state.version} at {state.url}, {len(NODES)} Nodes played by kwok")
    say(f"Node Feature Discovery {NFD_CRDS.version}: nfd-master; what it would see of a CPU is written by hand")
    say(f"Kueue {KUEUE_CRDS.version}: its scheduler and its topologies, without Jobs")
    say("manager: runs with its own account and its shipped rights")
    say(f"Git server: {url}")
    basic = DemoWorld(
        client, kubeconfig, Path(state.kubectl), workshop, home, say, NAMESPACE, NAME, _POLL_S, _DEADLINE_S
    )
    return TopologyWorld(basic, runner)


async def _install_peers(client: KubeClient) -> None:
    """The definitions of Kueue and NFD, and the namespace of NFD; the programs end at once when a kind is not served."""
    mapper = Mapper(client)
    definitions = [tree for published in (KUEUE_CRDS, NFD_CRDS) for tree in await _trees(published)]
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NFD_NAMESPACE}}
    for wanted in (*definitions, namespace):
        await put(client, mapper, wanted=wanted, manager=DEMO_MANAGER)
    kinds = {
        GroupVersionKind(
            text_at(tree, "spec", "group"), text_at(version, "name"), text_at(tree, "spec", "names", "kind")
        )
        for tree in definitions
        for version in objects_at(tree, "spec", "versions")
    }
    await _until_discovered(client, kinds)


async def _until_discovered(client: KubeClient, kinds: set[GroupVersionKind]) -> None:
    """Wait until both forms of discovery name the kinds: a path that answers is not enough for a program that asks them."""
    deadline_s = client.clock.boot_s() + _SERVED_S
    versions = {(kind.group, kind.version) for kind in kinds}
    while True:
        missing = kinds - (await Mapper(client).all()).resources.keys()
        for group, version in () if missing else versions:
            plain = await client.find(f"/apis/{group}/{version}") or EMPTY
            named = {text_at(item, "kind") for item in objects_at(plain, "resources")}
            missing |= {
                kind for kind in kinds if (kind.group, kind.version) == (group, version) and kind.kind not in named
            }
        if not missing:
            return
        if client.clock.boot_s() > deadline_s:
            names = ", ".join(sorted(f"{kind.kind}.{kind.group}" for kind in missing))
            raise TerminalError(f"the server does not announce {names}", code=ErrorCode.LOCAL_SYSTEM)
        await client.clock.sleep(_POLL_S)


async def _trees(published: Published) -> list[JsonObject]:
    files = (await published_files(published)).values()
    return [
        tree
        for file in files
        for tree in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader)
        if isinstance(tree, dict)
    ]


async def _start_peers(stack: AsyncExitStack, home: Path, *, kubeconfig: Path, programs: tuple[Path, Path]) -> None:
    family, logs = Family(), home / "logs"
    stack.push_async_callback(family.stop)
    logs.mkdir(parents=True, exist_ok=True)
    await family.spawn(nfd_process(programs[0], kubeconfig=kubeconfig, node=NODES[0], log=logs / "nfd-master.log"))
    await family.spawn(kueue_process(programs[1], kubeconfig=kubeconfig, log=logs / "kueue.log"))


async def _describe_nodes(client: KubeClient) -> None:
    """What nfd-worker sees on a machine, and the room that its kubelet reports."""
    features = f"/apis/{NODE_FEATURE_API_VERSION}/namespaces/{NFD_NAMESPACE}/nodefeatures"
    for name in NODES:
        await client.patch_merge(
            f"/api/v1/nodes/{name}", {"status": {"allocatable": _ROOM, "capacity": _ROOM}}, subresource="status"
        )
        seen: JsonObject = {
            "apiVersion": NODE_FEATURE_API_VERSION,
            "kind": "NodeFeature",
            "metadata": {"name": name, "namespace": NFD_NAMESPACE, "labels": {NODE_NAME: name}},
            "spec": {
                "features": {"attributes": {"cpu.model": {"elements": _CPU}}, "flags": {}, "instances": {}},
                "labels": {},
            },
        }
        # Not by discovery, which may lag behind the paths for a moment.
        await client.apply(f"{features}/{name}", seen, manager=DEMO_MANAGER, force=True)

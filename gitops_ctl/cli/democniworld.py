"""The world of `gitops-ctl demo cni`: a cluster of Talos machines, a forge with its repository, manager and cluster worker.

The API server is real, and so are the DaemonSets of kube-proxy and Cilium; kwok plays their nodes, stand-ins play the machines.
Everything goes with the context.
"""

import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gitops_ctl.api.names import GROUP, ICHOR_GROUP, SYSTEM_NAMESPACE, VERSION
from gitops_ctl.cli.democnirepository import (
    CLUSTER,
    NAMESPACE,
    SOURCE,
    Forge,
    example_machines,
    first_commits,
    install_tenant,
)
from gitops_ctl.cli.demoworld import DemoWorld, alone, logs_kept
from gitops_ctl.cli.installing import ADMISSION
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import JsonObject, objects_at, text_at
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.clusterworker import mount_credentials, worker_objects, worker_process, worker_user
from gitops_ctl.local.controlplane import Options, issue_kubeconfig
from gitops_ctl.local.gitea import OWNER, GiteaFolder
from gitops_ctl.local.giteaclient import GiteaClient
from gitops_ctl.local.gitserver import Login
from gitops_ctl.local.product import put
from gitops_ctl.local.progress import progress_for
from gitops_ctl.local.state import SystemFolder, SystemState, state_home
from gitops_ctl.local.supervise import Family
from gitops_ctl.local.system import Provider, Request, bring_up, take_down
from gitops_ctl.local.talosmachines import VERSION as TALOS_VERSION
from gitops_ctl.local.talosmachines import Machine, TalosMachines, find_checkout, machine_config
from gitops_ctl.local.targetcluster import CiliumValues, Forwarder, roll_out, target_options, worker_rights
from gitops_ctl.local.workshop import Workshop, run_kubectl

DEMO_MANAGER: Final = "gitops-ctl-demo"
_POLL_S: Final = 0.1
_DEADLINE_S: Final = 180.0
_TARGET_USER: Final = "cluster-worker"
_PROXY_IMAGE: Final = "registry.k8s.io/kube-proxy:v1.36.3"
_IN_CONFIGURATIONS: Final = "4fdo1x.this0is0no0real0token"


@dataclass(frozen=True, slots=True)
class CniWorld:
    """What the steps act on and look at.

    Attributes:
        basic: the cluster of the product, the checkout, and how things are told.
        target: administrator of the cluster whose Services are switched; the same one unless the two are separate.
        api: the forge, as the owner of the repository.
    """

    basic: DemoWorld
    target: KubeClient
    target_kubeconfig: Path
    api: GiteaClient
    forge: Forge

    @property
    def workshop(self) -> Workshop:
        return self.basic.workshop

    @property
    def say(self) -> Callable[[str], None]:
        return self.basic.say

    async def operation(self, target: str) -> JsonObject | None:
        """The newest operation to that mode."""
        listed = await self.basic.client.list_all(
            f"/apis/{ICHOR_GROUP}/{VERSION}/namespaces/{NAMESPACE}/talosoperations"
        )
        fitting = [item for item in listed.items if text_at(item, "spec", "target") == target]
        return max(fitting, key=lambda item: text_at(item, "metadata", "creationTimestamp"), default=None)

    async def proposals(self) -> tuple[JsonObject, ...]:
        """All Proposals, those that are over too."""
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/proposals"
        return tuple((await self.basic.client.list_all(path)).items)

    async def proposal(self, purpose: str) -> JsonObject | None:
        """The Proposal of that purpose that is not over."""
        fitting = [item for item in await self.proposals() if text_at(item, "spec", "reason") == purpose]
        return next((item for item in fitting if text_at(item, "status", "phase") in ("", "Pending", "Open")), None)

    async def until(self, claim: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the claim holds.

        Raises:
            TerminalError: it did not come in time; the message says what the switch and the proposals say instead.
        """
        try:
            await self.basic.until(claim, holds)
        except TerminalError as error:
            said = "; ".join([text async for text in self._said()])
            raise TerminalError(f"{error.message}; {said}", code=error.code, subject=error.subject) from None

    def kubectl(self, *arguments: str) -> None:
        self.basic.kubectl(*arguments)

    def target_kubectl(self, *arguments: str) -> None:
        """Kubectl on the cluster that is switched."""
        self.say(f"   $ kubectl {shlex.join(arguments)}")
        for line in run_kubectl(self.basic.binary, *arguments, kubeconfig=self.target_kubeconfig).splitlines():
            self.say(f"   {line}".rstrip())

    async def _said(self) -> AsyncIterator[str]:
        for group, plural in ((ICHOR_GROUP, "talosoperations"), (GROUP, "proposals")):
            path = f"/apis/{group}/{VERSION}/namespaces/{NAMESPACE}/{plural}"
            for item in (await self.basic.client.list_all(path)).items:
                told = [text_at(one, "message") for one in objects_at(item, "status", "conditions")]
                phase = text_at(item, "status", "phase")
                yield f"{text_at(item, 'metadata', 'name')}: {phase} {' '.join(told)}"


@asynccontextmanager
async def cni_world(*, say: Callable[[str], None], separate: bool) -> AsyncIterator[CniWorld]:
    """Start everything in a folder of its own; nothing of it is left when the context ends, but the logs of a failure.

    Args:
        say: writes one line.
        separate: the cluster that is switched has an API server of its own.

    Raises:
        GitopsError: a tool, disk or memory is short, something did not start, or another demo runs (LOCAL_BUSY).
    """
    checkout, home = find_checkout(), state_home() / "demo-cni"
    nodes = target_options([machine.name for machine in example_machines()])
    async with AsyncExitStack() as stack:
        stack.enter_context(alone("demo-cni"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        plain = Options(durable=False, event_ttl=nodes.event_ttl)
        own = await _up(stack, home / "management", manager=True, options=plain if separate else nodes)
        target = await _up(stack, home / "target", manager=False, options=nodes) if separate else own
        with logs_kept(home):
            yield await _world(stack, home, own=own, target=target, checkout=checkout, say=say)


async def _up(stack: AsyncExitStack, folder: Path, *, manager: bool, options: Options) -> SystemState:
    """A control plane, with the product and a forge where the manager runs."""
    system = SystemFolder(folder)
    # What a killed demo left behind.
    await take_down(system, purge=True)
    stack.push_async_callback(take_down, system, purge=True)
    request = Request(
        folder, provider=Provider.PROCESSES, options=options, manager=manager, forge=manager, owner=os.getpid()
    )
    with progress_for(sys.stderr) as progress:
        return await bring_up(request, progress=progress, clock=SystemClock())


async def _world(
    stack: AsyncExitStack,
    home: Path,
    *,
    own: SystemState,
    target: SystemState,
    checkout: Path,
    say: Callable[[str], None],
) -> CniWorld:
    clock = SystemClock()
    client, admin = [
        await stack.enter_async_context(
            KubeClient(await load_cluster(Path(state.kubeconfig), allow_exec=False), component="demo", clock=clock)
        )
        for state in (own, target)
    ]
    folder = SystemFolder(home / "management")
    forge = Forge(own.forge, GiteaFolder(folder.forge))
    machines = TalosMachines(home / "talos", checkout=checkout, clock=clock)
    stack.push_async_callback(machines.stop)
    await machines.start(_installed(), kubeconfig=Path(target.kubeconfig))
    await roll_out(admin, CiliumValues())
    workshop = Workshop(home, forge.folder.ca_file, Login(OWNER, forge.folder.password(OWNER)))
    api = await stack.enter_async_context(forge.client(clock))
    await forge.have_repository(api)
    root, digest = first_commits(workshop, forge, addresses=machines.addresses)
    await forge.until_not_empty(api, clock)
    await install_tenant(client, forge, root=root, digest=digest)
    await _start_worker(
        stack, home, own=own, target=target, clients=(client, admin), talosconfig=machines.talosconfig()
    )
    say(f"control plane: Kubernetes {own.version} at {own.url}")
    if own is not target:
        say(f"cluster {CLUSTER}: Kubernetes {target.version} at {target.url}")
    say(f"forge: Gitea at {own.forge}")
    say(f"machines: {len(machines.addresses)} stand-ins answer as Talos {TALOS_VERSION}")
    say("manager and cluster worker: two processes, each with its own account and its shipped rights")
    basic = DemoWorld(
        client, Path(own.kubeconfig), Path(own.kubectl), workshop, home, say, NAMESPACE, SOURCE, _POLL_S, _DEADLINE_S
    )
    return CniWorld(basic, admin, Path(target.kubeconfig), api, forge)


def _installed() -> list[Machine]:
    return [
        Machine(one.name, one.role, machine_config(one.role, secret=_IN_CONFIGURATIONS, image=_PROXY_IMAGE))
        for one in example_machines()
    ]


async def _start_worker(
    stack: AsyncExitStack,
    home: Path,
    *,
    own: SystemState,
    target: SystemState,
    clients: tuple[KubeClient, KubeClient],
    talosconfig: bytes,
) -> None:
    """The worker with its rights in both clusters, its mounted credentials, and an address of the Service that it can ask."""
    clock, folder = SystemClock(), SystemFolder(home / "management")
    client, admin = clients
    listed: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ADMISSION, "namespace": SYSTEM_NAMESPACE},
        "data": {"workers": worker_user(NAMESPACE)},
    }
    for where, objects in ((client, (*worker_objects(NAMESPACE), listed)), (admin, worker_rights(_TARGET_USER))):
        mapper = Mapper(where)
        for wanted in objects:
            await put(where, mapper, wanted=wanted, manager=DEMO_MANAGER)
    forwarder = Forwarder(target.url.removeprefix("https://"))
    await forwarder.start()
    stack.push_async_callback(forwarder.stop)
    targets = SystemFolder(Path(target.kubeconfig).parent)
    kubeconfig = issue_kubeconfig(targets, _TARGET_USER, server=target.url, user=_TARGET_USER, clock=clock)
    mounted = home / "mounted"
    mount_credentials(mounted, cluster=CLUSTER, talosconfig=talosconfig, kubeconfig=kubeconfig.read_bytes())
    family = Family()
    stack.push_async_callback(family.stop)
    await family.spawn(
        worker_process(
            folder,
            url=own.url,
            namespace=NAMESPACE,
            credentials=mounted,
            clock=clock,
            probe_port=forwarder.port,
            interval_s=1.0,
        )
    )

"""The world of `gitops-ctl demo rollout`: twelve stand-in switches, a Git server, the manager, and the two device workers.

API server, controllers and every process of the product are real, each with its own account and its shipped rights; kwok plays the Node on which
the Pods of the workers run.  Everything goes with the context.
"""

import asyncio
import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gitops_ctl.cli.demorolloutrepository import NAME, NAMESPACE, example_switches, first_commits, install_tenant
from gitops_ctl.cli.demoworld import DemoWorld, alone, logs_kept
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, text_at
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.certificates import Authority
from gitops_ctl.local.controlplane import Options, issue_kubeconfig
from gitops_ctl.local.deviceworkers import PLANES, Workplace, pod_kubeconfig, worker_pod
from gitops_ctl.local.gitserver import GitServer, Login
from gitops_ctl.local.product import PRODUCT_MANAGER, LocalManager, install_product, manager_process, put
from gitops_ctl.local.progress import progress_for
from gitops_ctl.local.state import SystemFolder, SystemState, state_home
from gitops_ctl.local.supervise import Family, ProcessSpec
from gitops_ctl.local.switches import Image, Switches
from gitops_ctl.local.system import Provider, Request, bring_up, take_down
from gitops_ctl.local.talosmachines import find_checkout
from gitops_ctl.local.workshop import Workshop

DEMO_MANAGER: Final = "gitops-ctl-demo"
FIRST: Final = Image("cat9k_iosxe.17.18.03.SPA.bin", "17.18.03.0.5496.1776157760", 4_000_000)
SECOND: Final = Image("cat9k_iosxe.17.18.04.SPA.bin", "17.18.04.0.6021.1786157760", 4_000_000)
FAILING: Final = "access-a3"
"""The switch that does not boot the second image."""
_POLL_S: Final = 0.2
_DEADLINE_S: Final = 900.0
_LOGIN: Final = Login("git", "demo-of-this-machine-only")
_NODE: Final = "host-1"
_OPTIONS: Final = {
    "network": ("--worker-poll=1", "--image-source-allow=127.0.0.0/8", "--start-spread=1", "--secret-interval=5"),
    "node": ("--heartbeat-interval=3", "--start-spread=1", "--secret-interval=5"),
}
_MANAGER: Final = (
    *("--managed-topology", "--worker-image=gitops-ctl:demo", "--topology-resync=1", "--rollout-resync=1"),
    *("--planning-retry=1", "--image-source-allow=127.0.0.0/8"),
)


@dataclass(frozen=True, slots=True)
class RolloutWorld:
    """What the steps act on and look at."""

    basic: DemoWorld
    switches: Switches

    @property
    def client(self) -> KubeClient:
        return self.basic.client

    @property
    def workshop(self) -> Workshop:
        return self.basic.workshop

    @property
    def say(self) -> Callable[[str], None]:
        return self.basic.say

    async def rollout(self, name: str) -> JsonObject:
        """The rollout; empty when there is none."""
        path = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{NAMESPACE}/iosxesoftwarerollouts/{name}"
        return await self.client.find(path) or EMPTY

    async def devices(self) -> tuple[JsonObject, ...]:
        path = f"/apis/cisco.vk/v1alpha1/namespaces/{NAMESPACE}/ciscodevices"
        return tuple((await self.client.list_all(path)).items)

    async def until(self, claim: str, holds: Callable[[], Awaitable[bool]]) -> None:
        await self.basic.until(claim, holds)

    def kubectl(self, *arguments: str) -> None:
        self.basic.kubectl(*arguments)

    def product(self, *arguments: str, code: int | None = 0, with_cluster: bool = True) -> None:
        """Run the product as a person does, and show command and output; `code` None takes any.

        Raises:
            TerminalError: it ends with another code.
        """
        self.say(f"   $ gitops-ctl {shlex.join(arguments)}")
        cluster = ("--kubeconfig", str(self.basic.kubeconfig)) if with_cluster else ()
        ended, text = self.workshop.product(*arguments, *cluster)
        for line in text.splitlines():
            self.say(f"   {line}".rstrip())
        if code is not None and ended != code:
            raise TerminalError(f"it ended with {ended}, not {code}", code=ErrorCode.LOCAL_SYSTEM)


@asynccontextmanager
async def rollout_world(*, say: Callable[[str], None]) -> AsyncIterator[RolloutWorld]:
    """Start everything in a folder of its own; nothing of it is left when the context ends, but the logs of a failure.

    Raises:
        GitopsError: a tool, disk or memory is short, something did not start, or another demo runs (LOCAL_BUSY).
    """
    checkout, home = find_checkout(), state_home() / "demo-rollout"
    folder, clock = SystemFolder(home / "system"), SystemClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(alone("demo-rollout"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        # What a killed demo left behind.
        await take_down(folder, purge=True)
        stack.push_async_callback(take_down, folder, purge=True)
        options = Options(nodes=1, node_names=(_NODE,), durable=False)
        request = Request(folder.path, provider=Provider.PROCESSES, options=options, owner=os.getpid())
        with progress_for(sys.stderr) as progress:
            state = await bring_up(request, progress=progress, clock=clock)
        with logs_kept(home):
            yield await _world(stack, home, state=state, checkout=checkout, say=say)


async def _world(
    stack: AsyncExitStack, home: Path, *, state: SystemState, checkout: Path, say: Callable[[str], None]
) -> RolloutWorld:
    clock, kubeconfig = SystemClock(), Path(state.kubeconfig)
    config = await load_cluster(kubeconfig, allow_exec=False)
    client = await stack.enter_async_context(KubeClient(config, component="demo", clock=clock))
    await install_product(client)
    switches = Switches(home / "switches", checkout=checkout, clock=clock)
    stack.push_async_callback(switches.stop)
    await switches.start(example_switches({FAILING: (SECOND.version,)}), (FIRST, SECOND))
    authority = Authority(home / "certs", "git-ca", clock=clock)
    server = GitServer.start(home / "repositories", certificate=authority.server("git"), login=_LOGIN)
    stack.callback(server.stop)
    workshop = Workshop(home, authority.certificate_path, _LOGIN)
    url = server.create(NAME)
    pinned = first_commits(workshop, url, ports=switches.ports)
    await install_tenant(client, url, login=_LOGIN, pinned=pinned, ca=authority.certificate_path.read_text())
    await _install(client, checkout, switches)
    say(f"control plane: Kubernetes {state.version} at {state.url}")
    say(f"switches: {len(switches.ports)} stand-ins, with gNOI over mutual TLS and NETCONF behind sshd")
    say("manager and two device workers: processes of their own, each with its account and its shipped rights")
    say(
        f"Git server: {url}; it is no forge, so the pull request with the approval cannot be opened, and status says so"
    )
    manager = await _manager(home, url=state.url)
    stack.push_async_callback(manager.stop)
    await _start_workers(stack, home, client, url=state.url, switches=switches)
    basic = DemoWorld(
        client, kubeconfig, Path(state.kubectl), workshop, home, say, NAMESPACE, NAME, _POLL_S, _DEADLINE_S
    )
    return RolloutWorld(basic, switches)


async def _install(client: KubeClient, checkout: Path, switches: Switches) -> None:
    """The part of the chart that managed topology switches on, the Secrets of the switches, and a volume for the journal."""
    values = {"managedTopology": {"enabled": True, "namespaces": [NAMESPACE]}}
    mapper = Mapper(client)
    trees = [tree for tree in await _chart(checkout, values) if text_at(tree, "kind") != "Deployment"]
    secrets = [_secret("access-tls", switches.tls()), *(_secret(name, switches.login(name)) for name in switches.ports)]
    for wanted in trees:
        await put(client, mapper, wanted=wanted, manager=PRODUCT_MANAGER)
    for wanted in (*secrets, _volume()):
        await put(client, mapper, wanted=wanted, manager=DEMO_MANAGER)


async def _chart(checkout: Path, values: Mapping[str, object]) -> list[JsonObject]:
    """The objects of the chart, rendered by the tool of the checkout."""
    program = "import json, sys; from tools.render_install import chart_objects; print(json.dumps(chart_objects(json.loads(sys.argv[1]))))"
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, json.dumps(values)),
        cwd=checkout,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await done.communicate()
    if done.returncode:
        raise TerminalError(f"the chart cannot be rendered: {err.decode().strip()}", code=ErrorCode.LOCAL_SYSTEM)
    found: list[JsonObject] = json.loads(out)
    return found


def _secret(name: str, data: Mapping[str, str]) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": {**data}}


def _volume() -> JsonObject:
    """What a storage class would make for the journal's claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "journal"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/var/lib/gitops-ctl/journal"},
        },
    }


async def _manager(home: Path, *, url: str) -> LocalManager:
    spec = manager_process(SystemFolder(home / "system"), url=url, clock=SystemClock())
    wider = ProcessSpec(spec.name, (*spec.argv, *_MANAGER), home / "logs/manager.log", spec.environment, spec.grace_s)
    manager = LocalManager(wider, clock=SystemClock(), on_change=lambda _pid, _exit: None)
    await manager.start()
    return manager


async def _start_workers(
    stack: AsyncExitStack, home: Path, client: KubeClient, *, url: str, switches: Switches
) -> None:
    """A process for the Pod of each plane, with the token that the kubelet of its Node gets."""
    folder, clock = SystemFolder(home / "system"), SystemClock()
    user = issue_kubeconfig(
        folder, "kubelet", server=url, user=f"system:node:{_NODE}", groups=("system:nodes",), clock=clock
    )
    kubelet = await stack.enter_async_context(
        KubeClient(await load_cluster(user, allow_exec=False), component="kubelet", clock=clock)
    )
    environment = {"SSL_CERT_FILE": str(switches.authority_file)}
    place = Workplace(NAMESPACE, home, environment, _OPTIONS)
    family = Family()
    stack.push_async_callback(family.stop)
    for plane in PLANES:
        pod = await worker_pod(client, namespace=NAMESPACE, plane=plane)
        kubeconfig = await pod_kubeconfig(
            kubelet,
            pod,
            namespace=NAMESPACE,
            server=url,
            authority=folder.certs / "ca.crt",
            path=home / f"worker-{plane}.kubeconfig",
        )
        await family.spawn(place.process(plane, pod, kubeconfig=kubeconfig))

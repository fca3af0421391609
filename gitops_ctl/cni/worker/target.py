"""The target cluster: read whole, and watched so that a change is seen at once (cni-switch.md, sections 9, 10 and 15.7).

With a configured kubeconfig the client stays open.  The one that Talos gives is a cluster administrator's: it is asked for when an operation
runs, kept in memory only, and dropped when the operation is over.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Final

import structlog

from gitops_ctl.api.talos_fields import Problem
from gitops_ctl.cni.worker.cilium import CiliumObjects
from gitops_ctl.cni.worker.kubeproxy import KubeProxy, read_kube_proxy
from gitops_ctl.cni.worker.machine import problem_of
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.config import ClusterConfig, load_remote_cluster
from gitops_ctl.kube.exchange import Limits
from gitops_ctl.kube.transport import KubeClient

SYSTEM: Final = "/api/v1/namespaces/kube-system"
APPS: Final = "/apis/apps/v1/namespaces/kube-system"
AGENTS: Final = "k8s-app=cilium"
NODE_CONFIGS: Final = tuple(f"/apis/cilium.io/{version}/ciliumnodeconfigs" for version in ("v2", "v2alpha1"))

_WATCHED: Final = (
    (f"{SYSTEM}/configmaps", "metadata.name=cilium-config"),
    (f"{APPS}/daemonsets", "metadata.name=cilium"),
    (f"{APPS}/daemonsets", "metadata.name=kube-proxy"),
    (f"{APPS}/deployments", "metadata.name=cilium-operator"),
)
_STREAM_S: Final = 300.0
_RETRY_S: Final = 5.0

Kubeconfig = Callable[[], Awaitable[bytes]]
Enter = Callable[[ClusterConfig], KubeClient]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TargetLook:
    """The target cluster at one moment; with a `problem` nothing else is known."""

    began_s: float
    problem: Problem | None = None
    cilium: CiliumObjects | None = None
    kube_proxy: KubeProxy | None = None
    nodes: Mapping[str, JsonObject] = field(default_factory=dict)
    version: str = ""


async def look_at_target(client: KubeClient, *, nodes: Sequence[str]) -> TargetLook:
    """Everything that an observation needs, uncached.

    Raises:
        GitopsError: something cannot be read.
    """
    began_s = client.clock.boot_s()
    found = {name: await client.find(f"/api/v1/nodes/{name}") for name in nodes}
    known = {name: tree for name, tree in found.items() if tree is not None}
    cilium = CiliumObjects(
        config=await client.find(f"{SYSTEM}/configmaps/cilium-config"),
        daemonset=await client.find(f"{APPS}/daemonsets/cilium"),
        operator=await client.find(f"{APPS}/deployments/cilium-operator"),
        pods=(await client.list_all(f"{SYSTEM}/pods", label_selector=AGENTS)).items,
        node_configs=await _node_configs(client),
        nodes=known,
    )
    proxy = await read_kube_proxy(client)
    version = text_at(await client.get("/version"), "gitVersion")
    return TargetLook(began_s, cilium=cilium, kube_proxy=proxy, nodes=known, version=version)


async def _node_configs(client: KubeClient) -> Sequence[JsonObject]:
    """Of the first version that is served; none where the kind does not exist."""
    for path in NODE_CONFIGS:
        try:
            return (await client.list_all(path)).items
        except KindNotServed:
            continue
    return ()


class Target:
    """One target cluster, and the client for it.  `changed` is called when a watched object changes."""

    def __init__(self, *, kubeconfig: Kubeconfig, changed: Callable[[], None], clock: Clock) -> None:
        """`kubeconfig` gives the text of the credential each time it is asked; equal texts keep the client."""
        self._kubeconfig = kubeconfig
        self._changed = changed
        self._clock = clock
        self._stack = AsyncExitStack()
        self._text = b""
        self._client: KubeClient | None = None
        self._tls: ssl.SSLContext | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()

    @property
    def tls(self) -> ssl.SSLContext | None:
        """TLS context of the present client, with the authority of the cluster."""
        return self._tls

    async def client(self) -> KubeClient:
        """The client, opened anew when the credential was replaced.

        Raises:
            GitopsError: there is no credential, or it cannot be used.
        """
        async with self._turn:
            text = await self._kubeconfig()
            if self._client is None or text != self._text:
                await self._close()
                config = await load_remote_cluster(text)
                # One attempt: a change that nobody answered is settled by looking, and looks are repeated anyway.
                opened = KubeClient(config, component="worker", clock=self._clock, limits=Limits(attempts=1))
                self._client = await self._stack.enter_async_context(opened)
                self._text, self._tls = text, config.tls
                self._watching = [asyncio.create_task(self._watch(opened, *kind)) for kind in _WATCHED]
            return self._client

    async def look(self, *, nodes: Sequence[str]) -> TargetLook:
        """Everything; a failure is part of the answer."""
        began_s = self._clock.boot_s()
        try:
            client = await self.client()
            return await look_at_target(client, nodes=nodes)
        except GitopsError as error:
            return TargetLook(began_s, problem=problem_of(error))

    async def close(self) -> None:
        """Forget client and credential; the next look opens them anew."""
        async with self._turn:
            await self._close()

    async def _close(self) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        self._watching = []
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        self._client, self._text, self._tls = None, b"", None

    async def _watch(self, client: KubeClient, path: str, selector: str) -> None:
        """Tell of each change until cancelled.  A stream without a version begins with what is there."""
        while True:
            try:
                stream = client.watch(path, resource_version="", timeout_s=_STREAM_S, field_selector=selector)
                async with aclosing(stream) as events:
                    async for event in events:
                        if event.type != "BOOKMARK":
                            self._changed()
            except GitopsError as error:
                log.info("watch of the target cluster failed", path=path, code=error.code.name)
            await self._clock.sleep(_RETRY_S)

"""The product itself in a local system: its manifests in the cluster, and its manager as a process of this machine.

The manager has the identity and the rights that the chart gives it, never those of an administrator, so what works here works in
a cluster.  When it ends by itself it is started again, as a kubelet would; the control plane goes on.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import yaml

from gitops_ctl.api.manifests import manifest
from gitops_ctl.api.names import API_VERSION, SYSTEM_NAMESPACE
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.controlplane import client_context, issue_kubeconfig
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervise import Exit, Family, ProcessSpec

PRODUCT_MANAGER: Final = "gitops-ctl-install"
"""Field manager of the product's own objects."""

MANAGER_ACCOUNT: Final = "gitops-ctl-manager"
_ESTABLISH_S: Final = 30.0
_POLL_S: Final = 0.1
_RESTART_S: Final = 1.0
_RESTART_CAP_S: Final = 30.0


def product_objects() -> tuple[JsonObject, ...]:
    """Definitions, manager, RBAC and admission policies of this release, in the order in which they can be applied."""
    text = manifest("install.yaml").read_text(encoding="utf-8")
    return tuple(tree for tree in yaml.load_all(text, Loader=yaml.CSafeLoader) if isinstance(tree, dict))


async def put(client: KubeClient, mapper: Mapper, *, wanted: JsonObject, manager: str) -> None:
    """Apply one object; fields that somebody else owns are taken over, since a person asked for it."""
    resource = await mapper.resource(GroupVersionKind.of(wanted))
    name = ObjectId.of(wanted)
    await client.apply(resource.path(name.namespace, name.name), wanted, manager=manager, force=True)


async def established(client: KubeClient, mapper: Mapper) -> None:
    """Wait until our kinds are served: their paths answer 404 for a moment after the definitions were applied.

    Raises:
        KindNotServed: not within half a minute.
    """
    deadline_s = client.clock.boot_s() + _ESTABLISH_S
    while True:
        try:
            for plural in ("gitsources", "syncs"):
                await client.list_all(f"/apis/{API_VERSION}/{plural}")
        except KindNotServed:
            if client.clock.boot_s() > deadline_s:
                raise
            await client.clock.sleep(_POLL_S)
        else:
            await mapper.refresh()
            return


async def install_product(client: KubeClient) -> None:
    """Apply everything but the Deployment: the manager runs as a process of this machine.

    Raises:
        GitopsError: the server does not take an object.
    """
    mapper = Mapper(client)
    for wanted in product_objects():
        if text_at(wanted, "kind") != "Deployment":
            await put(client, mapper, wanted=wanted, manager=PRODUCT_MANAGER)
    await established(client, mapper)


async def install_as_admin(folder: SystemFolder, *, url: str, clock: Clock) -> None:
    """`install_product` into the system of a folder.

    Raises:
        GitopsError: the server cannot be reached or does not take an object.
    """
    # Not by the kubeconfig: the official client's configuration takes half a second to import.
    config = ClusterConfig(url, tls=client_context(folder, folder.admin_kubeconfig))
    async with KubeClient(config, component="up", clock=clock) as client:
        await install_product(client)


def manager_process(folder: SystemFolder, *, url: str, clock: Clock) -> ProcessSpec:
    """The manager with a kubeconfig of its own.  Repositories of this machine may be sources, since it is one machine."""
    account = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{MANAGER_ACCOUNT}"
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}", "system:authenticated")
    kubeconfig = issue_kubeconfig(folder, "manager", server=url, user=account, groups=groups, clock=clock)
    options = (
        *(f"--kubeconfig={kubeconfig}", f"--cache-dir={folder.path / 'cache'}"),
        *("--allow-file-urls", "--metrics-address=127.0.0.1:0"),
    )
    argv = (sys.executable, "-m", "gitops_ctl", "manager", *options)
    return ProcessSpec("manager", argv, folder.logs / "manager.log", grace_s=20.0)


class LocalManager:
    """Keeps one process running until `stop`."""

    def __init__(self, spec: ProcessSpec, *, clock: Clock, on_change: Callable[[int, Exit | None], None]) -> None:
        """`on_change` hears the process id of each start, and how the one before ended."""
        self._spec = spec
        self._clock = clock
        self._on_change = on_change
        self._family = Family()
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process; its end is noticed and it is started again."""
        await self._spawn(None)
        self._keeping = asyncio.create_task(self._keep(), name="keep the manager")

    async def stop(self) -> None:
        """End it, with its time to finish; nothing happens when it was never started."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
        await self._family.stop()

    async def _spawn(self, before: Exit | None) -> None:
        await self._family.spawn(self._spec)
        self._on_change(self._family.pids[self._spec.name], before)

    async def _keep(self) -> None:
        wait_s = _RESTART_S
        while True:
            began_s = self._clock.boot_s()
            ended = await self._family.first_exit()
            await self._family.stop()
            if self._clock.boot_s() - began_s > _RESTART_CAP_S:
                wait_s = _RESTART_S
            await self._clock.sleep(wait_s)
            wait_s = min(_RESTART_CAP_S, wait_s * 2)
            await self._spawn(ended)

"""A cluster in memory with the objects of a rollout, and commands that talk to it without a socket."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.peer_crds import install

COLLECTIONS = {
    "CiscoDevice": ("cisco.vk", "ciscodevices"),
    "IOSXESoftwareRollout": ("ops.cisco.vk", "iosxesoftwarerollouts"),
    "IOSXESoftwareUpgrade": ("ops.cisco.vk", "iosxesoftwareupgrades"),
    "ConfigMap": ("", "configmaps"),
    "Secret": ("", "secrets"),
    "Node": ("", "nodes"),
}


@lru_cache
def _first_store() -> Snapshot:
    api = ApiServer(seed=7, lag=0)
    definitions: list[Any] = [crd_of(kind) for kind in (CiscoDevice, IOSXESoftwareRollout, IOSXESoftwareUpgrade)]
    install(api, definitions)
    return api.snapshot()


def rollout_server(trees: Iterable[dict[str, Any]] = ()) -> ApiServer:
    """A server with our kinds and these objects as they stand, UIDs and statuses included."""
    api = ApiServer(seed=7, lag=0)
    api.restore(_first_store())
    for tree in trees:
        stored(api, tree)
    return api


def stored(api: ApiServer, tree: dict[str, Any]) -> dict[str, Any]:
    """Put one object into the store, past admission; gives it with its resourceVersion."""
    meta = tree["metadata"]
    return api.store.put(COLLECTIONS[tree["kind"]], (meta.get("namespace", ""), meta["name"]), tree)


def talking_to(api: ApiServer) -> Any:
    """What takes the place of `connected` of a command."""

    @asynccontextmanager
    async def connected(_target: object) -> AsyncIterator[KubeClient]:
        await asyncio.sleep(0)
        async with direct_client(api, component="cli", clock=SystemClock()) as client:
            yield client

    return connected

"""Informers under test: objects, events, and a recorder of the changes that handlers saw."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_clock import JumpingClock
from tests.support.kube_server import KubeServer

CONFIG_MAPS = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
PATH = "/api/v1/configmaps"
FAST = Timing(idle_s=0.15, healthy_s=1e9, confirm_s=5.0)


def an_object(name: str, *, version: str = "1", uid: str = "", value: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def a_list(*objects: dict[str, Any], version: str = "10", token: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": version, "continue": token}
    return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": list(objects)}


def event(kind: str, tree: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": tree}


def bookmark(version: str) -> dict[str, Any]:
    return event("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": version}})


def expired() -> dict[str, Any]:
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


async def until(condition: Callable[[], bool], *, deadline_s: float = 10.0) -> None:
    """Return when `condition` holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.001)


class Watching:
    """A running informer and what it reported, as `(kind, name)`."""

    def __init__(self, informer: Informer[str], client: KubeClient, clock: JumpingClock) -> None:
        self.informer = informer
        self.client = client
        self.clock = clock
        self.changes: list[tuple[str, str]] = []
        informer.add_handler(self._note)

    def _note(self, change: Change[str]) -> None:
        self.changes.append((change.kind, change.key.name))

    @property
    def names(self) -> set[str]:
        return {key.name for key in self.informer.cache}


@asynccontextmanager
async def watching(
    server: KubeServer, *, timing: Timing = FAST, clock: JumpingClock | None = None
) -> AsyncIterator[Watching]:
    """An informer of all ConfigMaps against `server`, running until the block ends."""
    used = clock or JumpingClock()
    async with KubeClient(server.config(), component="test", clock=used, draw=lambda: 0.0) as client:
        informer = Informer(client, CONFIG_MAPS, trim=lambda tree: text_at(tree, "data", "value"), timing=timing)
        found = Watching(informer, client, used)
        task = asyncio.create_task(informer.run())
        try:
            yield found
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

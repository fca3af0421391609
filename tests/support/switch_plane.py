"""The switch room of the product on a real API server, fed with hand-made accepted revisions, with a model of the worker or beside a real one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, API_VERSION, ICHOR_API_VERSION, ICHOR_GROUP
from gitops_ctl.cni.model import Mode
from gitops_ctl.cni.room import Options, SwitchRoom
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.support.switch_live import Live, LiveMachine
from tests.support.switch_simulation import PLANES, SOURCE, SYNC, WORKERS, Desk, Git
from tests.support.switch_worker import ModelWorker
from tests.support.sync_cluster import TIMING, until

CLUSTER = "north"


@dataclass
class Plane:
    """A cluster, its machines and both processes in one namespace of the real server.

    Attributes:
        client: the executor's.
        worker, applier: of the worker's model and of whoever applies what Git declares; the executor's when None.
    """

    client: KubeClient
    namespace: str
    git: Git
    live: Live | None = None
    worker: KubeClient | None = None
    applier: KubeClient | None = None
    revisions: AcceptedRevisions = field(default_factory=AcceptedRevisions)
    events: list[tuple[str, str]] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    room: SwitchRoom | None = None

    def path(self, plural: str, name: str = "", group: str = ICHOR_GROUP) -> str:
        tail = f"/{name}" if name else ""
        return f"/apis/{group}/v1alpha1/namespaces/{self.namespace}/{plural}{tail}"

    async def listed(self, plural: str, group: str = ICHOR_GROUP) -> list[Any]:
        return list((await self.client.list_all(self.path(plural, group=group))).items)

    async def operation(self) -> Any:
        found = sorted(await self.listed("talosoperations"), key=lambda one: int(one["metadata"]["resourceVersion"]))
        return found[-1] if found else {}

    async def reached(self, phase: str, *, count: int = 1, timeout_s: float = 90.0) -> Any:
        async def there() -> Any:
            found = await self.operation()
            done = found.get("status", {}).get("phase") == phase
            return found if done and len(await self.listed("talosoperations")) == count else None

        return await until(there, timeout_s=timeout_s, what=phase)

    async def commit(self, **changes: Any) -> None:
        """A signed commit that is accepted and applied."""
        self.git.commit_next(**changes)
        tree = self.git.document()
        tree["metadata"]["namespace"] = self.namespace
        mark = f"uid/{self.namespace}/{SOURCE}/{SYNC}:{ICHOR_GROUP}/TalosCluster:{self.namespace}/{CLUSTER}"
        tree["metadata"]["annotations"][ANNOTATION_OWNER_ID] = mark
        client = self.applier or self.client
        await client.apply(self.path("talosclusters", CLUSTER), tree, manager="gitops-ctl", force=True)
        self.publish()

    def publish(self) -> None:

        self.revisions.publish(replace(self.git.revision(), source=NamespacedName(self.namespace, SOURCE)))

    async def own(self) -> None:
        """A Sync that has the cluster in its inventory."""
        cluster: Any = await self.client.get(self.path("talosclusters", CLUSTER))
        spec = {"sourceRef": {"name": SOURCE}, "serviceAccountName": "applier", "path": "clusters"}
        sync: Any = await self._ours("syncs", "Sync", SYNC, spec)
        entry = {
            "group": ICHOR_GROUP,
            "version": "v1alpha1",
            "kind": "TalosCluster",
            "namespace": self.namespace,
            "name": CLUSTER,
        }
        owner = {"sync": SYNC, "uid": sync["metadata"]["uid"], "id": f"uid/{self.namespace}/{SOURCE}/{SYNC}"}
        listed = [{**entry, "uid": cluster["metadata"]["uid"]}]
        await self._ours("inventories", "Inventory", f"{SYNC}-0", {"owner": owner, "shard": 0, "entries": listed})

    async def _ours(self, plural: str, kind: str, name: str, spec: Any) -> Any:
        metadata = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        client = self.applier if self.applier is not None and kind == "Sync" else self.client
        return await client.create(self.path(plural, group="gitops-ctl.dev"), body)

    async def start(self) -> None:
        """The executor, and the model of a worker where there is something for it to live on."""
        self.room = SwitchRoom(
            self.client,
            revisions=self.revisions,
            read=lambda _revision, _path: self.git.documents(),
            proposals=Desk(),
            options=Options(
                namespace=self.namespace,
                timing=TIMING,
                emit=lambda _tree, kind, reason, _note: self.events.append((kind, reason)),
            ),
        )
        self.tasks = [asyncio.create_task(self.room.run())]
        if self.live is not None:
            wall = SystemClock().wall
            model = ModelWorker(
                self.worker or self.client, namespace=self.namespace, cluster=CLUSTER, live=self.live, wall=wall
            )
            self.tasks.append(asyncio.create_task(_again(model.look)))

    async def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def _again(look: Callable[[], Awaitable[None]]) -> None:
    while True:
        with suppress(GitopsError):
            await look()
        await asyncio.sleep(0.2)


async def make_plane(
    client: KubeClient,
    namespace: str,
    target: str,
    *,
    worker: KubeClient | None = None,
    applier: KubeClient | None = None,
) -> Plane:
    """The cluster in its old mode, and everything around it; the definitions are there."""
    before = Mode(target).other
    roles = dict.fromkeys(PLANES, "controlplane") | dict.fromkeys(WORKERS, "worker")
    now = SystemClock().wall()
    live = Live(now, {name: LiveMachine(name, role, before.proxy_word) for name, role in roles.items()})
    live.written = live.template_written = live.started = now - timedelta(days=1)
    if before is Mode.REPLACED:
        live.value, live.agents_run, live.proxy, live.proxy_pods = "true", "replaced", False, 0
    plane = Plane(client, namespace, Git(target, namespace=namespace), live, worker, applier)
    writer = applier or client
    old = Git(before.value, annotated=False, namespace=namespace).document()
    await writer.apply(plane.path("talosclusters", CLUSTER), old, manager="gitops-ctl")
    for name, role in roles.items():
        body = {
            "apiVersion": ICHOR_API_VERSION,
            "kind": "TalosMachine",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterRef": {"name": CLUSTER}, "address": "192.0.2.1", "role": role},
        }
        await writer.create(plane.path("talosmachines"), body)
    await plane.own()
    return plane

"""The switch executor on a real API server, with a model of the cluster worker: applied statuses, two writers, the lock, both directions."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, API_VERSION, FIELD_MANAGER_CNI, ICHOR_API_VERSION, ICHOR_GROUP
from gitops_ctl.cni.model import Mode
from gitops_ctl.cni.room import Options, SwitchRoom
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.support.switch_live import Live, LiveMachine, Tree
from tests.support.switch_simulation import PLANES, SOURCE, SYNC, WORKERS, Desk, Git
from tests.support.switch_worker import ModelWorker
from tests.support.sync_cluster import TIMING, install_crds, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

CLUSTER = "north"


@dataclass
class Plane:
    """A cluster, its machines and both processes in one namespace of the real server."""

    client: KubeClient
    namespace: str
    git: Git
    live: Live
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

    async def reached(self, phase: str, *, count: int = 1) -> Any:
        async def there() -> Any:
            found = await self.operation()
            done = found.get("status", {}).get("phase") == phase
            return found if done and len(await self.listed("talosoperations")) == count else None

        return await until(there, timeout_s=90.0, what=f"{phase}: {self.live.broken}")

    async def commit(self, **changes: Any) -> None:
        """A signed commit that is accepted and applied."""
        self.git.commit_next(**changes)
        tree = self.git.document()
        tree["metadata"]["namespace"] = self.namespace
        mark = f"uid/{self.namespace}/{SOURCE}/{SYNC}:{ICHOR_GROUP}/TalosCluster:{self.namespace}/{CLUSTER}"
        tree["metadata"]["annotations"][ANNOTATION_OWNER_ID] = mark
        await self.client.apply(self.path("talosclusters", CLUSTER), tree, manager="gitops-ctl", force=True)
        self.publish()

    def publish(self) -> None:
        from dataclasses import replace

        self.revisions.publish(replace(self.git.revision(), source=NamespacedName(self.namespace, SOURCE)))

    async def start(self) -> None:
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
        worker = ModelWorker(
            self.client,
            namespace=self.namespace,
            cluster=CLUSTER,
            live=self.live,
            wall=lambda: datetime.now(UTC),
        )
        self.tasks = [asyncio.create_task(self.room.run()), asyncio.create_task(_again(worker.look))]

    async def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def _again(look: Callable[[], Any]) -> None:
    while True:
        with suppress(GitopsError):
            await look()
        await asyncio.sleep(0.2)


async def make_plane(client: KubeClient, namespace: str, target: str) -> Plane:
    """The cluster in its old mode, and everything around it."""
    await install_crds(client)
    before = Mode(target).other
    roles = dict.fromkeys(PLANES, "controlplane") | dict.fromkeys(WORKERS, "worker")
    now = datetime.now(UTC)
    live = Live(now, {name: LiveMachine(name, role, before.proxy_word) for name, role in roles.items()})
    live.written = live.template_written = live.started = now - timedelta(days=1)
    if before is Mode.REPLACED:
        live.value, live.agents_run, live.proxy, live.proxy_pods = "true", "replaced", False, 0
    plane = Plane(client, namespace, Git(target, namespace=namespace), live)
    old: Tree = {**Git(before.value, annotated=False, namespace=namespace).document()}
    cluster = await client.apply(plane.path("talosclusters", CLUSTER), old, manager="gitops-ctl")
    for name, role in roles.items():
        body = {
            "apiVersion": ICHOR_API_VERSION,
            "kind": "TalosMachine",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterRef": {"name": CLUSTER}, "address": "192.0.2.1", "role": role},
        }
        await client.create(plane.path("talosmachines"), body)
    sync = await client.create(
        plane.path("syncs", group="gitops-ctl.dev"),
        {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": SYNC, "namespace": namespace},
            "spec": {"sourceRef": {"name": SOURCE}, "serviceAccountName": "applier", "path": "clusters"},
        },
    )
    entry = {
        "group": ICHOR_GROUP,
        "version": "v1alpha1",
        "kind": "TalosCluster",
        "namespace": namespace,
        "name": CLUSTER,
    }
    owner = {"sync": SYNC, "uid": sync["metadata"]["uid"], "id": f"uid/{namespace}/{SOURCE}/{SYNC}"}  # type: ignore[index,call-overload]
    await client.create(
        plane.path("inventories", group="gitops-ctl.dev"),
        {
            "apiVersion": API_VERSION,
            "kind": "Inventory",
            "metadata": {"name": f"{SYNC}-0", "namespace": namespace},
            "spec": {"owner": owner, "shard": 0, "entries": [{**entry, "uid": cluster["metadata"]["uid"]}]},  # type: ignore[index,call-overload]
        },
    )
    return plane


@pytest.fixture
async def plane(request: pytest.FixtureRequest, kube_admin: KubeClient, namespace: str) -> AsyncIterator[Plane]:
    made = await make_plane(kube_admin, namespace, getattr(request, "param", "replaced"))
    yield made
    await made.kill()


@pytest.mark.parametrize("plane", ["replaced"], indirect=True)
async def test_both_directions_on_a_real_server_end_with_the_lock_freed(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    waiting = await plane.reached("AwaitingCNIChange")
    [proposal] = await until(lambda: plane.listed("proposals", group="gitops-ctl.dev"))
    assert proposal["spec"]["reason"] == "cni/north/replaced"
    assert proposal["metadata"]["ownerReferences"][0]["uid"] == waiting["metadata"]["uid"]
    plane.live.now = datetime.now(UTC)
    plane.live.change_cni("true")
    done = await plane.reached("Succeeded")
    assert plane.live.broken == []
    assert {row["state"] for row in done["status"]["machines"]} == {"Done"}
    await plane.commit(target="enabled", consent="b" * 40)
    await plane.reached("AwaitingCNIChange", count=2)
    plane.live.now = datetime.now(UTC)
    plane.live.change_cni("false")
    await plane.reached("Succeeded", count=2)

    async def freed() -> Any:
        cluster = await plane.client.get(plane.path("talosclusters", CLUSTER))
        return cluster if "lock" not in cluster["status"] else None  # type: ignore[operator]

    cluster = await until(freed)
    assert cluster["status"]["cni"]["kubeProxy"] == "enabled"
    assert cluster["status"]["cni"]["consumedConsent"]["commit"] == "b" * 40
    assert ("Normal", "SwitchRequested") in plane.events
    assert plane.live.broken == []


async def test_executor_and_worker_own_different_members_of_one_status(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    waiting = await plane.reached("AwaitingCNIChange")
    by = {
        entry["manager"]: json.dumps(entry["fieldsV1"])
        for entry in waiting["metadata"]["managedFields"]
        if entry.get("subresource") == "status"
    }
    assert set(by) == {FIELD_MANAGER_CNI, "gitops-ctl-cni-worker"}
    assert 'f:observed"' not in by[FIELD_MANAGER_CNI]
    assert "f:phase" in by[FIELD_MANAGER_CNI]
    assert "f:phase" not in by["gitops-ctl-cni-worker"]


async def test_a_killed_executor_goes_on_where_it_was(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    await plane.reached("AwaitingCNIChange")
    plane.live.now = datetime.now(UTC)
    plane.live.change_cni("true")
    await plane.reached("SwitchingMachines")
    await plane.kill()
    plane.revisions = AcceptedRevisions()
    await plane.start()
    plane.publish()
    await plane.reached("Succeeded")
    assert plane.live.broken == []
    assert len(plane.live.effects) == len(set(plane.live.effects))


async def test_a_switch_that_waits_writes_nothing(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    await plane.reached("AwaitingCNIChange")

    async def versions() -> list[str]:
        found = [
            *await plane.listed("talosoperations"),
            *await plane.listed("talosclusters"),
            *await plane.listed("talosmachines"),
        ]
        return [one["metadata"]["resourceVersion"] for one in found]

    async def quiet() -> bool:
        before = await versions()
        await asyncio.sleep(1.5)
        return before == await versions()

    assert await until(quiet)
    assert plane.room is not None
    plane.room.queue.add(NamespacedName(plane.namespace, CLUSTER))
    before = await versions()
    await asyncio.sleep(1.5)
    assert await versions() == before


async def test_a_consent_that_was_written_with_kubectl_starts_nothing_and_is_reported(plane: Plane) -> None:
    await plane.commit(target="enabled", annotated=False)
    patch = {
        "metadata": {"annotations": {"ichor.maesh.dev/confirm-kube-proxy-switch": "replaced"}},
        "spec": {"cni": {"kubeProxy": "replaced"}},
    }
    await plane.client.patch_merge(plane.path("talosclusters", CLUSTER), patch)
    await plane.start()

    async def reported() -> Any:
        cluster = await plane.client.get(plane.path("talosclusters", CLUSTER))
        return [one for one in cluster.get("status", {}).get("conditions", []) if one["reason"] == "NotFromGit"]  # type: ignore[union-attr,index]

    assert await until(reported)
    assert await plane.listed("talosoperations") == []
    assert ("Warning", "NotFromGit") in plane.events

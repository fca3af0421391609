"""The running room: several clusters at once, what wakes it, and its end; on a store in memory and virtual time."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, API_VERSION, ICHOR_API_VERSION
from gitops_ctl.cni.authority import CONSENT
from gitops_ctl.cni.room import Options, SwitchRoom
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import LoadLimits, load
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevisions, Introduced, Provenance
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.simulation_loop import BEGIN, LoopClock, run_virtually
from tests.support.switch_live import Live, LiveMachine
from tests.support.switch_simulation import API, NAMESPACE, SOURCE, SYNC, Desk, Git, first_store
from tests.support.switch_worker import ModelWorker

CLUSTERS = ("north", "south")
OURS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"


class Bench:
    """Two clusters of one repository, each with a control plane of its own."""

    def __init__(self, client: KubeClient, api: ApiServer, clock: LoopClock) -> None:
        self.client, self.api, self.clock = client, api, clock
        self.revisions = AcceptedRevisions()
        self.room = SwitchRoom(
            client,
            revisions=self.revisions,
            read=lambda _revision, _path: self.documents(),
            proposals=Desk(),
            options=Options(),
        )

    def documents(self) -> DocumentSet:
        trees = [self.document(name) for name in CLUSTERS]
        data = "\n---\n".join(map(json.dumps, trees)).encode()
        return DocumentSet("", "", load(data, file="clusters/all.yaml", limits=LoadLimits()).documents, ())

    @staticmethod
    def document(name: str) -> Any:
        tree = Git("replaced").document()
        tree["metadata"]["name"] = name
        return tree

    async def begin(self) -> None:
        """Both clusters ask for the other mode, and one Sync has both."""
        entries = []
        for name in CLUSTERS:
            tree = self.document(name)
            mark = f"uid/{NAMESPACE}/{SOURCE}/{SYNC}:ichor.maesh.dev/TalosCluster:{NAMESPACE}/{name}"
            tree["metadata"]["annotations"][ANNOTATION_OWNER_ID] = mark
            made: Any = await self.client.apply(f"{API}/talosclusters/{name}", tree, manager="gitops-ctl", force=True)
            kind = {"group": "ichor.maesh.dev", "version": "v1alpha1", "kind": "TalosCluster"}
            entries.append({**kind, "namespace": NAMESPACE, "name": name, "uid": made["metadata"]["uid"]})
        machine = {
            "apiVersion": ICHOR_API_VERSION,
            "kind": "TalosMachine",
            "metadata": {"name": "south-1", "namespace": NAMESPACE},
            "spec": {"clusterRef": {"name": "south"}, "address": "192.0.2.9", "role": "controlplane"},
        }
        await self.client.create(f"{API}/talosmachines", machine)
        await self.client.patch_merge(f"{OURS}/inventories/{SYNC}-0", {"spec": {"entries": entries}})

    def publish(self) -> None:
        documents = self.documents().documents
        introduced = Introduced("a" * 40, "network-author", "consent", "network-author", BEGIN, BEGIN)
        provenance = Provenance({(document.id, CONSENT): introduced for document in documents})
        self.revisions.publish(replace(Git("replaced").revision(), provenance=provenance))

    def phases(self) -> dict[str, str]:
        found = [tree for _, tree in self.api.store.all(("ichor.maesh.dev", "talosoperations"))]
        return {tree["spec"]["clusterRef"]["name"]: tree.get("status", {}).get("phase", "") for tree in found}

    async def until(self, reached: Callable[[], bool]) -> None:
        for _ in range(3600):
            if reached():
                return
            await asyncio.sleep(1.0)
        raise AssertionError(self.phases())


def played(story: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """A story on a store and a loop of its own."""

    async def play() -> None:
        clock = LoopClock()
        api = ApiServer(seed=9, now=clock.wall)
        api.restore(first_store("replaced"))
        async with direct_client(api, component="tests", clock=clock) as client:
            bench = Bench(client, api, clock)
            await bench.begin()
            running = asyncio.create_task(bench.room.run())
            await story(bench)
            bench.room.stop()
            await asyncio.wait_for(running, 60)

    run_virtually(play())


def test_promise_10_a_cluster_without_a_worker_does_not_delay_another_one() -> None:
    async def story(bench: Bench) -> None:
        bench.publish()
        live = Live(BEGIN, {"south-1": LiveMachine("south-1", "controlplane", "enabled")})
        only = ModelWorker(
            _OnlySouth(bench.client), namespace=NAMESPACE, cluster="south", live=live, wall=bench.clock.wall
        )  # type: ignore[arg-type]

        async def work() -> None:
            while True:
                await only.look()
                await asyncio.sleep(5.0)

        working = asyncio.create_task(work())
        await bench.until(lambda: bench.phases().get("south") == "AwaitingCNIChange")
        assert bench.phases()["north"] == "Preflight"
        live.now = bench.clock.wall()
        live.change_cni("true")
        await bench.until(lambda: bench.phases().get("south") == "Succeeded")
        await bench.until(lambda: bench.phases().get("north") == "Paused")
        working.cancel()
        assert live.broken == []

    played(story)


def test_an_accepted_revision_wakes_the_clusters_of_its_namespace() -> None:
    async def story(bench: Bench) -> None:
        await asyncio.sleep(20.0)
        assert bench.phases() == {}
        bench.publish()
        await bench.until(lambda: bench.phases() == {"north": "Preflight", "south": "Preflight"})

    played(story)


def test_machines_and_operations_of_one_cluster_are_none_of_another_ones() -> None:
    async def story(bench: Bench) -> None:
        bench.publish()
        await bench.until(lambda: len(bench.phases()) == 2)
        locks = {
            tree["metadata"]["name"]: tree.get("status", {}).get("lock", {}).get("holder", "")
            for _, tree in bench.api.store.all(("ichor.maesh.dev", "talosclusters"))
        }
        assert locks["north"].startswith("north-replaced-")
        assert locks["south"].startswith("south-replaced-")

    played(story)


class _OnlySouth:
    """A client whose lists of operations have only those of one cluster."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def list_all(self, path: str) -> Any:
        listed = await self._client.list_all(path)
        items = [item for item in listed.items if item["spec"]["clusterRef"]["name"] == "south"]  # type: ignore[index,call-overload]
        return replace(listed, items=items)

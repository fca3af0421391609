"""What the accepted revision says about a cluster, and who stands behind it (cni-switch.md, section 4; gitops.md, section 4.6)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, API_VERSION
from gitops_ctl.cni.authority import CONSENT, AuthorityReader, owner_of
from gitops_ctl.cni.model import Introduction, Steering
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.declared import DeclaredReader
from gitops_ctl.trust.provenance import AcceptedRevisions, Provenance
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.switch_simulation import API, CLUSTER, NAMESPACE, SOURCE, SYNC, Git, first_store

KEY = NamespacedName(NAMESPACE, SOURCE)


class Bench:
    """A reader over a store in memory, and what Git says."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.git = Git("replaced")
        self.revisions = AcceptedRevisions()
        self.reads = 0
        self.paths = {"clusters"}
        self.reader = AuthorityReader(client, revisions=self.revisions, read=self._read)

    def _read(self, _revision: Any, path: str) -> Any:
        self.reads += 1
        assert path in self.paths
        return self.git.documents() if path == "clusters" else DocumentSet("", path, (), ())

    async def live(self, **changes: Any) -> Any:
        tree = self.git.document()
        mark = f"uid/{NAMESPACE}/{SOURCE}/{SYNC}:ichor.maesh.dev/TalosCluster:{NAMESPACE}/{CLUSTER}"
        tree["metadata"]["annotations"][ANNOTATION_OWNER_ID] = changes.pop("mark", mark)
        tree["spec"]["cni"].update(changes)
        return await self.client.apply(f"{API}/talosclusters/{CLUSTER}", tree, manager="gitops-ctl", force=True)

    def publish(self, **changes: Any) -> None:
        self.revisions.publish(replace(self.git.revision(), **changes))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    api = ApiServer(seed=5)
    api.restore(first_store("replaced"))
    async with direct_client(api, component="tests", clock=SystemClock()) as client:
        yield Bench(client)


async def test_field_consent_and_introducer_come_from_git(bench: Bench) -> None:
    bench.publish()
    found = await bench.reader.of(await bench.live())
    assert (found.revision, found.mode, found.consent) == (bench.git.commit, "replaced", "replaced")
    assert found.introduced == Introduction("a" * 40, "network-author")
    assert (found.source, found.file, found.held) == (SOURCE, "clusters/north.json", "")


async def test_the_documents_of_a_revision_are_read_once(bench: Bench) -> None:
    bench.publish()
    tree = await bench.live()
    for _ in range(3):
        await bench.reader.of(tree)
    assert bench.reads == 1
    bench.git.commit_next()
    bench.publish()
    await bench.reader.of(tree)
    assert bench.reads == 2


async def test_another_folder_of_the_same_commit_is_read_anew(bench: Bench) -> None:
    bench.publish()
    tree = await bench.live()
    assert (await bench.reader.of(tree)).introduced is not None
    bench.paths.add("others")
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/syncs/{SYNC}"
    await bench.client.patch_merge(path, {"spec": {"path": "others"}})
    found = await bench.reader.of(tree)
    assert (found.revision, found.introduced) == ("", None)
    assert "does not declare it" in found.why


async def test_a_consent_by_somebody_without_the_verb_introduces_nothing(bench: Bench) -> None:
    bench.publish(provenance=Provenance())
    assert (await bench.reader.of(await bench.live())).introduced is None


async def test_a_void_consent_introduces_nothing_and_says_why(bench: Bench) -> None:
    [document] = bench.git.documents().documents
    bench.publish(provenance=Provenance(void={(document.id, CONSENT): "the key of network-author is revoked"}))
    found = await bench.reader.of(await bench.live())
    assert found.introduced is None
    assert found.why_void == "the key of network-author is revoked"


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"effects_allowed": False}, "the accepted commit itself is refused now"), ({"trusted": False}, "has no trust")],
)
async def test_a_revision_without_effects_authorises_nothing(bench: Bench, changes: Any, why: str) -> None:
    bench.publish(**changes)
    found = await bench.reader.of(await bench.live())
    assert found.revision == ""
    assert why in found.why


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_refused_commit_is_told_apart_from_an_absent_one(bench: Bench, allowed: bool) -> None:
    reader, tree = DeclaredReader(bench.client, revisions=bench.revisions, read=bench._read), await bench.live()
    unknown = await reader.of(tree)
    assert (unknown.is_known, unknown.is_refused) == (False, False)
    bench.publish(effects_allowed=allowed)
    found = await reader.of(tree)
    assert (found.is_known, found.is_refused, found.document is None) == (True, not allowed, not allowed)


async def test_a_source_that_nobody_looked_at_yet_has_no_reason(bench: Bench) -> None:
    found = await bench.reader.of(await bench.live())
    assert (found.revision, found.why) == ("", "")


async def test_a_mark_that_names_another_object_counts_for_nothing(bench: Bench) -> None:
    bench.publish()
    mark = f"uid/{NAMESPACE}/{SOURCE}/{SYNC}:ichor.maesh.dev/TalosCluster:{NAMESPACE}/south"
    tree = await bench.live(mark=mark)
    assert owner_of(tree) is None
    assert (await bench.reader.of(tree)).why == "no Sync applied this TalosCluster"


async def test_a_mark_of_a_sync_that_does_not_have_the_object_counts_for_nothing(bench: Bench) -> None:
    """A person who may edit the object copies a mark that leads to a repository with the consent."""
    other = {
        "apiVersion": API_VERSION,
        "kind": "Sync",
        "metadata": {"name": "mine", "namespace": NAMESPACE},
        "spec": {"sourceRef": {"name": SOURCE}, "serviceAccountName": "applier", "path": "clusters"},
    }
    await bench.client.create(f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/syncs", other)
    bench.publish()
    mark = f"uid/{NAMESPACE}/{SOURCE}/mine:ichor.maesh.dev/TalosCluster:{NAMESPACE}/{CLUSTER}"
    found = await bench.reader.of(await bench.live(mark=mark))
    assert found.revision == ""
    assert "does not have it" in found.why


async def test_a_mark_with_another_source_than_the_sync_follows_counts_for_nothing(bench: Bench) -> None:
    bench.publish()
    mark = f"uid/{NAMESPACE}/branch/{SYNC}:ichor.maesh.dev/TalosCluster:{NAMESPACE}/{CLUSTER}"
    assert (await bench.reader.of(await bench.live(mark=mark))).revision == ""


async def test_a_sync_that_applies_to_another_cluster_stands_behind_nothing_here(bench: Bench) -> None:
    """Its consents are for the object over there, whoever copied that object with its mark."""
    bench.publish()
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/syncs/{SYNC}"
    await bench.client.patch_merge(path, {"spec": {"kubeConfigSecretRef": {"name": "elsewhere"}}})
    found = await bench.reader.of(await bench.live())
    assert (found.revision, found.introduced) == ("", None)
    assert "another cluster" in found.why


async def test_a_cluster_that_the_revision_does_not_declare_is_told(bench: Bench) -> None:
    bench.publish()
    tree = await bench.live()
    stored = {**tree, "metadata": {**tree["metadata"], "namespace": "elsewhere"}}
    assert (await bench.reader.of(stored)).revision == ""


async def test_steering_counts_only_where_git_and_cluster_say_the_same_and_somebody_may(bench: Bench) -> None:
    bench.git.steering = {"resume": 2, "cancel": True}
    bench.publish()
    both = await bench.reader.of(await bench.live())
    assert both.steering == Steering(2, cancel=True)
    other = await bench.reader.of(await bench.live(operation={"resume": 7, "cancel": True, "breakLock": True}))
    assert other.steering == Steering(0, cancel=True)
    bench.publish(provenance=Provenance())
    assert (await bench.reader.of(await bench.live())).steering == Steering()


async def test_a_cancel_of_a_commit_that_is_held_counts_and_one_that_only_the_cluster_has_does_not(
    bench: Bench,
) -> None:
    bench.git.steering = {"resume": 2, "cancel": True, "breakLock": True}
    bench.publish()
    assert (await bench.reader.of(await bench.live(operation={}))).steering == Steering(cancel=True)
    bench.publish(provenance=Provenance())
    assert (await bench.reader.of(await bench.live(operation={}))).steering == Steering()
    bench.git.commit_next(steering={})
    bench.publish()
    assert (await bench.reader.of(await bench.live(operation={"cancel": True}))).steering == Steering()


async def test_an_object_that_the_sync_holds_is_told_with_its_reason(bench: Bench) -> None:
    bench.publish()
    held = {
        "object": f"TalosCluster.ichor.maesh.dev/{NAMESPACE}/{CLUSTER}",
        "reason": "ConsentMissing",
        "message": "not yet",
        "since": "2026-03-01T08:00:00Z",
    }
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/syncs/{SYNC}"
    await bench.client.patch_merge(path, {"status": {"held": [held]}}, subresource="status")
    assert (await bench.reader.of(await bench.live())).held == "ConsentMissing: not yet"

"""Where the values of Cilium lie in a repository, and the proposals that follow, from real commits (cni-switch.md, sections 11 and 12)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import API_VERSION
from gitops_ctl.cni.model import Cluster, Operation
from gitops_ctl.cni.proposals_reading import ProposalDesk
from gitops_ctl.cni.reading import cluster_of, operation_of
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.url import parse_url
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions, Provenance
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.git_repos import RepoBuilder
from tests.support.switch_bench import Bench, make_bench
from tests.support.switch_simulation import API, NAMESPACE, first_store

VALUES = "kubeProxyReplacement: false  # agreed with the net team\nipam: {mode: kubernetes}\n"
CLUSTER_FILE = """apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: lab}
---
apiVersion: ichor.maesh.dev/v1alpha1
kind: TalosCluster
metadata:
  name: north
  namespace: lab
  annotations:
    ichor.maesh.dev/confirm-kube-proxy-switch: replaced
"""


class Repository:
    """A repository, its GitSource, and the desk that reads both."""

    def __init__(self, client: KubeClient, folder: Path) -> None:
        self.client = client
        self.repo = RepoBuilder(folder / "repo")
        self.revisions = AcceptedRevisions()
        self.clones = CloneCache(folder / "clones")
        self.desk = ProposalDesk(client, revisions=self.revisions, clones=self.clones)

    def push(self, files: dict[str, str]) -> str:
        commit = self.repo.commit(files)
        self.revisions.publish(
            AcceptedRevision(
                source=NamespacedName(NAMESPACE, "network"),
                uid="u",
                url=self.repo.url,
                ref="refs/heads/main",
                commit=commit,
                tree="",
                store_path=self.repo.git_dir,
                provenance=Provenance(),
                generation=1,
                trusted=True,
                effects_allowed=True,
            )
        )
        return commit

    async def source(self, **spec: Any) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": "GitSource",
            "metadata": {"name": "network", "namespace": NAMESPACE},
            "spec": {"url": "https://git.example.net/network", "ref": {"branch": "main"}, "interval": "1m", **spec},
        }
        await self.client.create(f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/gitsources", body)

    async def seen(self, commit: str) -> None:
        """What a poll of the source leaves in its status."""
        status = {"observed": {"revision": commit, "at": "2026-03-01T08:00:00Z"}}
        path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/gitsources/network"
        await self.client.patch_merge(path, {"status": status}, subresource="status")

    def copied(self) -> None:
        """The copy that the source room fetches into."""
        place = self.clones.path_for(parse_url("https://git.example.net/network"), tenant="")
        self.repo.git("init", "--quiet", "--bare", str(place))
        self.repo.git("push", "--quiet", str(place), "main")


@pytest.fixture
async def repository(tmp_path: Path) -> AsyncIterator[Repository]:
    api = ApiServer(seed=5)
    api.restore(first_store("replaced"))
    async with direct_client(api, component="tests", clock=SystemClock()) as client:
        yield Repository(client, tmp_path)


def waiting(**cni: Any) -> tuple[Bench, Cluster, Operation]:
    bench = make_bench("replaced")
    values = {"sourceRef": {"name": "network"}, "path": "net/cni.yaml", "shape": "A"}
    bench.cluster["spec"]["cni"] |= {"handover": "git", "values": values, **cni}
    bench.run()
    operation = operation_of(bench.operation)
    assert operation is not None
    assert operation.state.phase == "AwaitingCNIChange"
    return bench, cluster_of(bench.cluster), operation


def observed(operation: Operation) -> Any:
    assert operation.observed is not None
    return operation.observed


async def test_values_that_are_found_become_a_proposal_with_exactly_their_edits(repository: Repository) -> None:
    await repository.source()
    repository.push({"net/cni.yaml": VALUES})
    bench, cluster, operation = waiting()
    place = await repository.desk.place(cluster, operation, observed(operation))
    assert "git.example.net/network, net/cni.yaml" in place.where
    assert place.why == ""
    tree: Any = await repository.desk.wanted(cluster, operation, bench.authority)
    changes = {
        change["pointer"]: (change["op"], change.get("from"), change.get("to")) for change in tree["spec"]["changes"]
    }
    assert changes["/kubeProxyReplacement"] == ("replace", False, True)
    assert changes["/k8sServiceHost"] == ("add", None, "localhost")
    assert changes["/k8sServicePort"] == ("add", None, 7445)
    assert tree["spec"]["sourceRef"] == {"name": "network"}
    assert tree["spec"]["expires"] == "2026-03-02T08:00:20Z"


async def test_values_that_are_right_already_ask_for_nothing(repository: Repository) -> None:
    await repository.source()
    repository.push({"net/cni.yaml": "kubeProxyReplacement: true\nk8sServiceHost: localhost\nk8sServicePort: 7445\n"})
    bench, cluster, operation = waiting()
    assert await repository.desk.wanted(cluster, operation, bench.authority) is None


async def test_a_newer_revision_is_looked_at_anew(repository: Repository) -> None:
    await repository.source()
    repository.push({"net/cni.yaml": VALUES})
    bench, cluster, operation = waiting()
    first: Any = await repository.desk.wanted(cluster, operation, bench.authority)
    repository.push({"net/cni.yaml": VALUES.replace("false", '"false"')})
    second: Any = await repository.desk.wanted(cluster, operation, bench.authority)
    assert (first["spec"]["changes"][0]["from"], second["spec"]["changes"][0]["from"]) == (False, "false")
    assert first["metadata"]["name"] == second["metadata"]["name"]


async def test_values_that_cannot_be_edited_say_why_and_what_to_set(repository: Repository) -> None:
    await repository.source()
    repository.push({"net/readme.md": "nothing here"})
    bench, cluster, operation = waiting(values={"sourceRef": {"name": "network"}})
    place = await repository.desk.place(cluster, operation, observed(operation))
    assert place.where == "the Application's or release's Helm values in Git"
    assert "NoCandidate" in place.why
    assert "kubeProxyReplacement: true" in place.why
    assert await repository.desk.wanted(cluster, operation, bench.authority) is None


async def test_without_a_locator_or_its_source_the_message_says_so(repository: Repository) -> None:
    _, cluster, operation = waiting(values={})
    place = await repository.desk.place(cluster, operation, observed(operation))
    assert "spec.cni.values does not say where they are" in place.why
    _, cluster, operation = waiting()
    assert "there is no GitSource network" in (await repository.desk.place(cluster, operation, observed(operation))).why


async def test_a_source_whose_revision_is_not_accepted_gives_no_values(repository: Repository) -> None:
    root = {"commit": "a" * 40, "policyDigest": f"sha256:{'0' * 64}"}
    await repository.source(trust={"root": root})
    _, cluster, operation = waiting()
    assert "no accepted revision" in (await repository.desk.place(cluster, operation, observed(operation))).why


async def test_a_source_without_trust_feeds_the_proposal_from_the_tip_that_was_observed(repository: Repository) -> None:
    await repository.source()
    commit = repository.repo.commit({"net/cni.yaml": VALUES})
    bench, cluster, operation = waiting()
    asked = (cluster, operation, observed(operation))
    assert "network cannot be read" in (await repository.desk.place(*asked)).why, "nobody has looked at it yet"
    await repository.seen(commit)
    assert "network cannot be read" in (await repository.desk.place(*asked)).why, "the copy is not there"
    assert await repository.desk.wanted(cluster, operation, bench.authority) is None
    repository.copied()
    assert (await repository.desk.place(*asked)).why == ""
    tree: Any = await repository.desk.wanted(cluster, operation, bench.authority)
    assert {change["pointer"] for change in tree["spec"]["changes"]} >= {"/kubeProxyReplacement", "/k8sServiceHost"}
    await repository.seen("f" * 40)
    assert "network cannot be read" in (await repository.desk.place(*asked)).why, "the copy is behind"


async def test_before_the_hand_over_the_patch_that_holds_the_cni_is_named(repository: Repository) -> None:
    for name, text in (("cni", "cluster: {inlineManifests: [{name: cilium, contents: x}]}"), ("other", "machine: {}")):
        body = {
            "apiVersion": "ichor.maesh.dev/v1alpha1",
            "kind": "TalosConfigPatch",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"patch": text, "targets": {"clusterRef": {"name": "north"}}},
        }
        await repository.client.create(f"{API}/talosconfigpatches", body)
    bench, cluster, operation = waiting(handover="disabled")
    place = await repository.desk.place(cluster, operation, observed(operation))
    assert place.where == "the inline-manifest entry of TalosConfigPatch cni"
    assert await repository.desk.wanted(cluster, operation, bench.authority) is None


async def test_the_clean_up_finds_the_document_in_its_file(repository: Repository) -> None:
    repository.push({"clusters/north.yaml": CLUSTER_FILE})
    bench = make_bench("replaced")
    bench.live.change_cni("true")
    bench.run()
    cluster, operation = cluster_of(bench.cluster), operation_of(bench.operation)
    assert operation is not None
    tree: Any = await repository.desk.wanted(cluster, operation, bench.authority)
    [change] = tree["spec"]["changes"]
    assert (change["file"], change["document"], change["op"]) == ("clusters/north.yaml", 1, "remove")
    gone = CLUSTER_FILE.replace("  annotations:\n    ichor.maesh.dev/confirm-kube-proxy-switch: replaced\n", "")
    repository.push({"clusters/north.yaml": gone})
    assert await repository.desk.wanted(cluster, operation, bench.authority) is None
    elsewhere = replace(bench.authority, source="unknown")
    assert await repository.desk.wanted(cluster, operation, elsewhere) is None

"""Passes of the executor over a store in memory: what it may conclude, what it tells, and that it writes only as the leader."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.cni.controller import UNSEEN_S, Caches, Ports, SwitchController
from gitops_ctl.cni.model import Authority, Introduction, Mode
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import TransientError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.lease import LeadershipLost
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.switch_simulation import API, CLUSTER, NAMESPACE, Desk, Git, first_store

KEY = NamespacedName(NAMESPACE, CLUSTER)


class GitAnswers:
    """Answers about Git; `error` is raised instead."""

    def __init__(self) -> None:
        self.answer = Authority(
            revision="c" * 40,
            mode=Mode.REPLACED,
            consent="replaced",
            introduced=Introduction("a" * 40, "network-author"),
            source="network",
            file="clusters/north.yaml",
        )
        self.error: Exception | None = None

    async def of(self, _tree: Any) -> Authority:
        if self.error is not None:
            raise self.error
        return self.answer


class Bench:
    """One controller and its store."""

    def __init__(self, client: KubeClient, api: ApiServer) -> None:
        self.client, self.api, self.git = client, api, GitAnswers()
        self.usable, self.leads = True, True
        self.proposal: JsonObject | None = None
        self.told: list[tuple[str, str, str]] = []
        self.about: list[str] = []
        caches = Caches(
            usable=lambda: self.usable,
            machines=lambda _key: tuple(self.all("talosmachines")),
            operations=lambda _key: tuple(self.all("talosoperations")),
            proposal=lambda _key: self.proposal,
        )
        self.controller = SwitchController(
            Ports(
                client=client,
                caches=caches,
                authority=self.git,
                proposals=Desk(),
                clock=SystemClock(),
                emit=self._emit,
                require_leader=self._require,
            )
        )

    def _emit(self, tree: JsonObject, kind: str, reason: str, note: str) -> None:
        self.told.append((kind, reason, note))
        self.about.append(text_at(tree, "metadata", "uid"))

    def _require(self) -> None:
        if not self.leads:
            raise LeadershipLost("the Lease is held by another process")

    def all(self, plural: str) -> list[Any]:
        return [tree for _, tree in self.api.store.all(("ichor.maesh.dev", plural))]

    async def ask(self) -> None:
        """Field and consent, as the Sync applies them."""
        await self.client.apply(
            f"{API}/talosclusters/{CLUSTER}", Git("replaced").document(), manager="gitops-ctl", force=True
        )

    async def status(self, plural: str, name: str, manager: str, **status: Any) -> None:
        kind = {"talosmachines": "TalosMachine", "talosoperations": "TalosOperation"}[plural]
        metadata = {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": kind, "metadata": metadata, "status": status}
        await self.client.apply(f"{API}/{plural}/{name}", body, manager=manager, subresource="status")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    api = ApiServer(seed=6)
    api.restore(first_store("replaced"))
    async with direct_client(api, component="tests", clock=SystemClock()) as client:
        yield Bench(client, api)


def versions(bench: Bench) -> list[str]:
    found = [tree for plural in ("talosclusters", "talosmachines", "talosoperations") for tree in bench.all(plural)]
    return [tree["metadata"]["resourceVersion"] for tree in found]


async def test_nothing_is_concluded_while_machines_or_operations_cannot_be_seen(bench: Bench) -> None:
    await bench.ask()
    bench.usable = False
    before = versions(bench)
    assert await bench.controller.reconcile(KEY) == UNSEEN_S
    assert versions(bench) == before


async def test_a_pass_ends_at_the_question_to_the_worker_and_says_when_to_look_again(bench: Bench) -> None:
    await bench.ask()
    delay = await bench.controller.reconcile(KEY)
    assert delay is not None
    assert 590 < delay <= 600
    [operation] = bench.all("talosoperations")
    assert operation["status"]["phase"] == "Preflight"
    assert [one["action"] for one in operation["status"]["requests"]] == ["observe"]
    assert [reason for _, reason, _ in bench.told] == ["SwitchRequested", "Preflight"]
    assert "network-author consented to replaced in aaaaaaaaaaaa" in bench.told[0][2]
    assert bench.about[0] == operation["metadata"]["uid"], "each request is told of its own operation"


async def test_promise_08_a_second_pass_with_nothing_new_writes_nothing(bench: Bench) -> None:
    await bench.ask()
    await bench.controller.reconcile(KEY)
    before, told = versions(bench), list(bench.told)
    await bench.controller.reconcile(KEY)
    assert versions(bench) == before
    assert bench.told == told


async def test_the_pull_request_is_followed_also_after_the_end(bench: Bench) -> None:
    await bench.ask()
    await bench.controller.reconcile(KEY)
    (operation,) = bench.all("talosoperations")
    name, uid = text_at(operation, "metadata", "name"), text_at(operation, "metadata", "uid")
    for phase, state in (("Open", operation["status"]["phase"]), ("Merged", "Succeeded")):
        bench.proposal = {"status": {"phase": phase, "url": "https://forge.example.net/1", "number": 1}}
        await bench.status("talosoperations", name, "gitops-ctl-cni", **{**operation["status"], "phase": state})
        await bench.controller.reconcile(KEY)
        found = next(one for one in bench.all("talosoperations") if text_at(one, "metadata", "uid") == uid)
        assert found["status"]["phase"] == state
        assert found["status"]["pullRequest"] == {"url": "https://forge.example.net/1", "number": 1, "state": phase}
    before = versions(bench)
    await bench.controller.reconcile(KEY)
    assert versions(bench) == before, "nothing is written twice"


async def test_H13_a_process_that_lost_the_lease_writes_nothing(bench: Bench) -> None:
    await bench.ask()
    bench.leads = False
    before = versions(bench)
    with pytest.raises(LeadershipLost):
        await bench.controller.reconcile(KEY)
    assert versions(bench) == before


async def test_what_git_says_and_cannot_be_had_stops_the_pass_before_any_write(bench: Bench) -> None:
    await bench.ask()
    bench.git.error = TransientError("the server is away")
    before = versions(bench)
    with pytest.raises(TransientError):
        await bench.controller.reconcile(KEY)
    assert versions(bench) == before


async def test_a_cluster_that_is_gone_is_forgotten(bench: Bench) -> None:
    assert await bench.controller.reconcile(NamespacedName(NAMESPACE, "gone")) is None


async def test_a_machine_whose_base_is_ahead_reports_the_pending_switch_and_no_reboot(bench: Bench) -> None:
    secret = {"spec": {"configSecretRef": {"name": "cp-1-config"}}}
    await bench.client.patch_merge(f"{API}/talosmachines/cp-1", secret)
    seen = {
        "at": "2026-03-01T08:00:00Z",
        "type": "controlplane",
        "kubeProxy": "enabled",
        "pending": [{"path": "KubeProxyConfig", "class": "kube-proxy"}],
    }
    await bench.status("talosmachines", "cp-1", "gitops-ctl-cni-worker", observed=seen)
    await bench.controller.reconcile(KEY)
    [machine] = [tree for tree in bench.all("talosmachines") if tree["metadata"]["name"] == "cp-1"]
    assert machine["status"]["rebootPaths"] == ["KubeProxyConfig"]
    await bench.ask()
    await bench.controller.reconcile(KEY)
    [machine] = [tree for tree in bench.all("talosmachines") if tree["metadata"]["name"] == "cp-1"]
    assert "rebootPaths" not in machine["status"]
    [ready] = machine["status"]["conditions"]
    assert ready["reason"] == "KubeProxySwitchPending"
    assert machine["status"]["observed"]["kubeProxy"] == "enabled"


async def test_a_value_that_is_not_from_git_is_told_once(bench: Bench) -> None:
    await bench.ask()
    bench.git.answer = Authority(revision="c" * 40, mode=Mode.ENABLED)
    await bench.controller.reconcile(KEY)
    await bench.controller.reconcile(KEY)
    assert [(kind, reason) for kind, reason, _ in bench.told] == [("Warning", "NotFromGit")]
    [cluster] = bench.all("talosclusters")
    assert [one["reason"] for one in cluster["status"]["conditions"]] == ["NotFromGit"]

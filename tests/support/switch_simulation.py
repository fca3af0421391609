"""The switch room on an API server in memory, on virtual time, with a model of the cluster worker beside it and faults at every I/O point.

Two processes, executor and worker, write to one store.  A crash ends the one whose request it was; the next one begins with what the store
holds.  The rules after each write: tests/support/switch_rules.py.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gitops_ctl.api.names import (
    ANNOTATION_CONFIRM_SWITCH,
    ANNOTATION_OWNER_ID,
    API_VERSION,
    ICHOR_API_VERSION,
    ICHOR_GROUP,
    LABEL_OWNER,
)
from gitops_ctl.cni.authority import CONSENT
from gitops_ctl.cni.messages import Place
from gitops_ctl.cni.model import Authority, Cluster, Mode, Observed, Operation, Phase
from gitops_ctl.cni.proposals import cleanup_proposal, values_proposal, wants_cleanup
from gitops_ctl.cni.room import Options, SwitchRoom
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import LoadLimits, load
from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.wanted import proposal_tree
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions, Introduced, Provenance
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.request import Request
from tests.support.simulation import Broken
from tests.support.simulation_faults import FaultPlan
from tests.support.simulation_loop import BEGIN, LoopClock
from tests.support.simulation_process import Process
from tests.support.switch_live import Live, LiveMachine, Tree
from tests.support.switch_rules import Rules
from tests.support.switch_worker import ModelWorker

NAMESPACE, CLUSTER, SOURCE, SYNC = "lab", "north", "network", "clusters"
PLANES, WORKERS = ("cp-1", "cp-2"), ("node-1",)
CRDS = Path(__file__).resolve().parents[2] / "schemas" / "crds"
API = f"/apis/{ICHOR_GROUP}/v1alpha1/namespaces/{NAMESPACE}"
LOOK_S = 8.0
"""Between two looks of the worker."""

REST_S = 90.0
"""Silence after which the world counts as being at rest."""

DEADLINE_S = 3600.0


@dataclass
class Git:
    """What the accepted revision says: one document, and who introduced its authorising values."""

    target: str
    consent: str = "a" * 40
    commit: str = "c" * 40
    steering: dict[str, Any] = field(default_factory=dict)
    annotated: bool = True
    namespace: str = NAMESPACE
    more: dict[str, Any] = field(default_factory=dict)

    def commit_next(self, **changes: Any) -> None:
        """Another commit with these values."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.commit = f"{int(self.commit[:4], 16) + 1 & 0xFFFF:04x}{self.commit[4:]}"

    def document(self) -> Tree:
        annotations = {ANNOTATION_CONFIRM_SWITCH: self.target} if self.annotated else {}
        cni: Tree = {"kubeProxy": self.target, "handover": "git", "values": {"sourceRef": {"name": SOURCE}}}
        if self.steering:
            cni["operation"] = self.steering
        return {
            "apiVersion": ICHOR_API_VERSION,
            "kind": "TalosCluster",
            "metadata": {"name": CLUSTER, "namespace": self.namespace, "annotations": annotations},
            "spec": {"talosconfigSecretRef": {"name": "talos"}, **self.more, "cni": cni},
        }

    def documents(self) -> DocumentSet:
        data = json.dumps(self.document()).encode()
        return DocumentSet("", "", load(data, file="clusters/north.json", limits=LoadLimits()).documents, ())

    def revision(self) -> AcceptedRevision:
        [document] = self.documents().documents
        moment = BEGIN

        def by(commit: str, verb: str) -> Introduced:
            return Introduced(commit, "network-author", verb, "network-author", moment, moment)

        fields = {(document.id, f"/spec/cni/operation/{name}"): by("d" * 40, "control") for name in self.steering}
        if self.annotated:
            fields[document.id, CONSENT] = by(self.consent, "consent")
        return AcceptedRevision(
            source=NamespacedName(NAMESPACE, SOURCE),
            uid="source",
            url="https://git.example.net/network",
            ref="refs/heads/main",
            commit=self.commit,
            tree="",
            store_path=Path("/nowhere"),
            provenance=Provenance(fields),
            generation=1,
            trusted=True,
            effects_allowed=True,
        )


class Desk:
    """The proposals of a repository that holds the values in one known place."""

    async def place(self, cluster: Cluster, operation: Operation, observed: Observed) -> Place:
        return Place("https://git.example.net/network, cni.yaml /kubeProxyReplacement")

    async def wanted(self, cluster: Cluster, operation: Operation, authority: Authority) -> JsonObject | None:
        clock = operation.state.clock("await-cni")
        if operation.state.phase is Phase.AWAITING and clock is not None:
            after = operation.target is Mode.REPLACED
            edit = Edit(document=0, pointer="/kubeProxyReplacement", op="replace", before=not after, after=after)
            wanted, owner = values_proposal(
                cluster, operation, source=SOURCE, edits=(("cni.yaml", edit),), why="one place", expires=clock.deadline
            )
            return proposal_tree(wanted, owner=owner)
        if wants_cleanup(cluster, operation, authority):
            wanted, owner = cleanup_proposal(cluster, operation, authority=authority, document=0)
            return proposal_tree(wanted, owner=owner)
        return None


@dataclass
class World:
    """Everything that outlives a process."""

    api: ApiServer
    plan: FaultPlan
    rules: Rules
    live: Any
    git: Git
    clock: LoopClock = field(default_factory=LoopClock)
    executor: "Executor | None" = None
    worker: "Process[World] | None" = None
    make_worker: "Callable[[World], Process[World]] | None" = None
    deaths: int = 0
    server_back_s: float = 0.0

    # -- the story's hands -------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, *, media: str = "application/json", **query: str) -> Any:
        """A request of somebody else."""
        self.rules.writer = "story"
        data = json.dumps(body).encode() if body is not None else b""
        headers = {"content-type": media, "accept": "application/json", "user-agent": "story"}
        answer = self.api.handle(Request(method, path, query, headers, data))
        assert answer.code < 300, answer.body
        return answer.body

    def commit(self, **changes: Any) -> None:
        """A signed commit: the revision is accepted, and the Sync applies what it declares."""
        self.git.commit_next(**changes)
        self._apply_cluster()
        self._publish()

    def commit_that_is_held(self, **changes: Any) -> None:
        """A signed commit: the revision is accepted, and the Sync keeps the cluster as it is."""
        self.git.commit_next(**changes)
        self._publish()

    def _publish(self) -> None:
        if self.executor is not None:
            self.executor.revisions.publish(self.git.revision())

    def _apply_cluster(self) -> None:
        tree = self.git.document()
        mark = f"cluster-uid/{NAMESPACE}/{SOURCE}/{SYNC}:{ICHOR_GROUP}/TalosCluster:{NAMESPACE}/{CLUSTER}"
        tree["metadata"]["annotations"][ANNOTATION_OWNER_ID] = mark
        tree["metadata"]["labels"] = {LABEL_OWNER: "0" * 32}
        path = f"{API}/talosclusters/{CLUSTER}"
        self.ask("PATCH", path, tree, media="application/apply-patch+yaml", fieldManager="gitops-ctl", force="true")

    def get(self, plural: str) -> dict[str, Tree]:
        """Objects of a kind by name."""
        group = "gitops-ctl.dev" if plural == "proposals" else ICHOR_GROUP
        return {key[1]: tree for key, tree in self.api.store.all((group, plural))}

    @property
    def operation(self) -> Tree:
        """The newest operation."""
        found = sorted(self.get("talosoperations").values(), key=lambda one: int(one["metadata"]["resourceVersion"]))
        return found[-1] if found else {}

    @property
    def phase(self) -> str:
        return str(self.operation.get("status", {}).get("phase", ""))

    # -- time --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self.executor is None or self.executor.dead:
            self.executor = Executor(self)
            self.executor.start()
        if self.worker is None or self.worker.dead:
            self.worker = (self.make_worker or Worker)(self)
            self.worker.start()

    async def stop(self) -> None:
        """Throw both processes away."""
        for process in (self.executor, self.worker):
            if process is not None:
                process.dead = True
                await process.end()

    async def until(self, reached: Callable[[], bool], *, quiet_s: float = 0.0) -> None:
        """Let the time run until the state is reached and nothing was written for a while; dead processes are replaced.

        Raises:
            Broken: a rule did not hold, or the deadline is over.
        """
        end_s = self.clock.boot_s() + DEADLINE_S
        while True:
            await asyncio.sleep(1.0)
            self.live.now = self.clock.wall()
            self.live.tick()
            if self.rules.broken or self.live.broken:
                raise Broken("\n".join([*self.rules.broken, *self.live.broken][:5]))
            for process in (self.executor, self.worker):
                if process is not None and process.dead:
                    self.deaths += 1
                    await process.end()
                    await self.start()
            self.rules.writer = "story"
            self.api._hidden.clear()
            now_s = self.clock.boot_s()
            if reached() and now_s - self.rules.last_write_s >= quiet_s:
                return
            if now_s >= end_s:
                raise Broken(
                    f"no progress in {self.phase}: {json.dumps(self.operation.get('status', {}).get('conditions'))}"
                )

    def summary(self) -> dict[str, Any]:
        """The end without what differs from run to run."""
        cluster = self.get("talosclusters")[CLUSTER].get("status", {})
        return {
            "machines": {name: machine.proxy for name, machine in self.live.machines.items()},
            "kube-proxy": self.live.proxy,
            "effects": sorted({one.rpartition("#")[0] for one in self.live.effects}),
            "cluster": {name: value for name, value in cluster.items() if name in ("cni", "lock")}
            | {"cni": _plain(cluster.get("cni", {}))},
            "operations": {
                name: {
                    "phase": tree["status"]["phase"],
                    "step": tree["status"].get("step"),
                    "rows": {row["name"]: row["state"] for row in tree["status"].get("machines", [])},
                    "said": [one["reason"] for one in tree["status"]["conditions"] if one["type"] == "Succeeded"],
                }
                for name, tree in self.get("talosoperations").items()
            },
            "proposals": {name: len(tree["spec"].get("changes", [])) for name, tree in self.get("proposals").items()},
        }


class Executor(Process[World]):
    """The manager's part; it knows the accepted revision a moment after its start, as the source room would tell it."""

    def __init__(self, world: World) -> None:
        super().__init__(world, name="executor")
        self.revisions = AcceptedRevisions()
        self.room = SwitchRoom(
            self.client,
            revisions=self.revisions,
            read=lambda _revision, _path: world.git.documents(),
            proposals=Desk(),
            options=Options(workers=1),
        )

    def start(self) -> None:
        async def accept() -> None:
            await asyncio.sleep(2.0)
            self.revisions.publish(self._world.git.revision())

        self.run(self.room.run)
        self._tasks.append(asyncio.create_task(accept(), name="source"))


class Worker(Process[World]):
    """The model of the cluster worker, again and again."""

    def __init__(self, world: World) -> None:
        super().__init__(world, name="worker")
        self._model = ModelWorker(
            self.client, namespace=NAMESPACE, cluster=CLUSTER, live=world.live, wall=world.clock.wall
        )

    def start(self) -> None:
        self.run(self._work)

    async def _work(self) -> None:
        while True:
            with contextlib.suppress(GitopsError):
                await self._model.look()
            await asyncio.sleep(LOOK_S)


def first_store(target: str) -> Snapshot:
    """A store with our definitions, the cluster in its old mode, its machines, its Sync and inventory."""
    api = ApiServer(seed=3, now=lambda: BEGIN)

    def send(method: str, path: str, body: Any, *, media: str = "application/json", **query: str) -> Any:
        answer = api.handle(Request(method, path, query, {"content-type": media}, json.dumps(body).encode()))
        assert answer.code < 300, answer.body
        return answer.body

    for path in sorted(CRDS.glob("*.yaml")):
        send(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader),
        )
    api.restore(api.snapshot())
    send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    before = "replaced" if target == "enabled" else "enabled"
    tree = Git(before, annotated=False).document()
    cluster = send("POST", f"{API}/talosclusters", tree)
    for name, role in (dict.fromkeys(PLANES, "controlplane") | dict.fromkeys(WORKERS, "worker")).items():
        body = {
            "apiVersion": ICHOR_API_VERSION,
            "kind": "TalosMachine",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"clusterRef": {"name": CLUSTER}, "address": f"{name}.example.net", "role": role},
        }
        send("POST", f"{API}/talosmachines", body)
    ours = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"
    sync = send(
        "POST",
        f"{ours}/syncs",
        {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": SYNC, "namespace": NAMESPACE},
            "spec": {"sourceRef": {"name": SOURCE}, "serviceAccountName": "applier", "path": "clusters"},
        },
    )
    entry = {
        "group": ICHOR_GROUP,
        "version": "v1alpha1",
        "kind": "TalosCluster",
        "namespace": NAMESPACE,
        "name": CLUSTER,
    }
    owner = {"sync": SYNC, "uid": sync["metadata"]["uid"], "id": f"cluster-uid/{NAMESPACE}/{SOURCE}/{SYNC}"}
    send(
        "POST",
        f"{ours}/inventories",
        {
            "apiVersion": API_VERSION,
            "kind": "Inventory",
            "metadata": {"name": f"{SYNC}-0", "namespace": NAMESPACE},
            "spec": {"owner": owner, "shard": 0, "entries": [{**entry, "uid": cluster["metadata"]["uid"]}]},
        },
    )
    return api.snapshot()


def new_world(snapshot: Snapshot, *, target: str, plan: FaultPlan, seed: int) -> World:
    """A world in the other mode, just before the signed commit."""
    clock = LoopClock()
    api = ApiServer(seed=seed, now=clock.wall)
    api.restore(snapshot)
    before = Mode(target).other
    roles = dict.fromkeys(PLANES, "controlplane") | dict.fromkeys(WORKERS, "worker")
    live = Live(BEGIN, {name: LiveMachine(name, role, before.proxy_word) for name, role in roles.items()})
    if before is Mode.REPLACED:
        live.value, live.agents_run, live.proxy, live.proxy_pods = "true", "replaced", False, 0
    rules = Rules(api.store)
    rules.begin()
    return World(api, plan, rules, live, Git(target), clock)


def _plain(cni: Tree) -> Tree:
    known = {name: value for name, value in cni.items() if name != "observedAt"}
    consumed = {name: value for name, value in cni.get("consumedConsent", {}).items() if name != "operationUID"}
    return {**known, "consumedConsent": consumed} if consumed else known

"""A healthy fleet and an approved campaign on the API server in memory, as admission, grant, fences and settlement meet them.

Every write of the manager can fail; what workers, administrators and the topology do is written directly into the store.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.identity import device_identity_hash
from gitops_ctl.fleet.ledger import Ledger, decode_ledger, encode_ledger
from gitops_ctl.fleet.node import node_of
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.rollout.admission import admit
from gitops_ctl.rollout.bootstrap import policy_record
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.fleetlook import FleetMemo
from gitops_ctl.rollout.freeze import Frozen, freeze
from gitops_ctl.rollout.grant import grant
from gitops_ctl.rollout.leafplan import Activation, LeafPlan, account_of
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.refusal import Refusal
from gitops_ctl.rollout.sources import SourceSecret
from gitops_ctl.rollout.targets import Target
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.apiserver.structure import copied
from tests.doubles.peer_crds import install
from tests.support.kube_clock import JumpingClock
from tests.support.ledger_bench import Faults
from tests.support.rollout_planning import NAMESPACE, NOW, REVISION, ago, device, given, node, policy_map, rollout

SYSTEM = "topology-system"
CONFIG_MAPS, NODES, PODS = ("", "configmaps"), ("", "nodes"), ("", "pods")
DEVICES = ("cisco.vk", "ciscodevices")
ROLLOUTS, LEAVES = ("ops.cisco.vk", "iosxesoftwarerollouts"), ("ops.cisco.vk", "iosxesoftwareupgrades")
ACCOUNTS = {
    "topology.cisco.vk/app-hosting-service-account": "app-hosting",
    "topology.cisco.vk/network-management-service-account": "network-management",
    "topology.cisco.vk/config-lease-namespace": "",
}
INTERFACE = "TwentyFiveGigE1/0/1"
GATED = {
    "maxObservationAgeSeconds": 300,
    "network": {"enabled": True, "requireCompleteEvidence": True, "requiredInterfaces": [INTERFACE]},
}
"""`health` of a plan with a network gate."""


def a_sample(**changes: Any) -> dict[str, Any]:
    """What the worker of `edge-1` saw of the network, 20 s ago."""
    sample: dict[str, Any] = {
        **{"workerPodUID": "pod-uid", "collectionStartedAt": ago(20), "collectionEndedAt": ago(15)},
        **{"sampleSequence": 7, "observedAt": ago(15), "complete": True, "producerRevision": REVISION},
        "deviceIdentityHash": device_identity_hash("foc-edge-1-uid"),
        "interfaces": [{"name": INTERFACE, "operUp": True}],
        "neighbors": [],
    }
    return {**sample, **changes}


@lru_cache
def first_store() -> Snapshot:
    """A server with the definitions and namespaces, and nothing else."""
    api = ApiServer(seed=11, lag=0)
    crds: list[Any] = [crd_of(kind) for kind in (CiscoDevice, IOSXESoftwareRollout, IOSXESoftwareUpgrade)]
    install(api, crds)
    for name in (SYSTEM, NAMESPACE):
        api.store.put(("", "namespaces"), ("", name), _object("v1", "Namespace", "", name))
    return api.snapshot()


def _object(version: str, kind: str, namespace: str, name: str, **members: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": f"{name}-object", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **members}


class HeldBack:
    """A write that is on its way: what it was decided on was read, and nothing of it has arrived.

    Attributes:
        reached: the client stands before it.
        go: lets it leave.
    """

    def __init__(self, write: int) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self._left = write

    def hold(self, client: KubeClient) -> None:
        exchange: Any = client._exchange
        send = exchange._once

        async def once(call: Call, authorization: str) -> bytes:
            if call.verb in WRITE_VERBS:
                self._left -= 1
                if self._left == 0:
                    self.reached.set()
                    await self.go.wait()
            answer: bytes = await send(call, authorization)
            return answer

        exchange._once = once


class AdmissionWorld:
    """One cluster with one campaign, `spring`, over `edge-1` to `edge-<count>`; the first one is its canary.

    Attributes:
        faults: of the manager's writes.
        unseen: the informers have not seen the fleet.
    """

    def __init__(
        self,
        count: int = 3,
        *,
        policy: Mapping[str, Any] | None = None,
        samples: Mapping[str, Any] | None = None,
        **plan: Any,
    ) -> None:
        self.api = ApiServer(seed=11, lag=0)
        self.api.restore(first_store())
        self.clock = JumpingClock()
        self.clock.wall_offset = NOW - self.clock.wall()
        self.faults, self.unseen = Faults(), False
        self._held: HeldBack | None = None
        self.memo, self.secrets = FleetMemo(), dict[str, SourceSecret]()
        self._ids = itertools.count(1)
        text = encode_ledger(Ledger(uid="ledger-uid"))
        ledger = _object("v1", "ConfigMap", SYSTEM, "topology-ledger", data={"ledger.json": text})
        ledger["metadata"]["uid"] = "ledger-uid"
        self.put(CONFIG_MAPS, ledger)
        self.write_policy(**(policy or {}))
        for number in range(1, count + 1):
            self.add_device(f"edge-{number}", zone="ab"[number % 2])
        for name, sample in (samples or {}).items():
            self.accept(name, sample)
        self.publish(rollout(**plan))

    # ---- what others do ----

    def put(self, collection: tuple[str, str], tree: Mapping[str, Any]) -> Any:
        meta = tree["metadata"]
        return self.api.store.put(collection, (meta.get("namespace", ""), meta["name"]), tree)

    def tree(self, collection: tuple[str, str], name: str, namespace: str = NAMESPACE) -> Any:
        return copied(self.api.store.get(collection, (namespace, name)))

    def change(self, collection: tuple[str, str], name: str, *path: str, to: Any, namespace: str = NAMESPACE) -> None:
        """Set one member of a stored object; None removes it."""
        tree = inner = self.tree(collection, name, namespace)
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        if to is None:
            inner.pop(path[-1], None)
        else:
            inner[path[-1]] = to
        self.put(collection, tree)

    def write_policy(self, **changes: Any) -> None:
        tree: Any = policy_map(**changes)
        tree["metadata"]["annotations"] |= ACCOUNTS
        self.put(CONFIG_MAPS, tree)

    def add_device(self, name: str, **more: Any) -> None:
        tree: Any = device(name, **more)
        self.put(DEVICES, tree)
        self.put(NODES, node(tree))

    def accept(self, name: str, sample: Mapping[str, Any]) -> None:
        """The worker collected a sample of the network, and the manager accepted it."""
        tree = self.tree(DEVICES, name)
        tree["status"]["healthObservation"] |= {"network": sample, "acceptedNetwork": sample}
        self.put(DEVICES, tree)

    def publish(self, tree: Any) -> None:
        """The planner freezes the plan, a person approves it, and the workers did their preflight."""
        trees = [one for _, one in self.api.store.all(DEVICES)]
        record = policy_record(self.tree(CONFIG_MAPS, "topology-policy", SYSTEM))
        frozen = freeze(given(trees, policy=record, plan=tree))
        assert isinstance(frozen, Frozen), frozen
        status = {
            "phase": "Executing",
            "frozenPlan": frozen.to_json(created_at=NOW),
            "effectivePolicy": {"epoch": 1, "policy": frozen.snapshot.to_json(), "updatedAt": ago(0)},
            "approval": {"planHash": frozen.hash, "valid": True, "reason": "ExactPlanApproved", "validatedAt": ago(0)},
        }
        self.put(ROLLOUTS, {**tree, "status": status})
        for target in frozen.targets:
            entry = {
                **{"rolloutUID": tree["metadata"]["uid"], "planHash": frozen.hash, "observedAt": ago(10)},
                **{"workerPodUID": "pod-uid", "workerRevision": REVISION, "result": "Passed", "checks": []},
            }
            self.change(DEVICES, target.device_name, "status", "preflight", to=[entry])

    def pod(self, name: str, node_name: str, phase: str = "Running") -> None:
        tree = _object("v1", "Pod", NAMESPACE, name, spec={"nodeName": node_name}, status={"phase": phase})
        self.put(PODS, tree)

    def acknowledge(self, name: str = "edge-1", state: str = "Pending", **changes: Any) -> None:
        """The worker says what it has seen of its leaf."""
        leaf = self.leaf(name)
        seen = {
            "observedAdmissionState": state,
            "observedPolicyEpoch": leaf["status"]["managerAdmission"]["policyEpoch"],
            "observedControlRevision": leaf["status"]["managerControl"]["revision"],
            "observedWorkerConfigRevision": REVISION,
            "effectiveState": "Ready",
            "updatedAt": ago(0),
        }
        self.change(LEAVES, leaf["metadata"]["name"], "status", "workerControl", to={**seen, **changes})

    def claim(self, name: str = "edge-1", stage: str = "PrimaryInstall") -> None:
        """The worker claims a stage."""
        leaf = self.leaf(name)
        admission = leaf["status"]["managerAdmission"]
        claim = {
            "stage": stage,
            "reservationID": admission["reservationID"],
            "policyEpoch": admission["policyEpoch"],
            "controlRevision": admission["controlRevision"],
            "claimedAt": to_rfc3339(self.clock.wall()),
        }
        claims = [*leaf["status"].get("managedMutationClaims", []), claim]
        self.change(LEAVES, leaf["metadata"]["name"], "status", "managedMutationClaims", to=claims)

    def finish(self, name: str = "edge-1", phase: str = "Succeeded", *, settled: bool = True) -> None:
        """The worker ends the leaf."""
        leaf = self.leaf(name)
        status = {**leaf["status"], "phase": phase, "completionTime": to_rfc3339(self.clock.wall())}
        if settled:
            status["conditions"] = [_settled(self.clock)]
        self.put(LEAVES, {**leaf, "status": status})

    def heal(self, name: str = "edge-1") -> None:
        """New evidence of health, seen now."""
        now = to_rfc3339(self.clock.wall())
        tree, seen = self.tree(DEVICES, name), self.tree(NODES, name, "")
        observation = tree["status"]["healthObservation"]
        observation |= {"observedAt": now, "nodeReadyHeartbeatTime": now}
        for one in observation["conditionObservations"]:
            one["observedAt"] = now
        for one in seen["status"]["conditions"]:
            one["lastHeartbeatTime"] = now
        self.put(DEVICES, tree)
        self.put(NODES, seen)

    # ---- the manager ----

    def client(self) -> KubeClient:
        """The client of one process; the first one after `held_back` waits before its write."""
        client = direct_client(self.api, component="manager", clock=self.clock, point=self.faults.point)
        held, self._held = self._held, None
        if held is not None:
            held.hold(client)
        return client

    @asynccontextmanager
    async def held_back(self, write: int) -> AsyncIterator["HeldBack"]:
        """The next client stops before its write of that number until the test lets it go."""
        self._held = HeldBack(write)
        yield self._held

    def ports(self, client: KubeClient) -> Ports:
        async def secrets(_campaign: CampaignState) -> Mapping[str, SourceSecret]:
            return self.secrets

        return Ports(client, self.clock, lambda: f"{next(self._ids):032x}", self._fleet, secrets)

    def _fleet(self, policy: Any, ages: Any) -> Any:
        if self.unseen:
            return None
        devices = tuple(device_of(tree) for _, tree in self.api.store.all(DEVICES))
        nodes = {one.name: one for one in (node_of(tree) for _, tree in self.api.store.all(NODES))}
        return self.memo.look(devices, nodes, policy=policy, now=self.clock.wall(), ages=ages)

    def reborn(self) -> None:
        """Another process takes over: nothing is remembered, and nothing fails."""
        self.faults, self.memo = Faults(), FleetMemo()

    def campaign(self, name: str = "spring") -> CampaignState:
        found = campaign_state(self.tree(ROLLOUTS, name))
        assert found is not None
        return found

    def target(self, name: str = "edge-1") -> Target:
        return next(one for one in self.campaign().targets if one.device_name == name)

    def plan(self, name: str = "edge-1", activation: Activation | None = None) -> LeafPlan:
        return LeafPlan(self.campaign(), self.target(name), account_of(NAMESPACE, "network-management"), activation)

    # ---- what is there ----

    @property
    def ledger(self) -> Ledger:
        return decode_ledger(self.tree(CONFIG_MAPS, "topology-ledger", SYSTEM)["data"]["ledger.json"], "ledger-uid")

    def lock(self, name: str = "edge-1") -> Any:
        return self.tree(DEVICES, name)["status"].get("topologyLock")

    def leaf(self, name: str = "edge-1") -> Any:
        """The leaf of a device as it is stored; None without one."""
        return self.tree(LEAVES, self.target(name).child_name)

    def admission(self, name: str = "edge-1") -> Any:
        leaf = self.leaf(name)
        return {} if leaf is None else leaf.get("status", {}).get("managerAdmission", {})

    def states(self) -> list[str]:
        return [str(record.state) for record in self.ledger.reservations]


def _settled(clock: JumpingClock) -> dict[str, str]:
    now = to_rfc3339(clock.wall())
    return {
        "type": "DeviceMutationSettled",
        "status": "True",
        "reason": "OutcomeVerified",
        "message": "",
        "lastTransitionTime": now,
    }


async def admitting(world: AdmissionWorld, name: str = "edge-1", *, begun: CampaignState | None = None) -> Any:
    """One try to admit a target."""
    async with world.client() as client:
        return await admit(world.ports(client), begun or world.campaign(), world.target(name))


async def granting(world: AdmissionWorld, name: str = "edge-1", *, begun: CampaignState | None = None) -> Any:
    """One try to grant a leaf."""
    target = world.target(name)
    async with world.client() as client:
        return await grant(world.ports(client), begun or world.campaign(), target, leaf_name=target.child_name)


async def granted(world: AdmissionWorld, name: str = "edge-1") -> None:
    """Admit a target, let its worker agree, and grant it."""
    assert not isinstance(await admitting(world, name), Refusal)
    world.acknowledge(name)
    answer = await granting(world, name)
    assert not isinstance(answer, Refusal), answer


def assert_consistent(world: AdmissionWorld) -> None:
    """What holds between any two requests: no record without its lock, no grant without its record, no chassis twice."""
    records = world.ledger.reservations
    assert len({record.physical_id for record in records}) == len(records)
    for record in records:
        lock = world.lock(record.device_uid.removesuffix("-uid"))
        assert lock is not None
        assert (lock["reservationID"], lock["acquisitionID"]) == (record.id, record.topology_lock_id)
    for _, leaf in world.api.store.all(LEAVES):
        admission = leaf.get("status", {}).get("managerAdmission", {})
        if admission.get("state") == "Granted":
            record = world.ledger.get(admission["reservationID"])
            assert record is not None
            assert record.child_uid == leaf["metadata"]["uid"]
            assert record.topology_lock_id == admission["topologyLockID"]

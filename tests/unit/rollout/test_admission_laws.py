"""What holds between any two requests, however admissions, grants, fences, claims and settlements of two campaigns interleave (rollouts.md, 23.2).

Each campaign has one manager at a time, but a manager may be cut off in the middle of anything, and what it had in flight may still arrive while
the next one works.  Workers claim whatever is granted as soon as they see it.
"""

import asyncio
import random
from typing import Any

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.admission import admit
from gitops_ctl.rollout.campaignstate import CampaignState, Control
from gitops_ctl.rollout.fence import Fenced, Revocation, fence
from gitops_ctl.rollout.grant import grant
from gitops_ctl.rollout.leafplan import LeafPlan, account_of
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.settlement import settle_target
from gitops_ctl.rollout.targets import Target
from tests.support.admission_world import LEAVES, ROLLOUTS, AdmissionWorld
from tests.support.kube_crash import Crash
from tests.support.rollout_planning import NAMESPACE, REVISION, ago, rollout

pytestmark = pytest.mark.property

CAMPAIGNS = ("spring", "winter")
DEVICES = ("edge-1", "edge-2")
LIMIT = 2


class Walk:
    """One random history.

    Attributes:
        seen: words for what came about, so that a walk in which nothing happened is noticed.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = AdmissionWorld(
            len(DEVICES), policy={"globalMaxUnavailable": LIMIT, "globalMaxConcurrentTransfers": LIMIT}
        )
        other: Any = rollout()
        other["metadata"] |= {"name": "winter", "uid": "winter-uid"}
        self.world.publish(other)
        self.busy: dict[str, asyncio.Task[None]] = {}
        self.cut_off: set[asyncio.Task[None]] = set()
        self.seen: set[str] = set()

    # ---- managers ----

    def client(self) -> KubeClient:
        """A client whose requests wait now and then, so that other tasks come in between, and which may die at one of them."""
        client = self.world.client()
        exchange: Any = client._exchange
        send, dies_at = exchange._once, self.chance.choice((0, 0, self.chance.randint(1, 60)))
        count = 0

        async def once(call: Call, authorization: str) -> bytes:
            nonlocal count
            count += 1
            for _ in range(self.chance.choice((0, 0, 1, 3, 8))):
                await asyncio.sleep(0)
            if count == dies_at:
                raise Crash
            answer: bytes = await send(call, authorization)
            self.check()
            return answer

        exchange._once = once
        return client

    def campaign(self, name: str) -> CampaignState:
        return self.world.campaign(name)

    def target(self, campaign: CampaignState) -> Target:
        return self.chance.choice(campaign.targets)

    async def one_step(self, name: str) -> None:
        """What a manager does for one target of its campaign."""
        campaign = self.campaign(name)
        target = self.target(campaign)
        async with self.client() as client:
            ports = self.world.ports(client)
            step = self.chance.choice(
                ("admit", "admit", "admit", "grant", "grant", "grant", "settle", "settle", "settle", "fence")
            )
            answer: object
            if step == "admit":
                answer = await admit(ports, campaign, target)
            elif step == "grant":
                answer = await grant(ports, campaign, target, leaf_name=target.child_name)
            elif step == "settle":
                since = self.world.clock.wall().replace(year=2020)
                answer = await settle_target(ports, campaign, target, leaf_name=target.child_name, soaking_since=since)
            else:
                plan = LeafPlan(campaign, target, account_of(NAMESPACE, "network-management"))
                why = self.chance.choice((Revocation.EPOCH, Revocation.SIBLING))
                answer = await fence(ports, plan, why, control=Control())
            self.seen.add(type(answer).__name__)

    async def guarded(self, name: str) -> None:
        try:
            await self.one_step(name)
        except (GitopsError, Crash):
            self.seen.add("broken off")
        self.check()

    # ---- everybody else ----

    def leaves(self) -> list[Any]:
        return [tree for _, tree in self.world.api.store.all(LEAVES)]

    def write(self, leaf: Any, **members: Any) -> None:
        self.world.put(LEAVES, {**leaf, "status": {**leaf.get("status", {}), **members}})

    def workers(self) -> None:
        """Every worker looks once: it acknowledges, claims what is granted, and ends what it claimed."""
        for leaf in self.leaves():
            status = leaf.get("status", {})
            admission, control = status.get("managerAdmission"), status.get("managerControl")
            if admission is None or control is None or self.chance.random() < 0.4:
                continue
            claims = status.get("managedMutationClaims", [])
            if admission["state"] == "Granted" and not claims and not status.get("phase"):
                claim = {
                    **{"stage": "PrimaryInstall", "reservationID": admission["reservationID"]},
                    **{"policyEpoch": admission["policyEpoch"], "controlRevision": 0, "claimedAt": ago(0)},
                }
                self.write(leaf, managedMutationClaims=[claim])
                self.seen.add("claimed")
            elif claims and not status.get("phase"):
                self._end(leaf)
            elif admission["state"] == "Pending":
                self._acknowledge(leaf, admission, control)

    def _acknowledge(self, leaf: Any, admission: Any, control: Any) -> None:
        seen = {
            **{"observedAdmissionState": "Pending", "observedPolicyEpoch": admission["policyEpoch"]},
            **{"observedControlRevision": control["revision"], "observedWorkerConfigRevision": REVISION},
            **{"effectiveState": "Ready", "updatedAt": ago(0)},
        }
        if leaf["status"].get("workerControl") != seen:
            self.write(leaf, workerControl=seen)

    def _end(self, leaf: Any) -> None:
        done = {"type": "DeviceMutationSettled", "status": "True", "reason": "OutcomeVerified", "message": ""}
        condition = {**done, "lastTransitionTime": ago(0)}
        self.write(leaf, phase="Succeeded", completionTime=ago(3600), conditions=[condition])

    def next_epoch(self) -> None:
        """The policy of one campaign goes on to its next epoch, once none of its leaves is Pending or Granted without a claim."""
        name = self.chance.choice(CAMPAIGNS)
        tree = self.world.tree(ROLLOUTS, name)
        uid = tree["metadata"]["uid"]
        for leaf in self.leaves():
            admission = leaf.get("status", {}).get("managerAdmission", {})
            unclaimed = not leaf.get("status", {}).get("managedMutationClaims")
            if admission.get("campaignUID") == uid and admission["state"] in ("Pending", "Granted") and unclaimed:
                return
        tree["status"]["effectivePolicy"]["epoch"] += 1
        self.world.put(ROLLOUTS, tree)
        self.seen.add("next epoch")

    def forget_settled(self) -> None:
        """A leaf that is settled goes, so that its target can be admitted again: the same reservation id, another acquisition."""
        for key, leaf in self.world.api.store.all(LEAVES):
            state = leaf.get("status", {}).get("managerAdmission", {}).get("state")
            lock = self.world.lock(leaf["spec"]["deviceRef"]["name"])
            idle = lock is None or lock["campaignUID"] != leaf["metadata"]["ownerReferences"][0]["uid"]
            if (
                state == "Settled" or (state == "Revoked" and idle and not self._has_record(leaf))
            ) and not self.cut_off:
                self.world.api.store.remove(LEAVES, key)

    def _has_record(self, leaf: Any) -> bool:
        return any(record.child_uid == leaf["metadata"]["uid"] for record in self.world.ledger.reservations)

    # ---- the walk ----

    async def go(self, steps: int) -> None:
        for _ in range(steps):
            for name in CAMPAIGNS:
                if name not in self.busy or self.busy[name].done():
                    if name in self.busy:
                        self.busy[name].result()
                    self.busy[name] = asyncio.create_task(self.guarded(name))
                elif self.chance.random() < 0.1:
                    self.cut_off.add(self.busy.pop(name))  # the next manager takes over; this one does not know yet
            for _ in range(self.chance.randint(1, 60)):
                await asyncio.sleep(0)
            self.workers()
            self.check()
            for task in [task for task in self.cut_off if task.done()]:
                task.result()
                self.cut_off.remove(task)
            if self.chance.random() < 0.05 and not self.cut_off:
                self.next_epoch()
            if self.chance.random() < 0.5:
                self.forget_settled()
        await asyncio.gather(*self.busy.values(), *self.cut_off)
        self.check()

    async def wind_up(self) -> None:
        """Cancel everything, with managers that nothing happens to: what was claimed is settled, all else is given back."""
        for leaf in self.leaves():
            if leaf.get("status", {}).get("managedMutationClaims"):
                self._end(leaf)
        for campaign in map(self.campaign, CAMPAIGNS):
            for target in campaign.targets:
                async with self.world.client() as client:
                    await self._wound_up(self.world.ports(client), campaign, target)

    async def _wound_up(self, ports: Ports, campaign: CampaignState, target: Target) -> None:
        plan = LeafPlan(campaign, target, account_of(NAMESPACE, "network-management"))
        fenced = await fence(ports, plan, Revocation.CANCELLED, control=Control(9, cancel=True))
        assert isinstance(fenced, Fenced), fenced
        if not fenced.released:
            since = self.world.clock.wall().replace(year=2020)
            name = target.child_name
            answer = await settle_target(ports, campaign, target, leaf_name=name, soaking_since=since)
            assert isinstance(answer, Leaf), answer

    def check(self) -> None:
        records = self.world.ledger.reservations
        assert len({record.physical_id for record in records}) == len(records)
        assert len(records) <= LIMIT
        by_leaf = {record.child_uid: record for record in records if record.child_uid}
        for leaf in self.leaves():
            status = leaf.get("status", {})
            granted = status.get("managerAdmission", {}).get("state") == "Granted"
            if (granted or status.get("managedMutationClaims")) and status.get("phase") != "Succeeded":
                record = by_leaf.get(leaf["metadata"]["uid"])
                admission = status["managerAdmission"]
                assert record is not None, "a grant or a claim without its reservation"
                assert record.topology_lock_id == admission["topologyLockID"]
                assert record.state in ("Granted", "Revoked")
                lock = self.world.lock(leaf["spec"]["deviceRef"]["name"])
                assert lock is not None
                assert lock["acquisitionID"] == record.topology_lock_id


@pytest.mark.parametrize("seed", range(2))
async def test_no_interleaving_claims_without_a_reservation_or_breaks_a_budget(seed: int) -> None:
    walk = Walk(seed)
    await walk.go(80)

    assert walk.seen >= {"Admitted", "Granted", "claimed", "Fenced", "Leaf", "Refusal", "broken off"}
    await walk.wind_up()
    assert walk.world.ledger.reservations == ()
    assert [walk.world.lock(device) for device in DEVICES] == [None] * len(DEVICES)

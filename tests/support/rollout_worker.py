"""A small network worker for simulations: the gate, claims, the journal, and outcomes by looking (rollouts.md, sections 13.1 to 13.4, 13.9).

It keeps to the order of the contract with as little around it as possible: no maintenance session, no spool, no Secrets.  Everything that it
remembers is in the leaf and in its journal, so that a new one goes on where a dead one stood.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from gitops_ctl.core.errors import InternalError
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.gnoi import Verified
from gitops_ctl.device.installstream import InstallOrder, InstallTerms
from gitops_ctl.device.journalrecords import Claim, ClaimKey, Step
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, matches_target
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.fleet.gate import Gate, Runtime, bindings_of, gate_of
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.node import node_of
from gitops_ctl.fleet.receipt import receipt_hash, source_identity_hash, trust_identity_hash
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.leafplan import leaf_path
from gitops_ctl.rollout.ledger_store import swap
from gitops_ctl.rollout.lock import device_path
from gitops_ctl.rollout.ports import node_path
from tests.doubles.gnoi import DirectSession, MemorySwitch
from tests.support.kube_clock import JumpingClock
from tests.support.rollout_equipment import ACCOUNT, NEW, OLD, POD, Bytes, Equipment, target_of
from tests.support.rollout_planning import NAMESPACE, REVISION
from tools.peers.iosxe import state

REBOOT_LIMIT_S: Final = 1800
_MARKERS: Final = {
    "PrimaryInstall": "primarySupervisorInstallRequested",
    "PrimaryActivation": "primarySupervisorActivationRequested",
    "RollbackActivation": "rollbackActivationRequested",
}


class ModelWorker:
    """One process.  `step` takes the leaves of one device one look further."""

    def __init__(self, client: KubeClient, equipment: Equipment, clock: JumpingClock) -> None:
        self._client = client
        self._equipment = equipment
        self._clock = clock

    async def step(self, device: str) -> None:
        """Look at every leaf of the device once, the one that has begun first.

        Raises:
            GitopsError: the next step looks again.
        """
        listed = await self._client.list_all(leaf_path(NAMESPACE))
        leaves = [leaf for leaf in map(leaf_of, listed.items) if leaf.device_name == device]
        for leaf in sorted(leaves, key=lambda one: (not one.claims, one.name)):
            await _Pass(self, leaf, [other for other in map(leaf_of, listed.items) if other.uid != leaf.uid]).run()


class _Pass:
    """One pass over one leaf."""

    def __init__(self, worker: ModelWorker, leaf: Leaf, others: list[Leaf]) -> None:
        self._client, self._equipment, self._clock = worker._client, worker._equipment, worker._clock
        self._leaf = leaf
        self._others = others
        self._path = leaf_path(leaf.namespace, leaf.name)
        self._tree: Any = None
        self._gate = Gate("Denied")

    # ---- the leaf ----

    async def _read(self) -> bool:
        self._tree = await self._client.find(self._path)
        if self._tree is None:
            return False
        self._leaf = leaf_of(self._tree)
        device = await self._client.find(device_path(NAMESPACE, self._leaf.device_name))
        node = await self._client.find(node_path(self._leaf.binding.node_name))
        runtime = Runtime(NAMESPACE, ACCOUNT, POD, "pod-uid", REVISION, has_current_secrets=True)
        seen = bindings_of(self._leaf, device_of(device) if device else None, node_of(node) if node else None, runtime)
        self._gate = gate_of(self._leaf, seen)
        return True

    async def _write(self, **members: Any) -> None:
        body = swap(self._tree, {"status": members})
        self._tree = await self._client.patch_merge(self._path, body, manager="device-worker", subresource="status")
        self._leaf = leaf_of(self._tree)

    def _now(self) -> str:
        return to_rfc3339(self._clock.wall())

    async def _publish(self) -> None:
        admission, control = self._leaf.admission, self._leaf.manager_control
        if not self._gate.publishes or admission is None or control is None:
            return
        wanted = {
            "observedAdmissionState": admission.state,
            "observedPolicyEpoch": admission.policy_epoch,
            "observedControlRevision": control.revision,
            "observedWorkerConfigRevision": REVISION,
            "effectiveState": self._gate.effective_state,
        }
        had = dict(self._leaf.status.get("workerControl", {}))
        if any(had.get(name) != value for name, value in wanted.items()):
            await self._write(workerControl={**wanted, "updatedAt": self._now()})

    # ---- one pass ----

    async def run(self) -> None:
        if not await self._read():
            return
        if self._leaf.admission is None or self._equipment.lost:
            return
        if await self._written_back() and not await self._read():
            return
        await self._publish()
        if self._leaf.phase == "Prepared" and "managerInvalidation" in self._leaf.status:
            await self._give_up()
            return
        if self._leaf.is_terminal and (self._leaf.settled or not self._leaf.claims):
            self._history()
            return
        if self._gate.may_progress or self._leaf.claims:
            await self._progress()

    async def _give_up(self) -> None:
        """The receipt is given up: what the device has is looked at, and nothing is deleted."""
        seen, receipt = await self._verified(), self._leaf.receipt
        if seen is None or receipt is None or seen.version != receipt["runningVersion"]:
            return
        evidence = {
            "requestHash": sha256_of(self._leaf.status["managerInvalidation"]),
            "nativeEvidenceHash": sha256_of(seen.version),
            "observedAt": self._now(),
            "workerRevision": REVISION,
            "workerPodUID": "pod-uid",
            "runningVersion": seen.version,
            "targetState": "Installed",
        }
        await self._write(phase="PreparedInvalidated", preparedInvalidation=evidence)

    async def _written_back(self) -> bool:
        """What only the journal knows comes back into the leaf, in whatever state that is."""
        missing = [
            one
            for one in self._equipment.journal.sent(self._leaf)
            if one.key.stage in _MARKERS and self._leaf.claim(one.key.stage) is None
        ]
        if self._leaf.is_preinstalled:
            missing = [one for one in missing if one.key.stage != "PrimaryInstall"]
        elif self._leaf.strategy == "PrepareOnly":
            missing = [one for one in missing if one.key.stage == "PrimaryInstall"]
        if not missing:
            return False
        back = [
            {
                "stage": one.key.stage,
                "reservationID": one.key.reservation_id,
                "policyEpoch": one.policy_epoch,
                "controlRevision": one.control_revision,
                "claimedAt": one.claimed_at,
            }
            for one in missing
        ]
        stored = list(self._leaf.status.get("managedMutationClaims", []))
        await self._write(
            managedMutationClaims=[*stored, *back],
            **{_MARKERS[one.key.stage]: True for one in missing},
            **({} if self._leaf.status.get("previousVersion") else {"previousVersion": OLD}),
        )
        return True

    def _history(self) -> None:
        for one in self._equipment.journal.sent(self._leaf):
            self._equipment.journal.settle(one.key)

    async def _progress(self) -> None:
        claims = {claim.stage for claim in self._leaf.claims}
        if "RollbackActivation" in claims:
            await self._look_at_activation(back=True)
        elif "PrimaryActivation" in claims:
            await self._look_at_activation()
        elif self._leaf.status.get("validatedVersion"):
            await self._activate()
        elif "PrimaryInstall" in claims:
            await self._look_at_install()
        elif self._gate.may_claim:
            await self._begin()

    async def _begin(self) -> None:
        """Nothing was claimed yet: the device has to be quiescent at a known version."""
        seen = await self._verified()
        device = self._switch().read()
        if seen is None or not _is_quiescent(device):
            return
        if matches_target(seen.version, self._leaf.target_version):
            await self._end("Succeeded")
            return
        if self._leaf.is_preinstalled:
            await self._write(validatedVersion=NEW, previousVersion=seen.version)
            return
        await self._write(previousVersion=seen.version, installStartTime=self._now())
        outcome = await self._claimed("PrimaryInstall", "Transferring", self._install)
        if isinstance(outcome, Accepted):
            await self._validated(outcome.version)
        elif isinstance(outcome, Refused):
            await self._end("Failed", reason=outcome.kind)
        elif outcome is not None:
            await self._write(phase="TransferInterrupted")

    async def _look_at_install(self) -> None:
        """A torn install is never sent again: the device says what became of it."""
        seen = await self._verified()
        device = self._switch().read()
        if seen is None or device["operation"] is not None:
            return
        found = next(
            (one["version"] for one in device["packages"] if matches_target(one["version"], self._leaf.target_version)),
            "",
        )
        if found:
            await self._validated(found)
        elif _is_quiescent(device):
            await self._end("Failed", reason="TransferInterrupted")

    async def _validated(self, version: str) -> None:
        await self._write(phase="Validating", validatedVersion=version, primarySupervisorInstalled=True)
        if self._leaf.strategy == "PrepareOnly":
            await self._end("Prepared", preparedReceipt=self._receipt())

    async def _activate(self) -> None:
        if self._leaf.strategy == "PrepareOnly":
            await self._end("Prepared", preparedReceipt=self._receipt())
            return
        stopped = self._stopped()
        if stopped and self._leaf.claims:
            if await self._verified() is not None and _is_quiescent(self._switch().read()):
                await self._end("Failed", reason=stopped)
            return
        if not self._gate.may_claim or stopped:
            return
        if await self._verified() is None:
            return
        outcome = await self._claimed("PrimaryActivation", "Activating", self._activation)
        if isinstance(outcome, Refused):
            await self._end("Failed", reason=outcome.kind)
        elif outcome is not None:
            await self._write(phase="AwaitingReachability")

    def _stopped(self) -> str:
        """Why no further claim may be made, for good."""
        admission = self._leaf.admission
        if admission is not None and admission.state == "Revoked":
            return admission.revocation_reason
        own = self._leaf.binding.campaign_uid
        failed = any(one.is_failed and one.binding.campaign_uid == own for one in self._others)
        return "CampaignTargetFailed" if failed else ""

    async def _look_at_activation(self, *, back: bool = False) -> None:
        seen = await self._verified()
        if seen is None:
            if self._is_late():
                await self._end("RebootTimeout", settled=False)
            return
        device = self._switch().read()
        previous = str(self._leaf.status.get("previousVersion", ""))
        if device["pending"] and self._leaf.strategy == "NoReboot" and seen.version == previous:
            await self._end("StagedForNextBoot")
        elif not back and matches_target(seen.version, self._leaf.target_version):
            await self._commit("PrimaryActivation", "Succeeded")
        elif seen.version != previous:
            await self._roll_back()
        elif _is_quiescent(device):
            await self._end("RolledBack", reason=device["failMessage"] or "the device runs its former version")

    def _is_late(self) -> bool:
        begun = [claim.claimed_at for claim in self._leaf.claims if claim.stage.endswith("Activation")]
        first = min((moment for moment in begun if moment is not None), default=None)
        return first is not None and self._clock.wall() > first + timedelta(seconds=REBOOT_LIMIT_S)

    async def _roll_back(self) -> None:
        if self._gate.may_claim and self._leaf.claim("RollbackActivation") is None:
            await self._claimed("RollbackActivation", "RollingBack", self._activation)

    async def _commit(self, stage: str, phase: str) -> None:
        """The install commit is asked for once, under the claim of the activation."""
        device, switch = self._switch().read(), self._switch()
        if device["committed"] == device["running"] and device["autoAbort"] is None:
            members = {"installCommit": {**self._leaf.status.get("installCommit", {}), "state": "Committed"}}
            await self._end(phase, **members)
            return
        key = self._key("InstallCommit")
        known = self._equipment.journal.claims.get(key)
        if self._leaf.install_commit is not None or (known is not None and known.step is not Step.INTENT):
            if self._is_late() and not self._leaf.is_terminal:
                await self._end("Failed", settled=False, reason="NotCommitted")
            return
        claim = self._leaf.claim(stage)
        assert claim is not None
        self._equipment.journal.intend(self._entry(key, claim.policy_epoch, claim.control_revision))
        await self._write(phase="Verifying", installCommit={"state": "Requested", "requestedAt": self._now()})
        self._equipment.journal.claim(key)
        await self._equipment.tell(self._leaf.device_name, "Commit", "before")
        with switch.change() as changed:
            changed["commits"].append({"at": self._clock.wall().timestamp()})
            state.commit(changed)
        await self._equipment.tell(self._leaf.device_name, "Commit", "after")

    # ---- claims ----

    def _key(self, stage: str) -> ClaimKey:
        bound = self._leaf.binding
        return ClaimKey(bound.device_uid, bound.plan_hash, bound.reservation_id, stage)

    def _entry(self, key: ClaimKey, epoch: int, revision: int) -> Claim:
        return Claim(key, self._leaf.binding.device_uid, self._leaf.uid, self._now(), epoch, revision)

    async def _claimed(self, stage: str, phase: str, send: Callable[[DirectSession], Any]) -> Outcome | None:
        """Claim a stage and send its request: at most once, whatever becomes of this process."""
        key, admission = self._key(stage), self._leaf.admission
        known = self._equipment.journal.claims.get(key)
        if admission is None or self._stopped() or (known is not None and known.step is not Step.INTENT):
            return None
        async with self._session() as session:
            if session is None:
                return None
            entry = self._entry(key, admission.policy_epoch, admission.control_revision or 0)
            self._equipment.journal.claims.pop(key, None)
            self._equipment.journal.intend(entry)
            claim = {
                "stage": stage,
                "reservationID": key.reservation_id,
                "policyEpoch": entry.policy_epoch,
                "controlRevision": entry.control_revision,
                "claimedAt": entry.claimed_at,
            }
            stored = list(self._leaf.status.get("managedMutationClaims", []))
            control = {
                **self._leaf.status.get("workerControl", {}),
                "effectiveState": "Claimed",
                "updatedAt": self._now(),
            }
            await self._write(
                phase=phase, managedMutationClaims=[*stored, claim], workerControl=control, **{_MARKERS[stage]: True}
            )
            self._equipment.journal.claim(key)
            answer: Outcome = await send(session)
            return answer

    async def _install(self, session: DirectSession) -> Outcome:
        package = self._equipment.package
        order = InstallOrder(self._leaf.target_version, len(package), hashlib.sha256(package).hexdigest())
        terms = InstallTerms(self._clock.boot_s() + 3600, Pacer(None, clock=self._clock))
        return await session.install(order, Bytes(package), terms=terms)

    async def _activation(self, session: DirectSession) -> Outcome:
        back = self._leaf.claim("RollbackActivation") is not None
        version = self._leaf.status["previousVersion"] if back else self._leaf.status["validatedVersion"]
        no_reboot = self._leaf.strategy == "NoReboot"
        return await session.activate(str(version), standby=False, no_reboot=no_reboot)

    # ---- the end ----

    async def _end(self, phase: str, *, settled: bool = True, reason: str = "", **members: Any) -> None:
        now = self._now()
        conditions = [
            {
                "type": "DeviceMutationSettled",
                "status": "True",
                "reason": "OutcomeVerified",
                "message": "",
                "lastTransitionTime": now,
            }
        ]
        if self._leaf.is_terminal:
            members.pop("preparedReceipt", None)
        await self._write(
            phase=phase,
            completionTime=now,
            **({"conditions": conditions} if settled else {}),
            **({"failureReason": reason[:128]} if reason else {}),
            **members,
        )
        if settled:
            self._history()

    def _receipt(self) -> dict[str, Any]:
        leaf, admission = self._leaf, self._leaf.admission
        if admission is None:
            raise InternalError("a receipt without an admission")
        package = self._equipment.package
        tree: dict[str, Any] = {
            **{"protocolVersion": "prepare-v1", "upgradeUID": leaf.uid, "deviceUID": admission.device_uid},
            **{"nodeUID": admission.node_uid, "physicalIdentity": admission.physical_identity},
            **{"deviceGeneration": admission.device_generation, "campaignUID": admission.campaign_uid},
            **{"planHash": admission.plan_hash, "managedProtocolVersion": admission.protocol_version},
            **{"policyUID": admission.policy_uid, "policyResourceVersion": admission.policy_version},
            **{"policyEpoch": admission.policy_epoch, "workerRevision": REVISION},
            "sourceDigest": f"sha256:{leaf.spec['imageSource']['sha256']}",  # type: ignore[index, call-overload]
            "sourceSize": len(package),
            "sourceIdentityHash": source_identity_hash(leaf.spec["imageSource"]),  # type: ignore[arg-type]
            "trustIdentityHash": trust_identity_hash(credential="5", tls="", provisioning=""),
            "contentBinding": "source-digest-install-claim-v1",
            **{"targetVersion": leaf.target_version, "validatedVersion": leaf.status["validatedVersion"]},
            "runningVersion": self._switch().read()["running"],
            "primarySupervisorInstalled": True,
            "installStartedAt": leaf.status.get("installStartTime", self._now()),
            "managedMutationClaims": [dict(one) for one in leaf.status["managedMutationClaims"]],  # type: ignore[union-attr,call-overload,arg-type]
            "preparedAt": self._now(),
        }
        return {**tree, "receiptHash": receipt_hash(tree)}

    # ---- the device ----

    def _switch(self) -> MemorySwitch:
        return self._equipment.switches[self._leaf.device_name]

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[DirectSession | None]:
        try:
            opened = self._equipment.gnoi.session(target_of(self._leaf.device_name))
            session = await opened.__aenter__()
        except GnoiUnavailable:
            yield None
            return
        yield session

    async def _verified(self) -> Verified | None:
        """What the device runs; None while it does not answer."""
        try:
            async with self._equipment.gnoi.session(target_of(self._leaf.device_name)) as session:
                return await session.verify()
        except GnoiUnavailable:
            return None


def _is_quiescent(device: dict[str, Any]) -> bool:
    """Nothing runs, nothing is pending, and what runs is committed."""
    idle = device["operation"] is None and not device["pending"] and device["autoAbort"] is None
    return bool(idle and device["running"] == device["committed"])

"""A stand-in for what the network worker does for campaigns: preflights, acknowledgements, claims, and the end of a leaf."""

import asyncio
import contextlib
from typing import Any

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.kube.transport import KubeClient

Tree = dict[str, Any]
OPERATIONS = "/apis/ops.cisco.vk/v1alpha1"


class LeafWorkers:
    """The workers of one namespace.

    Attributes:
        results: of preflights by device; Passed when left out.
        works: whether granted leaves are carried out.
        ends: phase that a leaf ends in, by device; Succeeded when left out.
        size: bytes of the image, which every preflight finds out.
    """

    def __init__(self, client: KubeClient, *, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._leaves = f"{OPERATIONS}/namespaces/{namespace}/iosxesoftwareupgrades"
        self._rollouts = f"{OPERATIONS}/namespaces/{namespace}/iosxesoftwarerollouts"
        self._devices = f"/apis/cisco.vk/v1alpha1/namespaces/{namespace}/ciscodevices"
        self.results: dict[str, str] = {}
        self.ends: dict[str, str] = {}
        self.works = self.checks = True
        self.size = 1_000_000

    async def run(self, *, every_s: float = 5.0) -> None:
        """Step for ever; what fails is done in the next step."""
        while True:
            with contextlib.suppress(GitopsError):
                await self.step()
            await self._client.clock.sleep(every_s)

    async def step(self) -> None:
        """Whatever is due."""
        devices: Any = {tree["metadata"]["name"]: tree for tree in (await self._client.list_all(self._devices)).items}
        if self.checks:
            for rollout in (await self._client.list_all(self._rollouts)).items:
                await self._preflights(rollout, devices)
        for leaf in (await self._client.list_all(self._leaves)).items:
            await self._step(leaf, devices)

    async def _preflights(self, rollout: Any, devices: Any) -> None:
        plan = rollout.get("status", {}).get("frozenPlan", {})
        for target in plan.get("targets", ()):
            name = target["deviceName"]
            device = devices.get(name)
            if device is not None:
                await self._preflight(device, rollout["metadata"]["uid"], plan["hash"])

    async def _preflight(self, device: Any, uid: str, plan_hash: str) -> None:
        name = device["metadata"]["name"]
        result = self.results.get(name, "Passed")
        known = [one for one in device["status"].get("preflight", ()) if one["rolloutUID"] == uid]
        if known and (known[0]["planHash"], known[0]["result"]) == (plan_hash, result):
            return
        report = device["status"]["workerReport"]
        failed = {"name": "FlashSpace", "status": "Fail", "message": "2048 bytes free, 1000000 needed"}
        entry = {
            **{"rolloutUID": uid, "planHash": plan_hash, "result": result},
            "observedAt": to_rfc3339(self._client.clock.wall()),
            **{"workerPodUID": report["podUID"], "workerRevision": report["observedRevision"]},
            **{"imageSize": self.size, "runningVersion": "17.12.4"},
            "checks": [failed] if result == "Failed" else [{"name": "Gnoi", "status": "Pass"}],
        }
        await self._patch(f"{self._devices}/{name}", {"preflight": [entry]})

    async def _step(self, tree: Any, devices: Any) -> None:
        leaf = leaf_of(tree)
        admission = leaf.admission
        if admission is None or admission.state == "Settled" or leaf.is_terminal:
            return
        path = f"{self._leaves}/{leaf.name}"
        control = leaf.manager_control
        seen = {
            "observedAdmissionState": admission.state,
            "observedPolicyEpoch": admission.policy_epoch,
            "observedControlRevision": control.revision if control is not None else 0,
            "observedWorkerConfigRevision": devices[leaf.device_name]["status"]["workerReport"]["observedRevision"],
            "effectiveState": "Paused" if control is not None and control.pause else "Ready",
        }
        had = tree["status"].get("workerControl", {})
        if {name: had.get(name) for name in seen} != seen:
            await self._patch(path, {"workerControl": {**seen, "updatedAt": to_rfc3339(self._client.clock.wall())}})
        elif admission.state == "Granted" and self.works:
            await self._work(path, tree, leaf.device_name)

    async def _work(self, path: str, tree: Any, device: str) -> None:
        now, admission = to_rfc3339(self._client.clock.wall()), tree["status"]["managerAdmission"]
        if not tree["status"].get("managedMutationClaims"):
            claim = {
                "stage": "PrimaryInstall",
                **{name: admission[name] for name in ("reservationID", "policyEpoch", "controlRevision")},
                "claimedAt": now,
            }
            await self._patch(path, {"managedMutationClaims": [claim], "phase": "Transferring"})
            return
        settled = {"type": "DeviceMutationSettled", "status": "True", "reason": "OutcomeVerified", "message": ""}
        ended = {"phase": self.ends.get(device, "Succeeded"), "completionTime": now}
        await self._patch(path, {**ended, "conditions": [{**settled, "lastTransitionTime": now}]})

    async def _patch(self, path: str, status: Tree) -> None:
        await self._client.patch_merge(path, {"status": status}, subresource="status", manager="tests-worker")


async def until_cancelled(workers: LeafWorkers) -> None:
    """Run the workers; cancelling ends them."""
    with contextlib.suppress(asyncio.CancelledError):
        await workers.run()

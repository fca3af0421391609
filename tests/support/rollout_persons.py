"""What people do while a simulated campaign runs, through Git or through the API, and what Git says about it."""

import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet import names
from gitops_ctl.rollout.authority import Authority, Block
from tests.doubles.apiserver.direct import direct_client
from tests.support.admission_world import CONFIG_MAPS, LEAVES, SYSTEM
from tests.support.rollout_authority import by
from tests.support.rollout_planning import NAMESPACE

if TYPE_CHECKING:
    from tests.support.rollout_simulation import RolloutWorld

ROLLOUT_PATH = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{NAMESPACE}/iosxesoftwarerollouts/spring"
WINDOW_S = 3600.0
_BLOCKS = ("control", "approval", "activationApproval", "preparationInvalidation")
_LATER = 3
"""Rests until a pause is taken back."""


class Persons:
    """Everybody who may do something.

    Attributes:
        git: the blocks of the document in the accepted revision.
        decides: somebody approves the activation of what is prepared, or gives it up once the campaign is cancelled.
    """

    def __init__(self, world: "RolloutWorld", *, decides: bool) -> None:
        self._world = world
        self.git: dict[str, Any] = {block: {} for block in _BLOCKS}
        self.decides = decides
        self._resumes, self._to_resume = 1, 0

    def memory(self) -> Mapping[str, Any]:
        """For a checkpoint."""
        return {"git": copy.deepcopy(self.git), "resumes": self._resumes, "to_resume": self._to_resume}

    def remember(self, memory: Mapping[str, Any]) -> None:
        self.git = copy.deepcopy(memory["git"])
        self._resumes, self._to_resume = memory["resumes"], memory["to_resume"]

    def authority(self) -> Authority:
        """What the accepted revision has."""
        return Authority(
            control=Block(declared=self.git["control"], introduced=by("control")),
            approval=Block(declared=self.git["approval"], introduced=by("approve")),
            activation=Block(declared=self.git["activationApproval"], introduced=by("activate")),
            invalidation=Block(declared=self.git["preparationInvalidation"], introduced=by("recover")),
        )

    async def rest(self) -> None:
        """What somebody does in his own time: resume, approve, activate, give up."""
        await self._decide_on_receipts()
        self._to_resume = max(0, self._to_resume - 1)
        if self._to_resume == 1:
            await self.ask()
        elif self._waits_for_canaries and self._resumes:
            self._resumes -= 1
            await self.ask()

    @property
    def _waits_for_canaries(self) -> bool:
        conditions = self._world.status.get("conditions", [])
        return any(one["type"] == "CanaryResumeRequired" and one["status"] == "True" for one in conditions)

    async def apply(self) -> None:
        """The Sync applies what Git has, after the object went back to an older state."""
        tree = self._world.rollout
        control = self.git["control"]
        if tree is not None and control.get("revision", 0) > tree["spec"].get("control", {}).get("revision", 0):
            await self._patch({"spec": {"control": {"pause": None, "cancel": None, **control}}})

    # ---- control ----

    async def ask(
        self,
        *,
        pause: bool | None = None,
        cancel: bool | None = None,
        in_git: bool = True,
        also_deleted: bool = False,
    ) -> None:
        """A control of a larger revision, from Git or through the API."""
        tree = self._world.rollout
        if tree is None or ("deletionTimestamp" in tree["metadata"] and not also_deleted):
            return
        had = tree["spec"].get("control", {})
        if had.get("cancel"):
            return
        control = {
            "revision": had.get("revision", 0) + 1,
            "pause": pause,
            "cancel": cancel,
            "requestedBy": "gitops-ctl:change-approver",
            "requestedAt": "2026-11-02T12:00:00Z",
        }
        await self._patch({"spec": {"control": control}})
        if in_git:
            self.git["control"] = {name: value for name, value in control.items() if value is not None}

    async def pause(self) -> None:
        """A pause by a commit, which is taken back later."""
        await self.ask(pause=True)
        self._to_resume = _LATER

    async def delete(self) -> None:
        """Somebody deletes the rollout."""
        if self._world.rollout is not None:
            async with direct_client(self._world.api, component="person", clock=self._world.clock) as client:
                await client.delete(ROLLOUT_PATH)

    async def _patch(self, body: Any) -> None:
        async with direct_client(self._world.api, component="person", clock=self._world.clock) as client:
            await client.patch_merge(ROLLOUT_PATH, body, manager="person")

    # ---- the policy ----

    def rewrite_policy(self, **changes: Any) -> None:
        """The administrator writes it anew; not while there is none."""
        if self._world.api.store.get(CONFIG_MAPS, (SYSTEM, "topology-policy")) is not None:
            self._world.write_policy(**changes)

    def drop_policy(self) -> None:
        """The administrator deletes it."""
        if self._world.api.store.get(CONFIG_MAPS, (SYSTEM, "topology-policy")) is not None:
            self._world.api.store.remove(CONFIG_MAPS, (SYSTEM, "topology-policy"))

    # ---- what is prepared ----

    @property
    def has_to_decide(self) -> bool:
        """Whether something is prepared that is neither activated nor given up."""
        used = {
            leaf["metadata"]["annotations"].get(names.PREPARED_UPGRADE_UID)
            for leaf in self._leaves()
            if leaf.get("status", {}).get("phase") == "Succeeded"
        }
        over = self._world.status.get("phase") in {"Succeeded", "Cancelled"}
        return self.decides and over and any(one["upgradeUID"] not in used for one in self._receipts())

    async def _decide_on_receipts(self) -> None:
        tree, phase = self._world.rollout, self._world.status.get("phase")
        if tree is None or tree["spec"]["plan"]["strategy"] != "PrepareOnly" or not self.decides:
            return
        receipts, gives_up = self._receipts(), phase == "Cancelled"
        if phase == "Succeeded" and "activationApproval" not in tree["spec"]:
            await self._commit("activationApproval", receipts, **self._window())
        elif gives_up and receipts and not tree["spec"].get("control", {}).get("cancel"):
            await self.ask(cancel=True, also_deleted=True)
        elif gives_up and receipts and "preparationInvalidation" not in tree["spec"]:
            said = {"requestedBy": "gitops-ctl:change-approver", "requestedAt": "2026-11-02T12:00:00Z"}
            await self._commit("preparationInvalidation", receipts, reason="another release is out", **said)

    def _window(self) -> dict[str, str]:
        now = self._world.clock.wall()
        return {
            "notBefore": to_rfc3339(now + timedelta(seconds=60)),
            "notAfter": to_rfc3339(now + timedelta(seconds=60 + WINDOW_S)),
            "approvedBy": "gitops-ctl:window-owner",
            "approvedAt": to_rfc3339(now),
        }

    def _leaves(self) -> list[Any]:
        return [leaf for _, leaf in self._world.api.store.all(LEAVES)]

    def _receipts(self) -> list[dict[str, str]]:
        """What is prepared, and not given up."""
        return [
            {
                "deviceUID": leaf["status"]["preparedReceipt"]["deviceUID"],
                "upgradeUID": leaf["metadata"]["uid"],
                "receiptHash": leaf["status"]["preparedReceipt"]["receiptHash"],
            }
            for leaf in self._leaves()
            if leaf.get("status", {}).get("phase") == "Prepared"
        ]

    async def _commit(self, block: str, receipts: list[dict[str, str]], **members: Any) -> None:
        value = {"planHash": self._world.status["frozenPlan"]["hash"], "receipts": receipts, **members}
        self.git[block] = value
        await self._patch({"spec": {block: value}})

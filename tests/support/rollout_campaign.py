"""A campaign whose passes a test makes one by one, and what Git has of it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from gitops_ctl.rollout.authority import Authority, Block
from gitops_ctl.rollout.campaignpass import CampaignPass, Passed
from tests.support.admission_world import ROLLOUTS, AdmissionWorld, assert_consistent
from tests.support.rollout_authority import by

SOAKS = {"maxObservationAgeSeconds": 300, "canarySoakSeconds": 60, "waveSoakSeconds": 30}


class Campaign:
    """The world with one campaign, and what Git has of it."""

    def __init__(self, **plan: Any) -> None:
        self.world = AdmissionWorld(**{"health": SOAKS, **plan})
        self.control, self.approval, self.recovery = Block(), Block(), Block()

    async def once(self) -> Passed:
        """One pass, and its status in the cluster."""
        async with self.world.client() as client:
            authority = Authority(self.control, self.approval, self.recovery)
            passed = await CampaignPass(self.world.ports(client), self.world.campaign(), authority).run()
        tree = self.world.tree(ROLLOUTS, "spring")
        merged = {**tree.get("status", {}), **passed.status}
        self.world.put(ROLLOUTS, {**tree, "status": {key: value for key, value in merged.items() if value is not None}})
        assert_consistent(self.world)
        return passed

    @property
    def status(self) -> Any:
        return self.world.tree(ROLLOUTS, "spring")["status"]

    def phases(self) -> Mapping[str, str]:
        return {target["deviceName"]: target["phase"] for target in self.status["targets"]}

    def reason(self, name: str) -> str:
        return next(str(one.get("reason", "")) for one in self.status["targets"] if one["deviceName"] == name)

    def condition(self, kind: str) -> tuple[str, str]:
        return next((one["status"], one["reason"]) for one in self.status["conditions"] if one["type"] == kind)

    def ask(self, *, git: bool = True, **control: Any) -> None:
        """Write a control into the object, and into Git."""
        tree = self.world.tree(ROLLOUTS, "spring")
        tree["spec"]["control"] = control
        tree["metadata"]["generation"] += 1
        self.world.put(ROLLOUTS, tree)
        self.control = Block(declared=control, introduced=by("control")) if git else Block()

    async def upgrade(self, name: str, phase: str = "Succeeded") -> None:
        """From its admission to the end of its leaf."""
        self.world.acknowledge(name)
        await self.once()
        assert self.phases()[name] == "Running"
        self.world.claim(name)
        self.world.finish(name, phase)

    async def settle(self, name: str, soak_s: float) -> None:
        """Until its soak is over."""
        self.later(1)
        await self.once()
        assert self.phases()[name] == "Soaking"
        self.later(soak_s)
        await self.once()

    def later(self, seconds: float) -> None:
        """Time passes, and every device goes on being healthy."""
        self.world.clock.wall_offset += timedelta(seconds=seconds)
        for target in self.world.campaign().targets:
            self.world.heal(target.device_name)

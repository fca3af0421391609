"""A campaign whose plan is frozen, read back from its object (rollouts.md, sections 3.3, 3.4 and 9.3)."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.identity import reservation_id
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.rollout.epochs import Epoch
from gitops_ctl.rollout.fleetlook import Ages
from gitops_ctl.rollout.planned import Plan, plan_of
from gitops_ctl.rollout.snapshot import PolicySnapshot, snapshot_from
from gitops_ctl.rollout.targets import Campaign, Target, target_from


@dataclass(frozen=True, slots=True)
class Control:
    """What was asked of the campaign; revision 0 when nothing was."""

    revision: int = 0
    pause: bool = False
    cancel: bool = False

    @property
    def is_neutral(self) -> bool:
        return not self.pause and not self.cancel


@dataclass(frozen=True)
class CampaignState:
    """What the object of a campaign says.

    Attributes:
        approved: the exact plan is approved, as the manager judged it.
        live_control: what stands in the object.
        control: what counts; the same until somebody judged otherwise (`with_control`).
        frozen: the policy of the plan; `effective` holds the numbers in force.
        transition: the epoch that is about to begin; nothing is admitted while there is one.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    deleting: bool
    plan: Plan
    plan_hash: str
    approved: bool
    live_control: Control
    control: Control
    frozen: PolicySnapshot
    membership_hash: str
    effective: Epoch
    transition: Epoch | None
    targets: tuple[Target, ...]
    tree: JsonObject

    @property
    def freshness_s(self) -> int:
        """Seconds after which evidence is too old: the smaller of the epoch in force and the plan (15.3)."""
        return min(self.effective.policy.freshness_s, self.plan.max_age_s)

    def ages(self, policy: FleetPolicy) -> Ages:
        """How old evidence of the fleet may be: by the policy now and the epoch in force, and of the targets by the plan too."""
        everybody_s = min(policy.health_freshness_s, self.effective.policy.freshness_s)
        return Ages(everybody_s, self.freshness_s, frozenset(self.by_device))

    @cached_property
    def by_device(self) -> dict[str, Target]:
        """Targets by UID of their device."""
        return {target.device_uid: target for target in self.targets}

    def with_control(self, control: Control) -> "CampaignState":
        """The same under the control that counts, which a block without authority in the object does not change."""
        return replace(self, control=control)

    def reservation_of(self, target: Target) -> str:
        """The id of the target's reservation, which never changes."""
        return reservation_id(self.uid, target.device_uid)

    def checked_at(self, now: datetime, *, policy: FleetPolicy) -> Campaign:
        """What the checks of a target need, with the freshness of the epoch in force."""
        strict = replace(policy, health_freshness_s=min(policy.health_freshness_s, self.effective.policy.freshness_s))
        return Campaign(self.name, self.uid, self.plan, strict, now)


def campaign_state(tree: JsonObject) -> CampaignState | None:
    """The state of a rollout; None while no plan is frozen."""
    meta, spec, status = object_at(tree, "metadata"), object_at(tree, "spec"), object_at(tree, "status")
    frozen, approval = object_at(status, "frozenPlan"), object_at(status, "approval")
    plan_hash = text_at(frozen, "hash")
    effective = _epoch(object_at(status, "effectivePolicy"))
    if not plan_hash or effective is None:
        return None
    return CampaignState(
        namespace=text_at(meta, "namespace"),
        name=text_at(meta, "name"),
        uid=text_at(meta, "uid"),
        generation=int_at(meta, "generation"),
        resource_version=text_at(meta, "resourceVersion"),
        deleting="deletionTimestamp" in meta,
        plan=plan_of(object_at(spec, "plan")),
        plan_hash=plan_hash,
        approved=bool_at(approval, "valid") and text_at(approval, "planHash") == plan_hash,
        live_control=control_of(spec),
        control=control_of(spec),
        frozen=snapshot_from(object_at(frozen, "policy")),
        membership_hash=text_at(frozen, "riskGroupMembershipHash"),
        effective=effective,
        transition=_epoch(object_at(status, "policyTransition")),
        targets=tuple(map(target_from, objects_at(frozen, "targets"))),
        tree=tree,
    )


def control_of(spec: JsonObject) -> Control:
    """`spec.control`; one that is missing is neutral."""
    control = object_at(spec, "control")
    return Control(int_at(control, "revision"), bool_at(control, "pause"), bool_at(control, "cancel"))


def _epoch(tree: JsonObject) -> Epoch | None:
    number = int_at(tree, "epoch")
    return Epoch(number, snapshot_from(object_at(tree, "policy"))) if number else None

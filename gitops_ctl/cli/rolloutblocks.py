"""The blocks that a person signs for a rollout that is there: control, activation, invalidation, recovery (rollouts.md, sections 3.3, 11.6 and 11.7).

Pure.  UIDs, hashes and claims come from the cluster, what only a person knows from the command line; names and times of people are left out,
because they come from the signature.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of, listed
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.activation import PREPARE_ONLY
from gitops_ctl.rollout.campaignstate import Control, control_of
from gitops_ctl.rollout.control import CANARY_RESUME

CONTROL: Final = "/spec/control"
ACTIVATION: Final = "/spec/activationApproval"
INVALIDATION: Final = "/spec/preparationInvalidation"
RECOVERY: Final = "/spec/recovery"


@dataclass(frozen=True, slots=True)
class LiveRollout:
    """A rollout as the cluster has it; `leaves` are those of its campaign, by the UID of their device the newest last."""

    tree: JsonObject
    leaves: Sequence[Leaf]

    @property
    def name(self) -> str:
        return f"{text_at(self.tree, 'metadata', 'namespace')}/{text_at(self.tree, 'metadata', 'name')}"

    @property
    def phase(self) -> str:
        return text_at(self.tree, "status", "phase") or "not planned"

    @property
    def plan_hash(self) -> str:
        return text_at(self.tree, "status", "frozenPlan", "hash")

    @property
    def targets(self) -> Sequence[JsonObject]:
        return objects_at(self.tree, "status", "frozenPlan", "targets")

    def refused(self, message: str, hint: str = "") -> Refused:
        """That the campaign is in a state in which the block means nothing."""
        return Refused(message, code=ErrorCode.ROLLOUT_STATE, subject=self.name, hint=hint)


def paused(live: LiveRollout, declared: JsonObject, *, reason: str) -> JsonObject:
    """The control that pauses; that of the cluster where it pauses already.

    Args:
        declared: `spec` of the document in the checkout.

    Raises:
        Refused: the rollout is over, or cancelled.
    """
    _require_open(live)
    control = control_of(object_at(live.tree, "spec"))
    if control.cancel:
        raise live.refused("is cancelled, which stops more than a pause does")
    if control.pause:
        return _as_it_is(live)
    return _next(live, declared, pause=True, cancel=False, reason=reason)


def resumed(live: LiveRollout, declared: JsonObject, *, reason: str) -> JsonObject:
    """The control that lets a paused rollout, or what waits behind the canaries, go on.

    Raises:
        Refused: nothing of it waits for a resume.
    """
    _require_open(live)
    control = control_of(object_at(live.tree, "spec"))
    if control.cancel:
        raise live.refused("is cancelled, and that is final", "make a new rollout with the devices that are left")
    waits = text_at(condition_of(object_at(live.tree, "status"), CANARY_RESUME) or {}, "status") == "True"
    if not control.pause and not waits:
        raise live.refused("waits for no resume", f"see `gitops-ctl explain rollout {live.name}`")
    return _next(live, declared, pause=False, cancel=False, reason=reason)


def cancelled(live: LiveRollout, declared: JsonObject, *, reason: str) -> JsonObject:
    """The control that cancels; that of the cluster where it cancels already.

    Raises:
        Refused: the rollout is over.
    """
    if live.phase == "Succeeded":
        raise live.refused("has succeeded: there is nothing to cancel")
    control = control_of(object_at(live.tree, "spec"))
    if control.cancel:
        return _as_it_is(live)
    return _next(live, declared, pause=control.pause, cancel=True, reason=reason)


def _require_open(live: LiveRollout) -> None:
    if live.phase in ("Succeeded", "Failed", "Cancelled"):
        raise live.refused(f"is {live.phase}: nothing of it goes on")


def _next(live: LiveRollout, declared: JsonObject, *, pause: bool, cancel: bool, reason: str) -> JsonObject:
    """One revision above the live one; above that of the checkout, where an earlier one is not applied yet."""
    revision = max(control_of(object_at(live.tree, "spec")).revision, control_of(declared).revision) + 1
    return _block(Control(revision, pause, cancel), reason)


def _as_it_is(live: LiveRollout) -> JsonObject:
    """What somebody wrote into the cluster, for Git."""
    spec = object_at(live.tree, "spec")
    return _block(control_of(spec), text_at(spec, "control", "reason"))


def _block(control: Control, reason: str) -> JsonObject:
    tree: dict[str, JsonValue] = {"revision": control.revision, "pause": control.pause, "cancel": control.cancel}
    return {**tree, "reason": reason} if reason else tree


def activation(live: LiveRollout, *, not_before: str, not_after: str) -> JsonObject:
    """The approval that activates every prepared device inside a window.

    Raises:
        Refused: not every device is prepared.
    """
    _require_prepared_plan(live)
    if live.phase != "Succeeded":
        raise live.refused(f"is {live.phase}: devices are activated once every one of them is prepared")
    receipts = _receipts(live)
    missing = [text_at(one, "deviceName") for one in live.targets if text_at(one, "deviceUID") not in receipts]
    if missing:
        raise live.refused(f"{len(missing)} of {len(live.targets)} devices have no receipt: {listed(missing)}")
    return {
        "planHash": live.plan_hash,
        "receipts": list(receipts.values()),
        "notBefore": not_before,
        "notAfter": not_after,
    }


def invalidation(live: LiveRollout, *, reason: str) -> JsonObject:
    """The block that gives up every preparation which was not activated.

    Raises:
        Refused: the campaign is not cancelled, or nothing of it is prepared.
    """
    _require_prepared_plan(live)
    if live.phase != "Cancelled":
        raise live.refused(f"is {live.phase}: only a cancelled preparation is given up", "cancel it first")
    receipts = _receipts(live)
    if not receipts:
        raise live.refused("has no receipt that could be given up")
    return {"planHash": live.plan_hash, "reason": reason, "receipts": list(receipts.values())}


def _require_prepared_plan(live: LiveRollout) -> None:
    strategy = text_at(live.tree, "spec", "plan", "strategy", default="Reload")
    if strategy != PREPARE_ONLY:
        raise live.refused(f"has the strategy {strategy}: it prepares nothing")


def _receipts(live: LiveRollout) -> Mapping[str, JsonObject]:
    """The unused receipts by UID of their device, in the order of the plan."""
    used = {leaf.binding.prepared_upgrade_uid for leaf in live.leaves if leaf.claims}
    found = {
        leaf.binding.device_uid: leaf
        for leaf in live.leaves
        if leaf.phase == "Prepared" and leaf.receipt is not None and leaf.uid not in used
    }
    ordered = (found.get(text_at(target, "deviceUID")) for target in live.targets)
    return {leaf.binding.device_uid: _reference(leaf) for leaf in ordered if leaf is not None}


def _reference(leaf: Leaf) -> JsonObject:
    return {
        "deviceUID": leaf.binding.device_uid,
        "upgradeUID": leaf.uid,
        "receiptHash": text_at(leaf.receipt or {}, "receiptHash"),
    }


def recovery(live: LiveRollout, *, device: str, outcome: str, reason: str) -> JsonObject:
    """What two persons say about the leaf of a device; its claims are those that it has now.

    Raises:
        Refused: the device has no leaf that is open.
    """
    leaf = _open_leaf(live.leaves, device)
    if leaf is None:
        known = sorted({one.device_name for one in live.leaves if not _is_settled(one)})
        hint = f"open are {listed(known)}" if known else "every leaf of it is settled"
        raise live.refused(f"has no open leaf of the device {device}", hint)
    claims: list[JsonValue] = [{"stage": claim.stage, "claimedAt": claim.claimed_at_text} for claim in leaf.claims]
    return {"leafUID": leaf.uid, "claims": claims, "outcome": outcome, "reason": reason}


def _open_leaf(leaves: Iterable[Leaf], device: str) -> Leaf | None:
    found = [leaf for leaf in leaves if leaf.device_name == device and not _is_settled(leaf)]
    return found[-1] if found else None


def _is_settled(leaf: Leaf) -> bool:
    return leaf.admission is not None and leaf.admission.state == "Settled"

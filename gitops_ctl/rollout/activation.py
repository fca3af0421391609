"""Whether prepared devices may be activated (rollouts.md, sections 12.3 and 12.4).

The approval names every receipt of the campaign exactly.  Whether it comes in time is decided by our clock, never by a member of the
document, and only at the first look: what has begun is not undone by a clock.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import ordered, sha256_of
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.receipt import matches_target, receipt_problem, source_identity_hash
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.rollout.approval import REVOKED
from gitops_ctl.rollout.authority import NOT_FROM_GIT, Block
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.leafplan import Activation
from gitops_ctl.rollout.targets import Target, image_source

PREPARE_ONLY: Final = "PrepareOnly"
INVALID: Final = "ActivationAuthorizationInvalid"
AUTHORIZED: Final = "ActivationAuthorized"
_MEMBERS: Final = ("planHash", "receipts", "notBefore", "notAfter")


class ActivationState(enum.Enum):
    """Where a prepared campaign stands."""

    NONE = enum.auto()
    """There is no approval."""
    AUTHORIZED = enum.auto()
    REFUSED = enum.auto()
    UNKNOWN = enum.auto()
    """Nobody can tell yet: nothing is written."""


@dataclass(frozen=True, slots=True)
class ActivationJudgement:
    """How an activation approval was judged.

    Attributes:
        activations: one for each frozen target by the UID of its device.
        record: `status.activation` as it has to be; None where nothing is to be said that is not said there.
    """

    state: ActivationState
    reason: str = ""
    message: str = ""
    activations: Mapping[str, Activation] | None = None
    record: JsonObject | None = None


def authorization_hash(approval: JsonObject, *, campaign_uid: str) -> str:
    """The hash that binds an activation leaf to what was approved.

    Raises:
        ValueError: a time is missing or none, which the API server does not store.
    """
    receipts = sorted(objects_at(approval, "receipts"), key=lambda item: text_at(item, "deviceUID"))
    tree: dict[str, JsonValue] = {
        "protocol": names.ACTIVATION_PROTOCOL,
        "campaignUID": campaign_uid,
        "planHash": text_at(approval, "planHash"),
        "receipts": [ordered(item, names.ACTIVATION_RECEIPT_MEMBERS) for item in receipts],
        "notBefore": _time(approval, "notBefore"),
        "notAfter": _time(approval, "notAfter"),
        "approvedBy": text_at(approval, "approvedBy"),
        "approvedAt": _time(approval, "approvedAt"),
    }
    return sha256_of(ordered(tree, names.ACTIVATION_MEMBERS))


def _time(tree: JsonObject, name: str) -> str:
    moment = moment_at(tree, name)
    if moment is None:
        raise ValueError(f"{name} is no time")
    return to_rfc3339(moment)


def judge_activation(
    state: CampaignState, block: Block, prepared: Mapping[str, Leaf], *, now: datetime, has_begun: bool = False
) -> ActivationJudgement:
    """The judgement about `spec.activationApproval`.

    What was taken up is recorded with its person and commit, and stands from then on: neither a later commit nor a clock undoes it.

    Args:
        block: what Git has at `/spec/activationApproval`.
        prepared: the leaf of each target by the UID of its device.
        has_begun: an activation leaf is there, so the approval was taken up.
    """
    approval, recorded = _approval(state), _recorded(state)
    if not approval:
        return ActivationJudgement(ActivationState.NONE)
    by = block.proves(approval, verb="activate", members=_MEMBERS)
    same = bool(recorded) and text_at(recorded, "authorizationHash") == _hash_of(state)
    # Ended for good, also when nobody can look at that commit any more; only a new proof brings it back.
    revoked = (block.known and block.revoked) or (same and by is None and text_at(recorded, "reason") == REVOKED)
    stands = not revoked and (has_begun or is_taken_up(state))
    if not block.known and not stands and not revoked:
        return ActivationJudgement(ActivationState.UNKNOWN, message="the accepted revision was not looked at yet")
    person, commit = (by.person, by.commit) if by is not None else ("", "")
    if same and (by is None or stands):
        person, commit = text_at(recorded, "person"), text_at(recorded, "commit")
    misfit = next(_problems(state, approval, prepared, None), "")
    problem = misfit if stands else misfit or next(_problems(state, approval, prepared, now), "")
    if revoked:
        reason = REVOKED
        said = f"{person or 'who approved the activation'}, or that commit, was revoked: nothing of it begins any more"
    elif not stands and by is None:
        reason = NOT_FROM_GIT
        said = f"the activation approval has no effect: {block.why or 'the accepted revision does not hold it'}"
    else:
        reason, said = (INVALID, problem) if problem else (AUTHORIZED, "")
    outcome = ActivationState.AUTHORIZED if reason == AUTHORIZED else ActivationState.REFUSED
    activations = None if misfit else _activations(state, approval, prepared)
    # A receipt that does not fit now takes back nothing that was taken up.
    kept = stands and outcome is ActivationState.REFUSED
    record = None if kept else _record(state, reason, person=person, commit=commit, now=now)
    return ActivationJudgement(outcome, reason, said, activations, record)


def is_taken_up(state: CampaignState) -> bool:
    """Whether the status records the approval that the spec has."""
    recorded = _recorded(state)
    return bool_at(recorded, "valid") and text_at(recorded, "authorizationHash") == _hash_of(state)


def _approval(state: CampaignState) -> JsonObject:
    return object_at(state.tree, "spec", "activationApproval")


def _recorded(state: CampaignState) -> JsonObject:
    return object_at(state.tree, "status", "activation")


def _hash_of(state: CampaignState) -> str:
    """What the record is bound to; empty for an approval without a window."""
    try:
        return authorization_hash(_approval(state), campaign_uid=state.uid)
    except ValueError:
        return ""


def _record(state: CampaignState, reason: str, *, person: str, commit: str, now: datetime) -> JsonObject | None:
    """`status.activation` for a judgement; None when it is there already."""
    said: dict[str, JsonValue] = {
        "planHash": text_at(_approval(state), "planHash"),
        "valid": reason == AUTHORIZED,
        "reason": reason,
        "person": person,
        "commit": commit,
        "authorizationHash": _hash_of(state),
    }
    wanted = {name: value for name, value in said.items() if value != ""}
    same = {name: value for name, value in _recorded(state).items() if name != "validatedAt"} == wanted
    return None if same else {**wanted, "validatedAt": to_rfc3339(now)}


def _problems(
    state: CampaignState, approval: JsonObject, prepared: Mapping[str, Leaf], now: datetime | None
) -> Iterator[str]:
    if state.plan.strategy != PREPARE_ONLY:
        yield f"the strategy of the plan is {state.plan.strategy}: nothing is prepared"
    if text_at(approval, "planHash") != state.plan_hash:
        yield f"{text_at(approval, 'planHash')} is approved for activation, the plan is {state.plan_hash}"
    yield from _window_problems(approval, now)
    references = {text_at(item, "deviceUID"): item for item in objects_at(approval, "receipts")}
    if len(references) != len(objects_at(approval, "receipts")) or references.keys() != state.by_device.keys():
        yield f"it needs exactly one receipt for each of the {len(state.targets)} targets"
        return
    for target in state.targets:
        wrong = _receipt_problem(state, target, references[target.device_uid], prepared.get(target.device_uid))
        if wrong:
            yield f"{target.device_name}: {wrong}"


def _window_problems(approval: JsonObject, now: datetime | None) -> Iterator[str]:
    opens, closes = moment_at(approval, "notBefore"), moment_at(approval, "notAfter")
    if opens is None or closes is None or opens >= closes:
        yield "it names no window: notBefore and notAfter, one before the other"
    elif moment_at(approval, "approvedAt") is None:
        yield "approvedAt is missing"
    elif now is not None and now > closes:
        yield f"its window closed at {to_rfc3339(closes)}, before it was looked at"


def _receipt_problem(state: CampaignState, target: Target, reference: JsonObject, leaf: Leaf | None) -> str:
    """Why a reference does not name what was prepared on a target; empty when it does."""
    if leaf is None or leaf.receipt is None or leaf.phase != "Prepared":
        return f"nothing is prepared on it: leaf {target.child_name} is {leaf.phase if leaf is not None else 'missing'}"
    receipt = leaf.receipt
    wrong = receipt_problem(receipt)
    if wrong:
        return wrong
    wanted = {
        "upgradeUID": leaf.uid,
        "deviceUID": target.device_uid,
        "nodeUID": target.node_uid,
        "physicalIdentity": target.physical_identity,
        "deviceGeneration": target.device_generation,
        "campaignUID": state.uid,
        "planHash": state.plan_hash,
        "policyUID": state.frozen.uid,
        "targetVersion": state.plan.target_version,
        "sourceDigest": f"sha256:{target.source.sha256}",
        "sourceIdentityHash": source_identity_hash(image_source(target)),
    }
    differing = [name for name, value in wanted.items() if receipt.get(name) != value]
    differing += [name for name in ("upgradeUID", "receiptHash") if reference.get(name) != receipt.get(name)]
    if differing:
        return f"its receipt is another one: {', '.join(dict.fromkeys(differing))}"
    validated = text_at(receipt, "validatedVersion")
    return "" if matches_target(validated, state.plan.target_version) else f"{validated} is prepared on it"


def _activations(state: CampaignState, approval: JsonObject, prepared: Mapping[str, Leaf]) -> Mapping[str, Activation]:
    opens, closes = moment_at(approval, "notBefore"), moment_at(approval, "notAfter")
    assert opens is not None
    assert closes is not None
    hashed = authorization_hash(approval, campaign_uid=state.uid)
    return {
        uid: Activation(
            prepared_name=prepared[uid].name,
            prepared_uid=prepared[uid].uid,
            receipt_hash=text_at(prepared[uid].receipt or {}, "receiptHash"),
            authorization_hash=hashed,
            not_before=opens,
            not_after=closes,
        )
        for uid in state.by_device
    }

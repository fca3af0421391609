"""What a rollout asks to be written to Git: approval, activation, invalidation, and a control that came from the cluster (rollouts.md, 11.7).

Pure.  A proposal is no write: it counts when a person with the verb merges it.  UIDs and hashes are filled in, names and times of people
are left out.  One is wanted until its block stands in Git, or means nothing any more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.documents.splice import Edit
from gitops_ctl.fleet.device import Preflight
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.names import ROLLOUT_KIND
from gitops_ctl.fleet.receipt import receipt_problem
from gitops_ctl.forge.wanted import WantedProposal
from gitops_ctl.rollout.activation import PREPARE_ONLY
from gitops_ctl.rollout.campaignstate import CampaignState, control_of
from gitops_ctl.rollout.leafplan import API_VERSION
from gitops_ctl.rollout.progress import Phase
from gitops_ctl.rollout.proposaltext import activation_text, approval_text, control_text, invalidation_text

APPROVAL: Final = "rollout-approval"
ACTIVATION: Final = "rollout-activation"
INVALIDATION: Final = "rollout-invalidation"
CONTROL: Final = "rollout-control"
PURPOSES: Final = (APPROVAL, ACTIVATION, INVALIDATION, CONTROL)
_GIVEN_UP: Final = "the rollout was cancelled before it was activated"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rollout stands in Git.

    Attributes:
        namespace, source: of the GitSource.
        file, document: the file, and the place of the document in it, from 0.
        base: pointer of the object inside the document.
        spec: as the accepted revision has it.
    """

    namespace: str
    source: str
    file: str
    document: int
    base: str
    spec: JsonObject


@dataclass(frozen=True, slots=True)
class Seen:
    """What the proposals of a campaign depend on.

    Attributes:
        preflights: of this plan, by name of the device.
        leaves: of the campaign; needed of a campaign that only prepares.
        preflight_s: after so long a plan is put before its approvers without the preflights that are missing.
        allowed: networks that image servers may be in although they are not public, by name of the device.
    """

    campaign: CampaignState
    preflights: Mapping[str, Preflight]
    leaves: Sequence[Leaf]
    now: datetime
    preflight_s: float
    allowed: Mapping[str, Sequence[str]] = field(default_factory=dict)


def proposal_name(campaign: CampaignState, purpose: str, place: Place) -> str:
    """Name of the proposal for a purpose: one per rollout and purpose."""
    scope = "" if place.namespace == campaign.namespace else f"{campaign.namespace}-"
    return f"{scope}{campaign.name}-{purpose.removeprefix('rollout-')}"


def wanted_proposals(seen: Seen, place: Place) -> Iterator[WantedProposal]:
    """The proposals that a campaign needs now."""
    for purpose, pointer, block, text in _blocks(seen, place):
        had = object_at(place.spec, pointer)
        edits = tuple(_edits(place, pointer, had, block))
        if edits:
            yield WantedProposal(
                namespace=place.namespace,
                name=proposal_name(seen.campaign, purpose, place),
                source=place.source,
                subject=subject_of(seen.campaign),
                purpose=f"{purpose}/{seen.campaign.namespace}/{seen.campaign.name}",
                reason=text,
                changes=tuple((place.file, edit) for edit in edits),
            )


def subject_of(campaign: CampaignState) -> JsonObject:
    """What a proposal is for."""
    return {
        "apiVersion": API_VERSION,
        "kind": ROLLOUT_KIND,
        "namespace": campaign.namespace,
        "name": campaign.name,
        "uid": campaign.uid,
    }


def approval_due(seen: Seen) -> datetime | None:
    """When the plan is put before its approvers at the latest; None when that is not what it waits for."""
    created = text_at(seen.campaign.tree, "status", "frozenPlan", "createdAt")
    if _phase(seen) != Phase.AWAITING_APPROVAL or not created or _has_all_preflights(seen):
        return None
    return from_rfc3339(created) + timedelta(seconds=seen.preflight_s)


def _blocks(seen: Seen, place: Place) -> Iterator[tuple[str, str, JsonObject, str]]:
    """Purpose, member of the spec, block and text of each."""
    campaign = seen.campaign
    if campaign.deleting:
        return
    if _wants_approval(seen, place):
        text = approval_text(campaign, seen.preflights, seen.allowed)
        yield APPROVAL, "approval", {"planHash": campaign.plan_hash}, text
    yield from _prepared(seen, place)
    live, declared = control_of(object_at(campaign.tree, "spec")), control_of(place.spec)
    if live.revision > declared.revision and not live.is_neutral:
        reason = text_at(campaign.tree, "spec", "control", "reason")
        asked: dict[str, JsonValue] = {"revision": live.revision}
        asked |= {name: True for name, is_set in (("pause", live.pause), ("cancel", live.cancel)) if is_set}
        yield CONTROL, "control", {**asked, "reason": reason} if reason else asked, control_text(campaign, live)


def _wants_approval(seen: Seen, place: Place) -> bool:
    if _phase(seen) != Phase.AWAITING_APPROVAL or seen.campaign.approved:
        return False
    if text_at(place.spec, "approval", "planHash") == seen.campaign.plan_hash:
        return False
    due = approval_due(seen)
    return due is None or due <= seen.now


def _prepared(seen: Seen, place: Place) -> Iterator[tuple[str, str, JsonObject, str]]:
    """What is asked about devices that were prepared and not activated."""
    campaign = seen.campaign
    if campaign.plan.strategy != PREPARE_ONLY:
        return
    receipts = _receipts(seen)
    if not receipts or any(leaf.binding.prepared_upgrade_uid for leaf in seen.leaves):
        return
    members: dict[str, JsonValue] = {"planHash": campaign.plan_hash, "receipts": list(receipts.values())}
    is_whole = len(receipts) == len(campaign.targets) and "activationApproval" not in place.spec
    if _phase(seen) == Phase.SUCCEEDED and is_whole:
        yield ACTIVATION, "activationApproval", members, activation_text(campaign, len(receipts))
    if _phase(seen) == Phase.CANCELLED and "preparationInvalidation" not in place.spec:
        text = invalidation_text(campaign, list(receipts))
        yield INVALIDATION, "preparationInvalidation", {**members, "reason": _GIVEN_UP}, text


def _receipts(seen: Seen) -> dict[str, JsonObject]:
    """The receipts of what is prepared, by name of the device, in the order of the plan; only those that prove it."""
    prepared = {leaf.binding.device_uid: leaf for leaf in seen.leaves if leaf.phase == "Prepared"}
    found: dict[str, JsonObject] = {}
    for target in seen.campaign.targets:
        leaf = prepared.get(target.device_uid)
        if leaf is not None and leaf.receipt is not None and not receipt_problem(leaf.receipt):
            found[target.device_name] = {
                "deviceUID": target.device_uid,
                "upgradeUID": leaf.uid,
                "receiptHash": text_at(leaf.receipt, "receiptHash"),
            }
    return found


def _has_all_preflights(seen: Seen) -> bool:
    return all(target.device_name in seen.preflights for target in seen.campaign.targets)


def _phase(seen: Seen) -> str:
    return text_at(seen.campaign.tree, "status", "phase")


def _edits(place: Place, member: str, before: JsonObject, after: JsonObject) -> Iterator[Edit]:
    """From the block that stands in Git to the wanted one; a block that is not there is added as a whole."""
    pointer = f"{place.base}/spec/{member}"
    if not before:
        yield Edit(document=place.document, pointer=pointer, op="add", after=after)
        return
    for name in sorted({*before, *after}):
        had, wanted, at = before.get(name), after.get(name), f"{pointer}/{name}"
        if name not in after:
            yield Edit(document=place.document, pointer=at, op="remove", before=had)
        elif name not in before:
            yield Edit(document=place.document, pointer=at, op="add", after=wanted)
        elif had != wanted:
            yield Edit(document=place.document, pointer=at, op="replace", before=had, after=wanted)

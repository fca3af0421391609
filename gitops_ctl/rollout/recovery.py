"""What two persons say about a device whose outcome looking cannot settle any more (rollouts.md, section 11.6).

Their words are checked against the leaf, in the order of the contract, and put on it in one write on the version that was checked: a claim that
is made in between fails that write, and the check is made again.  A retired device then gives back what it held without any health; where a
person looked, the worker ends the leaf and health is asked as always.  Nothing here is ever done by a clock.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.ledger import Reservation
from gitops_ctl.fleet.trees import moment_at, strings_at
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.fence import Revocation
from gitops_ctl.rollout.leafplan import leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.lock import device_path
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.settlement import RETIRED, settle_retired
from gitops_ctl.rollout.targets import Target

_MEMBERS: Final = ("leafUID", "claims", "outcome", "reason")


class HeldReason(enum.StrEnum):
    """Why nothing was done; the words of the contract."""

    PERSONS = "RecoveryNeedsTwoPersons"
    UNKNOWN = "RecoveryLeafUnknown"
    SETTLED = "RecoveryAlreadySettled"
    CLAIMS = "RecoveryClaimsMismatch"
    DRAIN = "RecoveryDrainActive"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The block, and who stands behind it.

    Attributes:
        claims: stage and time of each claim, as the document has them.
        persons: who is named by the provenance, each once.
        commit: the one that introduced the block.
    """

    leaf_uid: str
    claims: tuple[tuple[str, str], ...]
    outcome: str
    reason: str
    persons: tuple[str, ...]
    commit: str


@dataclass(frozen=True, slots=True)
class Held:
    """Nothing was done."""

    reason: HeldReason
    message: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The leaf carries what the two persons said."""

    leaf: Leaf


def recovery_of(rollout: JsonObject, *, persons: Collection[str], commit: str) -> Recovery | None:
    """The block of a rollout; None without one."""
    block = object_at(rollout, "spec", "recovery")
    if not block:
        return None
    return Recovery(
        leaf_uid=text_at(block, "leafUID"),
        claims=tuple((text_at(one, "stage"), text_at(one, "claimedAt")) for one in objects_at(block, "claims")),
        outcome=text_at(block, "outcome"),
        reason=text_at(block, "reason"),
        persons=tuple(sorted(set(persons))),
        commit=commit,
    )


def judged(recovery: Recovery, *, known: Collection[str], leaf: Leaf | None, record: Reservation | None) -> Held | None:
    """The first check that fails; None when all pass.

    Args:
        known: UIDs of the leaves in the targets of the rollout.
        leaf: the one that is named, read now.
        record: the reservation of its device, read now.
    """
    if len(recovery.persons) < 2:
        said = ", ".join(recovery.persons) or "nobody"
        return Held(HeldReason.PERSONS, f"two persons are needed, the history names {said}")
    if recovery.leaf_uid not in known or leaf is None or leaf.uid != recovery.leaf_uid:
        return _unknown(recovery)
    if leaf.admission is not None and leaf.admission.state == "Settled":
        return Held(HeldReason.SETTLED, f"leaf {leaf.name} is settled, so there is nothing to recover")
    stored = {(claim.stage, claim.claimed_at) for claim in leaf.claims}
    if stored != {(stage, moment_at({"at": at}, "at")) for stage, at in recovery.claims}:
        has = ", ".join(f"{claim.stage} at {claim.claimed_at_text}" for claim in leaf.claims) or "none"
        return Held(HeldReason.CLAIMS, f"the block names other claims than leaf {leaf.name} has: {has}")
    if record is not None and record.drain_session_token:
        return Held(HeldReason.DRAIN, f"the reservation of leaf {leaf.name} is part of a drain")
    return None


def _unknown(recovery: Recovery) -> Held:
    return Held(HeldReason.UNKNOWN, f"{recovery.leaf_uid} is no leaf of this rollout")


async def take_up(
    ports: Ports, campaign: CampaignState, target: Target, recovery: Recovery, *, known: Collection[str], leaf_name: str
) -> Accepted | Held:
    """Put the recovery on its leaf, unless a check holds it; repeating it ends in the same.

    Raises:
        TransientError, Conflict: whether it was written is found out by the next pass.
    """
    path = leaf_path(campaign.namespace, leaf_name)

    async def one_round() -> Accepted | Held:
        tree = await ports.client.find(path)
        leaf = leaf_of(tree) if tree is not None else None
        if leaf is not None and leaf.uid == recovery.leaf_uid and _says(leaf, recovery):
            return Accepted(leaf)
        record = (await ports.ledger(campaign).read()).get(campaign.reservation_of(target))
        held = judged(recovery, known=known, leaf=leaf, record=record)
        if held is not None or tree is None or leaf is None:
            return held or Held(HeldReason.UNKNOWN, f"leaf {leaf_name} is gone")
        if leaf.recovery is not None:
            return Held(
                HeldReason.SETTLED, f"something else was said about leaf {leaf.name} before: {leaf.recovery.outcome}"
            )
        body = swap(tree, {"status": _record(ports, leaf, recovery)})
        written = await ports.client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status")
        return Accepted(leaf_of(written))

    return await swapped(ports.client, one_round)


def _says(leaf: Leaf, recovery: Recovery) -> bool:
    """Whether the leaf carries this already, for the claims that it has."""
    found = leaf.recovery
    if found is None or found.outcome != recovery.outcome:
        return False
    return {(one.stage, one.claimed_at_text) for one in found.claims} == {
        (one.stage, one.claimed_at_text) for one in leaf.claims
    }


def _record(ports: Ports, leaf: Leaf, recovery: Recovery) -> dict[str, JsonValue]:
    now = to_rfc3339(ports.clock.wall())
    status: dict[str, JsonValue] = {
        "managerRecovery": {
            "outcome": recovery.outcome,
            "claims": [{"stage": one.stage, "claimedAt": one.claimed_at_text} for one in leaf.claims],
            "persons": list(recovery.persons[:8]),
            "commit": recovery.commit,
            "recordedAt": now,
        }
    }
    if leaf.admission is not None and leaf.admission.state != "Revoked":
        status["managerAdmission"] = {
            **object_at(leaf.status, "managerAdmission"),
            "state": "Revoked",
            "revocationReason": str(Revocation.RECOVERY),
            "updatedAt": now,
        }
    return status


async def retire(ports: Ports, campaign: CampaignState, target: Target, *, leaf_name: str) -> Leaf | Refusal:
    """Carry out an accepted DeviceRetired: the device is marked first, then gives back what it held.

    Raises:
        TransientError, Conflict: how far it came is found out by the next pass, which runs the same steps.
    """
    leaf = await ports.leaf(campaign.namespace, leaf_name)
    if leaf is None or leaf.recovery is None or leaf.recovery.outcome != RETIRED:
        return Refusal(Reason.NOT_PROVEN, f"nobody declared the device of leaf {leaf_name} retired")
    await _mark(ports, campaign, target, leaf)
    return await settle_retired(ports, campaign, target, leaf_name=leaf_name)


async def _mark(ports: Ports, campaign: CampaignState, target: Target, leaf: Leaf) -> None:
    """`status.retired` of the device that was frozen, once; a device that is gone needs no mark."""
    path = device_path(campaign.namespace, target.device_name)
    recovery = leaf.recovery
    assert recovery is not None

    async def one_round() -> None:
        tree = await ports.client.find(path)
        if tree is None or text_at(tree, "metadata", "uid") != target.device_uid or device_of(tree).retired is not None:
            return
        mark: dict[str, JsonValue] = {
            "rolloutName": campaign.name,
            "rolloutUID": campaign.uid,
            "leafUID": leaf.uid,
            "persons": list(recovery.persons),
            "commit": recovery.commit,
            "at": to_rfc3339(ports.clock.wall()),
        }
        body = swap(tree, {"status": {"retired": mark}})
        await ports.client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status")

    await swapped(ports.client, one_round)


async def carry_out(
    ports: Ports,
    campaign: CampaignState,
    recovery: Recovery,
    *,
    leaves: Mapping[str, tuple[Target, str]],
    before: JsonObject | None,
) -> JsonObject:
    """Take a recovery as far as it goes, and the entry for `status.recoveries`.

    Args:
        leaves: target and name of each leaf in `status.targets`, by UID.
        before: the entry as it stands; one that is Settled stays.

    Raises:
        TransientError, Conflict: how far it came is found out by the next pass.
    """
    if before is not None and text_at(before, "state") == "Settled":
        return before
    target, name = leaves.get(recovery.leaf_uid, (None, ""))
    taken: Accepted | Held
    if target is None:
        taken = judged(recovery, known=leaves.keys(), leaf=None, record=None) or _unknown(recovery)
    else:
        taken = await take_up(ports, campaign, target, recovery, known=leaves.keys(), leaf_name=name)
    entry: dict[str, JsonValue] = {
        "leafUID": recovery.leaf_uid,
        **({} if target is None else {"deviceUID": target.device_uid}),
        "outcome": recovery.outcome,
        "state": "Held" if isinstance(taken, Held) else "Accepted",
        "reason": str(taken.reason) if isinstance(taken, Held) else recovery.outcome,
        "persons": list(recovery.persons[:8]),
        "commit": recovery.commit,
        "recordedAt": text_at(before or {}, "recordedAt") or to_rfc3339(ports.clock.wall()),
    }
    if target is None or isinstance(taken, Held) or not await _is_through(ports, campaign, target, taken.leaf):
        return entry
    return entry | {"state": "Settled", "settledAt": to_rfc3339(ports.clock.wall())}


async def _is_through(ports: Ports, campaign: CampaignState, target: Target, leaf: Leaf) -> bool:
    """Whether nothing is held any more; a retired device gives it back here, any other one when its leaf is settled."""
    if leaf.recovery is not None and leaf.recovery.outcome == RETIRED:
        return isinstance(await retire(ports, campaign, target, leaf_name=leaf.name), Leaf)
    return leaf.admission is not None and leaf.admission.state == "Settled"


async def recovered(
    ports: Ports, campaign: CampaignState, block: Block, leaves: Mapping[str, Leaf]
) -> list[JsonValue] | None:
    """Take up `spec.recovery`; `status.recoveries` as it is then, None where there is nothing to say.

    Args:
        block: what Git has at `/spec/recovery`.
        leaves: of the campaign by name.

    Raises:
        TransientError, Conflict: how far it came is found out by the next pass.
    """
    live = object_at(campaign.tree, "spec", "recovery")
    entries = {text_at(one, "leafUID"): one for one in objects_at(campaign.tree, "status", "recoveries")}
    before = entries.get(text_at(live, "leafUID"))
    by = block.proves(live, verb="recover", members=_MEMBERS)
    persons, commit = ((by.judged or (by.person,)), by.commit) if by is not None else ((), "")
    if before is not None and text_at(before, "state") != "Held":
        # What was taken up stands, whatever Git says by now.
        persons, commit = strings_at(before, "persons"), text_at(before, "commit")
    elif not block.known:
        return None
    recovery = recovery_of(campaign.tree, persons=persons, commit=commit)
    if recovery is None:
        return None
    named = {
        leaf.uid: (target, leaf.name)
        for target in campaign.targets
        for leaf in leaves.values()
        if leaf.binding.device_uid == target.device_uid
    }
    entry = await carry_out(ports, campaign, recovery, leaves=named, before=before)
    # A block that was held may be corrected: what the former one was held for is over.
    kept = [one for uid, one in entries.items() if uid != recovery.leaf_uid and text_at(one, "state") != "Held"]
    return [*kept, entry]

"""Receipts of a cancelled preparation are given up (rollouts.md, section 12.5).

The manager asks, leaf by leaf, and the worker answers with what it sees; nothing is deleted on a device.  A request is made once and for
exactly one receipt: what no longer matches is refused in words, and never tried with something else.
"""

from collections.abc import Mapping
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.rollout.activation import PREPARE_ONLY
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.leafplan import leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.ports import Ports

BLOCK: Final = "preparationInvalidation"
_MEMBERS: Final = ("planHash", "receipts", "reason")


def receipt_refusal(state: CampaignState, reference: JsonObject, leaf: Leaf | None, leaves: Mapping[str, Leaf]) -> str:
    """Why a receipt is not given up; empty when it is, or was already.

    Args:
        reference: device, leaf and receipt as the block names them.
        leaf: the one that prepared the device.
        leaves: all leaves of the campaign by name.
    """
    device = text_at(reference, "deviceUID")
    target = state.by_device.get(device)
    if target is None:
        return f"{device} is no device of this plan"
    if leaf is None or leaf.receipt is None:
        return f"nothing is prepared on {target.device_name}"
    names = (text_at(reference, "upgradeUID"), text_at(reference, "receiptHash"))
    if names != (leaf.uid, text_at(leaf.receipt, "receiptHash")):
        return f"the receipt of {target.device_name} is another one"
    used = [one for one in leaves.values() if one.binding.prepared_upgrade_uid == leaf.uid and one.claims]
    if used:
        return f"the activation of {target.device_name} was claimed by leaf {used[0].name}"
    control = leaf.manager_control
    if not leaf.is_given_back or control is None or not control.cancel or control.pause:
        return f"leaf {leaf.name} is not settled under a cancellation yet"
    return ""


def request_tree(state: CampaignState, leaf: Leaf, *, now: str) -> dict[str, JsonValue]:
    """`managerInvalidation` for a leaf."""
    block = object_at(state.tree, "spec", BLOCK)
    return {
        "receiptHash": text_at(leaf.receipt or {}, "receiptHash"),
        "planHash": state.plan_hash,
        "campaignUID": state.uid,
        "controlRevision": leaf.manager_control.revision if leaf.manager_control is not None else 0,
        "requestedBy": text_at(block, "requestedBy"),
        "requestedAt": text_at(block, "requestedAt") or now,
        "reason": text_at(block, "reason"),
    }


async def invalidate(ports: Ports, state: CampaignState, authority: Block, leaves: Mapping[str, Leaf]) -> str:
    """Ask the workers to give up the receipts that the block names; what it came to, in words.

    Args:
        authority: what Git has at `/spec/preparationInvalidation`.
        leaves: of the campaign by name, read in this pass.

    Raises:
        TransientError, Conflict: the next pass asks again.
    """
    block = object_at(state.tree, "spec", BLOCK)
    if not block or state.plan.strategy != PREPARE_ONLY or not authority.known:
        return ""
    if authority.proves(block, verb="recover", members=_MEMBERS) is None:
        return f"the invalidation has no effect: {authority.why or 'the accepted revision does not hold it'}"
    if text_at(block, "planHash") != state.plan_hash:
        return f"the invalidation names the plan {text_at(block, 'planHash')}, this one is {state.plan_hash}"
    refused, open_ones = [], 0
    for reference in objects_at(block, "receipts"):
        target = state.by_device.get(text_at(reference, "deviceUID"))
        leaf = leaves.get(target.child_name) if target is not None else None
        why = receipt_refusal(state, reference, leaf, leaves)
        if why:
            refused.append(why)
        elif leaf is not None and leaf.phase != "PreparedInvalidated":
            open_ones += 1
            await _ask(ports, state, leaf, reference)
    return _in_words(refused, open_ones)


async def _ask(ports: Ports, state: CampaignState, leaf: Leaf, reference: JsonObject) -> None:
    path = leaf_path(leaf.namespace, leaf.name)

    async def one_round() -> None:
        tree = await ports.client.get(path)
        seen = leaf_of(tree)
        if object_at(seen.status, "managerInvalidation") or receipt_refusal(state, reference, seen, {}):
            return
        request = request_tree(state, seen, now=to_rfc3339(ports.clock.wall()))
        change: JsonObject = {"status": {"managerInvalidation": request}}
        await ports.client.patch_merge(path, swap(tree, change), manager=FIELD_MANAGER, subresource="status")

    await swapped(ports.client, one_round)


def _in_words(refused: list[str], open_ones: int) -> str:
    if refused:
        return f"not given up: {listed(refused)}"
    if open_ones:
        return f"{open_ones} receipts are being given up: their workers look at the devices"
    return "every receipt was given up"

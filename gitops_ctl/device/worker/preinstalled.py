"""The preparation that an activation leaf rests on (rollouts.md, sections 12.2 and 12.4)."""

from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.device.operational import inventory_state
from gitops_ctl.device.worker.leafwork import Work
from gitops_ctl.device.worker.looking import Look
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.receipt import receipt_problem


async def prepared_leaf(work: Work) -> Leaf | None:
    """The leaf that prepared the device, named by its UID in the binding."""
    wanted = work.leaf.binding.prepared_upgrade_uid
    return next((one for one in await work.desk.siblings(work.leaf) if wanted and one.uid == wanted), None)


def prepared_problem(leaf: Leaf, prepared: Leaf | None, look: Look) -> str:
    """Why the receipt does not permit this activation, or the device does not show what it says; empty when all is as it was."""
    if prepared is None or prepared.receipt is None or prepared.phase != "Prepared":
        return "the leaf that prepared the device is gone, or has no receipt"
    receipt = prepared.receipt
    if text_at(receipt, "receiptHash") != leaf.binding.prepared_receipt_hash:
        return "the receipt is another one than the activation names"
    return receipt_problem(receipt) or _differs(leaf, receipt, look)


def _differs(leaf: Leaf, receipt: JsonObject, look: Look) -> str:
    if text_at(receipt, "deviceUID") != leaf.binding.device_uid:
        return "the receipt is of another device"
    if text_at(receipt, "runningVersion") != look.running:
        return f"the device runs {look.running}, the receipt says {text_at(receipt, 'runningVersion')}"
    validated = text_at(receipt, "validatedVersion")
    if validated in look.install.value.partial:
        return f"not every supervisor lists {validated}"
    state = inventory_state(look.install, validated)
    return "" if state == "Installed" else f"the device lists {validated} as {state}"

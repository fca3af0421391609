"""The end of a preparation: its receipt, and the look that invalidates it (rollouts.md, sections 12.1, 12.2 and 12.5).

Both are read-only.  Nothing is deleted on a device.
"""

from gitops_ctl.core.conditions import Condition, is_true
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device.gnoi import Verified
from gitops_ctl.device.operational import InstallState, inventory_state
from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.deadlines import install_deadline, is_over
from gitops_ctl.device.worker.leafwork import AGAIN, Work
from gitops_ctl.device.worker.looking import Look, look
from gitops_ctl.device.worker.settling import give_up
from gitops_ctl.fleet.encoding import ordered, sha256_of, without_empty
from gitops_ctl.fleet.receipt import (
    CONTENT_BINDING,
    PREPARE_PROTOCOL,
    PREPARING_STAGES,
    matches_target,
    receipt_hash,
    source_identity_hash,
    trust_identity_hash,
)

_REQUEST_MEMBERS = (
    *("receiptHash", "planHash", "campaignUID", "controlRevision", "requestedBy", "requestedAt", "reason"),
)


async def finish(work: Work) -> float:
    """Prove that the image is installed and does not run, and end Prepared."""
    if not is_true(work.leaf.status, "Transferred"):
        # A receipt binds the bytes of the plan to what the device has: there is none for what was there before.
        why = f"the device had {text_at(work.leaf.status, 'validatedVersion')} before: remove it there before the next try"
        return await give_up(work, "ContentNotBound", why)
    seen = await look(work.ports, work.access)
    if why := _unproven(work, seen):
        if is_over(install_deadline(work.leaf), work.now):
            end = leafstatus.ended(work.leaf, "Failed", now=work.now, reason="InstallNotConverged", message=why)
            work.leaf = await work.desk.write(work.leaf, end)
            return AGAIN
        told = leafstatus.told(work.leaf, "InstallConverging", why, now=work.now)
        work.leaf = await work.desk.write(work.leaf, told)
        return work.ports.poll_s
    message = f"{text_at(work.leaf.status, 'validatedVersion')} is installed, {seen.running} runs"
    end = leafstatus.ended(work.leaf, "Prepared", now=work.now, message=message, settled=True)
    members: JsonObject = {**end, "preparedReceipt": receipt_of(work, seen), "inventoryState": "Installed"}
    work.leaf = await work.desk.write(work.leaf, members)
    return AGAIN


def _unproven(work: Work, seen: Look) -> str:
    if seen.unrest:
        return seen.unrest
    target = work.leaf.target_version
    if matches_target(seen.running, target):
        return f"the device runs {target} already"
    if any(matches_target(name, target) for name in seen.install.value.partial):
        return f"not every supervisor lists {target}"
    state = inventory_state(seen.install, target)
    return "" if state == "Installed" else f"the device lists {target} as {state}"


def receipt_of(work: Work, seen: Look) -> JsonObject:
    """The receipt with its hash."""
    leaf, admission = work.leaf, work.leaf.admission
    assert admission is not None
    assert seen.verified is not None
    status, trust = leaf.status, work.access.trust
    claims = [one for one in objects_at(status, "managedMutationClaims") if text_at(one, "stage") in PREPARING_STAGES]
    tree: dict[str, JsonValue] = {
        "protocolVersion": PREPARE_PROTOCOL,
        "upgradeUID": leaf.uid,
        "deviceUID": leaf.binding.device_uid,
        "nodeUID": admission.node_uid,
        "physicalIdentity": admission.physical_identity,
        "deviceGeneration": leaf.binding.device_generation,
        "campaignUID": leaf.binding.campaign_uid,
        "planHash": leaf.binding.plan_hash,
        "managedProtocolVersion": admission.protocol_version,
        "policyUID": admission.policy_uid,
        "policyResourceVersion": admission.policy_version,
        "policyEpoch": admission.policy_epoch,
        "workerRevision": work.access.runtime.loaded_revision,
        "sourceDigest": text_at(status, "sourceDigest"),
        "sourceSize": int_at(status, "sourceSize"),
        "sourceIdentityHash": source_identity_hash(object_at(leaf.spec, "imageSource")),
        "sourceSecretUID": leaf.binding.source_secret_uid,
        "trustIdentityHash": trust_identity_hash(**trust._asdict()),
        "contentBinding": CONTENT_BINDING,
        "targetVersion": leaf.target_version,
        "validatedVersion": text_at(status, "validatedVersion"),
        "runningVersion": seen.running,
        **_supervisors(status, seen.verified),
        "installStartedAt": text_at(status, "installStartTime"),
        "managedMutationClaims": list(claims),
        "preparedAt": to_rfc3339(work.now),
    }
    always = ("primarySupervisorInstalled",)
    return {**without_empty(tree, keep=always), "receiptHash": receipt_hash(tree)}


def _supervisors(status: JsonObject, verified: Verified) -> dict[str, JsonValue]:
    """What was installed where; a standby is named only where it is installed by itself."""
    found: dict[str, JsonValue] = {"primarySupervisorInstalled": bool_at(status, "primarySupervisorInstalled")}
    if not bool_at(status, "individualSupervisorInstall"):
        return found
    return found | {
        "individualSupervisorInstall": True,
        "standbySupervisorInstalled": bool_at(status, "standbySupervisorInstalled"),
        "standbySupervisorID": verified.standby.id,
        "standbyRunningVersion": verified.standby.version,
    }


async def invalidate(work: Work) -> float:
    """Answer a request to give a preparation up: with what the device shows, and nothing else."""
    receipt, request = work.leaf.receipt or {}, object_at(work.leaf.status, "managerInvalidation")
    if why := _refused(work, receipt, request):
        told = leafstatus.told(work.leaf, "InvalidationRefused", why, now=work.now)
        work.leaf = await work.desk.write(work.leaf, told)
        return work.ports.poll_s
    seen = await look(work.ports, work.access)
    state = inventory_state(seen.install, text_at(receipt, "validatedVersion"))
    why = seen.unrest or _differs(seen, receipt, state)
    if why:
        told = leafstatus.told(work.leaf, "InvalidationPending", why, now=work.now)
        work.leaf = await work.desk.write(work.leaf, told)
        return work.ports.poll_s
    evidence: JsonObject = {
        "requestHash": sha256_of(ordered(request, _REQUEST_MEMBERS)),
        "nativeEvidenceHash": sha256_of(native_inventory(seen.running, seen.install.value)),
        "observedAt": to_rfc3339(work.now),
        "workerRevision": work.access.runtime.loaded_revision,
        "workerPodUID": work.access.runtime.pod_uid,
        "runningVersion": seen.running,
        "targetState": state if state == "Absent" else "Installed",
    }
    said = Condition("Ready", "True", "PreparedInvalidated", f"{seen.running} runs, the preparation is given up")
    members: JsonObject = {
        "phase": "PreparedInvalidated",
        "preparedInvalidation": evidence,
        **leafstatus.conditions(work.leaf, said, now=work.now),
    }
    work.leaf = await work.desk.write(work.leaf, members)
    return AGAIN


def native_inventory(running: str, install: InstallState) -> JsonObject:
    """What a device shows of its software, in an order that does not depend on it."""
    versions: list[JsonValue] = [{"version": one.name, "state": one.state.value} for one in install.versions]
    return {"running": running, "committed": install.committed, "versions": versions}


def _refused(work: Work, receipt: JsonObject, request: JsonObject) -> str:
    """Why a request is not answered at all; it is never tried again."""
    for member in ("receiptHash", "planHash", "campaignUID"):
        if text_at(request, member) != text_at(receipt, member):
            return f"{member} of the request is not that of the receipt"
    if receipt_hash(receipt) != text_at(receipt, "receiptHash"):
        return "the receipt was changed"
    return "" if text_at(receipt, "upgradeUID") == work.leaf.uid else "the receipt is of another leaf"


def _differs(seen: Look, receipt: JsonObject, state: str) -> str:
    if seen.running != text_at(receipt, "runningVersion"):
        return f"the device runs {seen.running}, the receipt says {text_at(receipt, 'runningVersion')}"
    return "" if state in ("Absent", "Installed") else f"the device lists the prepared version as {state}"

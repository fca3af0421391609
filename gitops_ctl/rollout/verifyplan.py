"""Recomputes every hash and identifier that an object publishes (rollouts.md, sections 5.4, 7.3, 8.2, 9.3, 10 and 15.2).

For objects of ours and of the reference alike.  Nothing is asked of a cluster: an object, or several that belong together, are enough.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import compact_json, sha256_of, sorted_map
from gitops_ctl.fleet.health import conditions_hash_input
from gitops_ctl.fleet.identity import canonical_identity, child_name, device_identity_hash, reservation_id
from gitops_ctl.fleet.ledger import decode_ledger
from gitops_ctl.fleet.policy import parse_policy, semantic_hash, structural_hash
from gitops_ctl.fleet.receipt import receipt_hash, source_identity_hash
from gitops_ctl.fleet.trees import texts_at
from gitops_ctl.rollout.planhash import hash_and_size, ordered_snapshot, published_hash_input
from gitops_ctl.rollout.verifysearch import explained


class State(enum.StrEnum):
    """What came out."""

    SAME = "Same"
    DIFFERS = "Differs"
    COMPUTED = "Computed"
    """Nothing is published to compare with."""
    UNKNOWN = "Unknown"
    """It cannot be recomputed from what is given."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One published value and the recomputed one.

    Attributes:
        subject: `Kind/namespace/name`.
        member: where it is published, as a path; for what is not published, what it is.
        detail: for what differs, which member of the input it comes from, as far as that can be found.
    """

    subject: str
    member: str
    state: State
    published: str = ""
    computed: str = ""
    detail: str = ""

    def to_json(self) -> JsonObject:
        """For programs; members without a value are left out."""
        said = {"published": self.published, "computed": self.computed, "detail": self.detail}
        tree = {"object": self.subject, "member": self.member, "verdict": self.state.value}
        return tree | {name: value for name, value in said.items() if value}


def verified(tree: JsonObject) -> tuple[Finding, ...]:
    """Every value of one object that can be recomputed from the object alone; none for a kind that publishes none."""
    check = _CHECKS.get(text_at(tree, "kind"))
    return tuple(check(tree)) if check is not None else ()


def subject_of(tree: JsonObject) -> str:
    """`Kind/namespace/name`."""
    parts = (text_at(tree, "kind"), text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))
    return "/".join(part for part in parts if part)


def compared(subject: str, member: str, published: JsonValue, computed: JsonValue, detail: str = "") -> Finding:
    """The finding for two values; `detail` is kept only where they differ."""
    said, found = _text(published), _text(computed)
    same = said == found
    return Finding(subject, member, State.SAME if same else State.DIFFERS, said, found, "" if same else detail)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else compact_json(value).decode()


def _rollout(tree: JsonObject) -> Iterator[Finding]:
    subject, frozen = subject_of(tree), object_at(tree, "status", "frozenPlan")
    if not frozen:
        yield Finding(subject, "status.frozenPlan", State.UNKNOWN, detail="the rollout has no frozen plan")
        return
    published = text_at(frozen, "hash")
    try:
        plan_input = published_hash_input(tree)
    except ValueError as error:
        yield Finding(subject, "status.frozenPlan.hash", State.UNKNOWN, published, detail=f"no plan: {error}")
        return
    computed, size = hash_and_size(plan_input)
    detail = explained(tree, published) if published != computed else ""
    yield compared(subject, "status.frozenPlan.hash", published, computed, detail)
    yield compared(subject, "status.frozenPlan.encodedSizeBytes", int_at(frozen, "encodedSizeBytes"), size)
    yield from _targets(tree, subject)
    yield from _repeated(tree, subject)


def _targets(tree: JsonObject, subject: str) -> Iterator[Finding]:
    rollout, uid = text_at(tree, "metadata", "name"), text_at(tree, "metadata", "uid")
    for place, target in enumerate(objects_at(tree, "status", "frozenPlan", "targets")):
        device = text_at(target, "deviceName")
        computed = child_name(rollout, device, reservation_id(uid, text_at(target, "deviceUID")))
        member = f"status.frozenPlan.targets[{place}].childName"
        why = f"it is made of the rollout's name and UID and of the name and UID of device {device}"
        yield compared(subject, member, text_at(target, "childName"), computed, why)


def _repeated(tree: JsonObject, subject: str) -> Iterator[Finding]:
    """What says the plan hash, or the policy of the first epoch, once more."""
    wanted = text_at(tree, "status", "frozenPlan", "hash")
    blocks = (("spec", "approval"), ("status", "approval"), ("spec", "activationApproval"), ("status", "activation"))
    for path in blocks:
        said = text_at(tree, *path, "planHash")
        if said:
            yield compared(subject, f"{'.'.join(path)}.planHash", said, wanted, "it is the hash of another plan")
    effective = object_at(tree, "status", "effectivePolicy")
    if int_at(effective, "epoch") == 1:
        ours = ordered_snapshot(object_at(effective, "policy"))
        frozen = ordered_snapshot(object_at(tree, "status", "frozenPlan", "policy"))
        member = "status.effectivePolicy.policy"
        yield compared(subject, member, sha256_of(ours), sha256_of(frozen), differing_members(ours, frozen))


def differing_members(ours: JsonObject, theirs: JsonObject) -> str:
    """The members in which two objects differ, in words."""
    found = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return f"they differ in {', '.join(found)}" if found else ""


def _config_map(tree: JsonObject) -> Iterator[Finding]:
    """The fleet policy or the ledger; every other ConfigMap publishes nothing."""
    for key, check in ((names.POLICY_KEY, _policy), (names.LEDGER_KEY, _ledger)):
        text = text_at(tree, "data", key)
        if not text:
            continue
        try:
            yield from check(tree, text)
        except Refused as error:
            detail = f"{error.subject}: {error.message}"
            yield Finding(subject_of(tree), f"data[{key}]", State.UNKNOWN, detail=detail)


def _policy(tree: JsonObject, text: str) -> list[Finding]:
    subject, policy = subject_of(tree), parse_policy(text)
    return [
        Finding(subject, "semanticHash", State.COMPUTED, computed=semantic_hash(policy)),
        Finding(subject, "structuralHash", State.COMPUTED, computed=structural_hash(policy)),
    ]


def _ledger(tree: JsonObject, text: str) -> list[Finding]:
    subject, ledger = subject_of(tree), decode_ledger(text, text_at(tree, "metadata", "uid"))
    why = "it is made of the UIDs of campaign and device"
    return [
        compared(subject, f"reservations[{one.id}].id", one.id, reservation_id(one.campaign_uid, one.device_uid), why)
        for one in ledger.reservations
    ]


def _node(tree: JsonObject) -> Iterator[Finding]:
    annotations = texts_at(tree, "metadata", "annotations")
    published = annotations.get(names.PROJECTION_HASH, "")
    keys = [key for key in annotations.get(names.PROJECTED_KEYS, "").split(",") if key]
    if not published and not keys:
        return
    labels = texts_at(tree, "metadata", "labels")
    member = f"metadata.annotations[{names.PROJECTION_HASH}]"
    missing = [key for key in keys if key not in labels]
    computed = sha256_of(sorted_map({key: labels[key] for key in keys if key in labels}))
    detail = f"the Node lacks label {', '.join(missing)}" if missing else "a projected label was changed"
    yield compared(subject_of(tree), member, published, computed, detail)


def _device(tree: JsonObject) -> Iterator[Finding]:
    subject, status = subject_of(tree), object_at(tree, "status")
    published = text_at(status, "healthObservation", "deviceConditionsHash")
    hash_input = conditions_hash_input(text_at(status, "phase"), objects_at(status, "conditions"))
    member = "status.healthObservation.deviceConditionsHash"
    if published:
        detail = "phase or conditions changed since the observation was made"
        yield compared(subject, member, published, sha256_of(hash_input), detail)
    else:
        yield Finding(subject, member, State.COMPUTED, computed=sha256_of(hash_input))
    yield from _identity(tree, subject)
    lock = object_at(status, "topologyLock")
    if lock:
        computed = reservation_id(text_at(lock, "campaignUID"), text_at(lock, "deviceUID"))
        why = "it is made of the UIDs of campaign and device"
        yield compared(subject, "status.topologyLock.reservationID", text_at(lock, "reservationID"), computed, why)


def _identity(tree: JsonObject, subject: str) -> Iterator[Finding]:
    declared = text_at(tree, "spec", "physicalIdentity")
    recorded = text_at(tree, "status", "nodeIdentity", "physicalIdentity")
    try:
        canonical = canonical_identity(declared or recorded)
    except Refused as error:
        if declared or recorded:
            yield Finding(subject, "spec.physicalIdentity", State.UNKNOWN, declared or recorded, detail=error.message)
        return
    if declared and recorded:
        yield compared(subject, "status.nodeIdentity.physicalIdentity", recorded, canonical, "spec declares another")
    for name in ("network", "acceptedNetwork"):
        said = text_at(tree, "status", "healthObservation", name, "deviceIdentityHash")
        if said:
            member = f"status.healthObservation.{name}.deviceIdentityHash"
            yield compared(subject, member, said, device_identity_hash(canonical), "the sample is of another chassis")


def _leaf(tree: JsonObject) -> Iterator[Finding]:
    subject, annotations = subject_of(tree), texts_at(tree, "metadata", "annotations")
    campaign, device = annotations.get(names.CAMPAIGN_UID, ""), annotations.get(names.DEVICE_UID, "")
    if not campaign or not device:
        yield Finding(subject, "metadata.annotations", State.UNKNOWN, detail="no campaign made it: it has no binding")
        return
    reservation = reservation_id(campaign, device)
    why = "it is made of the UIDs of campaign and device"
    member = f"metadata.annotations[{names.RESERVATION_ID}]"
    yield compared(subject, member, annotations.get(names.RESERVATION_ID, ""), reservation, why)
    if names.PREPARED_UPGRADE_UID not in annotations:
        rollout, name = annotations.get(names.CAMPAIGN_NAME, ""), annotations.get(names.DEVICE_NAME, "")
        computed = child_name(rollout, name, reservation)
        yield compared(subject, "metadata.name", text_at(tree, "metadata", "name"), computed, why)
    admission = object_at(tree, "status", "managerAdmission")
    bound = (("planHash", names.PLAN_HASH), ("reservationID", names.RESERVATION_ID), ("deviceUID", names.DEVICE_UID))
    for name, annotation in bound:
        if admission:
            wanted = annotations.get(annotation, "")
            said = text_at(admission, name)
            yield compared(subject, f"status.managerAdmission.{name}", said, wanted, "the binding names another")
    digest, wanted = text_at(tree, "status", "sourceDigest"), text_at(tree, "spec", "imageSource", "sha256")
    if digest and wanted:
        yield compared(subject, "status.sourceDigest", digest, f"sha256:{wanted}", "the image is another")
    yield from _receipt(tree, subject)


def _receipt(tree: JsonObject, subject: str) -> Iterator[Finding]:
    """The hashes of the receipt of a prepared device."""
    receipt = object_at(tree, "status", "preparedReceipt")
    if not receipt:
        return
    member = "status.preparedReceipt"
    hashes = (
        ("receiptHash", receipt_hash(receipt), "a member of the receipt was changed"),
        (
            "sourceIdentityHash",
            source_identity_hash(object_at(tree, "spec", "imageSource")),
            "it was prepared from another source",
        ),
    )
    for name, computed, why in hashes:
        yield compared(subject, f"{member}.{name}", text_at(receipt, name), computed, why)


_CHECKS: Final = {
    names.ROLLOUT_KIND: _rollout,
    "ConfigMap": _config_map,
    "Node": _node,
    names.DEVICE_KIND: _device,
    names.LEAF_KIND: _leaf,
}


def hash_input_of(tree: JsonObject) -> JsonValue:
    """What the first hash of an object is taken over, for a look by eye; None for a kind without one."""
    if text_at(tree, "kind") == names.ROLLOUT_KIND and object_at(tree, "status", "frozenPlan"):
        return published_hash_input(tree)
    return None

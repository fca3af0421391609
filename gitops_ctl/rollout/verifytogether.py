"""Whether published objects agree with each other: a plan with its policy, Nodes, devices and leaves (rollouts.md, sections 6.2 and 9.3)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.evidence import sample_hash
from gitops_ctl.fleet.identity import activation_child_name, canonical_identity
from gitops_ctl.fleet.policy import FleetPolicy, matches_fleet, parse_policy, risk_groups_of
from gitops_ctl.fleet.trees import texts_at
from gitops_ctl.rollout.activation import authorization_hash
from gitops_ctl.rollout.planhash import membership_hash, ordered_snapshot
from gitops_ctl.rollout.snapshot import PolicyRecord, snapshot_of
from gitops_ctl.rollout.verifyplan import Finding, State, compared, subject_of

_FROZEN: Final = "status.frozenPlan"


def verified_together(trees: Iterable[JsonObject]) -> tuple[Finding, ...]:
    """What several objects say about each other; an object that belongs to none of the rollouts is passed over."""
    found = tuple(trees)
    rollouts = [
        tree
        for tree in found
        if text_at(tree, "kind") == names.ROLLOUT_KIND and object_at(tree, "status", "frozenPlan")
    ]
    return tuple(finding for rollout in rollouts for finding in _around(rollout, found))


def _around(rollout: JsonObject, trees: tuple[JsonObject, ...]) -> Iterator[Finding]:
    frozen = object_at(rollout, "status", "frozenPlan")
    record = _policy_of(frozen, trees)
    if record is not None:
        yield from _with_policy(rollout, frozen, record)
        yield from _with_fleet(rollout, frozen, record.policy, trees)
    namespace = text_at(rollout, "metadata", "namespace")
    for place, target in enumerate(objects_at(frozen, "targets")):
        member = f"{_FROZEN}.targets[{place}]"
        node = _named(trees, "Node", "", text_at(target, "nodeName"))
        device = _named(trees, names.DEVICE_KIND, namespace, text_at(target, "deviceName"))
        child = text_at(target, "childName")
        leaf = _named(trees, names.LEAF_KIND, namespace, child)
        activation = _named(trees, names.LEAF_KIND, namespace, activation_child_name(child))
        if node is not None:
            yield from _with_node(rollout, member, target, node)
        if device is not None:
            yield from _with_device(rollout, member, target, device)
        for made in (leaf, activation):
            if made is not None:
                yield from _with_leaf(rollout, target, made)
        if leaf is not None and device is not None:
            yield from _with_evidence(leaf, device)
        if leaf is not None and activation is not None:
            yield from _with_activation(rollout, leaf, activation)


def _named(trees: Iterable[JsonObject], kind: str, namespace: str, name: str) -> JsonObject | None:
    wanted = (kind, namespace, name)
    for tree in trees:
        if (text_at(tree, "kind"), text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name")) == wanted:
            return tree
    return None


def _policy_of(frozen: JsonObject, trees: Iterable[JsonObject]) -> PolicyRecord | None:
    """The policy that the plan was frozen under, if it is there and can be read."""
    for tree in trees:
        text = text_at(tree, "data", names.POLICY_KEY)
        if not text or text_at(tree, "metadata", "uid") != text_at(frozen, "policy", "uid"):
            continue
        try:
            return _record(tree, parse_policy(text))
        except Refused:
            return None
    return None


def _record(tree: JsonObject, policy: FleetPolicy) -> PolicyRecord:
    """A policy with the identity of its ConfigMap."""
    return PolicyRecord(
        policy,
        name=text_at(tree, "metadata", "name"),
        namespace=text_at(tree, "metadata", "namespace"),
        uid=text_at(tree, "metadata", "uid"),
        resource_version=text_at(tree, "metadata", "resourceVersion"),
        ledger_uid=text_at(tree, "metadata", "annotations", names.LEDGER_UID),
    )


def _with_policy(rollout: JsonObject, frozen: JsonObject, record: PolicyRecord) -> Iterator[Finding]:
    published, live = ordered_snapshot(object_at(frozen, "policy")), snapshot_of(record).to_json()
    if published.get("resourceVersion") != record.resource_version:
        said, now = str(published.get("resourceVersion")), record.resource_version
        why = "the policy was written since the plan was frozen, so it cannot be compared"
        yield Finding(subject_of(rollout), f"{_FROZEN}.policy", State.UNKNOWN, said, now, why)
        return
    subject, why = subject_of(rollout), f"ConfigMap {record.namespace}/{record.name} says otherwise"
    for name in live:
        yield compared(subject, f"{_FROZEN}.policy.{name}", published.get(name), live[name], why)


def _with_fleet(
    rollout: JsonObject, frozen: JsonObject, policy: FleetPolicy, trees: Iterable[JsonObject]
) -> Iterator[Finding]:
    published, member = text_at(frozen, "riskGroupMembershipHash"), f"{_FROZEN}.riskGroupMembershipHash"
    devices = [tree for tree in trees if text_at(tree, "kind") == names.DEVICE_KIND]
    if not published or not devices:
        return
    computed = membership_hash(_groups(devices, policy))
    if computed == published:
        yield Finding(subject_of(rollout), member, State.SAME, published, computed)
        return
    why = "the devices that are given are not the whole fleet, or a membership changed since"
    yield Finding(subject_of(rollout), member, State.UNKNOWN, published, computed, why)


def _groups(devices: Iterable[JsonObject], policy: FleetPolicy) -> Iterator[tuple[str, tuple[str, ...]]]:
    for device in devices:
        labels = texts_at(device, "metadata", "labels")
        retired = object_at(device, "status", "retired")
        if matches_fleet(policy, labels) and not retired:
            yield _identity_of(device), risk_groups_of(policy, labels)


def _identity_of(device: JsonObject) -> str:
    declared = text_at(device, "spec", "physicalIdentity")
    try:
        return canonical_identity(declared)
    except Refused:
        return text_at(device, "status", "nodeIdentity", "physicalIdentity")


def _with_node(rollout: JsonObject, member: str, target: JsonObject, node: JsonObject) -> Iterator[Finding]:
    subject, why = subject_of(rollout), f"{subject_of(node)} says otherwise"
    yield compared(subject, f"{member}.nodeUID", text_at(target, "nodeUID"), text_at(node, "metadata", "uid"), why)
    hashed = texts_at(node, "metadata", "annotations").get(names.PROJECTION_HASH)
    if hashed is not None:
        yield compared(subject, f"{member}.projectionHash", text_at(target, "projectionHash"), hashed, why)


def _with_device(rollout: JsonObject, member: str, target: JsonObject, device: JsonObject) -> Iterator[Finding]:
    subject, why = subject_of(rollout), f"{subject_of(device)} says otherwise"
    metadata, status = object_at(device, "metadata"), object_at(device, "status")
    yield compared(subject, f"{member}.deviceUID", text_at(target, "deviceUID"), text_at(metadata, "uid"), why)
    generation = int_at(metadata, "generation")
    yield compared(subject, f"{member}.deviceGeneration", int_at(target, "deviceGeneration"), generation, why)
    others: Mapping[str, str] = {
        "physicalIdentity": _identity_of(device),
        "projectionHash": text_at(status, "topologyProjection", "effectiveLabelHash"),
        "nodeUID": text_at(status, "nodeIdentity", "nodeUID"),
    }
    for name, value in others.items():
        if value:
            yield compared(subject, f"{member}.{name}", text_at(target, name), value, why)
    labels = texts_at(metadata, "labels")
    for entry in objects_at(target, "topology"):
        key = text_at(entry, "key")
        if labels:
            yield compared(subject, f"{member}.topology[{key}]", text_at(entry, "value"), labels.get(key, ""), why)


def _with_leaf(rollout: JsonObject, target: JsonObject, leaf: JsonObject) -> Iterator[Finding]:
    subject, why = subject_of(leaf), f"{subject_of(rollout)} says otherwise"
    annotations = texts_at(leaf, "metadata", "annotations")
    wanted = {
        names.PLAN_HASH: text_at(rollout, "status", "frozenPlan", "hash"),
        names.CAMPAIGN_UID: text_at(rollout, "metadata", "uid"),
        names.DEVICE_UID: text_at(target, "deviceUID"),
        names.DEVICE_GENERATION: str(int_at(target, "deviceGeneration")),
        names.NODE_UID: text_at(target, "nodeUID"),
    }
    for name, value in wanted.items():
        yield compared(subject, f"metadata.annotations[{name}]", annotations.get(name, ""), value, why)
    digest = text_at(leaf, "spec", "imageSource", "sha256")
    if digest:
        yield compared(subject, "spec.imageSource.sha256", digest, text_at(target, "source", "sha256"), why)


def _with_evidence(leaf: JsonObject, device: JsonObject) -> Iterator[Finding]:
    """The sample that a grant rests on, while it is the one that is accepted."""
    admission = object_at(leaf, "status", "managerAdmission")
    sample = object_at(device, "status", "healthObservation", "acceptedNetwork")
    sequence = int_at(admission, "networkEvidenceSampleSequence")
    said = text_at(admission, "networkEvidenceHash")
    if said and sample and int_at(sample, "sampleSequence") == sequence:
        why = "the hash of the reference may have another order; otherwise the sample was changed"
        member = "status.managerAdmission.networkEvidenceHash"
        yield compared(subject_of(leaf), member, said, sample_hash(sample), why)


def _with_activation(rollout: JsonObject, leaf: JsonObject, activation: JsonObject) -> Iterator[Finding]:
    """What an activation leaf is bound to."""
    subject, annotations = subject_of(activation), texts_at(activation, "metadata", "annotations")
    wanted = {
        names.PREPARED_UPGRADE_UID: text_at(leaf, "metadata", "uid"),
        names.PREPARED_RECEIPT_HASH: text_at(leaf, "status", "preparedReceipt", "receiptHash"),
    }
    approval = object_at(rollout, "spec", "activationApproval")
    if approval:
        uid = text_at(rollout, "metadata", "uid")
        wanted[names.ACTIVATION_HASH] = authorization_hash(approval, campaign_uid=uid)
    why = f"{subject_of(leaf)} or {subject_of(rollout)} says otherwise"
    for name, value in wanted.items():
        yield compared(subject, f"metadata.annotations[{name}]", annotations.get(name, ""), value, why)

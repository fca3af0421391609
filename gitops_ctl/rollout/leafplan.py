"""The leaf of a target as the manager makes it, and whether a stored leaf is that one (rollouts.md, sections 4.1, 4.4 and 6.2).

A leaf is made once and never changed: under the name of the frozen plan stands either exactly this leaf, or somebody else's object.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.identity import activation_child_name
from gitops_ctl.fleet.leaf import Leaf, NetworkAuthority
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.rollout.campaignstate import CampaignState, Control
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.targets import Target, image_source

API_VERSION: Final = f"{names.OPERATIONS_GROUP}/v1alpha1"
CONTROL_REASON: Final = "CampaignControl"
PREPARE_ONLY: Final = "PrepareOnly"

_WORKER_BINDING: Final = (
    *(names.APP_WORKER_USERNAME, names.APP_WORKER_POD_NAME, names.APP_WORKER_POD_UID),
    *(names.NETWORK_WORKER_POD_NAME, names.NETWORK_WORKER_POD_UID),
)
"""Copied from the Node, and renewed later with it: no part of what makes a leaf the one that was planned."""
_BINDING: Final = frozenset(
    {
        *(names.SOURCE_SECRET_UID, names.PREPARED_UPGRADE_UID, names.PREPARED_RECEIPT_HASH, names.ACTIVATION_HASH),
    }
)
"""Annotations that say something only where the plan says it."""
_DEFAULTS: Final[dict[str, JsonValue]] = {
    "requireNetworkEvidence": False,
    "strategy": "Reload",
    "rollbackOnFailure": True,
    "resumePolicy": "Retry",
    "maxRetries": 3,
    "installTimeoutSeconds": 3600,
    "rebootTimeoutSeconds": 1800,
}


@dataclass(frozen=True, slots=True)
class Activation:
    """What a leaf activates that another one prepared, in which window (12.4)."""

    prepared_name: str
    prepared_uid: str
    receipt_hash: str
    authorization_hash: str
    not_before: datetime
    not_after: datetime

    def closed(self, now: datetime) -> Refusal | None:
        """None while the window is open by our clock."""
        if now < self.not_before:
            return Refusal(Reason.WINDOW_NOT_OPEN, f"the activation window opens at {to_rfc3339(self.not_before)}")
        if now >= self.not_after:
            return Refusal(Reason.WINDOW_CLOSED, f"the activation window closed at {to_rfc3339(self.not_after)}")
        return None


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """Everything that one leaf is made from.

    Attributes:
        account: user name of the network worker, which executes the leaf.
        activation: None for the leaf that installs.
    """

    campaign: CampaignState
    target: Target
    account: str
    activation: Activation | None = None

    @property
    def name(self) -> str:
        return (
            self.target.child_name if self.activation is None else activation_child_name(self.activation.prepared_name)
        )

    @property
    def path(self) -> str:
        return leaf_path(self.campaign.namespace, self.name)

    def tree(self, *, device: Device | None = None, node: NodeSeen | None = None) -> JsonObject:
        """The object that is created.  Without a device or a Node, as for the tombstone of one that is gone, no worker is named."""
        campaign = self.campaign
        owner: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": names.ROLLOUT_KIND,
            "name": campaign.name,
            "uid": campaign.uid,
            "controller": True,
        }
        return {
            "apiVersion": API_VERSION,
            "kind": names.LEAF_KIND,
            "metadata": {
                "name": self.name,
                "namespace": campaign.namespace,
                "labels": {names.CAMPAIGN_UID: campaign.uid},
                "annotations": {**self.binding(), **worker_binding(device, node)},
                "finalizers": [names.LEAF_FINALIZER],
                "ownerReferences": [owner],
            },
            "spec": self.spec(),
        }

    def binding(self) -> dict[str, str]:
        """The annotations that bind the leaf to its campaign, device, Node and account for good."""
        campaign, target = self.campaign, self.target
        found = {
            names.MANAGED: "true",
            names.CAMPAIGN_NAMESPACE: campaign.namespace,
            names.CAMPAIGN_NAME: campaign.name,
            names.CAMPAIGN_UID: campaign.uid,
            names.PLAN_HASH: campaign.plan_hash,
            names.LEDGER_UID: campaign.frozen.ledger_uid,
            names.RESERVATION_ID: campaign.reservation_of(target),
            names.DEVICE_NAMESPACE: campaign.namespace,
            names.DEVICE_NAME: target.device_name,
            names.DEVICE_UID: target.device_uid,
            names.DEVICE_GENERATION: str(target.device_generation),
            names.NODE_NAME: target.node_name,
            names.NODE_UID: target.node_uid,
            names.WORKER_USERNAME: self.account,
            names.NETWORK_WORKER_USERNAME: self.account,
            names.WORKER_PROTOCOL: target.worker_protocol,
        }
        if self.activation is None:
            return found | ({names.SOURCE_SECRET_UID: target.source.secret_uid} if target.source.secret_uid else {})
        return found | {
            names.PREPARED_UPGRADE_UID: self.activation.prepared_uid,
            names.PREPARED_RECEIPT_HASH: self.activation.receipt_hash,
            names.ACTIVATION_HASH: self.activation.authorization_hash,
        }

    def spec(self) -> dict[str, JsonValue]:
        """What is done to the device; members that the server fills in are left out."""
        plan, target, activation = self.campaign.plan, self.target, self.activation
        tree: dict[str, JsonValue] = {
            "deviceRef": {"name": target.device_name},
            "imageSource": {"preinstalled": {}} if activation is not None else image_source(target),
            "targetVersion": plan.target_version,
            "strategy": plan.strategy if activation is None else "Reload",
            "rollbackOnFailure": bool_at(plan.tree, "rollbackOnFailure", default=True),
            "installTimeoutSeconds": plan.install_timeout_s,
            "rebootTimeoutSeconds": int_at(plan.tree, "rebootTimeoutSeconds", default=1800),
        }
        if target.max_bytes_per_s:
            tree["maxTransferBytesPerSecond"] = target.max_bytes_per_s
        if plan.network_is_on:
            tree["requireNetworkEvidence"] = True
        window = self._window()
        return tree | ({"maintenanceWindow": window} if window else {})

    def _window(self) -> JsonObject:
        if self.activation is None:
            return object_at(self.campaign.plan.tree, "maintenanceWindow")
        return {
            "notBefore": to_rfc3339(self.activation.not_before),
            "notAfter": to_rfc3339(self.activation.not_after),
        }

    def difference(self, tree: JsonObject) -> str:
        """What makes a stored leaf another one than this; empty when it is this one."""
        annotations, wanted = object_at(tree, "metadata", "annotations"), self.binding()
        foreign = {key for key in annotations if key in _BINDING and key not in wanted}
        differing = sorted(foreign | {key for key, value in wanted.items() if annotations.get(key) != value})
        owners = [text_at(one, "uid") for one in objects_at(tree, "metadata", "ownerReferences")]
        if text_at(tree, "metadata", "labels", names.CAMPAIGN_UID) != self.campaign.uid:
            differing.append(f"label {names.CAMPAIGN_UID}")
        if owners != [self.campaign.uid]:
            differing.append("ownerReferences")
        live, spec = {**_DEFAULTS, **object_at(tree, "spec")}, {**_DEFAULTS, **self.spec()}
        differing += [f"spec.{key}" for key in sorted({*live, *spec}) if live.get(key) != spec.get(key)]
        return listed(differing)

    def protocol(self) -> str:
        """The first protocol that fits (4.4)."""
        plan = self.campaign.plan
        if self.activation is not None or plan.strategy == PREPARE_ONLY:
            return names.PROTOCOL_STAGED
        if plan.network_is_on:
            return names.PROTOCOL_EVIDENCE
        return names.PROTOCOL_PACING if self.target.max_bytes_per_s else names.PROTOCOL

    def pending(self, leaf_uid: str, which: Acquisition, *, now: datetime) -> dict[str, JsonValue]:
        """`managerAdmission` of a leaf that waits for its worker and its grant."""
        campaign, target = self.campaign, self.target
        return {
            "state": "Pending",
            "protocolVersion": self.protocol(),
            "campaignUID": campaign.uid,
            "planHash": campaign.plan_hash,
            "policyUID": campaign.frozen.uid,
            "policyResourceVersion": campaign.effective.policy.resource_version,
            "policyEpoch": which.policy_epoch,
            "ledgerUID": campaign.frozen.ledger_uid,
            "reservationID": which.reservation_id,
            "topologyLockID": which.lock_id,
            "leafUID": leaf_uid,
            "deviceUID": target.device_uid,
            "deviceGeneration": target.device_generation,
            "physicalIdentity": target.physical_identity,
            "nodeUID": target.node_uid,
            "controlRevision": campaign.control.revision,
            "updatedAt": to_rfc3339(now),
        }


def leaf_path(namespace: str, name: str = "") -> str:
    """Where the API server has that leaf, or the leaves of the namespace."""
    folder = f"/apis/{API_VERSION}/namespaces/{namespace}/iosxesoftwareupgrades"
    return f"{folder}/{name}" if name else folder


def worker_binding(device: Device | None, node: NodeSeen | None) -> dict[str, str]:
    """Which Pods and which loaded inputs stand behind a leaf now: what the Node is bound to, and what is proven (17.2)."""
    if device is None or node is None:
        return {}
    found = {key: node.annotations.get(key, "") for key in _WORKER_BINDING}
    revision = device.worker_revision
    if revision is not None and revision.is_proven:
        found[names.APP_WORKER_CONFIG_REVISION] = revision.observed
    return {key: value for key, value in found.items() if value}


def control_tree(control: Control, *, now: datetime, reason: str = CONTROL_REASON) -> dict[str, JsonValue]:
    """`managerControl` for a control of the campaign."""
    tree: dict[str, JsonValue] = {"revision": control.revision, "updatedAt": to_rfc3339(now), "reason": reason}
    if control.pause:
        tree["pause"] = True
    if control.cancel:
        tree["cancel"] = True
    return tree


def control_patch(control: Control, *, now: datetime) -> dict[str, JsonValue]:
    """The merge patch for `managerControl`: what the former control asked for and this one does not, goes."""
    return {"pause": None, "cancel": None, **control_tree(control, now=now)}


NETWORK_MEMBERS: Final = (
    *("networkEvidenceHash", "networkEvidenceProducerRevision", "networkEvidenceWorkerPodUID"),
    *("networkEvidenceSampleSequence", "networkEvidenceNotAfter"),
)
"""Of an admission: on which sample a grant rests."""


def authority_tree(authority: NetworkAuthority) -> dict[str, JsonValue]:
    """The five members for an authority; its end in whole seconds."""
    assert authority.not_after is not None
    values: tuple[JsonValue, ...] = (
        authority.evidence_hash,
        authority.producer_revision,
        authority.worker_pod_uid,
        authority.sample_sequence,
        to_rfc3339(authority.not_after),
    )
    return dict(zip(NETWORK_MEMBERS, values, strict=True))


def account_of(namespace: str, service_account: str) -> str:
    """The user name of a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{service_account}"


def acquisition_from(leaf: Leaf) -> Acquisition | None:
    """The acquisition that the leaf was admitted with; None where its admission names none."""
    admission = leaf.admission
    if admission is None or not admission.topology_lock_id or not admission.reservation_id:
        return None
    return Acquisition(admission.reservation_id, admission.policy_epoch, admission.topology_lock_id)

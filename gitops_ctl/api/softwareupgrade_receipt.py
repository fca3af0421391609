"""Receipt of a prepared device, and its invalidation (rollouts.md, sections 4.5 and 4.6)."""

from typing import Annotated, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import Digest, Keyed, Timestamp
from gitops_ctl.api.model import rule
from gitops_ctl.api.rolloutfields import Bytes, Epoch, MutationClaim, Part, Protocol, Uid, User, VersionText

_OptionalUid = Annotated[str, Field(max_length=128)] | None
OperationId = Annotated[str, Field(min_length=36, max_length=36, pattern=patterns.UUID)]


class PreparedReceipt(Part):
    """Proof of an installed and not activated version.  It permits no activation."""

    protocol_version: Literal["prepare-v1"]
    upgrade_uid: Uid
    device_uid: Uid
    node_uid: _OptionalUid = None
    physical_identity: _OptionalUid = None
    device_generation: Epoch | None = None
    campaign_uid: _OptionalUid = None
    plan_hash: Digest | None = None
    managed_protocol_version: Protocol | None = None
    policy_uid: _OptionalUid = None
    policy_resource_version: _OptionalUid = None
    policy_epoch: Epoch | None = None
    worker_revision: Digest | None = None
    source_digest: Digest
    source_size: Bytes | None = None
    source_identity_hash: Digest
    source_secret_uid: _OptionalUid = None
    trust_identity_hash: Digest | None = None
    content_binding: Literal["source-digest-install-claim-v1"]
    target_version: VersionText
    validated_version: VersionText
    running_version: VersionText
    individual_supervisor_install: bool | None = None
    primary_supervisor_installed: bool
    standby_supervisor_installed: bool | None = None
    standby_supervisor_id: _OptionalUid = None
    standby_running_version: VersionText | None = None
    install_started_at: Timestamp
    staging_operation_id: OperationId | None = None
    managed_mutation_claims: Annotated[tuple[MutationClaim, ...], Field(max_length=3), Keyed("stage")] = ()
    prepared_at: Timestamp
    receipt_hash: Digest

    @rule("has(self.campaignUID) == has(self.planHash)", message="campaignUID and planHash come together or not at all")
    def _names_the_whole_campaign(self) -> bool:
        return (self.campaign_uid is None) == (self.plan_hash is None)


class ManagerInvalidation(Part):
    """Request to look once more at a prepared device and to give its preparation up."""

    receipt_hash: Digest
    plan_hash: Digest
    campaign_uid: Uid
    control_revision: Epoch
    requested_by: User
    requested_at: Timestamp
    reason: Annotated[str, Field(min_length=1, max_length=256)]


class PreparedInvalidation(Part):
    """What the worker saw on the device."""

    request_hash: Digest
    native_evidence_hash: Digest
    observed_at: Timestamp
    worker_revision: Digest
    worker_pod_uid: Uid
    running_version: Annotated[str, Field(min_length=1, max_length=128)]
    target_state: Literal["Absent", "Installed"]

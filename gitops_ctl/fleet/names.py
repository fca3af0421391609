"""Every name of the managed topology, and every choice of ours that the reference may define differently (rollouts.md, 6 and 24.1).

The texts are stored in clusters and enter hashes: none may change.  Choices of ours stand in the second half, so that one of them can be
replaced without a search.
"""

from typing import Final

GROUP: Final = "cisco.vk"
OPERATIONS_GROUP: Final = "ops.cisco.vk"
DEVICE_KIND: Final = "CiscoDevice"
ROLLOUT_KIND: Final = "IOSXESoftwareRollout"
LEAF_KIND: Final = "IOSXESoftwareUpgrade"

# Prefixes of label keys (6.1).
TOPOLOGY: Final = "topology.cisco.vk/"
OPERATIONS: Final = "operations.cisco.vk/"
DISTRIBUTION: Final = "distribution.cisco.vk/"

# Labels (6.1).
MANAGED: Final = "topology.cisco.vk/managed"  # label on a CiscoDevice, annotation on a Node and a leaf
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
IMAGE_FAMILY: Final = "operations.cisco.vk/image-family"
COHORT: Final = "operations.cisco.vk/qualification-cohort"
DRAIN_SAFE: Final = "operations.cisco.vk/drain-safe"
CAMPAIGN_UID: Final = "topology.cisco.vk/campaign-uid"  # label and annotation of a leaf
PURPOSE: Final = "cisco.vk/purpose"
PURPOSE_IMAGE_SOURCE: Final = "software-image-source"
LEASE_DEVICE: Final = "cisco.vk/device"
LEASE_FAMILY: Final = "cisco.vk/family"
COMPONENT: Final = "app.kubernetes.io/component"
COMPONENT_POLICY: Final = "topology-policy"
COMPONENT_LEDGER: Final = "topology-ledger"

# Identity labels of a Node (6.1).
HOSTNAME: Final = "kubernetes.io/hostname"
PLATFORM: Final = "platform"
PROVIDER: Final = "provider"
NODE_TYPE: Final = "type"
PLATFORM_XE: Final = "cisco-ios-xe"
PROVIDER_APPHOSTING: Final = "cisco-apphosting"
TYPE_VIRTUAL: Final = "virtual-kubelet"

# Annotations of the policy and the ledger ConfigMap (6.2).
MANAGED_POLICY: Final = "topology.cisco.vk/managed-policy"
ADMISSION_POLICY_PREFIX: Final = "topology.cisco.vk/admission-policy-prefix"
ADMISSION_CONTRACT_VERSION: Final = "topology.cisco.vk/admission-contract-version"
APP_HOSTING_ACCOUNT: Final = "topology.cisco.vk/app-hosting-service-account"
NETWORK_MANAGEMENT_ACCOUNT: Final = "topology.cisco.vk/network-management-service-account"
CONFIG_LEASE_NAMESPACE: Final = "topology.cisco.vk/config-lease-namespace"
LEDGER_UID: Final = "topology.cisco.vk/ledger-uid"  # also on a leaf
MANAGED_LEDGER: Final = "topology.cisco.vk/managed-ledger"
POLICY_KEY: Final = "policy.json"
GRAPH_KEY: Final = "graph.json"
LEDGER_KEY: Final = "ledger.json"

# Annotations of a Node, and of a leaf where they say so (6.2).
DEVICE_NAMESPACE: Final = "topology.cisco.vk/device-namespace"  # also on a leaf
DEVICE_NAME: Final = "topology.cisco.vk/device-name"  # also on a leaf
DEVICE_UID: Final = "topology.cisco.vk/device-uid"  # also on a leaf
NODE_UID: Final = "topology.cisco.vk/node-uid"  # also on a leaf
WORKER_USERNAME: Final = "topology.cisco.vk/worker-username"  # on a Node the app account, on a leaf the network account
WORKER_PROTOCOL: Final = "topology.cisco.vk/worker-protocol"  # also on a leaf
WORKER_OBSERVED_REVISION: Final = "topology.cisco.vk/worker-observed-revision"
PROJECTED_KEYS: Final = "topology.cisco.vk/projected-keys"
PROJECTION_HASH: Final = "topology.cisco.vk/projection-hash"
MANAGED_TAINTS: Final = "topology.cisco.vk/managed-taints"
APP_WORKER_USERNAME: Final = "topology.cisco.vk/app-worker-username"  # also on a leaf
APP_WORKER_POD_NAME: Final = "topology.cisco.vk/app-worker-pod-name"  # also on a leaf
APP_WORKER_POD_UID: Final = "topology.cisco.vk/app-worker-pod-uid"  # also on a leaf
NETWORK_WORKER_USERNAME: Final = "topology.cisco.vk/network-worker-username"  # also on a leaf
NETWORK_WORKER_POD_NAME: Final = "topology.cisco.vk/network-worker-pod-name"  # also on a leaf
NETWORK_WORKER_POD_UID: Final = "topology.cisco.vk/network-worker-pod-uid"  # also on a leaf
LEGACY_HANDOFF: Final = "topology.cisco.vk/legacy-handoff"
CORDON_DEVICE_UID: Final = "topology.cisco.vk/app-hosting-cordon-device-uid"
DRAIN_CORDON_OWNER: Final = "ops.cisco.vk/drain-cordon-owner"
DRAIN_TAINT_OWNER: Final = "ops.cisco.vk/drain-taint-owner"

# Annotations of a CiscoDevice (6.2).
ADOPT_NODE_UID: Final = "topology.cisco.vk/adopt-node-uid"
APPROVE_RECLASSIFICATION: Final = "topology.cisco.vk/approve-reclassification-from"
REQUEST_LEGACY_HANDOFF: Final = "topology.cisco.vk/request-legacy-handoff"

# Annotations of a leaf only (6.2).
CAMPAIGN_NAMESPACE: Final = "topology.cisco.vk/campaign-namespace"
CAMPAIGN_NAME: Final = "topology.cisco.vk/campaign-name"
PLAN_HASH: Final = "topology.cisco.vk/plan-hash"
RESERVATION_ID: Final = "topology.cisco.vk/reservation-id"
DEVICE_GENERATION: Final = "topology.cisco.vk/device-generation"
NODE_NAME: Final = "topology.cisco.vk/node-name"
SOURCE_SECRET_UID: Final = "topology.cisco.vk/source-secret-uid"  # noqa: S105  names a Secret, holds none
APP_WORKER_CONFIG_REVISION: Final = "topology.cisco.vk/app-worker-config-revision"

# Annotations of a Lease (6.2).
MAINTENANCE: Final = "topology.cisco.vk/maintenance-"
MAINTENANCE_MEMBERS: Final = (
    *("request-version", "session-token", "requested-at", "operation-namespace", "operation-name"),
    *("operation-uid", "control-revision", "purpose"),
)
"""What a request for maintenance says, each behind MAINTENANCE."""
LEASE_PURPOSE: Final = "topology.cisco.vk/lease-purpose"
LEASE_NODE_HEARTBEAT: Final = "node-heartbeat"
LEASE_CONFIG_FAMILY: Final = "config-family"
LEASE_MUTATION: Final = "device-mutation"

# Workers (6.2, 17.2).
WORKER_TEMPLATE_DIGEST: Final = "topology.cisco.vk/worker-template-digest"
ENV_MANAGED_TOPOLOGY: Final = "CISCO_VK_MANAGED_TOPOLOGY"
ENV_WORKER_NAMESPACE: Final = "CISCO_VK_WORKER_NAMESPACE"
ENV_WORKER_TEMPLATE_DIGEST: Final = "CISCO_VK_WORKER_TEMPLATE_DIGEST"

# Taints (6.3): key, value, effect.
UNINITIALIZED: Final = "topology.cisco.vk/uninitialized"
UNINITIALIZED_VALUE: Final = "true"
DEVICE_MAINTENANCE: Final = "cisco.vk/device-maintenance"
DEVICE_MAINTENANCE_VALUE: Final = "gnoi"
NO_SCHEDULE: Final = "NoSchedule"

# Finalizers, Leases, accounts (6.3).
ROLLOUT_FINALIZER: Final = "ops.cisco.vk/iosxesoftwarerollout-safety"
LEAF_FINALIZER: Final = "ops.cisco.vk/iosxesoftwareupgrade-cleanup"
DEVICE_FINALIZER: Final = "cisco.vk/device-cleanup"
DEVICE_KEY: Final = "cvk-device-"
REFERENCE_LEADER_LEASE: Final = "ciscodevice.cisco.vk"
HOLDER_UPGRADE: Final = "software-upgrade/"  # and the UID of the leaf
HOLDER_DRAIN: Final = "software-drain/"  # and the UID of the leaf
HOLDER_WRITE: Final = "device-write/"
LONGEST_LEASE_S: Final = 7 * 86400 + 26 * 3600
APP_HOSTING_SUFFIX: Final = "-app-hosting"
NETWORK_MANAGEMENT_SUFFIX: Final = "-network-management"

# Conditions of Nodes, devices and leaves (5.3, 6.3, 17.1, 4.3).
MANAGED_WRITER: Final = "CiscoVirtualKubeletManagedReady"
MANAGED_WRITER_REASON: Final = "StatusOnlyRolloutV1"
APP_INVENTORY: Final = "CiscoVirtualKubeletAppInventory"
NODE_IDENTITY_READY: Final = "NodeIdentityReady"
TOPOLOGY_READY: Final = "TopologyReady"
TOPOLOGY_INCOMPLETE: Final = "TopologyIncomplete"
TOPOLOGY_CONFLICT: Final = "TopologyConflict"
GNOI_READY: Final = "GNOIConfigurationReady"
MAINTENANCE_READY: Final = "MaintenanceReady"
REQUIRED_CONDITIONS: Final = (NODE_IDENTITY_READY, TOPOLOGY_READY, GNOI_READY)
"""Of a healthy device, each True for the generation at hand (15.3)."""
MUTATION_SETTLED: Final = "DeviceMutationSettled"

# Protocols (4.4, 13.6).
PROTOCOL: Final = "rollout-v1"
PROTOCOL_PACING: Final = "rollout-byte-pacing-v1"
PROTOCOL_EVIDENCE: Final = "rollout-network-evidence-v1"
PROTOCOL_STAGED: Final = "rollout-staged-activation-v1"
PROTOCOL_DRAIN: Final = "pdb-drain-v1"
EXECUTION_MODEL: Final = "AtMostOnceV1"

# ---- Choices of ours: the reference may define each of these differently (24.1, decisions 4 to 17) ----

PREPARED_UPGRADE_UID: Final = "topology.cisco.vk/prepared-upgrade-uid"  # decision 4: UID of the leaf that prepared
PREPARED_RECEIPT_HASH: Final = "topology.cisco.vk/prepared-receipt-hash"  # decision 4: the receipt that is activated
ACTIVATION_HASH: Final = "topology.cisco.vk/activation-authorization-hash"  # decision 4: what was authorised
DRAIN_SESSION: Final = "ops.cisco.vk/drain-session"  # decision 5: annotation of a drained Pod
DRAIN_PROTECTION: Final = "ops.cisco.vk/drain-protection"  # decision 5: finalizer of a drained Pod
MUTATION_LEASE: Final = "device-disruptive-mutation"  # decision 6: also the last part of what the suffix is made from
PROTECTION_REASONS: Final = ("CriticalService", "SingletonPath")  # decision 7: no other reason is accepted
POLICY_SEMANTIC_MEMBERS: Final = (
    *("appHostingServiceAccountName", "networkManagementServiceAccountName", "configLeaseNamespace", "version"),
    *("fleetSelector", "requiredTopologyKeys", "projectedTopologyKeys", "globalMaxConcurrentTransfers"),
    *("globalMaxUnavailable", "domainMaxConcurrentTransfers", "domainMaxUnavailable", "healthFreshnessSeconds"),
    *("maxCampaignTargets", "maxActiveReservations", "maxLedgerBytes", "workloadDrain"),
    *("disruptionProtections", "riskGroups", "ledgerName"),
)  # decision 8: disruptionProtections stand directly before riskGroups
POLICY_STRUCTURAL_MEMBERS: Final = (
    *("version", "appHostingServiceAccountName", "networkManagementServiceAccountName", "configLeaseNamespace"),
    *("fleetSelector", "requiredTopologyKeys", "projectedTopologyKeys", "disruptionProtections", "riskGroups"),
    *("transferDomainKeys", "unavailableDomainKeys", "ledgerName"),
)  # decision 8
PROTECTION_MEMBERS: Final = ("name", "reason", "selector")  # decision 8
RESERVATION_MEMBERS: Final = (
    *("id", "campaignUID", "planHash", "policyUID", "policyVersion", "policyEpoch", "topologyLockID", "physicalID"),
    *("deviceUID", "nodeUID", "childNamespace", "childName", "domains", "riskGroups", "controlRevision", "childUID"),
    *("state", "drainSessionToken", "drainStartedAt", "drainCompletedAt"),
)  # decision 9: riskGroups, a sorted list of names, directly after domains
SAMPLE_MEMBERS: Final = (
    *("workerPodUID", "collectionStartedAt", "collectionEndedAt", "sampleSequence", "observedAt", "complete"),
    *("unknownReason", "producerRevision", "deviceIdentityHash", "interfaces", "neighbors"),
)  # decision 17: order of a network sample in its hash
SAMPLE_INTERFACE_MEMBERS: Final = (
    *("name", "operUp", "headroomPercent", "capacityBitsPerSecond", "ingressBitsPerSecond", "egressBitsPerSecond"),
    "rateSource",
)  # decision 17
SAMPLE_NEIGHBOR_MEMBERS: Final = ("identity", "id", "interface", "routingDomain", "state", "source")  # decision 17
ACTIVATION_PROTOCOL: Final = "activation-approval-v1"
ACTIVATION_MEMBERS: Final = (
    *("protocol", "campaignUID", "planHash", "receipts", "notBefore", "notAfter", "approvedBy", "approvedAt"),
)  # decision 13: members and order of the hash of an activation approval
ACTIVATION_RECEIPT_MEMBERS: Final = ("deviceUID", "upgradeUID", "receiptHash")  # decision 13

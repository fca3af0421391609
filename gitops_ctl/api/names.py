"""Names that are written into objects: group, labels, annotations, finalizer, field managers (gitops.md, sections 7.2 and 22.4)."""

from typing import Final

GROUP: Final = "gitops-ctl.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "gitops-ctl.dev/v1alpha1"

ICHOR_GROUP: Final = "ichor.maesh.dev"
"""Group of the kinds of Talos clusters (cni-switch.md, section 3)."""
ICHOR_API_VERSION: Final = "ichor.maesh.dev/v1alpha1"

WORKER_GROUP: Final = "worker.gpustack.ai"
"""Group of the kind TopologySource (topology-scheduling.md, section 1.2)."""
WORKER_API_VERSION: Final = f"{WORKER_GROUP}/v1alpha1"

CISCO_GROUP: Final = "cisco.vk"
"""Group of the kind CiscoDevice (rollouts.md, section 3)."""
CISCO_API_VERSION: Final = f"{CISCO_GROUP}/v1alpha1"

OPS_GROUP: Final = "ops.cisco.vk"
"""Group of software rollouts and of their leaves (rollouts.md, section 3)."""
OPS_API_VERSION: Final = f"{OPS_GROUP}/v1alpha1"

ANNOTATION_CONFIRM_SWITCH: Final = f"{ICHOR_GROUP}/confirm-kube-proxy-switch"
"""Consent to a switch of kube-proxy; the value is the mode that is agreed to."""

ANNOTATION_HOLD: Final = f"{ICHOR_GROUP}/hold"
"""`"true"` takes a machine out of operations."""

LABEL_OWNER: Final = f"{GROUP}/owner"
"""Short hash of the owner id: what informers select on."""

ANNOTATION_OWNER_ID: Final = f"{GROUP}/owner-id"
"""Owner id and the identity of the object that the mark belongs to."""

ANNOTATION_INTRODUCED_BY: Final = f"{GROUP}/introduced-by"
"""`<verb>=<person>` of the authorising fields, comma list."""

ANNOTATION_INTRODUCED_COMMIT: Final = f"{GROUP}/introduced-commit"
"""`<verb>=<commit>`, in the order of `introduced-by`."""

ANNOTATION_APPLY: Final = f"{GROUP}/apply"
ANNOTATION_DEPENDS_ON: Final = f"{GROUP}/depends-on"
ANNOTATION_PRUNE: Final = f"{GROUP}/prune"
ANNOTATION_PROPAGATION: Final = f"{GROUP}/propagation"
ANNOTATION_RECREATE: Final = f"{GROUP}/recreate"
ANNOTATION_ALLOW_PRUNE: Final = f"{GROUP}/allow-prune"

ANNOTATION_ALLOW_NODE_DROP: Final = f"{GROUP}/allow-node-drop"
"""On a TopologySource: consent to a revision that removes many Nodes; the value is the digest of the set."""
ANNOTATION_ALLOW_DRAIN: Final = f"{GROUP}/allow-drain"
"""On a managed ClusterQueue: consent to one drain that evicts; the value is the digest of the plan."""
ANNOTATION_DRAIN_WINDOW: Final = f"{GROUP}/drain-window"
"""On a managed ClusterQueue: `<start>/<end>`, when a drain that evicts may start."""

ANNOTATION_REQUESTED_AT: Final = f"{GROUP}/requested-at"
"""Written in the cluster by a person who wants a pass now; any value."""

ANNOTATION_WHY: Final = f"{GROUP}/why"
"""On a Proposal, by the controller that asks: what waits, and what happens after the merge; for people."""

ANNOTATION_REOPEN_AT: Final = f"{GROUP}/reopen-at"
"""On a Proposal, in the cluster, by a person: open the pull request again although it was declined or reverted; any new value."""

WRITTEN_BY_CONTROLLER: Final = frozenset(
    {LABEL_OWNER, ANNOTATION_OWNER_ID, ANNOTATION_INTRODUCED_BY, ANNOTATION_INTRODUCED_COMMIT}
)
"""Labels and annotations that a document in Git must not carry."""

CONSENT_ANNOTATIONS: Final = frozenset(
    {
        ANNOTATION_ALLOW_PRUNE,
        ANNOTATION_RECREATE,
        ANNOTATION_CONFIRM_SWITCH,
        ANNOTATION_ALLOW_NODE_DROP,
        ANNOTATION_ALLOW_DRAIN,
        ANNOTATION_DRAIN_WINDOW,
    }
)
"""Annotations whose change in Git has the verb `consent`."""

APPLY_MODES: Final = ("Override", "IfNotPresent", "Ignore")
PROPAGATION_POLICIES: Final = ("Foreground", "Background", "Orphan")
PRUNE_DISABLED: Final = "disabled"

FINALIZER: Final = f"{GROUP}/finalizer"
FIELD_MANAGER: Final = "gitops-ctl"
"""Manager of everything that a Sync applies."""

FIELD_MANAGER_STATUS: Final = "gitops-ctl-status"
"""Manager of the status of our own kinds."""

FIELD_MANAGER_SCHEDULING: Final = "gitops-ctl-scheduling"
"""Manager of everything that the controllers of topology-aware scheduling write, and of the hold that a Sync creates a queue with."""

FIELD_MANAGER_TOPOLOGY: Final = "gitops-ctl-topology"
"""Manager of what the inventory of devices writes: Nodes and their projection, the status of devices."""

FIELD_MANAGER_ROLLOUT: Final = "gitops-ctl-rollout"
"""Manager of what software rollouts write: campaigns, leaves, locks, the ledger."""

FIELD_MANAGER_DEVICE_WORKER: Final = "gitops-ctl-device-worker"
"""Manager of what a device worker writes."""

FIELD_MANAGER_CNI: Final = "gitops-ctl-cni"
"""Manager of what the switch executor writes."""

FIELD_MANAGER_CNI_WORKER: Final = "gitops-ctl-cni-worker"
"""Manager of what the cluster worker writes."""

SYSTEM_NAMESPACE: Final = "gitops-ctl-system"
"""Where the manager runs unless the chart is told otherwise."""

POLICY_PATH: Final = ".gitops-ctl/trust.yaml"
"""Default place of the trust policy in a repository."""

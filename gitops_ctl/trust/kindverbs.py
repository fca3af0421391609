"""The verbs of the kinds that have authorising fields (gitops.md, section 4.4, Verbs; names of the domain contracts).

Pure data about group-kinds: a rule of a trust policy can name a kind before a controller for it exists, and whoever reads
history must give the same verbs.  Three rules hold for every kind here:
  * a field with a verb of its own is compared by itself, so that it never hides in an `edit`, at creation neither;
  * what no row names is `edit`;
  * taking a field away needs the verb of the field, consent annotations excepted, whose removal is `edit`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.trust.verbs import WHOLE, Fields, register_verbs, same, value_at

TALOS_CLUSTER: Final = GroupKind("ichor.maesh.dev", "TalosCluster")
ROLLOUT: Final = GroupKind("ops.cisco.vk", "IOSXESoftwareRollout")
DEVICE: Final = GroupKind("cisco.vk", "CiscoDevice")
NETWORK_CONTROLLER: Final = GroupKind("cisco.vk", "NetworkController")
TOPOLOGY_SOURCE: Final = GroupKind("worker.gpustack.ai", "TopologySource")
CLUSTER_QUEUE: Final = GroupKind("kueue.x-k8s.io", "ClusterQueue")
CONFIG_MAP: Final = GroupKind("", "ConfigMap")

CONFIRM_SWITCH: Final = pointer_of(("metadata", "annotations", "ichor.maesh.dev/confirm-kube-proxy-switch"))
"""Consent to the value of `/spec/cni/kubeProxy` (cni-switch.md, section 4)."""

PROTECTED_LABELS: Final = ("topology.cisco.vk/", "operations.cisco.vk/", "distribution.cisco.vk/")
"""Prefixes of the topology, risk and artifact locality labels of a device."""

_ZONES: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_POLICY_MARK: Final = "topology.cisco.vk/managed-policy"
_POLICY_NAME: Final = "-topology-policy"
_POLICY_KEY: Final = "policy.json"


@dataclass(frozen=True, slots=True)
class ByField:
    """Verbs of a kind whose authorising fields have fixed places.

    Attributes:
        fields: (verb, pointer) of each.
        created: verb of a new document as a whole; empty: its parts speak for themselves.
        gone: verbs of a document that goes; empty: `delete` alone.
        part: pointer of a part of the document; when it goes as a whole, nothing below it speaks for itself.
    """

    fields: tuple[tuple[str, str], ...]
    created: str = ""
    gone: tuple[str, ...] = ()
    part: str = ""

    def __call__(self, old: JsonObject | None, new: JsonObject | None) -> Fields:
        if new is None:
            return dict.fromkeys(self.gone, (WHOLE,))
        found: dict[str, tuple[str, ...]] = {self.created: (WHOLE,)} if self.created and old is None else {}
        if self.part and value_at(new, self.part) is None:
            return found
        for verb, pointer in self.fields:
            if same(value_at(old, pointer), value_at(new, pointer)):
                continue
            if found.get(verb) != (WHOLE,):
                found[verb] = (*found.get(verb, ()), pointer)
        return found


@dataclass(frozen=True, slots=True)
class ByAnnotation:
    """Consent annotations of a kind: a value that is there and new is a consent."""

    pointers: tuple[str, ...]
    others: ByField | None = None

    def __call__(self, old: JsonObject | None, new: JsonObject | None) -> Fields:
        found = dict(self.others(old, new)) if self.others else {}
        for pointer in self.pointers if new is not None else ():
            value = value_at(new, pointer)
            if value is not None and not same(value, value_at(old, pointer)):
                found["consent"] = (*found.get("consent", ()), pointer)
        return found

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """(verb, pointer) of every authorising field of the kind."""
        own = tuple(("consent", pointer) for pointer in self.pointers)
        return (*own, *(self.others.fields if self.others else ()))


def _annotations(*names: str) -> tuple[str, ...]:
    return tuple(pointer_of(("metadata", "annotations", name)) for name in names)


_OPERATION: Final = "/spec/cni/operation"
_STEERING: Final = ("resume", "cancel", "breakLock")
"""Each has an introducer of its own: cancelling later introduces an earlier resume not anew."""

TALOS_VERBS: Final = ByAnnotation((CONFIRM_SWITCH,), ByField((("control", _OPERATION),)))

ROLLOUT_VERBS: Final = ByField(
    (
        ("plan", "/spec/plan"),
        ("approve", "/spec/approval"),
        ("activate", "/spec/activationApproval"),
        ("recover", "/spec/preparationInvalidation"),
        ("recover", "/spec/recovery"),
        ("control", "/spec/control"),
    ),
    created="plan",
    gone=("delete", "control"),
)

ENDPOINT_OF_SOURCE: Final = ByField(
    tuple(
        ("endpoint", f"/spec/webhook/{member}")
        for member in ("url", "bearerTokenSecretRef", "tlsClientCertificateSecretRef", "caBundleConfigMapRef")
    ),
    part="/spec/webhook",
)
"""Without its bundle every authority of the system may vouch for the server, so taking the bundle away is `endpoint` too."""

SOURCE_VERBS: Final = ByAnnotation(_annotations("gitops-ctl.dev/allow-node-drop"), ENDPOINT_OF_SOURCE)

CONTROLLER_VERBS: Final = ByField(
    tuple(
        ("endpoint", f"/spec/{member}")
        for member in ("endpoint", "credentialSecretRef", "tls", "deviceAdoption", "intentSecretSources")
    )
)
"""Every place that names where a controller is or which Secrets it may use; who may answer is part of that."""

QUEUE_VERBS: Final = ByAnnotation(_annotations("gitops-ctl.dev/allow-drain", "gitops-ctl.dev/drain-window"))

_IDENTITY: Final = ("/spec/physicalIdentity", "/spec/nodeName", "/spec/driver")
_LEGACY_TOPOLOGY: Final = ("/spec/labels", "/spec/region", "/spec/zone")
_ADOPTION: Final = _annotations(
    *(
        f"topology.cisco.vk/{name}"
        for name in ("adopt-node-uid", "approve-reclassification-from", "request-legacy-handoff")
    )
)


def device_verbs(old: JsonObject | None, new: JsonObject | None) -> Fields:
    """`topology` for identity, protected labels and adoption; a new device is an identity in any case."""
    if new is None:
        return {}
    pointers = ["/metadata/name"] if old is None else []
    candidates = (*_IDENTITY, *_LEGACY_TOPOLOGY, *_ADOPTION, *_protected_labels(old, new))
    pointers += [each for each in candidates if not same(value_at(old, each), value_at(new, each))]
    return {"topology": tuple(pointers)} if pointers else {}


def _protected_labels(*trees: JsonObject | None) -> Iterator[str]:
    names = {name for tree in trees if tree is not None for name in object_at(tree, "metadata", "labels")}
    for name in sorted(names):
        if name.startswith(PROTECTED_LABELS) or name in _ZONES:
            yield pointer_of(("metadata", "labels", name))


def policy_verbs(old: JsonObject | None, new: JsonObject | None) -> Fields:
    """`policy` for the ConfigMap of the rollout policy, whatever changes in it, and when it goes, beside `delete`."""
    if not any(_is_policy(tree) for tree in (old, new) if tree is not None):
        return {}
    return {"policy": (WHOLE,)} if new is not None else {"delete": (WHOLE,), "policy": (WHOLE,)}


def _is_policy(tree: JsonObject) -> bool:
    """By its mark, or by name and key: one that lost its mark is still what the controller would read."""
    if _POLICY_MARK in object_at(tree, "metadata", "annotations"):
        return True
    name = value_at(tree, "/metadata/name")
    return isinstance(name, str) and name.endswith(_POLICY_NAME) and _POLICY_KEY in object_at(tree, "data")


def register_kinds() -> None:
    """Teach the registry every kind of this module.

    Raises:
        RuntimeError: it was done already.
    """
    plan = ("/spec/plan",)
    register_verbs(
        TALOS_CLUSTER,
        TALOS_VERBS,
        authorises={"consent": ("/spec/cni/kubeProxy",)},
        fields=(*TALOS_VERBS.fields, *(("control", f"{_OPERATION}/{name}") for name in _STEERING)),
    )
    register_verbs(
        ROLLOUT,
        ROLLOUT_VERBS,
        authorises=dict.fromkeys(("approve", "activate", "recover"), plan),
        fields=ROLLOUT_VERBS.fields,
    )
    register_verbs(DEVICE, device_verbs)
    register_verbs(NETWORK_CONTROLLER, CONTROLLER_VERBS, fields=CONTROLLER_VERBS.fields)
    register_verbs(TOPOLOGY_SOURCE, SOURCE_VERBS, fields=SOURCE_VERBS.fields)
    register_verbs(CLUSTER_QUEUE, QUEUE_VERBS, fields=QUEUE_VERBS.fields)
    register_verbs(CONFIG_MAP, policy_verbs, marks=(_POLICY_MARK, _POLICY_KEY))


register_kinds()

"""The built-in kinds that the double serves: names and scope.  Shapes come from `builtin_types.json`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltinKind:
    """One row of discovery."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    has_status: bool
    short_names: tuple[str, ...] = ()


def _kinds(group: str, version: str, *rows: tuple[str, str, str, str]) -> tuple[BuiltinKind, ...]:
    """Rows of (kind, plural, flags, short names); flags: `n` namespaced, `s` status subresource."""
    return tuple(
        BuiltinKind(group, version, kind, plural, "n" in flags, "s" in flags, tuple(short.split()))
        for kind, plural, flags, short in rows
    )


BUILTIN_KINDS: tuple[BuiltinKind, ...] = (
    *_kinds(
        "",
        "v1",
        ("Namespace", "namespaces", "s", "ns"),
        ("ConfigMap", "configmaps", "n", "cm"),
        ("Secret", "secrets", "n", ""),
        ("ServiceAccount", "serviceaccounts", "n", "sa"),
        ("Service", "services", "ns", "svc"),
        ("Pod", "pods", "ns", "po"),
        ("Node", "nodes", "s", "no"),
        ("PersistentVolumeClaim", "persistentvolumeclaims", "ns", "pvc"),
        ("ResourceQuota", "resourcequotas", "ns", "quota"),
        ("LimitRange", "limitranges", "n", "limits"),
    ),
    *_kinds(
        "apps",
        "v1",
        ("Deployment", "deployments", "ns", "deploy"),
        ("DaemonSet", "daemonsets", "ns", "ds"),
        ("StatefulSet", "statefulsets", "ns", "sts"),
        ("ReplicaSet", "replicasets", "ns", "rs"),
    ),
    *_kinds("batch", "v1", ("Job", "jobs", "ns", ""), ("CronJob", "cronjobs", "ns", "cj")),
    *_kinds(
        "rbac.authorization.k8s.io",
        "v1",
        ("Role", "roles", "n", ""),
        ("RoleBinding", "rolebindings", "n", ""),
        ("ClusterRole", "clusterroles", "", ""),
        ("ClusterRoleBinding", "clusterrolebindings", "", ""),
    ),
    *_kinds(
        "networking.k8s.io",
        "v1",
        ("NetworkPolicy", "networkpolicies", "n", "netpol"),
        ("Ingress", "ingresses", "ns", "ing"),
    ),
    *_kinds("coordination.k8s.io", "v1", ("Lease", "leases", "n", "")),
    *_kinds("events.k8s.io", "v1", ("Event", "events", "n", "ev")),
    *_kinds("policy", "v1", ("PodDisruptionBudget", "poddisruptionbudgets", "ns", "pdb")),
    *_kinds("scheduling.k8s.io", "v1", ("PriorityClass", "priorityclasses", "", "pc")),
    *_kinds("apiextensions.k8s.io", "v1", ("CustomResourceDefinition", "customresourcedefinitions", "s", "crd crds")),
)

UNKNOWN_GROUPS = frozenset(
    [
        "admissionregistration",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "discovery",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "node",
        "resource",
        "storage",
        "storagemigration",
    ]
)
UNKNOWN_RESOURCES = frozenset(
    [
        "bindings",
        "componentstatuses",
        "endpoints",
        "persistentvolumes",
        "podtemplates",
        "replicationcontrollers",
        "controllerrevisions",
        "ingressclasses",
        "ipaddresses",
        "servicecidrs",
        "horizontalpodautoscalers",
    ]
)


def is_unknown(group: str, plural: str) -> bool:
    """Whether a real server serves this and the double does not.

    Events of the core group are the same objects as those of `events.k8s.io`, in another form that the double cannot give.
    """
    if (group, plural) == ("", "events") or group == "autoscaling":
        return True
    known_elsewhere = group in ("", "apps", "networking.k8s.io") and plural in UNKNOWN_RESOURCES
    return known_elsewhere or (group.endswith(".k8s.io") and group.removesuffix(".k8s.io") in UNKNOWN_GROUPS)

"""The workers of a namespace: two planes, each with one Deployment and one account, and the rights of the two (rollouts.md, 17.1, 17.2, 18.2).

A Secret is read by its worker through the API, so a device that comes or goes, or a Secret that is rotated, changes a Role and restarts nobody.
"""

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.fleet.health import DEFAULT_OBSERVATION_AGE_S
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.topology.options import Access, Options

OWNED: Final = {"app.kubernetes.io/managed-by": "gitops-ctl", "app.kubernetes.io/part-of": "managed-topology"}
"""Labels of everything here."""
PLANE_LABEL: Final = "app.kubernetes.io/component"
JOURNAL_DIR: Final = "/var/lib/gitops-ctl/journal"
SPOOL_DIR: Final = "/var/cache/gitops-ctl/spool"
ROLE_PREFIX: Final = "cisco-virtual-kubelet-"
"""Of the cluster roles that the accounts are bound to; their names are those of the reference."""

NODE_LEASES: Final = "kube-node-lease"
"""Where heartbeats of Nodes are."""

_USUAL: Final = Options()
"""What a worker does by itself too."""

_RBAC: Final = "rbac.authorization.k8s.io"


def _resource(group: str, kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(GroupVersionKind(group, "v1", kind), plural, namespaced=namespaced)


ACCOUNT: Final = _resource("", "ServiceAccount", "serviceaccounts")
CLAIM: Final = _resource("", "PersistentVolumeClaim", "persistentvolumeclaims")
ROLE: Final = _resource(_RBAC, "Role", "roles")
ROLE_BINDING: Final = _resource(_RBAC, "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING: Final = _resource(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
DEPLOYMENT: Final = _resource("apps", "Deployment", "deployments")


class Plane(enum.StrEnum):
    """What a worker does."""

    NETWORK = "network"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One namespace with devices.

    Attributes:
        accounts: name of the account of each plane, which is the name of its Deployment too.
        secrets: what the devices of the namespace, and image sources, name.
        lease_namespace: where the Leases of its devices are.
        freshness_s: how old evidence may be by the fleet policy, in seconds.
    """

    namespace: str
    accounts: Mapping[Plane, str]
    secrets: Collection[str]
    lease_namespace: str
    freshness_s: int = DEFAULT_OBSERVATION_AGE_S


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object that has to be, or, without a tree, has to be absent."""

    resource: Resource
    namespace: str
    name: str
    tree: JsonObject | None


def username(namespace: str, account: str) -> str:
    """The user name of a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{account}"


def access_of(plane: Plane, options: Options) -> Access:
    """What the account of a plane may do."""
    return options.network if plane is Plane.NETWORK else options.app_hosting


def runs(plane: Plane, options: Options) -> bool:
    """Whether the plane has a worker: in readOnly the Node plane is an identity only."""
    access = access_of(plane, options)
    return access is Access.READ_WRITE or (plane is Plane.NETWORK and access is Access.READ_ONLY)


def wanted_objects(tenant: Tenant, options: Options) -> tuple[Wanted, ...]:
    """Everything of both planes, in the order of writing: accounts, rights, volumes, Deployments.  A disabled plane has nothing."""
    found: list[Wanted] = []
    for plane in Plane:
        found += _of_plane(tenant, plane, options, exists=access_of(plane, options) is not Access.DISABLED)
    order = (ACCOUNT, ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING, CLAIM, DEPLOYMENT)
    return tuple(sorted(found, key=lambda one: order.index(one.resource)))


def no_objects(tenant: Tenant, options: Options) -> tuple[Wanted, ...]:
    """The same for a namespace without devices: all of it goes, last what was made first.

    But the journal: what was sent to a device is asked for when the device comes back, or another one takes its place (13.9).
    """
    gone = (one for one in wanted_objects(tenant, options) if one.resource is not CLAIM)
    return tuple(reversed([Wanted(one.resource, one.namespace, one.name, None) for one in gone]))


def _of_plane(tenant: Tenant, plane: Plane, options: Options, *, exists: bool) -> Iterable[Wanted]:
    account, namespace = tenant.accounts[plane], tenant.namespace
    labels = {**OWNED, PLANE_LABEL: plane.value}

    def one(resource: Resource, name: str, body: JsonObject, *, keep: bool = exists, at: str = namespace) -> Wanted:
        scope = {"namespace": at} if resource.namespaced else {}
        tree: JsonObject = {
            "apiVersion": resource.gvk.api_version,
            "kind": resource.gvk.kind,
            "metadata": {"name": name, **scope, "labels": labels},
            **body,
        }
        return Wanted(resource, scope.get("namespace", ""), name, tree if keep else None)

    yield one(ACCOUNT, account, {"automountServiceAccountToken": True})
    has_secrets = exists and bool(tenant.secrets)
    rule: JsonObject = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "verbs": ["get"],
        "resourceNames": sorted(tenant.secrets),
    }
    yield one(ROLE, f"{account}-secrets", {"rules": [rule]}, keep=has_secrets)
    yield one(
        ROLE_BINDING, f"{account}-secrets", _bound("Role", f"{account}-secrets", tenant, account), keep=has_secrets
    )
    for name, role, at in _rights(tenant, plane, options):
        resource = ROLE_BINDING if at else CLUSTER_ROLE_BINDING
        yield one(resource, name, _bound("ClusterRole", f"{ROLE_PREFIX}{role}", tenant, account), at=at or namespace)
    has_worker = exists and runs(plane, options) and bool(options.worker_image)
    if plane is Plane.NETWORK and exists:
        size: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        # The journal outlives its worker, its plane and its last device: only a person removes it.
        yield one(CLAIM, f"{account}-journal", {"spec": size})
    yield one(DEPLOYMENT, account, {"spec": _deployment(tenant, plane, options)}, keep=has_worker)


def _rights(tenant: Tenant, plane: Plane, options: Options) -> Iterable[tuple[str, str, str]]:
    """Name of the binding, cluster role without its prefix, and the namespace it holds in (empty: everywhere)."""
    account, word = tenant.accounts[plane], _WORDS[access_of(plane, options)]
    everywhere = f"{tenant.namespace}-{account}"
    if plane is Plane.NODE:
        yield everywhere, f"app-hosting-{word}", ""
        yield f"{account}-devices", "app-hosting-device-read", tenant.namespace
        # Only there: a right on the Leases of every namespace would reach those of others.
        yield f"{everywhere}-heartbeats", f"network-management-lease-{word}", NODE_LEASES
        return
    yield f"{everywhere}-read", "network-management-global-read", ""
    yield account, f"network-management-{word}", tenant.namespace
    yield f"{account}-leases", f"network-management-lease-{word}", tenant.lease_namespace


_WORDS: Final = {Access.READ_WRITE: "read-write", Access.READ_ONLY: "read-only", Access.DISABLED: "read-only"}


def _bound(kind: str, name: str, tenant: Tenant, account: str) -> JsonObject:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": tenant.namespace}
    return {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name}, "subjects": [subject]}


def _deployment(tenant: Tenant, plane: Plane, options: Options) -> JsonObject:
    return {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selected(tenant.accounts[plane], plane)},
        "template": pod_template(tenant, plane, options, digest=desired_digest(tenant, plane, options)),
    }


def selected(account: str, plane: Plane) -> dict[str, JsonValue]:
    """Labels of the Pods of one plane."""
    return {**OWNED, PLANE_LABEL: plane.value, "app.kubernetes.io/instance": account}


def desired_digest(tenant: Tenant, plane: Plane, options: Options) -> str:
    """The digest of the template that a plane has to run."""
    return template_digest(pod_template(tenant, plane, options))


def pod_template(tenant: Tenant, plane: Plane, options: Options, *, digest: str = "") -> JsonObject:
    """The Pod of a plane; with `digest` in the members that carry it, else without them."""
    mounts, volumes, arguments = _storage(tenant, plane)
    if access_of(plane, options) is Access.READ_ONLY:
        arguments.append("--read-only")
    arguments += _chosen(tenant, plane, options)
    container: JsonObject = {
        "name": "worker",
        "image": options.worker_image,
        "args": [
            *("worker", "device", f"--plane={plane.value}", f"--namespace={tenant.namespace}"),
            f"--lease-namespace={tenant.lease_namespace}",
            *arguments,
        ],
        "env": _environment(tenant, digest),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }
    annotations = {"annotations": {names.WORKER_TEMPLATE_DIGEST: digest}} if digest else {}
    return {
        "metadata": {"labels": selected(tenant.accounts[plane], plane), **annotations},
        "spec": {
            "serviceAccountName": tenant.accounts[plane],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": volumes,
        },
    }


def _chosen(tenant: Tenant, plane: Plane, options: Options) -> Iterable[str]:
    """Arguments for what is not as the worker has it by itself; an argument less is a Pod that is not started anew."""
    is_strict = tenant.freshness_s < DEFAULT_OBSERVATION_AGE_S
    if plane is Plane.NODE:
        # A heartbeat has to be young when the snapshot of it is renewed, at a third of the limit, and until the next one.
        return [f"--heartbeat-interval={tenant.freshness_s / 5:g}"] if is_strict else []
    found = [f"--image-source-allow={network}" for network in options.image_source_allow]
    found += [f"--evidence-freshness={tenant.freshness_s}"] if is_strict else []
    found += [] if options.unsaved_blocks else ["--unsaved-configuration=warn"]
    found += [f"--worker-poll={options.worker_poll_s:g}"] if options.worker_poll_s != _USUAL.worker_poll_s else []
    found += [f"--preflight-interval={options.preflight_s:g}"] if options.preflight_s != _USUAL.preflight_s else []
    return found


def _storage(tenant: Tenant, plane: Plane) -> tuple[list[JsonValue], list[JsonValue], list[str]]:
    """Mounts, volumes and arguments: the journal of the network plane is durable, its spool and everybody's /tmp are not."""
    mounts: list[JsonValue] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  the container's own
    volumes: list[JsonValue] = [{"name": "tmp", "emptyDir": {}}]
    if plane is Plane.NODE:
        return mounts, volumes, []
    claim = {"claimName": f"{tenant.accounts[plane]}-journal"}
    mounts += [{"name": "journal", "mountPath": JOURNAL_DIR}, {"name": "spool", "mountPath": SPOOL_DIR}]
    volumes += [{"name": "journal", "persistentVolumeClaim": claim}, {"name": "spool", "emptyDir": {}}]
    return mounts, volumes, [f"--journal-dir={JOURNAL_DIR}", f"--spool-dir={SPOOL_DIR}"]


def _environment(tenant: Tenant, digest: str) -> list[JsonValue]:
    carried = [{"name": names.ENV_WORKER_TEMPLATE_DIGEST, "value": digest}] if digest else []
    return [
        {"name": names.ENV_MANAGED_TOPOLOGY, "value": "true"},
        {"name": names.ENV_WORKER_NAMESPACE, "value": tenant.namespace},
        *carried,
    ]


def template_digest(template: JsonObject) -> str:
    """The digest that a template without carriers has; member order does not matter."""
    return sha256_of(_sorted(template))


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_sorted(member) for member in value]
    return value


def digest_of(deployment: JsonObject) -> str:
    """The digest that the Pods of a Deployment carry."""
    return text_at(deployment, "spec", "template", "metadata", "annotations", names.WORKER_TEMPLATE_DIGEST)

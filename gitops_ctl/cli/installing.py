"""What bootstrap puts into a cluster for one tenant (gitops.md, section 23.1).

Pure but for `planned`: the objects are values, so that a person sees them before anything is sent.  Nothing gives
the ServiceAccount of the Sync any right: what its documents need is printed and granted by whoever may grant it.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gitops_ctl.api.names import API_VERSION, GROUP, POLICY_PATH, SYSTEM_NAMESPACE
from gitops_ctl.cli.comparison import differing
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.product import MANAGER_ACCOUNT
from gitops_ctl.sync.diff import Difference, rendered

TENANT_MANAGER = "gitops-ctl-bootstrap"
"""Field manager of a tenant's objects: not that of the product's, because both write to the ConfigMap of the admission policies."""

ADMISSION = "gitops-ctl-admission"
_SYNC_ACCOUNTS = "syncAccounts"
_RBAC = "rbac.authorization.k8s.io"
_APPLY_VERBS = ("get", "create", "patch", "delete")
_POLICY_VERBS = {
    ("cisco.vk", "ciscodevices"): ("topology",),
    ("ops.cisco.vk", "iosxesoftwarerollouts"): ("activate", "approve", "control", "recover"),
    ("worker.gpustack.ai", "topologysources"): ("endpoint",),
}
"""What the admission policies ask for beside plain rights, by group and plural name."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """One source with one Sync, as a person asked for them.

    Attributes:
        root, policy_digest: what was confirmed; all later trust rests on them.
        credentials: keys of the Git Secret; empty for a repository that anybody may read.
        ca, known_hosts: texts for the ConfigMaps; empty for none.
    """

    namespace: str
    source: str
    sync: str
    url: str
    branch: str
    path: str
    service_account: str
    root: str
    policy_digest: str
    policy_path: str = POLICY_PATH
    prune: bool = True
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str = ""
    known_hosts: str = ""
    interval: str = "60s"

    @property
    def account(self) -> str:
        """Kubernetes user name of the Sync's ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"

    @property
    def role(self) -> str:
        """Name of the Role by which the manager works for this source; one per source, so that several share a namespace."""
        return f"gitops-ctl-{self.source}"


def tenant_objects(tenant: Tenant, *, sync_accounts: Iterable[str] = ()) -> Iterator[JsonObject]:
    """The objects of one tenant, in the order in which they can be applied.

    Args:
        tenant: what was asked for.
        sync_accounts: accounts that may write consents already; this tenant's joins them.
    """
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenant.namespace}}
    yield _object("v1", "ServiceAccount", tenant.namespace, tenant.service_account)
    if tenant.credentials:
        data: JsonValue = {key: b64encode(value.encode()).decode() for key, value in tenant.credentials.items()}
        yield _object("v1", "Secret", tenant.namespace, f"{tenant.source}-git", type="Opaque", data=data)
    if tenant.ca:
        yield _object("v1", "ConfigMap", tenant.namespace, f"{tenant.source}-ca", data={"ca.crt": tenant.ca})
    if tenant.known_hosts:
        hosts: JsonValue = {"known_hosts": tenant.known_hosts}
        yield _object("v1", "ConfigMap", tenant.namespace, f"{tenant.source}-known-hosts", data=hosts)
    yield _tenant_role(tenant)
    yield _object(
        f"{_RBAC}/v1",
        "RoleBinding",
        tenant.namespace,
        tenant.role,
        roleRef={"apiGroup": _RBAC, "kind": "Role", "name": tenant.role},
        subjects=[{"kind": "ServiceAccount", "name": MANAGER_ACCOUNT, "namespace": SYSTEM_NAMESPACE}],
    )
    accounts = "\n".join(sorted({*sync_accounts, tenant.account}))
    yield _object("v1", "ConfigMap", SYSTEM_NAMESPACE, ADMISSION, data={_SYNC_ACCOUNTS: accounts})
    yield git_source(tenant)
    yield sync_document(tenant)


def _tenant_role(tenant: Tenant) -> JsonObject:
    """The manager acts as this ServiceAccount and reads these Secrets and ConfigMaps, and nothing else (section 4.7)."""
    rules: list[JsonValue] = [_rule("serviceaccounts", [tenant.service_account], "impersonate")]
    if tenant.credentials:
        rules.append(_rule("secrets", [f"{tenant.source}-git"], "get"))
    maps = [f"{tenant.source}-ca"] if tenant.ca else []
    maps += [f"{tenant.source}-known-hosts"] if tenant.known_hosts else []
    if maps:
        rules.append(_rule("configmaps", maps, "get"))
    return _object(f"{_RBAC}/v1", "Role", tenant.namespace, tenant.role, rules=rules)


def _rule(resource: str, names: list[str], verb: str) -> JsonValue:
    return {"apiGroups": [""], "resources": [resource], "resourceNames": list(names), "verbs": [verb]}


def git_source(tenant: Tenant) -> JsonObject:
    """The GitSource: it lives in the cluster only, since it says where trust begins."""
    spec: dict[str, JsonValue] = {
        "url": tenant.url,
        "ref": {"branch": tenant.branch},
        "interval": tenant.interval,
        "trust": {
            "policyPath": tenant.policy_path,
            "root": {"commit": tenant.root, "policyDigest": tenant.policy_digest},
        },
    }
    if tenant.credentials:
        spec["credentialsSecretRef"] = {"name": f"{tenant.source}-git"}
    if tenant.ca:
        spec["caConfigMapRef"] = {"name": f"{tenant.source}-ca"}
    if tenant.known_hosts:
        spec["knownHostsConfigMapRef"] = {"name": f"{tenant.source}-known-hosts"}
    return _object(API_VERSION, "GitSource", tenant.namespace, tenant.source, spec=spec)


def sync_document(tenant: Tenant) -> JsonObject:
    """The Sync: it belongs into Git as well, so that its consents and settings come from there."""
    spec: dict[str, JsonValue] = {
        "sourceRef": {"name": tenant.source},
        "path": tenant.path,
        "serviceAccountName": tenant.service_account,
        "prune": {"enabled": tenant.prune},
    }
    return _object(API_VERSION, "Sync", tenant.namespace, tenant.sync, spec=spec)


def _object(api_version: str, kind: str, namespace: str, name: str, **members: JsonValue) -> JsonObject:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        **members,
    }


@dataclass(frozen=True, slots=True)
class Planned:
    """One object that is wanted, and what applying it would do: `before` is None for an object that is not there."""

    wanted: JsonObject
    before: JsonObject | None = None
    changes: tuple[Difference, ...] = ()

    @property
    def id(self) -> ObjectId:
        return ObjectId.of(self.wanted)

    @property
    def is_due(self) -> bool:
        return self.before is None or bool(self.changes)

    @property
    def replaces(self) -> bool:
        """Whether a value that is there would be another one; what is only added is missing, not different."""
        return any(change.live is not None for change in self.changes)

    def lines(self) -> list[str]:
        """For people; values of Secrets are never shown."""
        head = f"{'create' if self.before is None else 'change'}  {self.id}"
        return [head, *(f"          {line}" for line in rendered(self.changes))]


async def planned(client: KubeClient, mapper: Mapper, *, wanted: JsonObject, manager: str) -> Planned:
    """What is there now beside what the server would make of it, so that its defaults are no difference.

    Raises:
        GitopsError: the server refuses the object, or its kind is not served.
    """
    resource = await mapper.resource(GroupVersionKind.of(wanted))
    name = ObjectId.of(wanted)
    path = resource.path(name.namespace, name.name)
    before = await client.find(path)
    if before is None:
        return Planned(wanted)
    after = await client.apply(path, wanted, manager=manager, force=True, dry_run=True)
    return Planned(wanted, before, differing(before, after))


def sync_accounts_of(admission: JsonObject | None) -> tuple[str, ...]:
    """The accounts that the admission policies let write consents now."""
    text = text_at(admission or {}, "data", _SYNC_ACCOUNTS)
    return tuple(line for line in text.splitlines() if line)


def required_rules(documents: Iterable[tuple[GroupVersionKind, str]]) -> tuple[JsonObject, ...]:
    """The least rights that a Sync's ServiceAccount needs for these kinds: pairs of kind and plural name."""
    groups: dict[str, set[str]] = {}
    for gvk, plural in documents:
        groups.setdefault(gvk.group, set()).add(plural)
    plain = (
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": list(_APPLY_VERBS)}
        for group, plurals in sorted(groups.items())
    )
    judged = (
        {"apiGroups": [group], "resources": [plural], "verbs": list(verbs)}
        for (group, plural), verbs in _POLICY_VERBS.items()
        if plural in groups.get(group, ())
    )
    return (*plain, *judged)


def granted(name: str, rules: Iterable[JsonObject], *, account: str, namespace: str) -> tuple[JsonObject, JsonObject]:
    """A ClusterRole and the binding that gives it to a ServiceAccount."""
    role: JsonObject = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [*rules],
    }
    binding: JsonObject = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    return role, binding


def applier_rights(namespace: str, account: str, *, rules: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """What a person grants to a Sync's account: the rules everywhere, and the Syncs of its own namespace.

    Never Syncs of other namespaces: whoever writes one there acts as an account of that namespace.
    """
    name = f"{namespace}-{account}"
    elsewhere = [rule for rule in rules if rule.get("apiGroups") != [GROUP]]
    own = f"{account}-syncs"
    syncs: JsonValue = [{"apiGroups": [GROUP], "resources": ["syncs"], "verbs": list(_APPLY_VERBS)}]
    return (
        *granted(name, elsewhere, account=account, namespace=namespace),
        _object(f"{_RBAC}/v1", "Role", namespace, own, rules=syncs),
        _object(
            f"{_RBAC}/v1",
            "RoleBinding",
            namespace,
            own,
            roleRef={"apiGroup": _RBAC, "kind": "Role", "name": own},
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        ),
    )

"""What bootstrap puts into a cluster: the product's own manifests, and the objects of one tenant (gitops.md, section 23.1).

Pure but for `difference` and `put`: the objects are values, so that a person sees them before anything is sent.  Nothing gives
the ServiceAccount of the Sync any right: what its documents need is printed and granted by whoever may grant it.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from gitops_ctl.api.manifests import manifest
from gitops_ctl.api.names import API_VERSION, POLICY_PATH, SYSTEM_NAMESPACE
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.core.redact import redact_object
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient

PRODUCT_MANAGER = "gitops-ctl-install"
TENANT_MANAGER = "gitops-ctl-bootstrap"
"""Field managers of what bootstrap applies: two, because both write to the ConfigMap of the admission policies."""

MANAGER_ACCOUNT = "gitops-ctl-manager"
ADMISSION = "gitops-ctl-admission"
_SYNC_ACCOUNTS = "syncAccounts"
_RBAC = "rbac.authorization.k8s.io"
_APPLY_VERBS = ("get", "create", "patch", "delete")
_ESTABLISH_S = 30.0
_POLL_S = 0.1


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


def product_objects() -> tuple[JsonObject, ...]:
    """Definitions, manager, RBAC and admission policies of this release, in the order in which they can be applied."""
    text = manifest("install.yaml").read_text(encoding="utf-8")
    return tuple(tree for tree in yaml.load_all(text, Loader=yaml.CSafeLoader) if isinstance(tree, dict))


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
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        tenant.namespace,
        tenant.role,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": tenant.role},
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
    return _object("rbac.authorization.k8s.io/v1", "Role", tenant.namespace, tenant.role, rules=rules)


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
class Difference:
    """What applying one object would do: `before` is None for an object that is not there."""

    id: ObjectId
    before: JsonObject | None
    after: JsonObject

    @property
    def changes(self) -> bool:
        return self.before is None or self.lines() != []

    def lines(self) -> list[str]:
        """`path: old -> new` for each declared member that differs; values of Secrets are never shown."""
        if self.before is None:
            return []
        before, after = redact_object(self.before), redact_object(self.after)
        raw_before, raw_after = self.before, self.after
        return list(_lines(before, after, raw_before, raw_after, path=""))


def _lines(
    before: JsonObject, after: JsonObject, raw_before: JsonObject, raw_after: JsonObject, *, path: str
) -> Iterator[str]:
    for name, value in raw_after.items():
        if not path and name == "metadata":
            continue
        place = f"{path}.{name}" if path else name
        old = raw_before.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from _lines(object_at(before, name), object_at(after, name), old, value, path=place)
        elif old != value:
            yield f"{place}: {before.get(name)!r} -> {after.get(name)!r}"


async def difference(client: KubeClient, mapper: Mapper, *, wanted: JsonObject) -> Difference:
    """What is there now beside what is wanted."""
    gvk = GroupVersionKind.of(wanted)
    resource = await mapper.resource(gvk)
    name = ObjectId.of(wanted)
    return Difference(name, await client.find(resource.path(name.namespace, name.name)), wanted)


async def put(client: KubeClient, mapper: Mapper, *, wanted: JsonObject, manager: str) -> None:
    """Apply one object; fields that bootstrap never wrote and somebody else owns are taken over, since a person confirmed it."""
    resource = await mapper.resource(GroupVersionKind.of(wanted))
    name = ObjectId.of(wanted)
    await client.apply(resource.path(name.namespace, name.name), wanted, manager=manager, force=True)


async def established(client: KubeClient, mapper: Mapper) -> None:
    """Wait until our kinds are served: their paths answer 404 for a moment after the definitions were applied.

    Raises:
        KindNotServed: not within half a minute.
    """
    deadline_s = client.clock.boot_s() + _ESTABLISH_S
    while True:
        try:
            for kind in (GIT_SOURCE, SYNC):
                await client.list_all(kind.path())
        except KindNotServed:
            if client.clock.boot_s() > deadline_s:
                raise
            await client.clock.sleep(_POLL_S)
        else:
            await mapper.refresh()
            return


def sync_accounts_of(admission: JsonObject | None) -> tuple[str, ...]:
    """The accounts that the admission policies let write consents now."""
    text = text_at(admission or {}, "data", _SYNC_ACCOUNTS)
    return tuple(line for line in text.splitlines() if line)


def required_rules(documents: Iterable[tuple[GroupVersionKind, str]]) -> tuple[JsonObject, ...]:
    """The least rights that a Sync's ServiceAccount needs for these kinds: pairs of kind and plural name.

    Who writes roles must hold what they give, or may escalate: that is said, since it is easily overlooked.
    """
    groups: dict[str, set[str]] = {}
    for gvk, plural in documents:
        groups.setdefault(gvk.group, set()).add(plural)
    verbs: list[JsonValue] = ["get", "create", "patch", "delete"]
    return tuple(
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": verbs}
        for group, plurals in sorted(groups.items())
    )

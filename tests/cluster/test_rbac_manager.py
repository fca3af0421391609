"""The manager with its shipped rights, through a full cycle: every right is used, and none is missing.

The rights are read from the rendered chart and the tenant's Role, the uses from the audit log of a real API server.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gitops_ctl.api.inventory import MAX_ENTRIES
from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.kube.events import REPEAT_S
from tests.support.managed_proposal import propose_and_withdraw
from tests.support.managed_topology import peers_defined, schedule_and_retire
from tests.support.manager_process import LEASE, Managed, managed_tenant, manager_plane  # noqa: F401
from tests.support.product import AUTHOR, config_map, people  # noqa: F401
from tests.support.sync_cluster import until
from tools.render_install import install_objects

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
Right = tuple[str, str, str, str]
"""Verb, group, resource, name; the name is empty when every name is meant."""


def rights_of(rules: Any) -> Iterator[Right]:
    for rule in rules:
        for verb in rule["verbs"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames") or [""]:
                        yield verb, group, resource, name


def is_of_a_switch(right: Right) -> bool:
    """What only a switch of kube-proxy and its pull request need; a cycle without a cluster of machines has neither."""
    verb, group, resource, name = right
    if group == "ichor.maesh.dev" or name.endswith("ichor.maesh.dev"):
        return True
    if (group, resource) == ("gitops-ctl.dev", "proposals"):
        return verb in ("get", "create")
    return verb == "get" and (group, resource) in (("gitops-ctl.dev", "gitsources"), ("gitops-ctl.dev", "syncs"))


def uses_of(entries: list[Any]) -> Iterator[Right]:
    """What each request needed; one that was made as somebody else needed the right to be that account, too."""
    for event in entries:
        account = event.get("impersonatedUser", {}).get("username", "")
        if account:
            yield "impersonate", "", "serviceaccounts", account.rpartition(":")[2]
            continue
        about = event.get("objectRef", {})
        resource = about.get("resource", "") + (f"/{about['subresource']}" if about.get("subresource") else "")
        for name in ("", about.get("name", "")):
            yield event["verb"], about.get("apiGroup", ""), resource, name


def everything_that_is_watched() -> str:
    """One small object of each kind that the chart lets the manager watch."""
    pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "example.net/x"}]}}
    selector = {"matchLabels": {"app": "x"}}
    job = {"template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}, "suspend": True}
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
    account = [{"kind": "ServiceAccount", "name": "x", "namespace": "default"}]
    column = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("v1", "LimitRange", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "4"}}]}}),
        ("v1", "Namespace", {}),
        ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "20"}}}),
        ("v1", "ServiceAccount", {}),
        ("v1", "Service", {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        (
            "v1",
            "PersistentVolumeClaim",
            {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}},
        ),
        ("apps/v1", "Deployment", {"spec": {"replicas": 0, "selector": selector, "template": pod}}),
        ("apps/v1", "DaemonSet", {"spec": {"selector": selector, "template": pod}}),
        (
            "apps/v1",
            "StatefulSet",
            {"spec": {"replicas": 0, "serviceName": "x", "selector": selector, "template": pod}},
        ),
        ("batch/v1", "Job", {"spec": job}),
        ("batch/v1", "CronJob", {"spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}}}),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            {
                "spec": {
                    "maxReplicas": 1,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                }
            },
        ),
        ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}}}),
        (
            "networking.k8s.io/v1",
            "Ingress",
            {"spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
        ),
        ("policy/v1", "PodDisruptionBudget", {"spec": {"selector": selector, "maxUnavailable": 1}}),
        ("rbac.authorization.k8s.io/v1", "Role", {"rules": []}),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", {"roleRef": role_ref, "subjects": account}),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", {"rules": []}),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            {"roleRef": {**role_ref, "kind": "ClusterRole"}, "subjects": account},
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {
                "spec": {
                    "group": "rights.example.net",
                    "scope": "Namespaced",
                    "names": {"kind": "Thing", "plural": "things"},
                    "versions": [
                        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": column}}
                    ],
                }
            },
        ),
    ]
    named = {"CustomResourceDefinition": "things.rights.example.net"}
    trees = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": named.get(kind, "rights-x")}, **members}
        for version, kind, members in kinds
    ]
    return yaml.safe_dump_all(trees, sort_keys=False)


async def full_cycle(managed: Managed) -> None:
    """Bootstrap, apply, drift, prune, refusal, scheduling, refusal again, restart of the manager, deletion, hand-over of the Lease."""
    tenant = managed.tenant
    first = await managed.start()
    await tenant.until_applied(tenant.root)
    good = await managed.push({"site/all.yaml": everything_that_is_watched(), "site/more.yaml": config_map("more")})
    await _until_recorded(managed, good)
    await tenant.set_config_map("base", "drift")
    await until(lambda: _is(tenant, "base", "1"), what="drift is repaired")
    good = await shrink(managed)
    bad = tenant.commit({"site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    await refuse(managed, bad, good)
    counts_at_s = time.monotonic() + REPEAT_S
    await propose_and_withdraw(managed)
    await schedule_and_retire(managed)
    await until(lambda: time.monotonic() >= counts_at_s, what="repeats are told again", timeout_s=2 * REPEAT_S)
    await refuse_until_counted(managed, bad, good)
    assert await first.terminate() == 0
    await managed.start("second")
    pruned = await managed.push(delete=["site/more.yaml"])
    await _until_recorded(managed, pruned)
    assert await tenant.config_map("more") is None
    await tenant.admin.delete(tenant.sync_path())

    async def gone() -> bool:
        return await tenant.admin.find(tenant.sync_path()) is None

    await until(gone, what="the Sync is finished", timeout_s=60)
    assert await managed.processes[-1].terminate() == 0
    assert await managed.holder() == ""


async def refuse(managed: Managed, bad: str, good: str) -> None:
    """A commit is refused and taken back."""
    tenant = managed.tenant
    for commit, reason in ((bad, "PathNotAuthorised"), (good, "Succeeded")):
        tenant.repo.git("reset", "--quiet", "--hard", commit)
        await managed.poll()
        await tenant.until_reason(reason)


async def refuse_until_counted(managed: Managed, bad: str, good: str) -> None:
    """A commit that was refused before is pushed again until its Event has become a series, a minute after it was first sent."""

    async def counted() -> bool:
        await refuse(managed, bad, good)
        return any(event["verb"] == "patch" for event in managed.entries() if _resource(event) == "events")

    await until(counted, what="the Event of a refusal counts its repeats", timeout_s=150)


async def shrink(managed: Managed) -> str:
    """An inventory of two shards becomes one of one; the commit that asks for it."""
    tenant = managed.tenant
    await tenant.sync(prune={"enabled": True, "maxPercent": 100})
    many = "".join(config_map(f"many-{number}") for number in range(MAX_ENTRIES))
    await _until_recorded(managed, await managed.push({"site/many.yaml": many}))
    few = await managed.push(delete=["site/many.yaml"])
    await _until_recorded(managed, few)
    return few


def _resource(event: Any) -> str:
    return str(event.get("objectRef", {}).get("resource", ""))


async def _is(tenant: Any, name: str, value: str) -> bool:
    return bool(await tenant.config_map(name) == value)


async def _until_recorded(managed: Managed, commit: str) -> None:
    """Applied whole, healthy or not: nothing here runs Pods or binds volumes."""

    async def there() -> bool:
        status = await managed.tenant.sync_status()
        counts = status.get("counts", {})
        applied = status.get("lastAttemptedRevision") == commit and counts.get("applied") == counts.get("objects")
        return bool(applied and not status.get("held"))

    try:
        await until(there, what=f"{commit} is applied", timeout_s=90)
    except AssertionError as error:
        states = [await managed.tenant.source_status(), await managed.tenant.sync_status()]
        raise AssertionError(f"{error}; {states}; {managed.processes[-1].log.read_text()[-3000:]}") from None


async def test_the_manager_needs_every_right_that_it_has_and_no_other(managed: Managed) -> None:
    async with peers_defined(managed):
        await full_cycle(managed)
    entries = managed.entries()
    denied = [
        (event["verb"], event["requestURI"], event["responseStatus"].get("message", ""))
        for event in entries
        if event.get("responseStatus", {}).get("code") == 403
        # Nobody may create anything in a namespace that is going: no right would help.
        and "because it is being terminated" not in event["responseStatus"].get("message", "")
    ]
    assert denied == []
    used = set(uses_of(entries))
    unused = sorted(right for right in await _granted(managed) if right not in used and not is_of_a_switch(right))
    assert unused == []


async def _granted(managed: Managed) -> set[Right]:
    """Everything that the chart and the tenant's Role give."""
    found = [tree["rules"] for tree in install_objects() if tree["kind"] in ("ClusterRole", "Role")]
    namespace = managed.tenant.namespace
    page = await managed.admin.list_all(f"{RBAC}/namespaces/{namespace}/roles")
    roles: Any = page.items
    found += [tree["rules"] for tree in roles if tree["metadata"]["name"].startswith("gitops-ctl")]
    assert SYSTEM_NAMESPACE in LEASE
    return {right for rules in found for right in rights_of(rules)}

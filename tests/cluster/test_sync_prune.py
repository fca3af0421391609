"""Removals against a real server: the faults of family R that need one, and D08."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gitops_ctl.core.ids import ObjectId
from tests.support.sync_cluster import Bench, document, sync_site, until

__all__ = ["sync_site"]

pytestmark = pytest.mark.cluster
PRUNE = {"enabled": True}
ALLOW = "gitops-ctl.dev/allow-prune"
RBAC = "rbac.authorization.k8s.io/v1"


async def names_of(site: Bench) -> set[str]:
    page: Any = await site.admin.list_all(site.path("configmaps"), label_selector="gitops-ctl.dev/owner")
    return {item["metadata"]["name"] for item in page.items}


def sync_document(site: Bench, *, digest: str = "", path: str = "app") -> str:
    """YAML of the Sync itself, as it stands in Git."""
    annotations = {ALLOW: digest} if digest else {}
    meta = {"name": "site", "namespace": site.namespace, "annotations": annotations}
    spec = {"sourceRef": {"name": "network"}, "serviceAccountName": "applier", "path": path, "prune": PRUNE}
    return document({"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": "Sync", "metadata": meta, "spec": spec})


def digest_in(message: str) -> str:
    return message.partition(f"{ALLOW}: ")[2].split(" ")[0]


async def test_a_removed_document_is_pruned_and_leaves_the_inventory(site: Bench) -> None:
    site.push(site.config_maps(5))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    commit = site.push(delete=["n0001.yaml"])
    status = await site.until_ready(commit=commit)
    assert "n0001" not in await names_of(site)
    assert {entry["name"] for entry in await site.inventory()} == {"n0000", "n0002", "n0003", "n0004"}
    assert status["lastPrune"]["count"] == 1


async def test_D08_objects_that_stay_are_listed_as_kept(site: Bench) -> None:
    site.push({**site.config_maps(2), "held.yaml": site.config_map("held", prune="disabled")})
    await site.sync()
    await site.until_ready()
    site.push(delete=["n0000.yaml", "held.yaml"])
    status = await site.until_ready()
    assert status["counts"]["kept"] == 2
    await site.sync(prune=PRUNE)

    async def one_kept() -> bool:
        return bool((await site.status())["counts"]["kept"] == 1)

    await until(one_kept)
    assert "its annotation disables prune" in (await site.condition())["message"]
    assert await names_of(site) == {"n0001", "held"}


async def test_R01_an_empty_folder_deletes_nothing_until_a_person_consents(site: Bench) -> None:
    files = {f"app/{name}": text for name, text in site.config_maps(3).items()}
    site.push({**files, "ops/sync.yaml": sync_document(site)})
    await site.sync(path="app", prune=PRUNE)
    await site.sync("ops", path="ops")
    await site.until_ready()
    site.push(delete=list(files))
    blocked = await site.until_reason("PruneBlocked")
    assert "no document is left" in blocked["message"]
    assert len(await names_of(site)) == 3
    digest = digest_in(blocked["message"])
    patch = {"metadata": {"annotations": {ALLOW: digest}}}
    await site.admin.patch_merge(site.sync_path(), patch)
    await site.request()
    assert len(await names_of(site)) == 3
    site.consent(ObjectId("gitops-ctl.dev", "Sync", site.namespace, "site"), ALLOW)
    site.push({"ops/sync.yaml": sync_document(site, digest=digest)})
    status = await site.until_ready()
    assert await names_of(site) == set()
    assert (status["lastPrune"]["digest"], status["lastPrune"]["consentCommit"]) == (digest, "c" * 40)


async def test_R05_a_consented_removal_that_a_crash_cut_short_is_finished_by_the_next_process(site: Bench) -> None:
    files = {f"app/{name}": text for name, text in site.config_maps(4).items()}
    site.push({**files, "ops/sync.yaml": sync_document(site)})
    await site.sync(path="app", prune=PRUNE)
    await site.sync("ops", path="ops")
    await site.until_ready()
    site.push(delete=list(files))
    digest = digest_in((await site.until_reason("PruneBlocked"))["message"])
    await site.kill()
    # What a process had done that died between the deletes and the inventory.
    for name in ("n0000", "n0001"):
        await site.admin.delete(site.path("configmaps", name))
    site.consent(ObjectId("gitops-ctl.dev", "Sync", site.namespace, "site"), ALLOW)
    site.push({"ops/sync.yaml": sync_document(site, digest=digest)})
    await site.restart()
    status = await site.until_ready()
    assert await names_of(site) == set()
    assert (status["lastPrune"]["digest"], status["lastPrune"]["consentCommit"]) == (digest, "c" * 40)


async def test_R02_a_large_share_stops_and_an_edit_of_the_limit_lets_it_go_on(site: Bench) -> None:
    site.push(site.config_maps(20))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    site.push(delete=[f"n{number:04}.yaml" for number in range(8)])
    blocked = await site.until_reason("PruneBlocked", kind="PruneBlocked")
    assert "8 of 20 objects" in blocked["message"]
    assert len(await names_of(site)) == 20
    await site.sync(prune={"enabled": True, "maxPercent": 40})
    await site.until_ready()
    assert len(await names_of(site)) == 12


async def test_R03_a_document_that_moves_between_units_is_adopted_and_never_deleted(site: Bench) -> None:
    text = site.config_map("moved")
    site.push({"a/m.yaml": text, "a/stays.yaml": site.config_map("a"), "b/stays.yaml": site.config_map("b")})
    await site.sync("a", path="a", prune=PRUNE)
    await site.sync("b", path="b", prune=PRUNE)
    await site.until_ready("a")
    await site.until_ready("b")
    uid = (await site.get("configmaps", "moved"))["metadata"]["uid"]
    for source, target in (("a", "b"), ("b", "a")):
        site.push({f"{target}/m.yaml": text}, delete=[f"{source}/m.yaml"])
        await site.until_ready("a")
        await site.until_ready("b")
        found = await site.get("configmaps", "moved")
        assert found["metadata"]["uid"] == uid
        assert f"/{target}:" in found["metadata"]["annotations"]["gitops-ctl.dev/owner-id"]
        assert "moved" in {entry["name"] for entry in await site.inventory(target)}
        assert "moved" not in {entry["name"] for entry in await site.inventory(source)}


async def test_R07_an_object_that_another_unit_lists_stays_when_one_drops_it(site: Bench) -> None:
    text = site.config_map("shared")
    site.push({"a/m.yaml": text, "a/x.yaml": site.config_map("a"), "b/m.yaml": text, "b/x.yaml": site.config_map("b")})
    await site.sync("a", path="a", prune=PRUNE)
    await site.until_ready("a")
    await site.sync("b", path="b", prune=PRUNE)
    await site.until_held("OwnedElsewhere", name="b")
    uid = (await site.get("configmaps", "shared"))["metadata"]["uid"]
    site.push(delete=["a/m.yaml"])
    await site.until_ready("a")
    await site.until_ready("b")
    assert (await site.get("configmaps", "shared"))["metadata"]["uid"] == uid


@asynccontextmanager
async def deletes_denied(site: Bench) -> AsyncIterator[None]:
    """An admission policy that refuses deletes of ConfigMaps in the tenant's namespace."""
    group = "admissionregistration.k8s.io/v1"
    name = site.namespace
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "false", "message": "deletes are frozen"}],
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector}}
    policies = site.path("validatingadmissionpolicies", group=group, namespace="")
    bindings = site.path("validatingadmissionpolicybindings", group=group, namespace="")
    await site.admin.create(policies, {"metadata": {"name": name}, "spec": spec})
    await site.admin.create(bindings, {"metadata": {"name": name}, "spec": binding})
    try:
        await site.admin.create(site.path("configmaps"), {"metadata": {"name": "probe"}})

        async def denied() -> bool:
            try:
                await site.admin.delete(site.path("configmaps", "probe"), dry_run=True)
            except Exception:
                return True
            return False

        await until(denied, what="the policy is in force")
        yield
    finally:
        await site.admin.delete(f"{bindings}/{name}")
        await site.admin.delete(f"{policies}/{name}")


async def test_R04_D08_a_denied_delete_stays_tracked_is_shown_and_tried_again(site: Bench) -> None:
    site.push(site.config_maps(3))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    async with deletes_denied(site):
        site.push(delete=["n0000.yaml"])
        failed = await site.until_reason("PruneFailed")
        assert failed["status"] == "False"
        assert "deletes are frozen" in failed["message"]
        assert "n0000" in {entry["name"] for entry in await site.inventory()}

    async def pruned() -> bool:
        await site.request()
        return "n0000" not in await names_of(site)

    await until(pruned, what="the delete is tried again")
    await site.until_ready()


async def test_R06_a_resource_whose_definition_is_gone_counts_as_gone(site: Bench) -> None:
    group = f"{site.namespace[-6:]}.six.example.net"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version],
        },
    }
    await site.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    meta = {"name": "w", "namespace": site.namespace}
    widget = document({"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": meta})
    site.push({"w.yaml": widget, **site.config_maps(2)})
    await site.sync(prune=PRUNE)
    await site.until_ready()
    await site.admin.delete(path)

    async def gone() -> bool:
        return await site.admin.find(path) is None

    await until(gone)
    site.push({"n0000.yaml": site.config_map("n0000", "2")}, delete=["w.yaml"])
    await site.until_ready()
    assert {entry["name"] for entry in await site.inventory()} == {"n0000", "n0001"}


async def test_R08_the_account_and_its_rights_go_last_when_a_tenant_is_deleted(site: Bench) -> None:
    tenant = f"{site.namespace[-6:]}-tenant"
    subject = {"kind": "ServiceAccount", "name": "own", "namespace": site.namespace}
    binding = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": tenant},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "own", "namespace": site.namespace}}
    await site.admin.create(site.path("serviceaccounts"), account)
    await site.admin.create(f"/apis/{RBAC}/clusterrolebindings", binding)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenant}}
    inside = site.config_map("inside").replace(site.namespace, tenant)
    files = {"account.yaml": document(account), "binding.yaml": document(binding), "space.yaml": document(space)}
    site.push({**files, "inside.yaml": inside, **site.config_maps(3)})
    await site.sync(
        serviceAccountName="own",
        deletionPolicy="Delete",
        prune={"enabled": True, "maxPercent": 100, "allowEmpty": True},
    )
    await site.until_ready()
    await site.admin.delete(site.sync_path())

    async def gone() -> bool:
        return await site.admin.find(site.sync_path()) is None

    await until(gone, what="the Sync is gone")
    assert await site.get("serviceaccounts", "own") is None
    assert await site.admin.find(f"/apis/{RBAC}/clusterrolebindings/{tenant}") is None
    assert await site.admin.find(f"/api/v1/namespaces/{tenant}") is None
    assert await names_of(site) == set()


async def test_R10_a_workload_goes_together_with_what_it_made(site: Bench) -> None:
    labels = {"app": "web"}
    container = {"name": "web", "image": "example.net/web:1"}
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    meta = {"name": "web", "namespace": site.namespace}
    web = document({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    site.push({"web.yaml": web, **site.config_maps(1)})
    await site.sync(prune=PRUNE)
    await site.until_ready()

    async def replica_sets() -> list[Any]:
        page: Any = await site.admin.list_all(site.path("replicasets", group="apps/v1"))
        return list(page.items)

    await until(replica_sets)
    site.push(delete=["web.yaml"])
    await site.until_ready()
    await until(lambda: _none(replica_sets()))
    await until(lambda: _none(site.get("deployments", "web", group="apps/v1")))
    await until(lambda: _has_entries(site, 1))


async def _has_entries(site: Bench, count: int) -> bool:
    return len(await site.inventory()) == count


async def _none(found: Any) -> bool:
    return not await found


async def test_R11_the_same_object_under_another_group_is_not_pruned(site: Bench) -> None:
    about = {"kind": "Namespace", "name": site.namespace}
    more = {
        "eventTime": "2026-11-30T08:00:00.000000Z",
        "type": "Normal",
        "reason": "Moved",
        "action": "Move",
    }
    meta = {"name": "moved", "namespace": site.namespace}
    old = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": meta,
        "involvedObject": {**about, "namespace": site.namespace},
        "reportingComponent": "example.net/x",
        "reportingInstance": "x",
        **more,
    }
    new = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": meta,
        "regarding": {**about, "namespace": site.namespace},
        "reportingController": "example.net/x",
        "reportingInstance": "x",
        **more,
    }
    site.push({"event.yaml": document(old), **site.config_maps(1)})
    await site.sync(prune=PRUNE)
    await site.until_ready()
    uid = (await site.get("events", "moved"))["metadata"]["uid"]
    site.push({"event.yaml": document(new)})
    await site.until_ready()
    assert (await site.get("events", "moved"))["metadata"]["uid"] == uid
    assert {(entry.get("group", ""), entry["kind"]) for entry in await site.inventory()} == {
        ("events.k8s.io", "Event"),
        ("", "ConfigMap"),
    }


async def test_a_document_error_stops_the_prune_and_a_hidden_file_keeps_its_object(site: Bench) -> None:
    site.push(site.config_maps(4))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    site.push({"n0001.yaml": "---\nkind: [\n"}, delete=["n0000.yaml"])
    await site.until_reason("ObjectsHeld")
    await site.until_idle()
    assert {"n0000", "n0001"} <= await names_of(site)
    site.push({"n0001.yaml": site.config_map("n0001"), ".gitops-ctlignore": "n0002.yaml\n"})
    status = await site.until_ready()
    assert await names_of(site) == {"n0001", "n0002", "n0003"}
    assert "HiddenInGit" in next(item for item in status["conditions"] if item["type"] == "Ready")["message"]

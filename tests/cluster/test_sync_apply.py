"""Server-side apply against a real server: the faults of family S, each with its provocation."""

import asyncio
import subprocess
from typing import Any

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.sync import apply as apply_module
from tests.support.sync_cluster import Bench, document, sync_site, until

__all__ = ["sync_site"]

pytestmark = pytest.mark.cluster
EDITOR = "kubectl-edit"
APPS = "apps/v1"


def deployment(site: Bench, *, name: str = "web", replicas: int | None = 0, **container: Any) -> str:
    """YAML of a Deployment."""
    labels = {"app": name}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "example.net/web:1", **container}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    meta = {"name": name, "namespace": site.namespace}
    return document({"apiVersion": APPS, "kind": "Deployment", "metadata": meta, "spec": spec})


def widget_definition(group: str, *versions: str) -> str:
    """YAML of its definition; the last version is the stored one."""
    served = [
        {
            "name": version,
            "served": True,
            "storage": version == versions[-1],
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            },
        }
        for version in versions
    ]
    names = {"kind": "Widget", "plural": "widgets"}
    return document(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": served},
        }
    )


def widget(site: Bench, group: str, *, version: str = "v1", name: str = "w") -> str:
    meta = {"name": name, "namespace": site.namespace}
    return document({"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": meta, "spec": {"size": 1}})


async def nothing_new(mapper: Mapper) -> None:
    """What `Mapper.refresh` comes to when discovery has not changed yet."""
    assert await mapper.all()


async def quiet(site: Bench) -> None:
    """A pass that a person asked for writes nothing but the answer."""
    await site.until_idle()
    site.manager.calls.clear()
    await site.request()
    await site.until_idle()
    assert site.writes == site.manager.calls["apply", "syncs/status"]


async def test_S01_duplicate_merge_keys_are_found_before_an_apply(site: Bench) -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    site.push({"web.yaml": deployment(site, env=twice), **site.config_maps(1)})
    await site.sync()
    (held,) = await site.until_held("DocumentInvalid")
    assert held["file"] == "web.yaml"
    assert site.manager.calls["apply", "deployments"] == 0


async def test_S02_S14_S16_lists_with_keys_heal_and_normalised_values_are_no_drift(site: Bench) -> None:
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    service = document(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "dns", "namespace": site.namespace, "labels": None},
            "spec": {"ports": ports, "selector": {"app": "dns"}},
        }
    )
    limits = {"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}
    site.push({"dns.yaml": service, "web.yaml": deployment(site, **limits)})
    await site.sync()
    await site.until_ready()
    live = await site.get("deployments", "web", group=APPS)
    assert live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"
    await quiet(site)
    path = site.path("services", "dns")
    await site.admin.patch_json(path, [{"op": "remove", "path": "/spec/ports/1"}], manager=EDITOR)

    async def healed() -> bool:
        return len((await site.get("services", "dns"))["spec"]["ports"]) == 2

    await until(healed)
    await quiet(site)


async def test_S03_S04_fields_of_client_side_apply_go_and_one_owner_remains(site: Bench, control_plane: Any) -> None:
    text = site.config_map("n0000").replace("key: '1'", "key: '1'\n  old: 'x'")
    kubectl = [str(control_plane.kubectl), "--kubeconfig", str(control_plane.kubeconfig), "apply", "-f", "-"]
    done = await asyncio.to_thread(subprocess.run, kubectl, input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    found = await site.get("configmaps", "n0000")
    assert found["data"] == {"key": "1"}
    assert "kubectl.kubernetes.io/last-applied-configuration" not in found["metadata"]["annotations"]
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["gitops-ctl"]


async def test_S05_a_field_that_the_server_does_not_know_holds_that_object_only(site: Bench) -> None:
    site.push({"web.yaml": deployment(site, notYetInvented=True), **site.config_maps(2)})
    await site.sync()
    (held,) = await site.until_held("ApplyRefused")
    assert "notYetInvented" in held["message"]
    assert await site.get("configmaps", "n0001")


async def test_S06_an_injected_bundle_and_rule_defaults_are_no_drift(site: Bench) -> None:
    name = f"{site.namespace}.example.net"
    hook = {
        "name": name,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": ["example.net"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"]}],
    }
    group = "admissionregistration.k8s.io/v1"
    kind = "ValidatingWebhookConfiguration"
    site.push(
        {"hook.yaml": document({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "webhooks": [hook]})}
    )
    await site.sync(deletionPolicy="Delete")
    await site.until_ready()
    path = site.path("validatingwebhookconfigurations", name, group=group, namespace="")
    bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
    try:
        await site.admin.patch_json(path, patch, manager="ca-injector")
        await quiet(site)
        live: Any = await site.admin.get(path)
        assert live["webhooks"][0]["clientConfig"]["caBundle"] == bundle
    finally:
        await site.admin.delete(path)


def immutable(site: Bench, value: str, **annotations: str) -> str:
    return site.config_map("fixed", value, **annotations) + "immutable: true\n"


async def test_S07_an_immutable_field_holds_its_object_until_a_person_consents(site: Bench) -> None:
    site.push({"fixed.yaml": immutable(site, "1"), **site.config_maps(1)})
    await site.sync()
    await site.until_ready()
    uid = (await site.get("configmaps", "fixed"))["metadata"]["uid"]
    site.push({"fixed.yaml": immutable(site, "2"), "n0000.yaml": site.config_map("n0000", "2")})
    (held,) = await site.until_held("RecreateRequired")
    assert uid in held["message"]
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "2"}
    site.push({"fixed.yaml": immutable(site, "2", recreate=uid)})
    await site.request()
    assert (await site.get("configmaps", "fixed"))["metadata"]["uid"] == uid
    site.consent(ObjectId("", "ConfigMap", site.namespace, "fixed"), "gitops-ctl.dev/recreate")
    site.push({"fixed.yaml": immutable(site, "2", recreate=uid) + "# signed\n"})
    await site.until_ready()
    found = await site.get("configmaps", "fixed")
    assert (found["data"], found["metadata"]["uid"] != uid) == ({"key": "2"}, True)
    assert found["metadata"]["annotations"]["gitops-ctl.dev/introduced-by"] == "consent=change-approver"
    (told,) = [note for _, reason, note in site.events if reason == "Recreated"]
    consent = found["metadata"]["annotations"]["gitops-ctl.dev/introduced-commit"].removeprefix("consent=")
    assert f"(uid {uid}), with the consent of {consent}" in told
    site.push({"fixed.yaml": immutable(site, "3", recreate=uid)})
    await site.until_held("RecreateRequired")


async def test_H01_a_newer_commit_does_not_wait_for_the_finalizer_of_an_object_that_is_made_anew(
    site: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_module, "RECREATION_S", 600.0)
    site.push({"fixed.yaml": immutable(site, "1"), **site.config_maps(1)})
    await site.sync()
    await site.until_ready()
    path = site.path("configmaps", "fixed")
    await site.admin.patch_merge(path, {"metadata": {"finalizers": ["example.net/wait"]}}, manager=EDITOR)
    uid = (await site.get("configmaps", "fixed"))["metadata"]["uid"]
    site.consent(ObjectId("", "ConfigMap", site.namespace, "fixed"), "gitops-ctl.dev/recreate")
    site.push({"fixed.yaml": immutable(site, "2", recreate=uid)})

    async def goes() -> bool:
        return "deletionTimestamp" in (await site.get("configmaps", "fixed"))["metadata"]

    async def is_newer() -> bool:
        return bool((await site.get("configmaps", "n0000"))["data"] == {"key": "2"})

    await until(goes, what="the old object waits for its finalizer")
    site.push({"n0000.yaml": site.config_map("n0000", "2")})
    await until(is_newer, what="the newer commit is applied beside it")
    await site.admin.patch_merge(path, {"metadata": {"finalizers": None}}, manager=EDITOR)
    await site.until_ready()


async def test_S07_other_parameters_of_a_storage_class_hold_it_alone(site: Bench) -> None:
    name = f"{site.namespace}-disks"
    group = "storage.k8s.io/v1"

    def disks(kind: str, **annotations: str) -> str:
        noted = {f"gitops-ctl.dev/{key}": text for key, text in annotations.items()}
        tree = {"apiVersion": group, "kind": "StorageClass", "metadata": {"name": name, "annotations": noted}}
        return document({**tree, "provisioner": "example.net/disks", "parameters": {"kind": kind}})

    async def live() -> Any:
        return await site.get("storageclasses", name, group=group, namespace="")

    site.push({"disks.yaml": disks("slow"), **site.config_maps(1)})
    await site.sync(deletionPolicy="Delete")
    try:
        await site.until_ready()
        uid = (await live())["metadata"]["uid"]
        site.push({"disks.yaml": disks("fast"), "n0000.yaml": site.config_map("n0000", "2")})
        (held,) = await site.until_held("RecreateRequired")
        assert "parameters" in held["message"]
        assert (await site.get("configmaps", "n0000"))["data"] == {"key": "2"}
        assert (await live())["parameters"] == {"kind": "slow"}
        site.consent(ObjectId("storage.k8s.io", "StorageClass", "", name), "gitops-ctl.dev/recreate")
        site.push({"disks.yaml": disks("fast", recreate=uid)})
        await site.until_ready()
        found = await live()
        assert (found["parameters"], found["metadata"]["uid"] != uid) == ({"kind": "fast"}, True)
    finally:
        await site.admin.delete(site.path("storageclasses", name, group=group, namespace=""))


async def test_S08_an_invalid_value_never_deletes_a_healthy_object(site: Bench) -> None:
    site.push({"fixed.yaml": immutable(site, "1")})
    await site.sync()
    await site.until_ready()
    uid = (await site.get("configmaps", "fixed"))["metadata"]["uid"]
    site.consent(ObjectId("", "ConfigMap", site.namespace, "fixed"), "gitops-ctl.dev/recreate")
    site.push({"fixed.yaml": immutable(site, "2", recreate=uid).replace("key: '2'", "bad key!: '2'")})
    await site.until_held("ApplyRefused")
    assert (await site.get("configmaps", "fixed"))["metadata"]["uid"] == uid


async def test_S09_S10_a_definition_and_its_resources_in_one_unit_and_in_two(site: Bench) -> None:
    one, two = f"{site.namespace[-6:]}.one.example.net", f"{site.namespace[-6:]}.two.example.net"
    site.push(
        {
            "one/crd.yaml": widget_definition(one, "v1"),
            "one/w.yaml": widget(site, one),
            "a/w.yaml": widget(site, two),
            "b/crd.yaml": widget_definition(two, "v1"),
        }
    )
    try:
        await site.sync("one", path="one")
        await site.until_ready("one")
        await site.sync("a", path="a")
        await site.until_held("DependencyNotReady", name="a")
        await site.sync("b", path="b")
        await site.until_ready("b")
        await site.until_ready("a")
    finally:
        for group in (one, two):
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
            await site.admin.delete(path)


@pytest.mark.parametrize("discovery", ["fresh", "behind"])
async def test_S11_managers_of_a_version_that_is_gone_are_migrated(
    site: Bench, discovery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = f"{site.namespace[-6:]}.eleven.example.net"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    site.push({"crd.yaml": widget_definition(group, "v1beta1"), "w.yaml": widget(site, group, version="v1beta1")})
    await site.sync()
    try:
        await site.until_ready()
        site.push({"crd.yaml": widget_definition(group, "v1beta1", "v1")})
        await site.until_ready()
        stored = site.path("widgets", "w", group=f"{group}/v1")
        await site.admin.patch_merge(stored, {"metadata": {"labels": {"stored": "anew"}}}, manager="migrator")
        await site.admin.patch_merge(path + "/status", {"status": {"storedVersions": ["v1"]}})
        if discovery == "behind":  # the server goes on listing a version for moments after its handler let it go
            monkeypatch.setattr(Mapper, "refresh", nothing_new)
        site.push({"crd.yaml": widget_definition(group, "v1"), "w.yaml": widget(site, group)})
        await site.until_ready()
        found = await site.get("widgets", "w", group=f"{group}/v1")
        assert {entry["apiVersion"] for entry in found["metadata"]["managedFields"]} == {f"{group}/v1"}
        assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["gitops-ctl", "migrator"]
        await quiet(site)
    finally:
        await site.admin.delete(path)


async def test_S12_S15_foreign_fields_and_another_order_are_no_drift(site: Bench) -> None:
    finalizers = ["example.net/a", "example.net/b"]
    text = site.config_map("n0000").replace("metadata:\n", f"metadata:\n  finalizers: {finalizers}\n", 1)
    site.push({"n0000.yaml": text})
    await site.sync()
    path = site.path("configmaps", "n0000")
    try:
        await site.until_ready()
        await site.admin.patch_merge(path, {"data": {"added": "x"}}, manager="other")
        await site.admin.patch_merge(path, {"metadata": {"finalizers": finalizers[::-1]}}, manager="other")
        await quiet(site)
    finally:
        await site.admin.delete(site.sync_path())
        await site.kill()
        await site.admin.patch_merge(path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("count", [8, pytest.param(50, marks=pytest.mark.soak)])
async def test_S17_S18_only_the_objects_of_terminating_namespaces_wait(site: Bench, count: int) -> None:
    going = [f"{site.namespace[-6:]}-going-{number:02}" for number in range(count)]
    stuck = {"kind": "ConfigMap", "metadata": {"name": "stuck", "finalizers": ["example.net/never"]}}

    async def begin_to_end(name: str) -> None:
        await site.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
        await site.admin.create(f"/api/v1/namespaces/{name}/configmaps", stuck)
        await site.admin.delete(f"/api/v1/namespaces/{name}")

    async def let_go(name: str) -> None:
        path = f"/api/v1/namespaces/{name}/configmaps/stuck"
        await site.admin.patch_merge(path, {"metadata": {"finalizers": None}})

    await asyncio.gather(*map(begin_to_end, going))
    files = {f"{name}.yaml": site.config_map("late").replace(site.namespace, name) for name in going}
    site.push({**files, **site.config_maps(2)})
    await site.sync()
    try:
        held = await site.until_held("DependencyNotReady", count=len(going))
        assert {item["object"] for item in held} == {f"ConfigMap/{name}/late" for name in going}
        assert await site.get("configmaps", "n0001")
        site.push({"n0001.yaml": site.config_map("n0001", "2")})

        async def changed() -> bool:
            return bool((await site.get("configmaps", "n0001"))["data"] == {"key": "2"})

        await until(changed)
    finally:
        await asyncio.gather(*map(let_go, going))


async def test_S19_a_fight_is_reported_by_name_and_our_writes_slow_down(site: Bench) -> None:
    site.push({"web.yaml": deployment(site, replicas=0)})
    await site.sync()
    await site.until_ready()
    path = site.path("deployments", "web", group=APPS)

    async def set_to(replicas: int) -> None:
        await site.admin.patch_merge(path, {"spec": {"replicas": replicas, "paused": True}}, manager="autoscaler")

    async def repaired() -> bool:
        return bool((await site.get("deployments", "web", group=APPS))["spec"]["replicas"] == 0)

    for _ in range(5):
        await set_to(1)
        await until(repaired)
    await set_to(1)
    fight = await site.until_reason("Fighting", kind="Fighting")
    assert "autoscaler" in fight["message"]
    await site.until_idle()
    site.manager.calls.clear()
    for number in range(10):
        await set_to(2 + number % 2)
    await site.until_idle()
    assert site.manager.calls["apply", "deployments"] <= 1


async def test_a_field_that_was_never_ours_is_not_taken_unless_git_asks_for_it(site: Bench) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n0000"}, "data": {"key": "theirs"}}
    await site.admin.apply(site.path("configmaps", "n0000"), body, manager="somebody")
    site.push(site.config_maps(1))
    await site.sync()
    (held,) = await site.until_held("FieldConflict")
    assert ".data.key of somebody" in held["message"]
    site.push({"n0000.yaml": site.config_map("n0000", apply="Override")})
    await site.until_ready()
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "1"}


async def test_if_not_present_creates_once_and_ignore_never(site: Bench) -> None:
    theirs = {"metadata": {"name": "there"}, "data": {"key": "theirs"}}
    await site.admin.create(site.path("configmaps"), theirs, manager="somebody")
    files = {
        "there.yaml": site.config_map("there", apply="IfNotPresent"),
        "absent.yaml": site.config_map("absent", apply="IfNotPresent"),
        "ignored.yaml": site.config_map("ignored", apply="Ignore"),
    }
    site.push(files)
    await site.sync()
    await site.until_ready()
    assert (await site.get("configmaps", "there"))["data"] == {"key": "theirs"}
    assert (await site.get("configmaps", "absent"))["data"] == {"key": "1"}
    assert await site.get("configmaps", "ignored") is None
    assert [entry["name"] for entry in await site.inventory()] == ["absent"]


async def test_depends_on_orders_objects_and_waits_for_health(site: Bench) -> None:
    first = deployment(site, name="first", replicas=1)
    late = site.config_map("late", depends_on=f"Deployment.apps/{site.namespace}/first")
    site.push({"first.yaml": first, "late.yaml": late})
    await site.sync()
    (held,) = await site.until_held("DependencyNotReady")
    assert "first, which is InProgress" in held["message"]
    site.push({"first.yaml": deployment(site, name="first", replicas=0)})
    await site.until_ready()
    assert await site.get("configmaps", "late")


async def test_a_dry_run_per_stage_holds_what_the_server_refuses_before_the_stage(site: Bench) -> None:
    bad = site.config_map("bad").replace("key: '1'", "bad key!: '1'")
    site.push({"bad.yaml": bad, **site.config_maps(1)})
    await site.sync(dryRun=True)
    (held,) = await site.until_held("ApplyRefused")
    assert held["message"].startswith("dry run: ")
    assert site.manager.calls["apply", "configmaps"] == 1

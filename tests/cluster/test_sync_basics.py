"""The main line of a Sync on a real server: apply, unchanged passes, restart, drift, suspension, broken neighbours, deletion."""

from typing import Any

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.kube.answers import AlreadyExists
from tests.support.sync_cluster import Bench, sync_site, until

__all__ = ["sync_site"]

pytestmark = pytest.mark.cluster

EDITOR = "kubectl-edit"


async def edited(site: Bench, name: str, value: str) -> None:
    """What `kubectl edit` does to a ConfigMap."""
    await site.admin.patch_merge(site.path("configmaps", name), {"data": {"key": value}}, manager=EDITOR)


async def value_of(site: Bench, name: str) -> Any:
    found = await site.get("configmaps", name)
    return found["data"]["key"] if found else None


async def test_a_commit_becomes_objects_and_a_status(site: Bench) -> None:
    commit = site.push(site.config_maps(3))
    await site.sync()
    status = await site.until_ready()
    assert status["lastAppliedRevision"] == commit
    assert status["counts"]["objects"] == 3
    assert (await site.get("configmaps", "n0001"))["data"] == {"key": "1"}
    entries = await site.inventory()
    assert [entry["name"] for entry in entries] == ["n0000", "n0001", "n0002"]
    assert all(entry["uid"] and entry["declaredDigest"] and entry["appliedDigest"] for entry in entries)
    assert ("Normal", "Succeeded") in [event[:2] for event in site.events]


async def test_promise_08_R15_an_unchanged_unit_costs_no_call_also_after_a_restart(site: Bench) -> None:
    site.push(site.config_maps(5))
    await site.sync()
    await site.until_ready()
    await site.until_idle()
    site.manager.calls.clear()
    key = next(iter(site.room.world.units))  # type: ignore[union-attr]
    for _ in range(20):
        site.room.wake(key)  # type: ignore[union-attr]
        await site.until_idle()
    assert site.manager.calls == {}
    await site.restart()
    await until(lambda: key in site.room.world.units and site.room.world.units[key].done, what="a pass")  # type: ignore[union-attr]
    assert site.writes == 0
    assert ("get", "configmaps") not in site.manager.calls


async def test_a_change_of_one_file_applies_one_object_and_writes_one_shard(site: Bench) -> None:
    site.push(site.config_maps(20))
    await site.sync()
    await site.until_ready()
    await site.until_idle()
    site.manager.calls.clear()
    site.push({"n0007.yaml": site.config_map("n0007", "2")})
    await site.until_ready()
    assert site.manager.calls == {
        ("apply", "configmaps"): 1,
        ("update", "inventories"): 1,
        ("apply", "syncs/status"): 1,
    }
    assert site.loader.cache.parsed == 21
    assert site.checked.checked == 21  # type: ignore[union-attr]


async def test_promise_02_an_edit_of_a_managed_field_is_put_back(site: Bench) -> None:
    site.push(site.config_maps(2))
    await site.sync()
    await site.until_ready()
    await edited(site, "n0000", "by hand")
    await until(lambda: _is(site, "n0000", "1"))
    await site.admin.delete(site.path("configmaps", "n0001"))
    await until(lambda: _is(site, "n0001", "1"))
    assert (await site.condition())["status"] == "True"


async def _is(site: Bench, name: str, value: str) -> bool:
    return bool(await value_of(site, name) == value)


async def test_promise_03_specs_and_other_managers_fields_are_left_alone(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    before: Any = await site.admin.get(site.sync_path())
    await site.admin.patch_merge(site.path("configmaps", "n0000"), {"data": {"theirs": "x"}}, manager="other")
    await edited(site, "n0000", "by hand")
    await until(lambda: _is(site, "n0000", "1"))
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "1", "theirs": "x"}
    after: Any = await site.admin.get(site.sync_path())
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    writers = {entry["manager"]: entry for entry in after["metadata"]["managedFields"]}
    assert "f:spec" not in writers["gitops-ctl-status"]["fieldsV1"]


async def test_report_mode_says_what_differs_and_changes_nothing(site: Bench) -> None:
    site.push(site.config_maps(2))
    await site.sync(drift="Report")
    await site.until_ready()
    await edited(site, "n0000", "by hand")
    await site.admin.delete(site.path("configmaps", "n0001"))

    async def drift() -> Any:
        found = {item["object"].rpartition("/")[2]: item for item in (await site.status()).get("drift", ())}
        return found if len(found) == 2 else None

    found = await until(drift)
    assert (found["n0000"]["change"], found["n0000"]["pointers"]) == ("Changed", ["/data/key"])
    assert found["n0000"]["manager"] == EDITOR
    assert found["n0001"]["change"] == "Missing"
    assert (await site.condition(kind="Drifted"))["status"] == "True"
    assert await value_of(site, "n0000") == "by hand"
    assert await site.get("configmaps", "n0001") is None


async def test_S20_our_marks_are_repaired_and_an_apply_meets_no_second_writer(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    path = site.path("configmaps", "n0000")
    marks = {"labels": {"gitops-ctl.dev/owner": None}, "annotations": {"gitops-ctl.dev/owner-id": None}}
    await site.admin.patch_merge(path, {"metadata": marks}, manager=EDITOR)

    async def marked() -> bool:
        metadata = (await site.get("configmaps", "n0000"))["metadata"]
        return "gitops-ctl.dev/owner" in metadata.get("labels", {}) and bool(metadata.get("annotations"))

    await until(marked)
    for number in range(5):
        site.push({"n0000.yaml": site.config_map("n0000", f"new {number}")})
        await edited(site, "n0000", "by hand")
    await site.until_ready()
    await until(lambda: _is(site, "n0000", "new 4"))


async def test_a_suspended_unit_does_nothing_until_it_is_resumed(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    await site.sync(suspend=True)
    await site.until_reason("Suspended")
    commit = site.push({"n0000.yaml": site.config_map("n0000", "2")})
    await edited(site, "n0000", "by hand")
    await site.until_idle()
    assert await value_of(site, "n0000") == "by hand"
    await site.sync()
    await site.until_ready(commit=commit)
    assert await value_of(site, "n0000") == "2"


async def test_a_request_is_answered_in_the_status(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    await site.request("now please")
    assert (await site.status())["lastHandledReconcileAt"] == "now please"


async def test_promise_10_a_broken_document_object_and_unit_do_not_delay_the_others(site: Bench) -> None:
    refused = site.config_map("n9999").replace("key: '1'", "bad key!: '1'")
    ill = {f"ill/{name}": text for name, text in site.config_maps(3).items()}
    site.push(
        {
            **ill,
            "ill/refused.yaml": refused,
            "ill/broken.yaml": "---\nkind: [\n",
            "well/a.yaml": site.config_map("well"),
        }
    )
    await site.sync("ill", path="ill")
    await site.sync("forbidden", path="ill", serviceAccountName="nobody")
    await site.sync("well", path="well")
    await site.until_ready("well")
    held = await site.until_held("ApplyRefused", name="ill")
    assert (held[0]["object"], held[0]["file"]) == (f"ConfigMap/{site.namespace}/n9999", "ill/refused.yaml")
    assert await value_of(site, "n0002") == "1"


async def test_promise_06_what_is_unknown_blocks_and_says_how_to_clear_it(site: Bench) -> None:
    await site.sync()
    ready = await site.until_reason("SourceNotAccepted")
    assert ready["status"] == "False"
    commit = site.push(site.config_maps(1))
    site.publish(commit, trusted=False)
    assert "no trust root" in (await site.until_reason("SourceNotTrusted"))["message"]
    site.publish(commit, effects_allowed=False)
    await site.until_reason("SourceNotAccepted")
    assert await site.get("configmaps", "n0000") is None
    site.publish(commit)
    await site.until_ready()


async def test_an_account_without_rights_holds_objects_and_names_the_right(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync(serviceAccountName="nobody")
    (held,) = await site.until_held("ApplyRefused")
    assert "nobody" in held["message"]
    assert "configmaps" in held["message"]


async def test_units_wait_for_the_units_they_depend_on(site: Bench) -> None:
    site.push({"base/a.yaml": site.config_map("base"), "app/b.yaml": site.config_map("app")})
    await site.sync("app", path="app", dependsOn=["base"])
    assert "base does not exist" in (await site.until_reason("DependencyNotReady", name="app"))["message"]
    await site.sync("base", path="base")
    await site.until_ready("app")
    await site.sync("base", path="base", dependsOn=["app"])
    assert "cycle: base, app, base" in (await site.until_reason("DependencyNotReady", name="base"))["message"]
    assert (
        "cycle: base, app, base"
        in (await site.until_reason("DependencyNotReady", name="base", kind="Stalled"))["message"]
    )
    await site.sync("base", path="base")
    await site.until_ready("base")


async def test_secrets_are_read_by_name_as_the_account_and_never_watched(site: Bench) -> None:
    secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, stringData: {key: value-one}}"
    site.push({"s.yaml": secret % site.namespace})
    await site.sync()
    status = await site.until_ready()
    assert "value-one" not in str(status)
    await site.admin.patch_merge(site.path("secrets", "s"), {"data": {"key": "eA=="}}, manager=EDITOR)
    await site.request()
    assert (await site.get("secrets", "s"))["data"] == {"key": "dmFsdWUtb25l"}
    assert ("watch", "secrets") not in site.manager.calls
    assert ("list", "secrets") not in site.manager.calls


async def test_a_remote_kubeconfig_that_starts_a_program_is_refused_and_others_go_on(site: Bench) -> None:
    text = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
    text += "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    text += "users: [{name: u, user: {exec: {command: /bin/true, apiVersion: client.authentication.k8s.io/v1}}}]\n"
    secret = {"metadata": {"name": "remote"}, "stringData": {"kubeconfig": text}}
    await site.admin.create(site.path("secrets"), secret)
    site.push(site.config_maps(1))
    await site.sync("far", kubeConfigSecretRef={"name": "remote", "key": "kubeconfig"})
    await site.sync("near")
    await site.until_reason("ClusterUnreachable", name="far")
    await site.until_ready("near")


async def test_a_unit_for_another_cluster_is_applied_there(site: Bench, control_plane: Any) -> None:
    secret = {"metadata": {"name": "remote"}, "stringData": {"kubeconfig": control_plane.kubeconfig.read_text()}}
    await site.admin.create(site.path("secrets"), secret)
    site.push(site.config_maps(2))
    await site.sync(kubeConfigSecretRef={"name": "remote", "key": "kubeconfig"})
    await site.until_ready()
    await edited(site, "n0000", "by hand")
    await until(lambda: _is(site, "n0000", "1"))


@pytest.mark.parametrize("policy", ["Orphan", "Delete"])
async def test_R09_deleting_a_unit_follows_its_policy_also_with_a_broken_source(site: Bench, policy: str) -> None:
    site.push(site.config_maps(3))
    await site.sync(deletionPolicy=policy, prune={"enabled": True, "allowEmpty": True, "maxPercent": 100})
    await site.until_ready()
    site.revisions.withdraw(next(iter(site.revisions._revisions)))
    await site.admin.delete(site.sync_path())

    async def gone() -> bool:
        return await site.admin.find(site.sync_path()) is None

    await until(gone, what="the Sync is gone")
    found = await site.get("configmaps", "n0000")
    assert (found is None) is (policy == "Delete")
    if found:
        assert "gitops-ctl.dev/owner" not in found["metadata"].get("labels", {})
        assert found["data"] == {"key": "1"}


@pytest.mark.parametrize("policy", ["Orphan", "Delete"])
async def test_a_namespace_that_is_deleted_with_the_rights_in_it_does_not_wait(site: Bench, policy: str) -> None:
    site.push(site.config_maps(2))
    await site.sync(deletionPolicy=policy, prune={"enabled": True, "allowEmpty": True, "maxPercent": 100})
    await site.until_ready()
    await site.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{site.namespace}")
    await site.admin.delete(site.sync_path())
    await site.until_reason("PruneFailed")
    assert await site.admin.find(site.sync_path()) is not None, "the rights can still be given back"

    await site.admin.delete(f"/api/v1/namespaces/{site.namespace}")

    async def gone() -> bool:
        return await site.admin.find(site.sync_path()) is None

    await until(gone, what="the Sync is gone")
    assert any(reason == "ObjectsLeft" for _, reason, _ in site.events) is (policy == "Delete")


async def test_R05_a_killed_process_loses_nothing_that_it_applied(site: Bench) -> None:
    site.push(site.config_maps(300))
    await site.sync()
    await until(lambda: _is(site, "n0005", "1"))
    await site.kill()
    existing = {item["metadata"]["name"] for item in (await _config_maps(site))}
    recorded = {entry["name"] for entry in await site.inventory()}
    assert existing <= recorded
    await site.start()
    await site.until_ready()
    assert len(await site.inventory()) == 300


async def _config_maps(site: Bench) -> list[Any]:
    page: Any = await site.admin.list_all(site.path("configmaps"), label_selector="gitops-ctl.dev/owner")
    return list(page.items)


async def test_R12_two_installations_report_each_other(site: Bench) -> None:
    identity = ObjectId("", "ConfigMap", site.namespace, "n0000")
    owner = f"another-cluster/{site.namespace}/network/site:/ConfigMap:{site.namespace}/{identity.name}"
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "n0000",
            "labels": {"gitops-ctl.dev/owner": "0" * 32},
            "annotations": {"gitops-ctl.dev/owner-id": owner},
        },
        "data": {"key": "theirs"},
    }
    await site.admin.apply(site.path("configmaps", "n0000"), body, manager="gitops-ctl")
    with pytest.raises(AlreadyExists):
        await site.admin.create(site.path("configmaps"), body)
    site.push(site.config_maps(1))
    await site.sync()
    (held,) = await site.until_held("OwnedElsewhere")
    assert "another installation" in held["message"]
    assert await value_of(site, "n0000") == "theirs"

"""Whose an object is decides whether it may be deleted: the whole room against the double (gitops.md, sections 6 and 9.1).

What was never ours is not deleted when its document leaves Git, and what is ours is not forgotten.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.doubles.apiserver import FakeApiServer
from tests.support.sync_cluster import Bench, document, fake_bench, until

pytestmark = pytest.mark.simulation

PRUNE = {"enabled": True, "maxPercent": 100, "allowEmpty": True}


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as made:
        yield made


@pytest.fixture
async def site(server: FakeApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with fake_bench(server, tmp_path) as made:
        yield made


def secret(site: Bench, name: str, value: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": site.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": value}}


def definition(group: str, scope: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"zones.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": "Zone", "plural": "zones"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_a_foreign_object_that_we_could_not_take_is_not_deleted_when_its_document_goes(site: Bench) -> None:
    theirs = secret(site, "theirs", "b25l")
    await site.admin.apply(site.path("secrets", "theirs"), theirs, manager="somebody")
    site.push({"theirs.yaml": document(secret(site, "theirs", "dHdv")), **site.config_maps(2)})
    await site.sync(prune=PRUNE)
    await site.until_held("FieldConflict")
    site.push(delete=["theirs.yaml", "n0001.yaml"])
    await site.until_ready()
    await site.until_idle()
    assert (await site.get("secrets", "theirs"))["data"] == {"key": "b25l"}
    assert await site.get("configmaps", "n0001") is None
    assert [entry["name"] for entry in await site.inventory()] == ["n0000"]


async def test_what_if_not_present_created_stays_ours_when_its_document_changes_and_goes_with_it(site: Bench) -> None:
    site.push({"once.yaml": site.config_map("once", "1", apply="IfNotPresent"), **site.config_maps(1)})
    await site.sync(prune=PRUNE)
    await site.until_ready()
    site.push({"once.yaml": site.config_map("once", "2", apply="IfNotPresent")})
    await site.until_ready()
    await site.until_idle()
    assert (await site.get("configmaps", "once"))["data"] == {"key": "1"}
    assert [entry["name"] for entry in await site.inventory()] == ["n0000", "once"]
    site.push(delete=["once.yaml"])
    await site.until_ready()
    assert await site.get("configmaps", "once") is None


async def test_R05_what_a_killed_process_applied_stays_known_although_the_next_apply_is_refused(site: Bench) -> None:
    real = site.manager._exchange._once
    applied = asyncio.Event()

    async def once(call: Any, authorization: str) -> bytes:
        answer = await real(call, authorization)
        if call.verb == "apply" and "/configmaps/" in call.path:
            applied.set()
            await asyncio.Event().wait()
        return answer

    site.manager._exchange._once = once  # type: ignore[method-assign]
    site.push(site.config_maps(1))
    await site.sync(prune=PRUNE)
    await applied.wait()
    await site.kill()
    site.manager._exchange._once = real  # type: ignore[method-assign]
    site.push({"n0000.yaml": site.config_map("n0000").replace("key: '1'", "bad key!: '1'")})
    await site.restart()
    await site.until_held("ApplyRefused")
    await site.until_idle()
    assert [entry["name"] for entry in await site.inventory()] == ["n0000"]
    site.push(delete=["n0000.yaml"])
    await site.until_ready()
    assert await site.get("configmaps", "n0000") is None


async def test_an_object_of_a_hidden_file_that_cannot_be_read_is_kept_also_after_a_move(site: Bench) -> None:
    site.push({"old.yaml": site.config_map("moved"), "there.yaml": site.config_map("there"), **site.config_maps(1)})
    await site.sync(prune=PRUNE)
    await site.until_ready()
    site.push({"new.yaml": site.config_map("moved")}, delete=["old.yaml"])
    await site.until_ready()
    assert {entry["name"]: entry["file"] for entry in await site.inventory()}["moved"] == "new.yaml"
    broken = "key: {{ .Values.key }}\n"
    site.push({".gitops-ctlignore": "new.yaml\nthere.yaml\n", "new.yaml": broken, "there.yaml": broken})
    status = await site.until_ready()
    await site.until_idle()
    assert status["counts"]["kept"] == 2
    assert "HiddenInGit" in (await site.condition())["message"]
    assert await site.get("configmaps", "moved")
    assert await site.get("configmaps", "there")


async def test_hidden_files_are_no_documents_to_the_guard_of_an_empty_set(site: Bench) -> None:
    site.push({"hidden.yaml": site.config_map("hidden"), **site.config_maps(1)})
    await site.sync(prune={"enabled": True})
    await site.until_ready()
    site.push({".gitops-ctlignore": "hidden.yaml\n"}, delete=["n0000.yaml"])
    blocked = await site.until_reason("PruneBlocked")
    assert "no document is left" in blocked["message"]
    assert await site.get("configmaps", "n0000")


async def test_R07_R12_after_a_restart_a_unit_whose_source_is_not_known_yet_keeps_what_it_applied(site: Bench) -> None:
    site.push({"a/shared.yaml": site.config_map("shared"), "a/a.yaml": site.config_map("a")})
    await site.sync("a", path="a", prune=PRUNE)
    await site.until_ready("a")
    second = site.push({"b/taken.yaml": site.config_map("taken"), "b/shared.yaml": site.config_map("shared")})
    site.publish(second, source="other")
    await site.sync("b", path="b", prune=PRUNE, sourceRef={"name": "other"})
    await site.until_held("OwnedElsewhere", name="b")
    await site.stop()
    # The source of b is not read yet; a drops what b waits for, and claims what b has.
    site.push({"a/taken.yaml": site.config_map("taken", "a's")}, delete=["a/shared.yaml"])
    newest = site.revisions.get(NamespacedName(site.namespace, "network"))
    assert newest is not None
    site.revisions = AcceptedRevisions()
    site.revisions.publish(newest)
    await site.start()
    (held,) = await site.until_held("OwnedElsewhere", name="a")
    assert held["object"] == f"ConfigMap/{site.namespace}/taken"
    await site.until_idle()
    assert (await site.get("configmaps", "taken"))["data"] == {"key": "1"}
    shared = (await site.get("configmaps", "shared"))["metadata"]["uid"]
    site.publish(second, source="other")
    await site.until_ready("b", commit=second)
    assert (await site.get("configmaps", "shared"))["metadata"]["uid"] == shared
    await site.until_idle()
    assert {entry["name"] for entry in await site.inventory("b")} == {"shared", "taken"}


async def test_an_object_that_lost_our_label_goes_with_its_document_all_the_same(site: Bench) -> None:
    site.push(site.config_maps(2))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    await site.stop()
    bare: JsonObject = {"metadata": {"labels": {"gitops-ctl.dev/owner": None}}}
    await site.admin.patch_merge(site.path("configmaps", "n0001"), bare, manager="somebody")
    site.push(delete=["n0001.yaml"])
    await site.restart()
    await site.until_ready()
    await site.until_idle()
    assert await site.get("configmaps", "n0001") is None
    assert [entry["name"] for entry in await site.inventory()] == ["n0000"]


async def defined(site: Bench, group: str) -> None:
    """A cluster-scoped kind Zone that is served."""
    await site.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(group, "Cluster"))

    async def served() -> bool:
        try:
            return await site.admin.find(f"/apis/{group}/v1/zones") is not None
        except KindNotServed:
            return False

    await until(served)


def zone(group: str) -> str:
    return document({"apiVersion": f"{group}/v1", "kind": "Zone", "metadata": {"name": "north"}})


async def test_an_object_of_a_kind_that_came_later_has_the_identity_of_its_scope(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync(prune=PRUNE, targetNamespace=site.namespace)
    await site.until_ready()
    await defined(site, "later.example.net")
    site.push({"zone.yaml": zone("later.example.net")})
    await site.until_ready()
    assert {entry["name"]: entry.get("namespace") for entry in await site.inventory()} == {
        "n0000": site.namespace,
        "north": None,
    }
    await site.until_idle()
    assert site.manager.calls["apply", "zones"] == 1


async def test_H19_an_object_whose_scope_discovery_cannot_show_any_more_is_not_pruned(
    server: FakeApiServer, site: Bench
) -> None:
    group = "zones.example.net"
    await defined(site, group)
    site.push({"zone.yaml": zone(group), **site.config_maps(1)})
    await site.sync(prune=PRUNE, targetNamespace=site.namespace)
    await site.until_ready()
    server.api.stale_groups = frozenset({group})
    await site.room.clusters.local.mapper.refresh()  # type: ignore[union-attr]
    site.push({"n0001.yaml": site.config_map("n0001")}, delete=["n0000.yaml"])
    await site.until_held("ApplyRefused")
    await site.admin.patch_merge(site.path("configmaps", "n0001"), {"data": {"key": "drift"}}, manager="somebody")

    async def pruned() -> bool:
        return await site.get("configmaps", "n0000") is None

    await until(pruned, what="the pass that repairs the drift prunes as well")
    await site.until_idle()
    assert (await site.condition())["reason"] == "ObjectsHeld"
    assert await site.admin.find(f"/apis/{group}/v1/zones/north") is not None
    assert "north" in {entry["name"] for entry in await site.inventory()}

"""Which fields may be taken from another manager: those that were ours before, also after a restart (gitops.md, section 7.2)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import API_VERSION, FIELD_MANAGER_STATUS
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.sync.earlier import Earlier
from gitops_ctl.sync.fieldpath import owns
from gitops_ctl.sync.model import Desired
from tests.doubles.apiserver import FakeApiServer
from tests.support.sync import config_map, desired
from tests.support.sync_cluster import Bench, fake_bench

pytestmark = pytest.mark.simulation

EDITOR = "kubectl-edit"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as made:
        yield made


async def test_after_a_restart_a_change_takes_back_a_field_that_was_ours_and_drifted(site: Bench) -> None:
    site.push(site.config_maps(2))
    await site.sync()
    await site.until_ready()
    await site.stop()
    await site.admin.patch_merge(site.path("configmaps", "n0000"), {"data": {"key": "drift"}}, manager=EDITOR)
    site.push({"n0000.yaml": site.config_map("n0000", "2")})
    await site.restart()
    await site.until_ready()
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "2"}
    assert any(EDITOR in note for _, reason, note in site.events if reason == "Drifted")


async def test_after_a_restart_a_field_that_was_never_ours_is_still_not_taken(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    await site.stop()
    await site.admin.patch_merge(site.path("configmaps", "n0000"), {"data": {"theirs": "1"}}, manager=EDITOR)
    site.push({"n0000.yaml": site.config_map("n0000") + "  theirs: 'ours now'\n"})
    await site.restart()
    (held,) = await site.until_held("FieldConflict")
    assert f".data.theirs of {EDITOR}" in held["message"]
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "1", "theirs": "1"}


async def test_a_field_that_another_manager_applied_with_our_value_is_still_ours(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    await site.stop()
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "n0000", "namespace": site.namespace},
        "data": {"key": "1"},
    }
    await site.admin.apply(site.path("configmaps", "n0000"), body, manager="somebody")
    # No commit tells any more what was applied: only the entry on the object does.
    unknown = {"lastAttemptedRevision": "0" * 40, "lastAppliedRevision": "0" * 40}
    tree: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "Sync",
        "metadata": {"name": "site", "namespace": site.namespace},
        "status": {**await site.status(), **unknown},
    }
    await site.admin.apply(site.sync_path(), tree, manager=FIELD_MANAGER_STATUS, subresource="status")
    site.push({"n0000.yaml": site.config_map("n0000", "2")})
    await site.restart()
    await site.until_ready()
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "2"}


async def test_our_marks_are_taken_back_together_with_a_change(site: Bench) -> None:
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    await site.stop()
    marks: JsonObject = {"metadata": {"annotations": {"gitops-ctl.dev/owner-id": "nonsense"}}}
    await site.admin.patch_merge(site.path("configmaps", "n0000"), marks, manager=EDITOR)
    site.push({"n0000.yaml": site.config_map("n0000", "2")})
    await site.restart()
    await site.until_ready()
    found = await site.get("configmaps", "n0000")
    assert found["data"] == {"key": "2"}
    assert found["metadata"]["annotations"]["gitops-ctl.dev/owner-id"].endswith(f":/ConfigMap:{site.namespace}/n0000")


async def test_S03_the_take_over_from_client_side_tools_is_repeated_when_somebody_writes_in_between(
    site: Bench,
) -> None:
    theirs: JsonObject = {"metadata": {"name": "n0000"}, "data": {"key": "1", "old": "x"}}
    await site.admin.create(site.path("configmaps"), theirs, manager="kubectl-client-side-apply")
    real = site.manager._exchange._once
    between: list[str] = []

    async def once(call: Any, authorization: str) -> bytes:
        if call.verb == "patch" and "/configmaps/" in call.path and len(between) < 2:
            between.append(call.path)
            noise: JsonObject = {"metadata": {"annotations": {"example.net/beat": str(len(between))}}}
            await site.admin.patch_merge(site.path("configmaps", "n0000"), noise, manager="somebody")
        return await real(call, authorization)

    site.manager._exchange._once = once  # type: ignore[method-assign]
    site.push(site.config_maps(1))
    await site.sync()
    await site.until_ready()
    assert len(between) == 2
    assert (await site.get("configmaps", "n0000"))["data"] == {"key": "1"}


async def test_only_what_the_inventory_says_was_applied_counts_as_declared_before() -> None:
    old, new = desired(config_map(data="1")), desired(config_map(data="2"))
    asked: list[str] = []

    async def load(commit: str) -> dict[ObjectId, Desired]:
        asked.append(commit)
        return {"one": {old.id: old}, "two": {new.id: new}}[commit]

    earlier = Earlier(load, commits=("two", "", "one", "two"))
    assert await earlier.declared(old.id, digest=old.digest) is old
    assert await earlier.declared(new.id, digest=new.digest) is new
    assert await earlier.declared(old.id, digest="sha256:another") is None
    assert asked == ["two", "one"]


def test_a_field_is_owned_when_the_entry_holds_it_or_something_below_it() -> None:
    fields: JsonObject = {
        "f:data": {"f:key": {}, "f:key2": {}},
        "f:spec": {"f:ports": {'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:name": {}}}},
    }
    assert owns(fields, ".data.key")
    assert owns(fields, ".data")
    assert owns(fields, '.spec.ports[port=53,protocol="UDP"].name')
    assert not owns(fields, ".data.ke")
    assert not owns(fields, '.spec.ports[port=53,protocol="TCP"].name')
    assert not owns({}, ".data.key")

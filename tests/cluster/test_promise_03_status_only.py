"""P3: observations live in status only.  No controller writes a spec, except of objects that it has to create."""

from typing import Any

import pytest

from tests.support.product import AUTHOR, Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster

OURS = ("gitops-ctl", "gitops-ctl-status")


def written_outside_status(tree: Any) -> dict[str, list[str]]:
    """By field manager of ours: the pointers that it owns outside of `status`, as top-level and second members."""
    found: dict[str, list[str]] = {}
    for entry in tree["metadata"].get("managedFields", ()):
        if entry["manager"].startswith(OURS[0]):
            for top, members in entry["fieldsV1"].items():
                if top != "f:status":
                    found.setdefault(entry["manager"], []).extend(f"{top}/{member}" for member in members)
    return found


async def full_cycle(world: Product) -> None:
    """Accept, apply, repair drift, refuse, take back, prune, fail."""
    good = world.push({"site/a.yaml": config_map("a"), "site/b.yaml": config_map("b")})
    await world.until_applied(good)
    await world.set_config_map("a", "drift")

    async def repaired() -> bool:
        return bool(await world.config_map("a") == "1")

    await until(repaired, what="drift is repaired")
    world.push({"site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    await world.until_reason("PathNotAuthorised")
    world.repo.git("reset", "--quiet", "--hard", good)
    pruned = world.push(delete=["site/b.yaml"])
    await world.until_applied(pruned)
    assert await world.config_map("b") is None


async def test_promise_03_a_full_cycle_writes_no_spec_of_source_or_sync(world: Product) -> None:
    before: list[Any] = [await world.admin.get(path) for path in (world.source_path, world.sync_path())]
    await full_cycle(world)
    after: list[Any] = [await world.admin.get(path) for path in (world.source_path, world.sync_path())]
    for old, new in zip(before, after, strict=True):
        assert new["spec"] == old["spec"]
        assert new["metadata"]["generation"] == old["metadata"]["generation"] == 1
        owners = {entry["manager"] for entry in new["metadata"]["managedFields"]}
        assert owners & set(OURS), "our own managers show up in managedFields"
    source, sync = (written_outside_status(tree) for tree in after)
    assert source == {}
    assert {pointer for pointers in sync.values() for pointer in pointers} <= {"f:metadata/f:finalizers"}


async def test_promise_03_of_an_applied_object_only_what_git_declares_is_ours(world: Product) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/configmaps/base"
    await world.admin.patch_merge(path, {"data": {"other": "x"}}, manager="somebody")
    commit = world.push({"site/base.yaml": config_map("base", "2")})
    await world.until_applied(commit)
    found: Any = await world.admin.get(path)
    entries = [entry for entry in found["metadata"]["managedFields"] if entry["manager"].startswith("gitops-ctl")]
    (entry,) = entries
    assert set(entry["fieldsV1"]) <= {"f:data", "f:metadata"}
    assert set(entry["fieldsV1"]["f:data"]) == {"f:value"}
    assert set(entry["fieldsV1"]["f:metadata"]) <= {"f:labels", "f:annotations"}


async def test_promise_03_nothing_in_the_namespace_is_written_but_what_the_contract_gives_to_us(
    world: Product, audit_log: Any
) -> None:
    await full_cycle(world)
    kinds: set[tuple[str, str, str]] = set()

    def settled() -> bool:
        kinds.clear()
        for event in audit_log.writes(namespace=world.namespace, user_agent="product-"):
            about = event["objectRef"]
            kinds.add((event["verb"], about["resource"], about.get("subresource", "")))
        return ("delete", "configmaps", "") in kinds

    await until(settled, what="the audit log shows the removal")
    assert {(verb, name) for verb, name, part in kinds if part != "status"} <= {
        ("patch", "configmaps"),
        ("create", "configmaps"),
        ("delete", "configmaps"),
        ("patch", "syncs"),
        ("create", "inventories"),
        ("update", "inventories"),
        ("patch", "inventories"),
        ("delete", "inventories"),
    }
    assert {name for _, name, part in kinds if part == "status"} == {"gitsources", "syncs"}

"""A record that somebody deletes is written again, and nothing that was applied is forgotten (gitops.md, sections 6 and 9)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gitops_ctl.sync.model import Entry
from gitops_ctl.sync.recovery import recovered
from tests.doubles.apiserver import FakeApiServer
from tests.support.sync import config_map, desired, entry
from tests.support.sync_cluster import Bench, fake_bench, until

pytestmark = pytest.mark.simulation

PRUNE = {"enabled": True, "maxPercent": 100, "allowEmpty": True}
INVENTORIES = "gitops-ctl.dev/v1alpha1"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    """A tenant with three objects that are applied and on record."""
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as made:
        made.push(made.config_maps(3))
        await made.sync(prune=PRUNE)
        await made.until_ready()
        yield made


async def delete_record(site: Bench) -> None:
    await site.admin.delete(site.path("inventories", "site-0", group=INVENTORIES))
    assert await site.inventory() == []


async def names(site: Bench) -> list[str]:
    return [found["name"] for found in await site.inventory()]


async def test_a_record_that_was_deleted_is_written_again_at_once_and_somebody_is_told(site: Bench):
    before = await site.inventory()
    await delete_record(site)

    async def is_back() -> bool:
        return await site.inventory() == before

    await until(is_back, what="the record is back")
    (told,) = [note for kind, reason, note in site.events if (kind, reason) == ("Warning", "InventoryRestored")]
    assert told == (
        "1 of 1 Inventory objects of this Sync were deleted by somebody else; the record is written again, with 3 entries"
    )


async def test_a_commit_after_the_record_was_deleted_forgets_nothing(site: Bench):
    await delete_record(site)
    site.push({"new.yaml": site.config_map("new")}, delete=["n0001.yaml"])
    await site.until_ready()
    assert sorted(await names(site)) == ["n0000", "n0002", "new"]
    assert await site.get("configmaps", "n0001") is None


async def test_what_left_git_while_nobody_ran_and_had_the_record_is_removed_all_the_same(site: Bench):
    await site.until_idle()
    await site.stop()
    await delete_record(site)
    site.push(delete=["n0001.yaml"])
    await site.restart()
    await site.until_ready()
    assert await site.get("configmaps", "n0001") is None
    assert sorted(await names(site)) == ["n0000", "n0002"]
    assert any(reason == "InventoryRestored" for _, reason, _ in site.events)


async def test_what_was_kept_when_it_left_git_is_found_by_its_mark(site: Bench):
    await site.sync(prune={**PRUNE, "enabled": False})
    await site.until_ready()
    site.push(delete=["n0001.yaml"])
    await site.until_ready()
    assert sorted(await names(site)) == ["n0000", "n0001", "n0002"]
    await site.until_idle()
    await site.stop()
    await delete_record(site)
    await site.restart()
    await site.sync(prune=PRUNE)

    async def gone() -> bool:
        return await site.get("configmaps", "n0001") is None

    await until(gone, what="the object without a document is removed")


async def test_what_somebody_else_made_in_the_meantime_is_not_ours(site: Bench):
    await site.until_idle()
    await site.stop()
    await delete_record(site)
    await site.admin.delete(site.path("configmaps", "n0001"))
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n0001", "namespace": site.namespace}}
    await site.admin.create(site.path("configmaps"), theirs)
    site.push(delete=["n0001.yaml"])
    await site.restart()
    await site.until_ready()
    assert await site.get("configmaps", "n0001") is not None


async def test_an_annotation_against_prune_holds_although_somebody_took_it_off_the_object(site: Bench):
    site.push({"n0001.yaml": site.config_map("n0001", prune="disabled")})
    await site.until_ready()
    assert [found.get("pruneDisabled") for found in await site.inventory()] == [None, True, None]
    await site.until_idle()
    await site.stop()
    patch = {"metadata": {"annotations": {"gitops-ctl.dev/prune": None}}}
    await site.admin.patch_merge(site.path("configmaps", "n0001"), patch)
    site.push(delete=["n0001.yaml"])
    await site.restart()
    await site.until_ready()
    assert await site.get("configmaps", "n0001") is not None
    assert (await site.status())["counts"]["kept"] == 1


async def test_an_annotation_that_git_takes_back_keeps_nothing(site: Bench):
    site.push({"n0001.yaml": site.config_map("n0001", prune="disabled")})
    await site.until_ready()
    site.push({"n0001.yaml": site.config_map("n0001")})
    await site.until_ready()
    site.push(delete=["n0001.yaml"])
    await site.until_ready()
    assert await site.get("configmaps", "n0001") is None


def test_what_is_on_record_counts_for_more_than_what_is_guessed():
    one, other = desired(config_map("a")), desired(config_map("b", annotations={"gitops-ctl.dev/prune": "disabled"}))
    kept = entry(one)
    found = recovered({one.id: kept}, declared=[one, other], marked=[Entry(one.id, "v1"), Entry(other.id, "v1")])
    assert found == {one.id: kept, other.id: Entry(other.id, "v1", file=other.file, keep=True)}

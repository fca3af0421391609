"""Moved, missing, deleted and switched refs, from Git to the cluster.

In scope: what the source says and what stays applied.  Out of scope: how the refs are read from a server (tests/peers).
"""

import pytest

from tests.support.product import PLATFORM, Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


async def test_G01_a_force_push_keeps_the_accepted_revision_until_the_branch_is_back(world: Product) -> None:
    good = world.push({"site/base.yaml": config_map("base", "2")})
    await world.until_applied(good)
    world.repo.git("reset", "--quiet", "--hard", world.root)
    world.push({"site/base.yaml": config_map("base", "forced")})
    ready = await world.until_reason("HistoryRewritten")
    assert "policyDigest" in ready["message"]
    assert await world.accepted() == good
    assert await world.config_map("base") == "2"

    world.repo.git("reset", "--quiet", "--hard", good)
    world.poke()
    await world.until_reason("Succeeded")
    later = world.push({"site/base.yaml": config_map("base", "3")})
    await world.until_applied(later)


async def test_G01_a_new_root_lets_a_rewritten_branch_go_on_without_a_restart(world: Product) -> None:
    await world.until_applied(world.push({"site/base.yaml": config_map("base", "2")}))
    world.repo.git("reset", "--quiet", "--hard", world.root)
    world.root = world.push({"site/base.yaml": config_map("base", "forced")})
    await world.until_reason("HistoryRewritten")
    await world.source()
    await world.until_applied(world.root)
    assert await world.config_map("base") == "forced"


async def test_G02_a_branch_that_is_deleted_and_made_again_prunes_nothing_in_between(world: Product) -> None:
    world.repo.git("checkout", "--quiet", "--detach")
    world.repo.git("branch", "--delete", "--force", "main")
    world.poke()
    await world.until_reason("RefNotFound")
    assert await world.config_map("base") == "1"
    world.repo.git("checkout", "--quiet", "-b", "main")
    commit = world.push({"site/base.yaml": config_map("base", "again")})
    await world.until_applied(commit)
    assert await world.config_map("base") == "again"


async def test_G03_a_branch_that_appears_later_is_picked_up(world: Product) -> None:
    await world.source(ref={"branch": "later"})
    await world.until_reason("RefNotFound")
    world.repo.git("branch", "later", "main")
    world.poke()
    await world.until_reason("Succeeded")
    assert await world.accepted() == world.root


async def test_G05_a_deleted_branch_is_never_read_from_what_was_fetched(world: Product) -> None:
    await world.until_applied(world.push({"site/base.yaml": config_map("base", "2")}))
    world.repo.git("checkout", "--quiet", "--detach")
    world.repo.git("branch", "--delete", "--force", "main")
    world.poke()
    await world.until_reason("RefNotFound")
    assert (await world.condition())["status"] == "False"


async def test_G07_another_ref_in_the_spec_is_a_clean_switch(world: Product) -> None:
    world.repo.git("checkout", "--quiet", "-b", "release")
    commit = world.commit({"site/base.yaml": config_map("base", "release"), "site/more.yaml": config_map("more")})
    await world.source(ref={"branch": "release"})
    await world.until_applied(commit)
    assert (await world.config_map("base"), await world.config_map("more")) == ("release", "1")


async def test_X11_the_tip_of_an_older_revision_is_an_alarm_and_no_move(world: Product) -> None:
    newer = world.push({"site/base.yaml": config_map("base", "2")})
    await world.until_applied(newer)
    world.repo.git("reset", "--quiet", "--hard", world.root)
    world.poke()
    await world.until_reason("HistoryRewritten")
    assert await world.accepted() == newer
    assert await world.config_map("base") == "2"


async def test_a_suspended_source_fetches_nothing_and_its_sync_goes_on(world: Product) -> None:
    await world.source(suspend=True)
    await world.until_reason("Suspended")
    world.push({"site/base.yaml": config_map("base", "unseen")}, by=PLATFORM)
    await world.set_config_map("base", "drift")

    async def repaired() -> bool:
        return await world.config_map("base") == "1"

    await until(repaired, what="drift is repaired while the source is suspended")
    assert await world.accepted() == world.root


async def test_a_restart_while_suspended_hands_the_accepted_revision_over_again(world: Product) -> None:
    await world.source(suspend=True)
    await world.until_reason("Suspended")
    await world.stop()
    await world.set_config_map("base", "drift")
    await world.start()

    async def repaired() -> bool:
        return await world.config_map("base") == "1"

    await until(repaired, what="the revision in force is applied after a restart")


async def test_a_restart_while_the_server_is_away_repairs_drift_at_the_accepted_revision(world: Product) -> None:
    await world.stop()
    world.repo.path.rename(world.repo.path.with_name("away"))
    await world.set_config_map("base", "drift")
    await world.start()

    async def repaired() -> bool:
        return await world.config_map("base") == "1"

    await until(repaired, what="drift is repaired without the server")
    assert (await world.condition())["status"] == "False"

    world.repo.path.with_name("away").rename(world.repo.path)
    commit = world.push({"site/base.yaml": config_map("base", "2")})
    await world.until_applied(commit)


@pytest.mark.parametrize("asleep", ["away", "suspended"])
async def test_X01_a_new_root_stops_the_effects_of_what_it_does_not_contain_without_the_server(
    world: Product, asleep: str
) -> None:
    if asleep == "away":
        world.repo.path.rename(world.repo.path.with_name("away"))
    elsewhere = {"root": {"commit": "1" * 40, "policyDigest": "sha256:" + "0" * 64}}
    pinned = (await world.admin.get(world.source_path))["spec"]
    await world.admin.patch_merge(world.source_path, {"spec": {"trust": elsewhere, "suspend": asleep == "suspended"}})
    await world.until_reason("SourceNotAccepted", sync="site")
    await world.set_config_map("base", "by hand")
    await world.request("site")
    assert await world.config_map("base") == "by hand"

    await world.admin.patch_merge(world.source_path, {"spec": {"trust": pinned["trust"]}})

    async def repaired() -> bool:
        return await world.config_map("base") == "1"

    await until(repaired, what="effects begin again under the root that contains the accepted revision")

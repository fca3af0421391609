"""P1: nothing is applied from a commit whose whole range since the last accepted one is not verified and authorised.

Each case pushes real commits, signed by real keys or not, and looks at the cluster after the source has said its verdict.
"""

from typing import Any

import pytest

from gitops_ctl.api.names import POLICY_PATH
from tests.support.product import (  # noqa: F401
    ADMIN,
    AUTHOR,
    PLATFORM,
    Product,
    config_map,
    people,
    policy_text,
    product_world,
)

pytestmark = pytest.mark.cluster


async def refused(world: Product, reason: str, *, commit: str) -> Any:
    """The Ready condition of the source once it refuses exactly this commit; nothing of it is in the cluster."""
    ready = await world.until_reason(reason)
    status = await world.source_status()
    assert status["rejected"]["commit"] == commit
    assert commit in ready["message"]
    assert await world.accepted() == world.root
    assert await world.config_map("base") == "1"
    assert (await world.sync_status())["lastAppliedRevision"] == world.root
    return ready


async def test_promise_01_an_unsigned_commit_is_not_applied(world: Product) -> None:
    commit = world.push({"site/base.yaml": config_map("base", "unsigned")}, signed=False)
    ready = await refused(world, "Unsigned", commit=commit)
    assert f"git reset --hard {world.root}" in ready["message"]


async def test_promise_01_a_refused_commit_in_the_middle_holds_back_what_follows(world: Product) -> None:
    good = world.commit({"site/first.yaml": config_map("first")})
    bad = world.commit({"site/middle.yaml": config_map("middle")}, signed=False)
    world.push({"site/last.yaml": config_map("last")})
    await world.until_reason("Unsigned")
    assert (await world.source_status())["rejected"]["commit"] == bad
    await world.until_applied(good)
    assert await world.config_map("first") == "1"
    assert (await world.config_map("middle"), await world.config_map("last")) == (None, None)


async def test_promise_01_a_signed_merge_does_not_cover_an_unsigned_commit_below_it(world: Product) -> None:
    world.repo.git("checkout", "--quiet", "-b", "feature")
    hidden = world.commit({"site/hidden.yaml": config_map("hidden")}, signed=False)
    world.repo.switch("main")
    world.repo.merge("feature", author=f"{PLATFORM} <{PLATFORM}@example.net>", signer=world.keys[PLATFORM])
    world.poke()
    await refused(world, "Unsigned", commit=hidden)
    assert await world.config_map("hidden") is None


async def test_promise_01_a_path_that_the_signer_may_not_change_is_not_applied(world: Product) -> None:
    commit = world.push({"site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    ready = await refused(world, "PathNotAuthorised", commit=commit)
    assert AUTHOR in ready["message"]
    rejected = (await world.source_status())["rejected"]
    assert (rejected["path"], rejected["verb"]) == ("site/base.yaml", "edit")


async def test_promise_01_one_path_of_many_is_enough_to_refuse_the_commit(world: Product) -> None:
    files = {f"site/config/{name}.yaml": config_map(name) for name in ("a", "b", "c")}
    commit = world.push({**files, "site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    await refused(world, "PathNotAuthorised", commit=commit)
    assert [await world.config_map(name) for name in ("a", "b", "c")] == [None, None, None]


async def test_promise_01_a_policy_that_would_authorise_its_own_commit_is_judged_by_the_one_before(
    world: Product,
) -> None:
    widened = policy_text(world.keys).replace(
        'paths: ["**"], verbs: [edit, delete], roles: [platform-author-role]',
        'paths: ["**"], verbs: [trust, edit, delete], roles: [platform-author-role, network-author-role]',
    )
    assert widened != policy_text(world.keys)
    commit = world.push({POLICY_PATH: widened, "site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    await refused(world, "PathNotAuthorised", commit=commit)


async def test_promise_01_a_widened_policy_holds_from_the_next_commit_on(world: Product) -> None:
    widened = policy_text(world.keys).replace(
        'paths: ["**"], verbs: [edit, delete], roles: [platform-author-role]',
        'paths: ["**"], verbs: [edit, delete], roles: [platform-author-role, network-author-role]',
    )
    world.commit({POLICY_PATH: widened}, by=ADMIN)
    commit = world.push({"site/base.yaml": config_map("base", "now mine")}, by=AUTHOR)
    await world.until_applied(commit)
    assert await world.config_map("base") == "now mine"


async def test_promise_01_a_key_that_nobody_holds_authorises_nothing(world: Product, people: dict[str, Any]) -> None:  # noqa: F811
    names = [name for name in world.keys if name != AUTHOR]
    without = world.push({POLICY_PATH: policy_text(world.keys, people=names)}, by=ADMIN)
    await world.until_accepted(without)
    commit = world.push({"site/config/a.yaml": config_map("a")}, by=AUTHOR)
    ready = await world.until_reason("UnknownSigner")
    assert people[AUTHOR].fingerprint in ready["message"]
    assert (await world.source_status())["rejected"]["commit"] == commit
    assert await world.config_map("a") is None

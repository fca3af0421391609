"""Faults of trust over time, from Git to the cluster: revocations, new roots, new rules, tags, clocks (families X and H).

The rules themselves are in tests/unit/trust; here it is what the source says, and what is or is not done.
"""

import asyncio
import json
from typing import Any

import pytest

from gitops_ctl.api.names import POLICY_PATH
from tests.support.git_keys import GpgHome, GpgKey, SshKey
from tests.support.product import (  # noqa: F401
    ADMIN,
    AUTHOR,
    PLATFORM,
    Product,
    ShiftedClock,
    config_map,
    people,
    policy_text,
    product_world,
)
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster

LONG_AGO = "2026-01-01T00:00:00Z"


def revoking(world: Product, person: str) -> str:
    entry = {"fingerprint": world.keys[person].fingerprint, "from": LONG_AGO}
    return policy_text(world.keys, revoked=[entry])


async def test_X01_a_revoked_key_of_an_accepted_commit_ends_every_effect_and_rolls_nothing_back(world: Product) -> None:
    signed = world.push({"site/config/a.yaml": config_map("a")}, by=AUTHOR)
    await world.until_applied(signed)
    revoked = world.push({POLICY_PATH: revoking(world, AUTHOR), "site/late.yaml": config_map("late")}, by=ADMIN)
    ready = await world.until_reason("PathNotAuthorised")
    assert "site/late.yaml" in ready["message"], "the policy and the documents have different owners"
    world.repo.git("reset", "--quiet", "--hard", signed)

    revoked = world.push({POLICY_PATH: revoking(world, AUTHOR)}, by=ADMIN)
    ready = await world.until_reason("RevokedSigner")
    assert signed in ready["message"]
    assert (await world.condition("Verified"))["status"] == "False"
    assert await world.accepted() == revoked, "or a force push could take the revocation back"
    assert f"commit: {revoked}, policyDigest: sha256:" in ready["message"]
    await world.until_reason("SourceNotAccepted", sync="site")
    await world.set_config_map("a", "by hand")
    await world.request("site")
    assert await world.config_map("a") == "by hand", "no effect, not even a repair"
    await world.reborn()
    await world.request("site")
    assert await world.config_map("a") == "by hand", "a new process remembers"
    world.repo.git("reset", "--quiet", "--hard", signed)
    world.poke()
    await world.until_reason("HistoryRewritten")
    await world.request("site")
    assert await world.config_map("a") == "by hand", "nor does a branch without the revocation bring effects back"
    world.repo.git("reset", "--quiet", "--hard", revoked)

    world.root = revoked
    await world.source()
    await world.until_applied(revoked)

    async def repaired() -> bool:
        return bool(await world.config_map("a") == "1")

    await until(repaired, what="effects begin again under the new root")


async def test_X01_a_new_root_inside_the_history_is_recorded_once_the_range_is_judged_again(world: Product) -> None:
    middle = world.commit({"site/config/a.yaml": config_map("a")}, by=AUTHOR)
    tip = world.push({"site/b.yaml": config_map("b")})
    await world.until_applied(tip)
    world.root = middle
    await world.source()

    async def recorded() -> bool:
        return bool((await world.source_status())["accepted"]["root"] == middle)

    await until(recorded, what="the new root is recorded")
    assert await world.accepted() == tip


async def test_X01_another_version_of_the_rules_judges_what_was_accepted_again(
    world: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = world.push({"site/config/a.yaml": config_map("a")}, by=AUTHOR)
    await world.until_applied(tip)
    for module in ("gitops_ctl.trust.chain", "gitops_ctl.source.acceptance", "gitops_ctl.source.controller"):
        monkeypatch.setattr(f"{module}.VERIFIER_VERSION", "another")
    world.poke()

    async def recorded() -> bool:
        return bool((await world.source_status())["accepted"]["verifierVersion"] == "another")

    await until(recorded, what="the version is recorded")
    assert await world.accepted() == tip


@pytest.mark.parametrize(
    ("tagged", "signed", "reason"),
    [
        (PLATFORM, True, "Succeeded"),
        (PLATFORM, False, "Unsigned"),
        ("", True, "Unsigned"),
        ("", False, "Unsigned"),
        ("lightweight", True, "Unsigned"),
    ],
    ids=["both signed", "the tag alone", "the commit alone", "neither", "a lightweight tag on a signed commit"],
)
async def test_X03_a_tag_and_its_commit_have_a_stated_verdict_together(
    world: Product, tagged: str, signed: bool, reason: str
) -> None:
    commit = world.commit({"site/base.yaml": config_map("base", "tagged")}, signed=signed)
    signer = world.keys.get(tagged)
    author = f"{PLATFORM} <{PLATFORM}@example.net>"
    tag = world.repo.tag("v1", signer=signer, annotated=tagged != "lightweight", author=author)
    await world.source(ref={"tag": "v1"})
    ready = await world.until_reason(reason) if reason != "Succeeded" else await _until_tag(world, tag)
    if reason == "Succeeded":
        await world.until_applied(commit)
    assert await world.config_map("base") == ("tagged" if reason == "Succeeded" else "1")
    if reason == "Succeeded":
        assert f"tag object {tag}" in ready["message"]
    else:
        judged = commit if tagged in (PLATFORM, "lightweight") else tag
        assert (await world.source_status())["rejected"]["commit"] == judged
        assert judged in ready["message"]


async def _until_tag(world: Product, tag: str) -> Any:
    async def there() -> bool:
        return bool((await world.source_status()).get("accepted", {}).get("tag") == tag)

    await until(there, what="the tag is accepted")
    return await world.condition()


async def test_X08_a_tag_that_is_signed_anew_by_a_stranger_is_refused_although_its_commit_is_the_same(
    world: Product, tmp_path: Any
) -> None:
    commit = world.commit({"site/base.yaml": config_map("base", "tagged")})
    author = f"{PLATFORM} <{PLATFORM}@example.net>"
    tag = world.repo.tag("v1", signer=world.keys[PLATFORM], author=author)
    await world.source(ref={"tag": "v1"})
    await _until_tag(world, tag)
    await world.until_applied(commit)
    stranger = SshKey.generate(tmp_path, name="stranger")
    again = world.repo.tag("v1", signer=stranger, author=author)
    world.poke()
    ready = await world.until_reason("UnknownSigner")
    assert stranger.fingerprint in ready["message"]
    status = await world.source_status()
    assert status["rejected"]["commit"] == again
    assert (status["accepted"]["revision"], status["accepted"]["tag"]) == (commit, tag)


async def test_G06_a_moved_tag_names_the_old_and_the_new_object(world: Product) -> None:
    author = f"{PLATFORM} <{PLATFORM}@example.net>"
    world.commit({"site/base.yaml": config_map("base", "tagged")})
    old = world.repo.tag("v1", signer=world.keys[PLATFORM], author=author)
    await world.source(ref={"tag": "v1"})
    await _until_tag(world, old)
    commit = world.commit({"site/base.yaml": config_map("base", "moved")})
    new = world.repo.tag("v1", signer=world.keys[PLATFORM], author=author)
    world.poke()
    await _until_tag(world, new)
    await world.until_applied(commit)
    assert old != new


async def test_X15_the_message_names_repository_commit_key_and_rule_of_the_right_source(world: Product) -> None:
    commit = world.push({"site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    ready = await world.until_reason("PathNotAuthorised")
    for part in (world.repo.url, "refs/heads/main", commit, world.keys[AUTHOR].fingerprint, "site/base.yaml", AUTHOR):
        assert part in ready["message"], part
    rejected = (await world.source_status())["rejected"]
    assert rejected["rule"]
    assert rejected["rule"] in ready["message"]


@pytest.mark.parametrize(("ahead_s", "reason"), [(300, "Succeeded"), (900, "SignatureInFuture")])
async def test_H16_a_signature_from_the_future_waits_and_clears_without_a_commit(
    world: Product, ahead_s: int, reason: str
) -> None:
    with GpgHome() as home:
        key = await asyncio.to_thread(GpgKey.generate, home, name=PLATFORM)
        line = " ".join(world.keys[PLATFORM].public.split()[:2])
        certificate = json.dumps({"openpgp": {"fingerprint": key.fingerprint, "certificate": key.public}})
        policy = policy_text(world.keys).replace(f'[{{ssh: "{line}"}}]', f'[{{ssh: "{line}"}}, {certificate}]')
        await world.until_accepted(world.push({POLICY_PATH: policy}, by=ADMIN))
        clock = ShiftedClock(wall_s=-ahead_s)
        await world.reborn(clock)
        author = f"{PLATFORM} <{PLATFORM}@example.net>"
        commit = world.repo.commit({"site/base.yaml": config_map("base", "2")}, author=author, signer=key)
        world.poke()
        if reason != "Succeeded":
            await world.until_reason(reason)
            assert (await world.condition("Verified"))["status"] == "Unknown"
            assert await world.config_map("base") == "1"
            clock.wall_s = 0
            world.poke()
        await world.until_applied(commit)

"""P6: what is unknown, partial, stale or oversized blocks and never widens; each block names what it waits for.

Each test brings one such state about, sees that the cluster stays as it is, and clears it the way the message says.
"""

import shutil
from typing import Any

import pytest

from tests.support.product import SOURCE, Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


async def stays(world: Product) -> None:
    """What was applied is as it was."""
    assert await world.config_map("base") == "1"
    assert (await world.sync_status())["lastAppliedRevision"] == world.root


async def test_promise_06_a_missing_secret_is_named_and_nothing_is_fetched_without_it(world: Product) -> None:
    await world.source(credentialsSecretRef={"name": "git-login"})
    ready = await world.until_reason("CredentialsMissing")
    assert f"Secret/{world.namespace}/git-login" in ready["message"]
    await stays(world)
    secret = {"metadata": {"name": "git-login"}, "stringData": {"username": "someone"}}
    path = f"/api/v1/namespaces/{world.namespace}/secrets"
    await world.admin.create(path, secret)
    world.poke()

    async def partial() -> bool:
        return "password" in (await world.condition())["message"]

    await until(partial, what="the missing key is named")
    await world.admin.patch_merge(f"{path}/git-login", {"stringData": {"password": "x"}})
    world.poke()
    await world.until_reason("Succeeded")


async def test_promise_06_an_unreachable_server_changes_nothing_and_is_named(world: Product) -> None:
    await world.source(url="https://127.0.0.1:1/network.git")
    ready = await world.until_reason("FetchFailed")
    assert "https://127.0.0.1:1/network.git" in ready["message"]
    assert world.root in ready["message"], "the revision in force is named"
    await stays(world)
    await world.set_config_map("base", "drift")
    await until(lambda: _is(world, "base", "1"), what="drift is repaired from what is known")
    await world.source()
    await world.until_reason("Succeeded")


async def _is(world: Product, name: str, value: str) -> bool:
    return bool(await world.config_map(name) == value)


async def test_promise_06_history_that_the_server_does_not_have_is_waited_for(world: Product) -> None:
    middle = world.commit({"site/base.yaml": config_map("base", "2")})
    world.commit({"site/more.yaml": config_map("more")})
    cut = world.repo.path.with_name("cut")
    world.repo.git("clone", "--quiet", "--depth=1", world.repo.url, str(cut))
    await world.kill()
    shutil.rmtree(world.cache)
    await world.start()
    await world.source(url=f"file://{cut}")
    ready = await world.until_reason("HistoryUnavailable")
    assert (await world.condition("Verified"))["status"] == "Unknown"
    assert "to clear it" in ready["message"]
    await stays(world)
    await world.source()
    await world.until_reason("Succeeded")
    assert middle != await world.accepted()


async def test_promise_06_a_tree_over_its_limit_is_applied_not_even_in_part(world: Product) -> None:
    await world.source(limits={"entries": 10})
    await world.until_reason("Succeeded")
    world.push({f"site/n{number}.yaml": config_map(f"n{number}") for number in range(20)})

    async def refused() -> Any:
        found = await world.condition()
        return found if found.get("status") != "True" and "10" in found.get("message", "") else None

    ready = await until(refused, what="the limit is named")
    assert "spec.limits" in ready["message"]
    assert await world.config_map("n0") is None
    assert await world.config_map("base") == "1"
    await world.source(limits={"entries": 1000})
    await world.until_reason("Succeeded")
    await until(lambda: _is(world, "n19", "1"), what="the raised limit lets it through")


async def test_promise_06_a_kind_that_the_cluster_does_not_serve_holds_its_object_alone(world: Product) -> None:
    thing = "apiVersion: absent.example.net/v1\nkind: Thing\nmetadata:\n  name: one\nspec: {}\n"
    world.push({"site/thing.yaml": thing, "site/more.yaml": config_map("more")})

    async def held() -> Any:
        return next(iter((await world.sync_status()).get("held", ())), None)

    entry = await until(held, what="the object is held")
    assert "Thing" in entry["object"]
    assert "absent.example.net" in entry["message"] + entry["object"]
    assert entry["file"] == "site/thing.yaml"
    assert await world.config_map("more") == "1"
    commit = world.push(delete=["site/thing.yaml"])
    await world.until_applied(commit)


async def test_promise_06_a_folder_that_is_not_there_prunes_nothing(world: Product) -> None:
    await world.sync(path="nowhere")

    async def says_no() -> Any:
        found = await world.condition(sync="site")
        return found if found.get("status") == "False" else None

    ready = await until(says_no, what="the missing folder blocks")
    assert "ConfigMap" in ready["message"]
    assert "bring their documents back" in ready["message"]
    assert await world.config_map("base") == "1"
    await world.sync()
    await world.until_applied(world.root)


async def test_promise_06_a_source_without_a_root_feeds_no_sync(world: Product) -> None:
    await world.admin.patch_merge(world.source_path, {"spec": {"trust": None}})
    ready = await world.until_reason("SourceNotTrusted", sync="site")
    assert SOURCE in ready["message"]
    await world.set_config_map("base", "by hand")
    await world.request("site")
    assert await world.config_map("base") == "by hand", "without trust there is no effect"
    await world.source()
    await world.until_applied(world.root)


async def test_promise_06_a_pinned_policy_digest_that_does_not_fit_is_no_trust(world: Product) -> None:
    digest = "sha256:" + "0" * 64
    await world.source(trust={"root": {"commit": world.root, "policyDigest": digest}})
    ready = await world.until_reason("PolicyInvalid")
    assert digest in ready["message"]
    await world.until_reason("SourceNotAccepted", sync="site")
    assert await world.config_map("base") == "1"
    await world.source()
    await world.until_applied(world.root)


async def test_promise_06_a_source_that_went_while_nobody_looked_is_missed_by_name(world: Product) -> None:
    await world.kill()
    await world.admin.delete(world.source_path)
    await world.start()
    ready = await world.until_reason("SourceNotFound", sync="site")
    assert SOURCE in ready["message"]
    assert await world.config_map("base") == "1"
    await world.source()
    await world.until_applied(world.root)

"""P10: one broken document, object, source, Sync or tenant does not delay the others.

A healthy push is measured twice in one test: alone, and beside what is broken.
"""

import secrets
import time
from typing import Any

import pytest

from tests.support.git_servers import silent_port
from tests.support.product import PLATFORM, Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster

ALLOWANCE_S = 5.0
"""What a busy test machine may add; a healthy push takes about one second, a broken neighbour's time-out ten or more."""


async def push_s(world: Product) -> float:
    """Seconds from a push of the healthy source to its Sync being Ready at it."""
    commit = world.commit({"site/base.yaml": config_map("base", secrets.token_hex(4))})
    begun_s = time.monotonic()
    world.poke()
    await world.until_applied(commit)
    return time.monotonic() - begun_s


async def neighbour(world: Product, name: str, **spec: Any) -> str:
    """Another source of the namespace; its path."""
    tree: Any = await world.admin.get(world.source_path)
    path = world.source_path.rpartition("/")[0]
    body = {
        "apiVersion": tree["apiVersion"],
        "kind": tree["kind"],
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {**tree["spec"], **spec},
    }
    await world.admin.create(path, body)
    return f"{path}/{name}"


@pytest.fixture
async def alone_s(world: Product) -> float:
    return await push_s(world)


async def no_slower(world: Product, alone_s: float) -> None:
    taken = [await push_s(world) for _ in range(3)]
    assert min(taken) <= 2 * alone_s + ALLOWANCE_S, f"alone {alone_s:.2f} s, beside a broken one {taken}"


async def test_promise_10_a_source_whose_server_never_answers(world: Product, alone_s: float) -> None:
    with silent_port() as port:
        for number in range(3):
            await neighbour(world, f"hangs-{number}", url=f"https://127.0.0.1:{port}/x{number}.git", timeout="60s")
        await no_slower(world, alone_s)
    status = await world.admin.list_all(world.source_path.rpartition("/")[0])
    assert len(status.items) == 4


@pytest.mark.slow
async def test_promise_10_a_source_with_thousands_of_commits_to_verify(world: Product, alone_s: float) -> None:
    world.repo.git("checkout", "--quiet", "-b", "long")
    world.repo.line(5000)
    author = f"{PLATFORM} <{PLATFORM}@example.net>"
    world.repo.commit({"x": "y"}, author=author, signer=world.keys[PLATFORM])
    world.repo.switch("main")
    path = await neighbour(world, "long", ref={"branch": "long"}, limits={"commitsPerPass": 200})
    await no_slower(world, alone_s)

    async def judged() -> bool:
        tree: Any = await world.admin.get(path)
        conditions = tree.get("status", {}).get("conditions", ())
        return any(item["type"] == "Ready" and item["reason"] == "Unsigned" for item in conditions)

    await until(judged, what="the long one has its verdict, too", timeout_s=60)


async def test_promise_10_a_sync_that_fails_and_one_that_waits_for_it(world: Product, alone_s: float) -> None:
    await world.sync("failing", path="other", serviceAccountName="nobody")
    await world.sync("waiting", path="elsewhere", dependsOn=["failing"])
    await world.sync("lost", path="elsewhere", sourceRef={"name": "absent"})

    async def all_fail() -> bool:
        states = [await world.condition(sync=name) for name in ("failing", "waiting", "lost")]
        return all(state.get("status") == "False" for state in states)

    world.push({"other/x.yaml": config_map("x")})
    await until(all_fail, what="all three fail")
    await no_slower(world, alone_s)


async def test_promise_10_a_broken_document_and_a_refused_object_beside_good_ones(
    world: Product, alone_s: float
) -> None:
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: broken\n"
    refused = "apiVersion: v1\nkind: Service\nmetadata:\n  name: refused\nspec:\n  ports: [{port: 99999}]\n"
    commit = world.commit(
        {"site/broken.yaml": broken, "site/refused.yaml": refused, "site/good.yaml": config_map("good")}
    )
    begun_s = time.monotonic()
    world.poke()

    async def applied() -> bool:
        return await world.config_map("good") == "1"

    await until(applied, what="the good one is applied")
    assert time.monotonic() - begun_s <= 2 * alone_s + ALLOWANCE_S

    async def shown() -> Any:
        status = await world.sync_status()
        return status if status.get("lastAttemptedRevision") == commit and status.get("held") else None

    status = await until(shown, what="what is wrong is shown")
    assert "broken.yaml" in str(status)
    assert "refused" in str(status)


async def test_promise_10_a_tenant_with_many_failing_sources(world: Product, alone_s: float) -> None:
    for number in range(12):
        await neighbour(world, f"bad-{number}", url=f"https://127.0.0.1:1/x{number}.git")
    await no_slower(world, alone_s)

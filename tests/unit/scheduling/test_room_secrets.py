"""A room with a webhook source: its Secret wakes it, and nothing that stands in a Secret is kept (topology-scheduling.md, 1.5 and 3.4)."""

from base64 import b64encode
from dataclasses import replace

from gitops_ctl.scheduling.source_status import Failed
from gitops_ctl.scheduling.webhook import Inquiry
from tests.support.scheduling_world import REGION, ZONE, ZONED, World, in_world

NAMESPACE = "gpustack-system"
FIRST, ROTATED = "only-for-tests-4c1d", "only-for-tests-9e7f"
ANSWER = f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r1\nnodes:\n  n1: {{{REGION}: north, {ZONE}: a}}\n"
WEBHOOK = {
    "url": "https://inventory.example.net/halls",
    "pollInterval": "1h",
    "timeout": "5s",
    "maxStaleness": "3h",
    "bearerTokenSecretRef": {"namespace": NAMESPACE, "name": "inventory"},
}


async def put_secret(world: World, name: str, token: str, *, namespace: str = NAMESPACE) -> None:
    metadata = {"name": name, "namespace": namespace}
    data = {"token": b64encode(token.encode()).decode()}
    await world.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


async def asking(world: World) -> list[str]:
    """The room at work, with one webhook source that is ready; grows by the token of each question."""
    tokens: list[str] = []

    async def answer(inquiry: Inquiry) -> bytes | Failed:
        tokens.append(inquiry.token)
        return ANSWER.encode()

    await world.node("n1")
    await put_secret(world, "inventory", FIRST)
    await world.source(REGION, ZONE, webhook=WEBHOOK)
    room = await world.start()
    room._sources._ports = replace(room._sources._ports, http=answer)

    async def is_zoned() -> bool:
        return await world.profile("n1") == ZONED

    await world.until(is_zoned, what="the answer is applied")
    await world.clock.sleep(30.0)
    return tokens


def test_a_rotated_secret_wakes_its_webhook_source_long_before_the_next_poll() -> None:
    async def story(world: World) -> None:
        tokens = await asking(world)
        before = len(tokens)
        await put_secret(world, "inventory", ROTATED)
        await world.clock.sleep(10.0)
        assert tokens[before:] == [ROTATED]

    in_world(story)


def test_a_secret_that_comes_back_wakes_its_source_too() -> None:
    async def story(world: World) -> None:
        tokens = await asking(world)
        before = len(tokens)
        await world.admin.delete(f"/api/v1/namespaces/{NAMESPACE}/secrets/inventory")
        await world.clock.sleep(10.0)
        source = await world.get("/apis/worker.gpustack.ai/v1alpha1/topologysources/hall")
        assert "Secret gpustack-system/inventory does not exist" in str(source["status"]["conditions"])
        await put_secret(world, "inventory", ROTATED)
        await world.clock.sleep(10.0)
        assert tokens[before:] == [ROTATED]

    in_world(story)


def test_a_secret_that_no_source_refers_to_wakes_nothing() -> None:
    async def story(world: World) -> None:
        tokens = await asking(world)
        before = len(tokens)
        await put_secret(world, "another", ROTATED)
        await put_secret(world, "inventory", ROTATED, namespace="team")
        await world.clock.sleep(60.0)
        assert len(tokens) == before
        assert await world.at_rest(60.0) == []

    in_world(story)


def test_of_a_secret_nothing_is_kept_but_that_it_is_there() -> None:
    async def story(world: World) -> None:
        await asking(world)
        await put_secret(world, "inventory", ROTATED)
        await world.clock.sleep(10.0)
        assert world.room is not None
        kept = {key.name: value for key, value in world.room.caches.secrets.cache.items()}
        assert kept == {"inventory": None}
        watched = [
            entry for entry in world.api.audit if entry.resource == "secrets" and entry.verb in ("list", "watch")
        ]
        assert {entry.namespace for entry in watched if "manager" in entry.user_agent} == {NAMESPACE}

    in_world(story)

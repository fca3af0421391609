"""Faults between the Git server and the cluster, through the whole product: refusals that pass, long ranges, many sources."""

import asyncio
import hashlib
import hmac
import re
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.source.webhook import webhook_app
from tests.support.git_servers import Authority, Fault, HttpsGitServer
from tests.support.product import (  # noqa: F401
    SOURCE,
    Product,
    ShiftedClock,
    config_map,
    people,
    product_world,
)
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


@pytest.fixture
async def server(world: Product, tmp_path: Path) -> AsyncIterator[HttpsGitServer]:
    """The repository behind https; the source reads it from there."""
    authority = Authority()
    with HttpsGitServer(tmp_path, authority.issue(tmp_path)) as made:
        ca = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "ca"},
            "data": {"ca.crt": authority.pem.decode()},
        }
        await world.admin.create(f"/api/v1/namespaces/{world.namespace}/configmaps", ca)
        world.url = made.url("repo/.git")
        await world.source(caConfigMapRef={"name": "ca"})

        async def read_from_there() -> bool:
            return (await world.condition()).get("reason") == "Succeeded" and made.count("info/refs") > 0

        await until(read_from_there, what="the source reads over https")
        yield made


@pytest.mark.parametrize("status", [503, 401], ids=["5xx", "authentication"])
async def test_G04_one_bad_answer_is_tried_again_and_is_not_final(
    world: Product, server: HttpsGitServer, status: int
) -> None:
    server.script(Fault(on="info/refs", status=status, times=1))
    commit = world.push({"site/base.yaml": config_map("base", "2")})
    await world.until_applied(commit)
    assert server.faults == [] or all(fault.times == 0 for fault in server.faults), "the fault was met"
    assert await world.condition("Stalled") == {}


async def test_H02_a_good_commit_wins_over_a_failing_one(world: Product) -> None:
    broken = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports: [{port: 99999}]\n"
    bad = world.push({"site/web.yaml": broken})

    async def held() -> bool:
        return bool((await world.sync_status()).get("held"))

    await until(held, what="the broken object is held")
    assert (await world.sync_status())["lastAttemptedRevision"] == bad
    good = world.push({"site/web.yaml": broken.replace("99999", "80")})
    await world.until_applied(good)
    assert not (await world.sync_status()).get("held")


async def test_H01_a_fix_is_taken_at_once_while_something_never_gets_ready(world: Product) -> None:
    await world.sync(wait=True)
    pods = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "example.net/x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": pods}
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "never"}, "spec": spec}
    waiting = world.push({"site/never.yaml": yaml.safe_dump(tree)})

    async def waits() -> bool:
        status = await world.sync_status()
        ready = next(item for item in status["conditions"] if item["type"] == "Ready")
        return bool(status.get("lastAttemptedRevision") == waiting and ready["status"] != "True")

    await until(waits, what="the Sync waits for the Deployment")
    fix = world.commit(delete=["site/never.yaml"], files={"site/fixed.yaml": config_map("fixed")})
    begun_s = time.monotonic()
    world.poke()
    await until(lambda: _has(world, "fixed"), what="the fix is applied")
    taken_s = time.monotonic() - begun_s
    assert taken_s < 5.0, f"the fix took {taken_s:.1f} s"
    await world.until_applied(fix)


async def _has(world: Product, name: str) -> bool:
    return await world.config_map(name) is not None


async def test_G08_readers_of_a_moving_revision_never_miss_a_file(world: Product) -> None:
    """Every revision rewrites every file; an object that a reader missed would be pruned, and made again with another UID."""
    names = [f"n{number}" for number in range(20)]

    def files(value: int) -> dict[str, str]:
        return {f"site/{name}.yaml": config_map(name, str(value)) for name in names}

    await world.until_applied(world.push(files(0)))
    before = await _uids(world)
    last = ""
    for number in range(1, 13):
        last = world.push(files(number))
        await asyncio.sleep(0)
    await world.until_applied(last)
    assert await _uids(world) == before
    assert {await world.config_map(name) for name in names} == {"12"}


async def _uids(world: Product) -> dict[str, str]:
    page = await world.admin.list_all(f"/api/v1/namespaces/{world.namespace}/configmaps")
    trees: Any = page.items
    return {tree["metadata"]["name"]: tree["metadata"]["uid"] for tree in trees}


async def test_G20_many_sources_of_one_url_share_one_copy(world: Product, server: HttpsGitServer) -> None:
    source: Any = await world.admin.get(world.source_path)
    folder = world.source_path.rpartition("/")[0]
    for number in range(12):
        body = {**source, "metadata": {"name": f"more-{number}", "namespace": world.namespace}}
        body.pop("status", None)
        await world.admin.create(folder, body)

    async def accepted() -> bool:
        page = await world.admin.list_all(folder)
        trees: Any = page.items
        return len(trees) == 13 and all(tree.get("status", {}).get("accepted") for tree in trees)

    await until(accepted, what="every source is accepted", timeout_s=60)
    copies = {path.parent for path in world.cache.rglob("HEAD") if (path.parent / "objects").is_dir()}
    of_this_url = [path for path in copies if f"localhost:{server.port}" in (path / "config").read_text()]
    assert len(copies) <= 2, f"one copy for https and the one for file: {copies}"
    assert len(of_this_url) <= 1


async def test_a_source_that_cannot_be_fetched_for_long_raises_an_alarm_and_clears_it(world: Product) -> None:
    clock = ShiftedClock()
    await world.source(interval="1m")
    await world.reborn(clock)
    await world.until_reason("Succeeded")
    world.repo.git_dir.rename(world.repo.path / "away")
    world.poke()
    await world.until_reason("FetchFailed")
    assert await world.condition("SourceStale") == {}
    clock.ahead_s += 700
    world.poke()

    async def stale() -> bool:
        return bool((await world.condition("SourceStale")).get("status") == "True")

    await until(stale, what="SourceStale is raised")
    assert await world.config_map("base") == "1"
    (world.repo.path / "away").rename(world.repo.git_dir)
    world.poke()
    await world.until_reason("Succeeded")
    assert await world.condition("SourceStale") == {}


async def test_a_long_range_is_judged_in_passes_and_a_restart_keeps_what_was_done(world: Product) -> None:
    await world.source(limits={"commitsPerPass": 2})
    commits = [world.commit({"site/base.yaml": config_map("base", str(number))}) for number in range(24)]
    world.poke()

    async def on_its_way() -> bool:
        return await world.accepted() in commits[3:]

    await until(on_its_way, what="some commits are accepted")
    await world.kill()
    before = commits.index(await world.accepted())
    await world.reborn()
    seen: list[int] = []

    async def over() -> bool:
        seen.append(commits.index(await world.accepted()))
        return seen[-1] == len(commits) - 1

    await until(over, what="all commits are accepted")
    assert min(seen) >= before
    assert seen == sorted(seen)
    await world.until_applied(commits[-1])


async def test_a_request_for_a_poll_is_answered_in_the_status(world: Product) -> None:
    commit = world.commit({"site/base.yaml": config_map("base", "asked")})
    await world.request()
    assert await world.accepted() == commit


async def test_a_signed_webhook_brings_a_push_into_the_cluster_and_an_unsigned_one_does_not(world: Product) -> None:
    secret = {"metadata": {"name": "hook"}, "stringData": {"token": "shared"}}
    await world.admin.create(f"/api/v1/namespaces/{world.namespace}/secrets", secret)
    forge = {
        "provider": "github",
        "baseURL": "https://forge.example.net",
        "project": "net/fabric",
        "webhookSecretRef": {"name": "hook"},
    }
    await world.source(forge=forge)
    await world.until_reason("Succeeded")
    assert world.rooms is not None
    app = webhook_app(
        secret_of=world.rooms.sources.controller.webhook_secret,
        trigger=world.rooms.sources.poke,
        clock=world.manager.clock,
    )
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    url = f"http://127.0.0.1:{port}/hooks/{NamespacedName(world.namespace, SOURCE)}"
    body = b'{"ref": "refs/heads/main"}'
    signature = "sha256=" + hmac.new(b"shared", body, hashlib.sha256).hexdigest()
    try:
        async with aiohttp.ClientSession() as session:
            commit = world.commit({"site/base.yaml": config_map("base", "hooked")})
            wrong = {"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + "0" * 64}
            async with session.post(url, data=body, headers=wrong) as answer:
                assert answer.status == 401
            assert await world.accepted() == world.root
            right = {**wrong, "X-Hub-Signature-256": signature}
            async with session.post(url, data=body, headers=right) as answer:
                assert answer.status == 202
            await world.until_applied(commit)
    finally:
        await runner.cleanup()
    assert re.fullmatch("[0-9a-f]{40}", commit)


async def test_H22_credentials_of_a_repository_are_in_no_status_and_no_event(
    world: Product, server: HttpsGitServer, capfd: pytest.CaptureFixture[str]
) -> None:
    mark = "planted-password"
    login = {"metadata": {"name": "login"}, "stringData": {"username": "planted-user", "password": mark}}
    await world.admin.create(f"/api/v1/namespaces/{world.namespace}/secrets", login)
    server.script(Fault(status=401, times=-1))
    await world.source(caConfigMapRef={"name": "ca"}, credentialsSecretRef={"name": "login"})
    ready = await world.until_reason("AuthenticationFailed")
    assert "refuses the credentials" in ready["message"]
    assert world.rooms is not None
    await world.rooms.sources.controller._ports.events.flush()
    events = (await world.admin.list_all(f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events")).items
    assert "AuthenticationFailed" in str(events)
    logged = capfd.readouterr()
    said = "".join([str(await world.source_status()), str(events), logged.out, logged.err])
    for secret in (
        mark,
        "planted-user",
        b64encode(mark.encode()).decode(),
        b64encode(b"planted-user:" + mark.encode()).decode(),
    ):
        assert secret not in said

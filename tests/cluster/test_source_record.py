"""The durable record of a source against a second writer and a failing API server (gitops.md, section 4.5; fault H13)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import Conflict, Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import ChildTransport
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.source.controller import Ports, SourceController
from gitops_ctl.source.forge_reviews import reader_of
from gitops_ctl.source.room import GIT_SOURCE
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.support.product import SOURCE, Product, config_map, people, product_world  # noqa: F401

pytestmark = pytest.mark.cluster


class Stale:
    """A manager whose cache of the source stands still until the test moves it."""

    def __init__(self, world: Product, tree: Any, *, name: str) -> None:
        self.tree = tree
        self.revisions = AcceptedRevisions()
        self.key = NamespacedName(world.namespace, SOURCE)
        ports = Ports(
            client=world.admin,
            resource=GIT_SOURCE,
            git=ChildTransport(),
            clones=CloneCache(world.cache.with_name(name)),
            revisions=self.revisions,
            events=EventRecorder(world.admin, instance=name),
            clock=SystemClock(),
            draw=lambda: 0.5,
            require_leader=lambda: None,
            reviews=reader_of(world.admin, http=HttpxClient(clock=SystemClock()), clock=SystemClock()),
        )
        self.controller = SourceController(
            ports, lookup=lambda _key: self.tree, documents=DocumentCache(), allow_file=True
        )

    async def look(self) -> None:
        self.controller.poke(self.key)
        await self.controller.reconcile(self.key)

    @property
    def handed_over(self) -> str:
        found = self.revisions.get(self.key)
        return found.commit if found is not None else ""


@asynccontextmanager
async def unreachable_once(world: Product) -> AsyncIterator[list[str]]:
    """The next status write of the product's manager fails."""
    exchange: Any = world.manager._exchange
    send, failed = exchange.perform, []

    async def perform(call: Any) -> bytes:
        if "/gitsources/" in call.path and call.verb == "apply" and not failed:
            failed.append(call.path)
            raise Unavailable("planted", subject=call.subject)
        answer: bytes = await send(call)
        return answer

    exchange.perform = perform
    try:
        yield failed
    finally:
        exchange.perform = send


async def test_H13_a_manager_that_read_an_older_record_cannot_put_it_back(world: Product) -> None:
    older: Any = await world.admin.get(world.source_path)
    first = world.commit({"site/base.yaml": config_map("base", "2")})
    second = world.push({"site/base.yaml": config_map("base", "3")})
    await world.until_applied(second)
    await world.kill()
    world.repo.git("reset", "--quiet", "--hard", first)
    stale = Stale(world, older, name="stale")
    with pytest.raises(Conflict):
        await stale.look()
    assert await world.accepted() == second
    assert stale.handed_over == "", "nothing is applied from what could not be recorded"

    stale.tree = await world.admin.get(world.source_path)
    await stale.look()
    assert await world.accepted() == second
    assert (await world.condition())["reason"] == "HistoryRewritten"
    assert stale.handed_over in ("", second)


async def test_H13_a_manager_that_worked_before_takes_over_what_another_recorded_meanwhile(world: Product) -> None:
    early = Stale(world, await world.admin.get(world.source_path), name="early")
    await early.look()
    assert early.handed_over == world.root
    first = world.commit({"site/base.yaml": config_map("base", "2")})
    second = world.push({"site/base.yaml": config_map("base", "3")})
    await world.until_applied(second)
    await world.kill()
    world.repo.git("reset", "--quiet", "--hard", first)
    early.tree = await world.admin.get(world.source_path)
    await early.look()
    assert await world.accepted() == second, "its own memory of the root does not count"


async def test_its_own_last_write_is_known_before_the_cache_shows_it(world: Product) -> None:
    tree = await world.admin.get(world.source_path)
    await world.kill()
    alone = Stale(world, tree, name="alone")
    for value in ("2", "3", "4"):
        commit = world.commit({"site/base.yaml": config_map("base", value)})
        await alone.look()
        assert await world.accepted() == commit
        assert alone.handed_over == commit


async def test_a_record_that_could_not_be_written_is_not_handed_over_and_the_poll_is_made_again(world: Product) -> None:
    async with unreachable_once(world) as failed:
        commit = world.push({"site/base.yaml": config_map("base", "2")})
        await world.until_applied(commit)
        assert failed
    assert await world.accepted() == commit

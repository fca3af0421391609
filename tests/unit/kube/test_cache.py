"""The cache of an informer: indexes move with the objects, and many objects stay small."""

import asyncio
import json
import tracemalloc
from collections.abc import Iterable

import pytest

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.kube.cache import Cache, Change, Entry, diff_relist, is_mass_removal
from gitops_ctl.kube.informer import Informer
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_informer import CONFIG_MAPS, PATH, a_list, an_object
from tests.support.kube_server import Answer, KubeServer, reply, stream

A, B = NamespacedName("default", "a"), NamespacedName("default", "b")


def entry(value: str, *, uid: str = "u", version: str = "1") -> Entry[str]:
    return Entry(uid, version, value)


def words(_: NamespacedName, value: str) -> Iterable[str]:
    return value.split()


def test_an_index_finds_objects_by_every_value_and_forgets_old_ones() -> None:
    cache: Cache[str] = Cache()
    cache.change(Change("added", A, None, entry("red round")))
    cache.add_index("word", words)
    cache.change(Change("added", B, None, entry("red")))
    assert cache.by_index("word", "red") == (A, B)
    cache.change(Change("modified", A, entry("red round"), entry("blue round", version="2")))
    assert (cache.by_index("word", "red"), cache.by_index("word", "blue")) == ((B,), (A,))
    cache.change(Change("deleted", B, entry("red"), None))
    assert cache.by_index("word", "red") == ()
    assert (list(cache), cache.get(A), cache.get(B)) == ([A], "blue round", None)


def test_deletes_come_before_adds_because_a_name_may_have_a_new_bearer() -> None:
    cached = {A: entry("1", uid="old"), B: entry("2")}
    listed = {A: entry("3", uid="new"), B: entry("4", version="2")}
    assert [(change.kind, change.key) for change in diff_relist(cached=cached, listed=listed)] == [
        ("deleted", A),
        ("added", A),
        ("modified", B),
    ]


@pytest.mark.parametrize(("cached", "removed", "suspect"), [(20, 11, True), (20, 10, False), (19, 19, False)])
def test_a_list_is_suspect_when_more_than_half_of_a_large_cache_is_missing(
    cached: int, removed: int, suspect: bool
) -> None:
    changes = [Change("deleted", A, entry("x"), None)] * removed
    assert is_mass_removal(changes, cached=cached) is suspect


def pages(objects: int) -> list[Answer]:
    filler = "x" * 1200
    made = [
        an_object(f"object-{n}", version=str(n), uid=f"{n:08d}-1111-4111-8111-111111111111") for n in range(objects)
    ]
    for tree in made:
        tree["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {"f:data": filler}}]
    return [
        reply(200, a_list(*made[at : at + 500], token=str(at) if at + 500 < objects else ""))
        for at in range(0, objects, 500)
    ]


async def test_ten_thousand_trimmed_objects_stay_small() -> None:
    hold = asyncio.Event()
    async with KubeServer() as server, KubeClient(server.config(), component="test") as client:
        server.on("GET", PATH, *pages(10_000))
        server.on("WATCH GET", PATH, stream(hold=hold))
        informer = Informer(client, CONFIG_MAPS, trim=lambda tree: json.dumps(text_at(tree, "data", "value")))
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        task = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.synced.wait(), 60)
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        hold.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(informer.cache) == 10_000
    assert after - before < 10 * 1024 * 1024
    assert peak - before < 30 * 1024 * 1024

"""What the informer does when the server forgets, closes, refuses or repeats.

In scope: 410 in both forms, deletes during a gap, back-off, 403, vanished kinds, suspect lists.  Tested elsewhere: silence
(test_informer_silence.py), any sequence of faults (test_informer_convergence.py).
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import accumulate
from typing import Any

import pytest

from gitops_ctl.kube.informer import State
from tests.support.kube_clock import JumpingClock
from tests.support.kube_informer import PATH, a_list, an_object, bookmark, event, expired, until, watching
from tests.support.kube_server import KubeServer, reply, status_object, stream

WATCH = "WATCH GET"


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer() as running:
        yield running


@pytest.fixture
def hold() -> asyncio.Event:
    return asyncio.Event()


def rounds_in_a_minute(clock: JumpingClock) -> int:
    """Attempts in the first minute, when only back-off takes time."""
    return 1 + sum(1 for after_s in accumulate(clock.slept) if after_s <= 60)


async def test_a_list_and_its_watch_make_one_cache(server: KubeServer, hold: asyncio.Event) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"), an_object("b"))))
    events = [
        event("ADDED", an_object("c", version="11")),
        event("MODIFIED", an_object("a", version="12", value="new")),
        event("DELETED", an_object("b", version="13")),
    ]
    server.on(WATCH, PATH, stream(*events, hold=hold))
    async with watching(server) as found:
        await until(lambda: found.names == {"a", "c"})
    assert found.changes == [("added", "a"), ("added", "b"), ("added", "c"), ("modified", "a"), ("deleted", "b")]
    query = next(seen.query for seen in server.requests if "watch" in seen.query)
    assert query["resourceVersion"] == "10"
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 540


@pytest.mark.parametrize(
    "form",
    [stream(expired()), reply(410, status_object(410, "Expired"))],
    ids=["event", "status"],
)
async def test_H09_objects_deleted_during_a_gap_are_reported_deleted(
    server: KubeServer, hold: asyncio.Event, form: Any
) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"), an_object("b"))), reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, form, stream(hold=hold))
    async with watching(server) as found:
        await until(lambda: found.names == {"a"})
    assert found.changes == [("added", "a"), ("added", "b"), ("deleted", "b")]
    assert server.count("GET", PATH) == 2


async def test_H09_an_object_made_again_during_a_gap_is_a_delete_and_an_add(
    server: KubeServer, hold: asyncio.Event
) -> None:
    again = an_object("a", uid="second", version="20")
    server.on("GET", PATH, reply(200, a_list(an_object("a"))), reply(200, a_list(again)))
    server.on(WATCH, PATH, stream(expired()), stream(hold=hold))
    async with watching(server) as found:
        await until(lambda: len(found.changes) == 3)
    assert found.changes == [("added", "a"), ("deleted", "a"), ("added", "a")]


@pytest.mark.parametrize(
    "form",
    [stream(expired()), reply(410, status_object(410)), stream(bookmark("11"), expired())],
    ids=["event", "status", "after a bookmark"],
)
async def test_H09_a_server_that_answers_410_for_ever_is_not_stormed(server: KubeServer, form: Any) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, form)
    async with watching(server) as found:
        await until(lambda: sum(found.clock.slept) > 60)
    assert all(delay_s >= 0.79 for delay_s in found.clock.slept)
    assert found.changes == [("added", "a")]


async def test_H09_a_410_that_stays_slows_the_relists_down(server: KubeServer) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, stream(expired()))
    async with watching(server) as found:
        await until(lambda: sum(found.clock.slept) > 60)
    assert 3 <= rounds_in_a_minute(found.clock) <= 10


@pytest.mark.parametrize("form", [stream(), stream(cut=True)], ids=["end", "cut"])
async def test_H09_a_stream_that_is_closed_at_once_costs_at_most_ten_requests_in_a_minute(
    server: KubeServer, form: Any
) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, form)
    async with watching(server) as found:
        await until(lambda: sum(found.clock.slept) > 60)
        assert found.informer.usable
    assert server.count("GET", PATH) == 1
    assert 1 + rounds_in_a_minute(found.clock) <= 10


async def test_H09_a_healthy_stream_that_ends_is_resumed_at_once_from_the_last_version(
    server: KubeServer, hold: asyncio.Event
) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, stream(event("ADDED", an_object("b", version="11")), bookmark("17")), stream(hold=hold))
    async with watching(server) as found:
        await until(lambda: server.count("GET", PATH, watch=True) == 2)
    assert [seen.query["resourceVersion"] for seen in server.requests if "watch" in seen.query] == ["10", "17"]
    assert found.clock.slept == []
    assert server.count("GET", PATH) == 1


async def test_H09_events_that_come_again_after_a_resume_reach_no_handler_twice(
    server: KubeServer, hold: asyncio.Event
) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    added = event("ADDED", an_object("b", version="11"))
    server.on(WATCH, PATH, stream(added), stream(added, bookmark("12"), hold=hold))
    async with watching(server) as found:
        await until(lambda: server.count("GET", PATH, watch=True) == 2 and found.informer.health.failures == 0)
        await until(lambda: found.names == {"a", "b"})
    assert found.changes == [("added", "a"), ("added", "b")]


async def test_H09_a_late_delete_of_a_former_bearer_of_the_name_removes_nothing(
    server: KubeServer, hold: asyncio.Event
) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a", uid="second"))))
    late = event("DELETED", an_object("a", uid="first", version="11"))
    server.on(WATCH, PATH, stream(late, event("ADDED", an_object("b", version="12")), hold=hold))
    async with watching(server) as found:
        await until(lambda: "b" in found.names)
    assert found.names == {"a", "b"}


async def test_H09_a_cut_off_last_line_is_dropped_and_comes_again(server: KubeServer, hold: asyncio.Event) -> None:
    server.on("GET", PATH, reply(200, a_list()))
    half = b'{"type":"ADDED","object":{"metadata":{"name":"x"'
    server.on(WATCH, PATH, stream(bookmark("11"), half, cut=True), stream(event("ADDED", an_object("x")), hold=hold))
    async with watching(server) as found:
        await until(lambda: found.names == {"x"})
    assert [seen.query["resourceVersion"] for seen in server.requests if "watch" in seen.query][-1] == "11"


async def test_a_line_of_two_megabytes_is_one_event(server: KubeServer, hold: asyncio.Event) -> None:
    server.on("GET", PATH, reply(200, a_list()))
    server.on(WATCH, PATH, stream(event("ADDED", an_object("big", value="x" * 2_000_000)), hold=hold))
    async with watching(server) as found:
        await until(lambda: found.names == {"big"})
        assert [len(value) for _, value in found.informer.cache.items()] == [2_000_000]


async def test_403_is_asked_for_slowly_and_names_the_missing_right(server: KubeServer) -> None:
    text = 'configmaps is forbidden: User "x" cannot list resource "configmaps" in API group "" at the cluster scope'
    server.on("GET", PATH, reply(403, status_object(403, "Forbidden", text)))
    async with watching(server) as found:
        await until(lambda: sum(found.clock.slept) > 60)
        assert found.informer.health.state is State.FORBIDDEN
        assert 'cannot list resource "configmaps"' in str(found.informer.health.error)
        assert found.informer.settled.is_set()
        assert not found.informer.usable
    assert rounds_in_a_minute(found.clock) <= 10


async def test_H18_a_kind_that_disappears_is_parked_and_its_objects_are_not_judged_missing(
    server: KubeServer, hold: asyncio.Event
) -> None:
    gone = reply(404, "404 page not found")
    server.on("GET", PATH, reply(200, a_list(an_object("a"))), gone, gone, reply(200, a_list(an_object("b"))))
    server.on(WATCH, PATH, stream(bookmark("11")), gone, stream(hold=hold))
    states: list[tuple[State, bool, set[str]]] = []
    async with watching(server) as found:
        original = found.clock.sleep

        async def sleep(seconds: float) -> None:
            states.append((found.informer.health.state, found.informer.usable, found.names))
            await original(seconds)

        found.clock.sleep = sleep  # type: ignore[method-assign]
        await until(lambda: found.names == {"b"})
        assert found.informer.usable
    assert states == [(State.ABSENT, False, {"a"})] * 3
    assert found.clock.slept == [2.5, 5.0, 10.0]
    assert found.changes == [("added", "a"), ("deleted", "a"), ("added", "b")]


async def test_H18_another_kind_goes_on_while_one_is_absent(server: KubeServer, hold: asyncio.Event) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, stream(event("ADDED", an_object("b", version="11")), hold=hold))
    async with KubeServer() as without, watching(without) as absent, watching(server) as present:
        await until(lambda: absent.informer.settled.is_set() and present.names == {"a", "b"})
        assert absent.informer.health.state is State.ABSENT
        assert present.informer.usable


async def test_a_list_that_lacks_most_of_the_cache_is_suspect_until_a_second_list_agrees(
    server: KubeServer, hold: asyncio.Event
) -> None:
    full = [an_object(f"o{n}") for n in range(30)]
    server.on("GET", PATH, reply(200, a_list(*full)), reply(200, a_list()), reply(200, a_list(*full)))
    server.on(WATCH, PATH, stream(expired()), stream(hold=hold))
    suspicions: list[bool] = []
    async with watching(server) as found:
        found.informer.add_handler(
            lambda change: suspicions.append(found.informer.suspect) if change.kind == "deleted" else None
        )
        await until(lambda: server.count("GET", PATH) == 3 and found.informer.usable)
        assert len(found.names) == 30
    assert suspicions == [True] * 30
    assert found.clock.slept[-1] == 5.0


async def test_a_handler_that_raises_stops_nothing_and_its_key_is_rescued(
    server: KubeServer, hold: asyncio.Event
) -> None:
    server.on("GET", PATH, reply(200, a_list(an_object("a"), an_object("b"))))
    server.on(WATCH, PATH, stream(hold=hold))
    rescued: list[str] = []

    def broken(_: object) -> None:
        raise ValueError

    async with watching(server) as found:
        found.informer.add_handler(broken, rescue=lambda key: rescued.append(key.name))
        await found.informer.synced.wait()
    assert rescued == ["a", "b"]
    assert found.informer.counts["handler_errors"] == 2
    assert found.informer.health.state is State.STOPPED

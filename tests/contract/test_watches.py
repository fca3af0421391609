"""Watches: from where, what, until when, and what happens when the past is gone."""

import asyncio

import pytest

from tests.contract.client import Api, config_map
from tests.contract.widgets import Widgets

pytestmark = pytest.mark.contract

MINE = {"labelSelector": "mine=yes"}


def mine(name: str, value: str = "1") -> dict[str, object]:
    return config_map(name, {"a": value}, labels={"mine": "yes"})


async def test_changes_after_a_list_come_in_order(api: Api, maps: str) -> None:
    await api.create(maps, mine("old"))
    version = (await api.get(maps)).version
    async with api.watch(maps, resourceVersion=version, **MINE) as stream:
        await api.create(maps, mine("new"))
        await api.merge(f"{maps}/old", {"data": {"a": "2"}})
        await api.delete(f"{maps}/new")
        assert await stream.take(3) == [("ADDED", "new"), ("MODIFIED", "old"), ("DELETED", "new")]


async def test_a_watch_resumes_after_the_version_that_it_saw(api: Api, maps: str) -> None:
    version = (await api.get(maps)).version
    first = await api.create(maps, mine("one"))
    await api.create(maps, mine("two"))
    async with api.watch(maps, resourceVersion=version, **MINE) as stream:
        assert await stream.take(2) == [("ADDED", "one"), ("ADDED", "two")]
    async with api.watch(maps, resourceVersion=first.version, **MINE) as stream:
        assert await stream.take(1) == [("ADDED", "two")]


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Api, maps: str) -> None:
    await api.create(maps, mine("one"))
    async with api.watch(maps, **MINE) as stream:
        assert await stream.take(1) == [("ADDED", "one")]
        await api.create(maps, mine("two"))
        assert await stream.take(1) == [("ADDED", "two")]


async def test_a_deletion_shows_the_last_state_under_its_own_version(api: Api, maps: str) -> None:
    made = await api.create(maps, mine("one"))
    async with api.watch(maps, resourceVersion=made.version, **MINE) as stream:
        await api.delete(f"{maps}/one")
        event = await stream.next()
    assert event is not None
    assert (event["type"], event["object"]["data"]) == ("DELETED", {"a": "1"})
    assert event["object"]["metadata"]["uid"] == made.metadata["uid"]
    assert event["object"]["metadata"]["resourceVersion"] != made.version


async def test_events_of_built_in_kinds_carry_their_kind(api: Api, maps: str) -> None:
    version = (await api.get(maps)).version
    async with api.watch(maps, resourceVersion=version, **MINE) as stream:
        await api.create(maps, mine("one"))
        event = await stream.next()
    assert event is not None
    assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("ConfigMap", "v1")


async def test_who_leaves_the_selector_is_deleted_and_who_enters_is_added(api: Api, maps: str) -> None:
    await api.create(maps, mine("one"))
    version = (await api.create(maps, config_map("two"))).version
    async with api.watch(maps, resourceVersion=version, **MINE) as stream:
        await api.merge(f"{maps}/one", {"metadata": {"labels": {"mine": "no"}}})
        await api.merge(f"{maps}/two", {"metadata": {"labels": {"mine": "yes"}}})
        assert await stream.take(2) == [("DELETED", "one"), ("ADDED", "two")]


async def test_a_watch_of_one_name_sees_no_other(api: Api, widgets: Widgets) -> None:
    version = (await api.get(widgets.path)).version
    async with api.watch(widgets.path, resourceVersion=version, fieldSelector="metadata.name=two") as stream:
        await api.create(widgets.path, widgets.one("one", {"size": 1}))
        await api.create(widgets.path, widgets.one("two", {"size": 1}))
        assert await stream.take(1) == [("ADDED", "two")]


async def test_a_finalizer_makes_two_events(api: Api, maps: str) -> None:
    version = (await api.create(maps, {**mine("one")})).version
    async with api.watch(maps, resourceVersion=version, **MINE) as stream:
        await api.merge(f"{maps}/one", {"metadata": {"finalizers": ["example.net/hold"]}})
        await api.delete(f"{maps}/one")
        await api.merge(f"{maps}/one", {"metadata": {"finalizers": None}})
        assert await stream.take(3) == [("MODIFIED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


async def test_a_stream_ends_with_its_time_and_a_bookmark_before(api: Api, maps: str) -> None:
    made = await api.create(maps, mine("one"))
    query = {"timeoutSeconds": "4", "allowWatchBookmarks": "true", "resourceVersion": made.version, **MINE}
    events = []
    async with api.watch(maps, **query) as stream:
        # A bookmark is sent for a version after the one that the stream began with: somebody else's object makes one.
        await api.create(maps, {**mine("other"), "metadata": {"name": "other"}})
        while (event := await stream.next()) is not None:
            events.append(event)
    # The real server may repeat it.
    assert {event["type"] for event in events} == {"BOOKMARK"}
    bookmark = events[-1]["object"]
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("ConfigMap", "v1")
    assert int(bookmark["metadata"]["resourceVersion"]) >= int(made.version)
    assert "name" not in bookmark["metadata"]


async def test_a_streaming_list_ends_its_beginning_with_a_bookmark(api: Api, maps: str) -> None:
    await api.create(maps, mine("one"))
    await api.create(maps, mine("two"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(maps, **query, **MINE) as stream:
        assert await stream.take(2) == [("ADDED", "one"), ("ADDED", "two")]
        event = await stream.next()
        assert event is not None
        assert event["type"] == "BOOKMARK"
        assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_streaming_list_must_say_which_versions_it_takes(api: Api, maps: str) -> None:
    reply = await api.get(maps, watch="1", sendInitialEvents="true", timeoutSeconds="1")
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert "resourceVersionMatch" in reply.body["message"]


async def test_a_version_that_is_too_old_is_an_error_event_in_a_good_stream(api: Api, widgets: Widgets) -> None:
    await api.create(widgets.path, widgets.one("one", {"size": 1}))
    await api.compact()
    async with api.watch(widgets.path, resourceVersion="2") as stream:
        assert stream.status == 200
        event = await stream.next()
        assert event is not None
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 2 (")
        assert await stream.next() is None


async def test_a_version_that_is_no_number_is_500(api: Api, maps: str) -> None:
    reply = await api.get(maps, watch="1", resourceVersion="abc")
    assert (reply.status, reply.body.get("reason")) == (500, None)
    assert reply.body["message"].startswith('resourceVersion: Invalid value: "abc"')


async def test_a_watch_from_the_future_is_silent(api: Api, maps: str) -> None:
    version = str(int((await api.get(maps)).version) + 100_000_000)
    query = {"timeoutSeconds": "4", "allowWatchBookmarks": "true", "resourceVersion": version}
    async with api.watch(maps, **query) as stream:
        assert stream.status == 200
        await api.create(maps, mine("one"))
        with pytest.raises(TimeoutError):
            await stream.next(seconds=2)


async def test_several_watches_see_the_same(api: Api, maps: str) -> None:
    version = (await api.get(maps)).version
    async with (
        api.watch(maps, resourceVersion=version, **MINE) as first,
        api.watch(maps, resourceVersion=version, **MINE) as second,
    ):
        await api.create(maps, mine("one"))
        seen = await asyncio.gather(first.take(1), second.take(1))
    assert list(seen) == [[("ADDED", "one")]] * 2

"""Events: their shape, how many there are, and that they never fail a pass."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.lease import LeadershipLost
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_clock import JumpingClock
from tests.support.kube_server import KubeServer, lose_reply, reply, status_object

PATH = "/apis/events.k8s.io/v1/namespaces/team-a/events"


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer() as running:
        running.on("POST", PATH, reply(201, {}))
        yield running


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def events(server: KubeServer, clock: JumpingClock) -> AsyncIterator[EventRecorder]:
    async with KubeClient(server.config(), component="test", clock=clock) as client:
        yield EventRecorder(client, instance="manager-0")


def an_object(name: str = "app", *, namespace: str = "team-a") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": "Sync", "metadata": metadata}


def say(events: EventRecorder, tree: dict[str, Any] | None = None, **changed: Any) -> None:
    words = {"type": "Normal", "reason": "Applied", "action": "Apply", "note": "3 objects applied", **changed}
    events.emit(tree or an_object(), **words)


async def test_an_event_has_every_member_that_the_server_asks_for(server: KubeServer, events: EventRecorder) -> None:
    say(events, annotations={"gitops-ctl.dev/revision": "main@1234"})
    await events.flush()
    body = json.loads(server.requests[0].body)
    assert body["metadata"]["name"].startswith("app.")
    assert body["metadata"]["annotations"] == {"gitops-ctl.dev/revision": "main@1234"}
    assert body["eventTime"] == "2026-01-01T00:16:40.000000Z"
    assert (body["reportingController"], body["reportingInstance"]) == ("gitops-ctl.dev/manager", "manager-0")
    assert (body["type"], body["reason"], body["action"], body["note"]) == (
        "Normal",
        "Applied",
        "Apply",
        "3 objects applied",
    )
    assert body["regarding"]["uid"] == "uid-app"


async def test_names_differ_and_fit(server: KubeServer, events: EventRecorder) -> None:
    for number in range(5):
        say(events, an_object("x" * 253), action=f"A{number}")
    await events.flush()
    names = [json.loads(seen.body)["metadata"]["name"] for seen in server.requests]
    assert len(set(names)) == 5
    assert all(len(name) <= 253 for name in names)


async def test_the_event_of_a_cluster_scoped_object_is_in_default(server: KubeServer, events: EventRecorder) -> None:
    server.on("POST", PATH.replace("team-a", "default"), reply(201, {}))
    say(events, an_object(namespace=""))
    await events.flush()
    assert events.counts["failed"] == 0
    assert server.requests[0].path == PATH.replace("team-a", "default")


async def test_long_notes_are_cut_with_a_mark(server: KubeServer, events: EventRecorder) -> None:
    say(events, note="x" * 5000)
    await events.flush()
    note = json.loads(server.requests[0].body)["note"]
    assert len(note) == 1000
    assert note.endswith("…")


async def test_H22_a_secret_in_a_note_is_not_written(server: KubeServer, events: EventRecorder) -> None:
    say(events, note="fetch of https://user:s3cr3t@git.example.net/x failed: token=s3cr3t")
    await events.flush()
    assert b"s3cr3t" not in server.requests[0].body


async def test_repeats_within_a_minute_are_counted_and_then_become_a_series(
    server: KubeServer, events: EventRecorder, clock: JumpingClock
) -> None:
    for _ in range(5):
        say(events)
    await events.flush()
    assert len(server.requests) == 1
    name = json.loads(server.requests[0].body)["metadata"]["name"]
    server.on("PATCH", f"{PATH}/{name}", reply(200, {}))
    clock.now_s += 61
    say(events)
    say(events)
    await events.flush()
    assert [seen.method for seen in server.requests] == ["POST", "PATCH"]
    assert json.loads(server.requests[1].body)["series"]["count"] == 6
    clock.now_s += 400
    say(events)
    await events.flush()
    assert [seen.method for seen in server.requests] == ["POST", "PATCH", "POST"]


async def test_another_commit_is_another_event_and_no_repeat_of_the_one_before(
    server: KubeServer, events: EventRecorder
) -> None:
    for commit in ("1234", "5678", "5678"):
        say(events, reason="Accepted", note=f"accepted {commit}, signed by network-author")
    await events.flush()
    notes = [json.loads(seen.body)["note"] for seen in server.requests]
    assert notes == [f"accepted {commit}, signed by network-author" for commit in ("1234", "5678")]


async def test_a_burst_is_cut_to_twenty_and_five_more_per_second(events: EventRecorder, clock: JumpingClock) -> None:
    for number in range(100):
        say(events, an_object(f"o{number}"))
    assert (events.counts["emitted"], events.counts["dropped"]) == (20, 80)
    clock.now_s += 1
    for number in range(100, 200):
        say(events, an_object(f"o{number}"))
    assert events.counts["emitted"] == 25


@pytest.mark.parametrize(
    "answer", [reply(403, status_object(403)), reply(500, status_object(500)), lose_reply()], ids=["403", "500", "lost"]
)
async def test_an_event_that_cannot_be_written_is_counted_and_not_tried_again(
    server: KubeServer, events: EventRecorder, answer: Any
) -> None:
    server.on("POST", PATH, answer)
    say(events)
    await events.flush()
    assert events.counts["failed"] == 1
    assert len(server.requests) == 1


async def test_run_sends_what_was_emitted(server: KubeServer, events: EventRecorder) -> None:
    arrived = asyncio.Event()

    async def answer(request: Any) -> Any:
        arrived.set()
        return await reply(201, {})(request)

    server.on("POST", PATH, answer)
    task = asyncio.create_task(events.run())
    say(events)
    await asyncio.wait_for(arrived.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_memory_of_what_was_said_is_bounded(events: EventRecorder, clock: JumpingClock) -> None:
    for number in range(3000):
        clock.now_s += 1
        say(events, an_object(f"o{number}"))
    assert events.counts["emitted"] + events.counts["dropped"] == 3000
    assert events.remembered <= 1000


async def test_H13_a_process_that_leads_no_more_sends_no_event_of_before(
    server: KubeServer, clock: JumpingClock
) -> None:
    leads = True

    def require() -> None:
        if not leads:
            raise LeadershipLost("another replica may lead now")

    async with KubeClient(server.config(), component="test", clock=clock) as client:
        events = EventRecorder(client, instance="manager-0", require=require)
        say(events)
        await events.flush()
        say(events, an_object("later"))
        leads = False
        await events.flush()
    assert [seen.path for seen in server.requests] == [PATH]
    assert events.counts["failed"] == 1

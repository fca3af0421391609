"""A process that dies at any request of a pass, or loses the reply to it: the next one ends where an undisturbed one would (topology-scheduling.md, 5.2, 8.3)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gitops_ctl.core.errors import Conflict, GitopsError, ReplyLost
from gitops_ctl.kube.exchange import Call
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.sourceports import SOURCE
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.kube_clock import JumpingClock
from tests.support.source_bench import HALL, REGION, SourceBench, first_store, snapshot

Story = Callable[[SourceBench], Awaitable[None]]


class KilledError(BaseException):
    """The process is no more."""


async def begin(bench: SourceBench) -> None:
    await bench.namespace()
    for name in ("node-a", "node-b", "node-c"):
        await bench.node(name)
    await bench.config_map(snapshot({"node-a": HALL, "node-b": HALL}))
    await bench.source()


async def first(bench: SourceBench) -> None:
    """A new source."""


async def changed(bench: SourceBench) -> None:
    """A revision that creates, updates and deletes."""
    await bench.look()
    await bench.config_map(snapshot({"node-b": {REGION: "south"}, "node-c": HALL}, "r2"))


async def expired(bench: SourceBench) -> None:
    """A snapshot that is gone for longer than it stays usable."""
    await bench.look()
    await bench.config_map(None)
    bench.clock.now_s += 120


async def read_only(bench: SourceBench) -> None:
    """A source that becomes read-only."""
    await bench.look()
    await bench.source(nodeLabels={})


async def deleted(bench: SourceBench) -> None:
    """A source that goes."""
    await bench.look()
    await bench.client.delete(SOURCE.path(name="first"))


def end(bench: SourceBench) -> Any:
    """What has to be the same, however the way was."""
    if bench.tree() is None:
        return bench.features
    status = {key: value for key, value in bench.status().items() if key != "mutatedNodes"}
    conditions = [(one["type"], one["status"], one["reason"]) for one in status.pop("conditions")]
    return bench.labels, status, conditions, bench.tree()["metadata"].get("finalizers")


async def run(story: Story, at: int, side: str, error: Exception | KilledError | None) -> tuple[Any, int]:
    """The end of the story, and how many requests its disturbed pass made."""
    api, clock, seen = ApiServer(seed=7), JumpingClock(), 0
    api.restore(first_store())

    def point(_call: Call, now: str) -> None:
        nonlocal seen
        seen += now == "before"
        if error is not None and seen == at and now == side:
            raise error

    async with direct_client(api, component="tests", clock=clock) as steady:
        bench = SourceBench(steady, api, clock, Options())
        await begin(bench)
        await story(bench)
        async with direct_client(api, component="tests", clock=clock, point=point) as shaky:
            bench.restart(client=shaky)
            try:
                await bench.look()
            except (KilledError, GitopsError):
                assert error is not None
        bench.restart(client=steady)
        for _ in range(3):
            try:
                await bench.look()
            except Conflict:
                continue
        assert bench.writes("nodes")[3:] == []
        return end(bench), seen


@pytest.mark.parametrize("story", [first, changed, expired, read_only, deleted], ids=lambda story: story.__name__)
@pytest.mark.parametrize("error", [KilledError(), ReplyLost("no reply")], ids=["killed", "reply lost"])
async def test_promise_07_a_pass_that_ends_at_any_request_is_finished_by_the_next(story, error):
    wanted, requests = await run(story, 0, "before", None)
    assert requests >= 3
    for at in range(1, requests + 1):
        for side in ("before", "after"):
            assert (await run(story, at, side, error))[0] == wanted, (at, side)

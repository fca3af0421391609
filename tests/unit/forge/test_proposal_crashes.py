"""A crash at every I/O of the algorithm ends with one pull request, one commit and one push (forges.md, acceptance check 1)."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.forge.model import Remembered
from tests.support.git_keys import SshKey
from tests.support.proposals import ADD, REPLACE, Crash, Desktop, require_one_of_everything

Point = tuple[str, str]
WRITES = ("push", "create", "record", "close", "put_comment", "reopen")


class Fuse:
    """Lets `left` points pass and ends the pass at the next one; counts all of them."""

    def __init__(self, left: int = 10**9, ends: type[Exception] = Crash) -> None:
        self.left = left
        self.ends = ends
        self.seen: list[Point] = []

    def __call__(self, call: str, when: str) -> None:
        self.seen.append((call, when))
        if len(self.seen) > self.left:
            raise self.ends(f"{when} {call}")


async def points_of(desk: Desktop) -> list[Point]:
    """The I/O of one pass; the next one changes nothing."""
    fuse = Fuse()
    desk.watch(fuse)
    await desk.run()
    return fuse.seen


async def crash_at(desk: Desktop, place: int) -> None:
    """One process that dies at that point, and the next one that goes on."""
    desk.watch(Fuse(place))
    with pytest.raises(Crash):
        await desk.run()
    desk.restart()
    desk.watch(lambda _call, _when: None)
    await desk.settle()


async def test_a_crash_at_every_step_ends_with_one_pull_request_one_commit_and_one_push(tmp_path: Path, key: SshKey):
    points = await points_of(Desktop.make(tmp_path / "dry", key=key))
    assert {call for call, _ in points} >= {
        "find_open",
        "find_by_marker",
        "fetch",
        "resolve",
        "record",
        "push",
        "create",
    }
    for place in range(len(points)):
        desk = Desktop.make(tmp_path / str(place), key=key)
        await crash_at(desk, place)
        where = f"crash at {points[place]}"
        require_one_of_everything(desk, where)
        assert desk.status.number == 1, where


async def test_a_crash_while_a_changed_request_is_rebuilt_leaves_one_of_everything(tmp_path: Path, key: SshKey):
    async def ready(name: str) -> Desktop:
        desk = Desktop.make(tmp_path / name, key=key)
        await desk.settle()
        desk.edits = (REPLACE, ADD)
        return desk

    points = await points_of(await ready("dry"))
    for place in (place for place, (call, _) in enumerate(points) if call in (*WRITES, "update")):
        desk = await ready(str(place))
        await crash_at(desk, place)
        where = f"crash at {points[place]}"
        require_one_of_everything(desk, where, pushes=2)
        assert "k8sServicePort" in desk.forge.pulls[1].body, where


async def test_a_hundred_runs_with_crashes_anywhere_end_with_one_pull_request_one_commit_and_one_push(
    tmp_path: Path, key: SshKey
):
    desk = Desktop.make(tmp_path, key=key)
    draw = random.Random(11)
    ended = 0
    for _ in range(100):
        desk.watch(Fuse(draw.randrange(24)))
        try:
            await desk.run()
        except Crash:
            ended += 1
            desk.restart()
    assert ended > 20
    desk.watch(lambda _call, _when: None)
    assert (await desk.settle()).decision.reason == "Open"
    assert len(desk.forge.pulls) == 1
    assert desk.commits_of(desk.branch) == 1
    assert len(desk.git.pushes) == 1


async def declined_and_changed(desk: Desktop) -> dict[str, str]:
    desk.forge.closed_by_person(1)
    await desk.settle()
    desk.edits = (REPLACE, ADD)
    return {}


async def deleted_and_asked_again(desk: Desktop) -> dict[str, str]:
    desk.remote.delete(desk.branch)
    await desk.settle()
    return {"reopen": "1"}


async def not_to_be_forced(desk: Desktop) -> dict[str, str]:
    desk.git.refuse = lambda request: "force push is forbidden" if request.expected else ""
    desk.edits = (REPLACE, ADD)
    return {}


@pytest.mark.parametrize("story", [declined_and_changed, deleted_and_asked_again, not_to_be_forced])
@pytest.mark.parametrize("ends", [Crash, Unavailable])
async def test_a_crash_or_an_error_on_the_way_to_the_next_name_leaves_one_open_request(
    tmp_path: Path, key: SshKey, story: Callable[[Desktop], Awaitable[dict[str, str]]], ends: type[Exception]
):
    async def ready(name: str) -> tuple[Desktop, dict[str, str]]:
        desk = Desktop.make(tmp_path / name, key=key)
        await desk.settle()
        return desk, await story(desk)

    desk, more = await ready("dry")
    fuse = Fuse()
    desk.watch(fuse)
    await desk.run(**more)
    writes = [place for place, (call, _) in enumerate(fuse.seen) if call in WRITES]
    assert len(writes) >= 6
    for place in writes:
        desk, more = await ready(str(place))
        desk.watch(Fuse(place, ends))
        with pytest.raises(ends):
            await desk.run(**more)
        desk.restart()
        desk.watch(lambda _call, _when: None)
        if desk.status.reopen_answered != more.get("reopen", ""):
            await desk.run(**more)
        await desk.settle()
        where = f"{ends.__name__} at {fuse.seen[place]}"
        (pull,) = desk.forge.open()
        assert pull.head.branch == f"{desk.branch}-2", where
        assert desk.status.number == pull.number == 2, where
        assert desk.commits_of(pull.head.branch) == 1, where
        assert len(desk.git.pushes) == 2, where


async def test_without_any_memory_the_same_input_is_the_same_commit_and_finds_its_branch_again(
    tmp_path: Path, key: SshKey
):
    desk = Desktop.make(tmp_path, key=key)

    def stop(call: str, when: str) -> None:
        if (call, when) == ("create", "before"):
            raise Crash("before create")

    desk.watch(stop)
    with pytest.raises(Crash):
        await desk.run()
    desk.restart()
    desk.status = Remembered()  # the API server was restored from before the push
    desk.watch(lambda _call, _when: None)
    await desk.settle()
    assert len(desk.git.pushes) == 1
    assert desk.remote.branches() == [desk.branch, "main"]
    assert len(desk.forge.open()) == 1

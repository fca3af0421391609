"""A crash at every I/O of the algorithm ends with one pull request, one commit and one push (forges.md, acceptance check 1)."""

import random
from pathlib import Path

import pytest

from gitops_ctl.forge.model import Remembered
from tests.support.git_keys import SshKey
from tests.support.proposals import ADD, REPLACE, Crash, Desktop

Point = tuple[str, str]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SshKey:
    return SshKey.generate(tmp_path_factory.mktemp("keys"))


class Fuse:
    """Lets `left` points pass and crashes at the next one; counts all of them."""

    def __init__(self, left: int = 10**9) -> None:
        self.left = left
        self.seen: list[Point] = []

    def __call__(self, call: str, when: str) -> None:
        self.seen.append((call, when))
        if len(self.seen) > self.left:
            raise Crash(f"{when} {call}")


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
        assert len(desk.forge.pulls) == 1, where
        assert desk.commits_of(desk.branch) == 1, where
        assert len(desk.git.pushes) == 1, where
        assert desk.status.number == 1, where


async def test_a_crash_while_a_changed_request_is_rebuilt_leaves_one_of_everything(tmp_path: Path, key: SshKey):
    async def ready(name: str) -> Desktop:
        desk = Desktop.make(tmp_path / name, key=key)
        await desk.settle()
        desk.edits = (REPLACE, ADD)
        return desk

    points = await points_of(await ready("dry"))
    for place in range(len(points)):
        desk = await ready(str(place))
        await crash_at(desk, place)
        where = f"crash at {points[place]}"
        assert len(desk.forge.pulls) == 1, where
        assert desk.commits_of(desk.branch) == 1, where
        assert len(desk.git.pushes) == 2, where
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

"""What is not ours at the forge is never touched, and a person's no is heard, whatever happened before (forges.md, sections 9 and 10)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gitops_ctl.forge.neutral import Head
from gitops_ctl.kube.lease import LeadershipLost
from tests.support.proposals import Crash, Desktop, no_point


def made_anew(desk: Desktop) -> None:
    """The repository was deleted, and one of the same name and content was made."""
    desk.forge.pulls.clear()
    desk.forge.said.clear()
    desk.remote.git("branch", "-D", desk.branch)


def a_persons(desk: Desktop) -> int:
    """A pull request of a person, which happens to have the number that ours had."""
    desk.remote.git("branch", "feature", "main")
    desk.remote.commit_on("feature", {"mine.yaml": "a: 1\n"})
    return desk.forge.opened_by_person("feature", body="please look")


@pytest.mark.parametrize("ended", ["", "withdrawn", "superseded", "expired", "deleted"])
async def test_the_number_of_a_repository_that_was_made_anew_is_not_ours(desk: Desktop, ended: str) -> None:
    await desk.run()
    made_anew(desk)
    number = a_persons(desk)
    assert number == desk.status.number
    before = desk.forge.pulls[number]
    await desk.settle(ended=ended)
    assert desk.forge.pulls[number] == before
    assert number not in desk.forge.said


async def test_in_a_repository_that_was_made_anew_it_is_proposed_again(desk: Desktop) -> None:
    await desk.run()
    made_anew(desk)
    number = a_persons(desk)
    assert (await desk.settle()).decision.phase == "Open"
    assert [pull.head.branch for pull in desk.forge.open() if pull.number != number] == [desk.branch]
    assert desk.status.number != number


async def test_a_number_that_is_not_there_any_more_is_looked_for_by_its_branch(desk: Desktop) -> None:
    await desk.run()
    made_anew(desk)
    desk.status = replace(desk.status, number=41)
    assert (await desk.settle()).decision.phase == "Open"
    assert desk.status.number == 1


async def test_a_pull_request_of_a_fork_with_the_number_and_the_branch_of_ours_is_not_ours(desk: Desktop) -> None:
    await desk.run()
    made_anew(desk)
    number = desk.forge.opened_by_person(desk.branch, body="mine", fork=True)
    desk.forge.pulls[number] = replace(desk.forge.pulls[number], head=Head("fork", desk.branch, "0" * 40))
    await desk.settle(ended="withdrawn")
    assert desk.forge.pulls[number].state == "open"
    assert number not in desk.forge.said


async def test_a_persons_no_counts_although_we_had_closed_it_once_before(desk: Desktop) -> None:
    await desk.run()
    await desk.settle(ended="withdrawn")
    desk.forge.reopened_by_person(1)
    assert (await desk.settle()).decision.phase == "Open"
    desk.forge.closed_by_person(1)
    outcome = await desk.settle()
    assert (outcome.decision.phase, outcome.decision.reason) == ("Closed", "DeclinedByHuman")
    assert list(desk.forge.pulls) == [1]


async def test_what_we_close_a_second_time_was_no_persons_no(desk: Desktop) -> None:
    await desk.run()
    await desk.settle(ended="withdrawn")
    desk.forge.reopened_by_person(1)
    await desk.settle()
    await desk.settle(ended="withdrawn")
    assert desk.forge.open() == []
    assert (await desk.settle()).decision.phase == "Open"
    assert [pull.number for pull in desk.forge.open()] == [2]


@pytest.mark.parametrize("act", ["create", "close", "put_comment", "update"])
async def test_a_manager_that_lost_its_lead_while_it_looked_writes_nothing_to_the_forge(
    desk: Desktop, act: str
) -> None:
    ended = "withdrawn" if act in ("close", "put_comment") else ""
    if act == "create":
        desk.watch(crash_before("create"))
        with pytest.raises(Crash):
            await desk.run()
        desk.watch(no_point)
    else:
        await desk.run()
    if act == "put_comment":
        desk.remote.commit_on(desk.branch, {"mine.yaml": "a: 1\n"})
    if act == "update":
        desk.operation = "op-2"

    def lost(call: str, when: str) -> None:
        if call == "record":
            raise LeadershipLost("another one leads")

    calls = desk.forge.calls.copy()
    desk.watch(lost)
    with pytest.raises(LeadershipLost):
        await desk.run(ended=ended)
    assert desk.forge.calls[act] == calls[act]
    desk.watch(no_point)
    await desk.run(ended=ended)
    assert desk.forge.calls[act] == calls[act] + 1


def crash_before(name: str) -> Callable[[str, str], None]:
    def point(call: str, when: str) -> None:
        if (call, when) == (name, "before"):
            raise Crash

    return point

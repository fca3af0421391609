"""Each pass looks at the project first: moved, archived, or another repository behind the name (forges.md, section 18)."""

from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.errors import BaseMissing, RepositoryUnavailable
from gitops_ctl.forge.project import project_of
from tests.support.kube_clock import JumpingClock
from tests.support.proposals import ADD, REPLACE, Crash, Desktop, no_point
from tests.unit.forge.test_forgejo_dialect import BASE, Recorded


def left_alone(desk: Desktop, before: Any) -> None:
    """Neither Git nor the forge was written to, and only the project was asked for."""
    assert (len(desk.git.pushes), desk.forge.pulls, desk.forge.said) == before


def standing(desk: Desktop) -> Any:
    return len(desk.git.pushes), dict(desk.forge.pulls), dict(desk.forge.said)


def moved(desk: Desktop) -> None:
    def point(call: str, when: str) -> None:
        if call == "repo":
            raise RepositoryUnavailable("the project net/fabric was moved to net/fabric-eu")

    desk.watch(point)


@pytest.mark.parametrize("ended", ["", "withdrawn"])
async def test_a_project_that_was_moved_is_told_before_anything_else_is_asked(desk: Desktop, ended: str) -> None:
    await desk.run()
    before, calls = standing(desk), desk.forge.calls.copy()
    desk.edits = (REPLACE, ADD)
    moved(desk)
    with pytest.raises(RepositoryUnavailable, match="moved to net/fabric-eu"):
        await desk.run(ended=ended)
    left_alone(desk, before)
    assert desk.forge.calls - calls == {"repo": 1}
    desk.watch(no_point)
    await desk.settle(ended=ended)
    assert (desk.forge.open() == []) is (ended == "withdrawn")


async def test_an_archived_project_is_told_and_nothing_is_pushed_to_it(desk: Desktop) -> None:
    desk.forge.project = replace(desk.forge.project, archived=True)
    with pytest.raises(RepositoryUnavailable, match="net/fabric is archived"):
        await desk.run()
    left_alone(desk, (0, {}, {}))
    desk.forge.project = replace(desk.forge.project, archived=False)
    assert (await desk.run()).decision.phase == "Open"


@pytest.mark.parametrize("way", ["number", "branch", "marker"])
async def test_a_pull_request_of_another_repository_is_refused_however_it_is_found(desk: Desktop, way: str) -> None:
    await desk.run()
    if way == "marker":
        desk.forge.closed_by_person(1)
    if way != "number":
        desk.status = replace(desk.status, number=0)
    desk.edits = (REPLACE, ADD)
    desk.forge.project = replace(desk.forge.project, id="there")
    before = standing(desk)
    with pytest.raises(RepositoryUnavailable, match="repository there, with pull request 1 of repository here"):
        await desk.run()
    left_alone(desk, before)


async def test_one_that_is_found_after_a_lost_creation_is_compared_too(desk: Desktop) -> None:
    def lost(call: str, when: str) -> None:
        if (call, when) == ("create", "before"):
            raise Crash

    desk.watch(lost)
    with pytest.raises(Crash):
        await desk.run()
    desk.watch(no_point)
    desk.forge.opened_by_person(desk.branch, body="mine")
    desk.forge.project = replace(desk.forge.project, id="there")
    with pytest.raises(RepositoryUnavailable):
        await desk.run()
    assert len(desk.forge.pulls) == 1


async def test_a_base_branch_that_is_gone_is_told_with_the_default_branch_of_now_and_never_replaced(
    desk: Desktop,
) -> None:
    desk.remote.git("branch", "-m", "main", "trunk")
    desk.forge.project = replace(desk.forge.project, default_branch="trunk")
    with pytest.raises(BaseMissing, match="the default branch of net/fabric is trunk now"):
        await desk.run()
    left_alone(desk, (0, {}, {}))


async def test_a_base_branch_that_goes_while_the_request_is_opened_is_told_so_too(desk: Desktop) -> None:
    def point(call: str, when: str) -> None:
        if (call, when) == ("create", "before"):
            raise BaseMissing("the base branch main is not there")

    desk.watch(point)
    desk.forge.project = replace(desk.forge.project, default_branch="")
    with pytest.raises(BaseMissing, match="net/fabric has no default branch now"):
        await desk.run()


async def test_plain_git_has_no_project_to_ask(desk: Desktop) -> None:
    desk.plain = True
    moved(desk)
    assert (await desk.run()).decision.phase == "Open"
    assert desk.forge.calls["repo"] == 0


@pytest.mark.parametrize(("version", "name"), [("11.0.1+gitea-1.22.0", "forgejo"), ("1.26.0", "gitea")])
async def test_the_look_at_the_project_finds_out_which_server_it_is(version: str, name: str) -> None:
    adapter = forge_adapter(
        "gitea", base_url=BASE, project="net/fabric", token="t", http=Recorded(version), clock=JumpingClock()
    )
    assert (await project_of(adapter)).id == "5"
    assert adapter.name == name

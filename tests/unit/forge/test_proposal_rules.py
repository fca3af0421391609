"""The fifteen rules of forges.md, section 10, and what people do to a pull request; on a real repository and a forge in memory."""

from dataclasses import replace
from pathlib import Path

import pytest

from gitops_ctl.core.errors import RateLimited
from gitops_ctl.documents.splice import Edit, SpliceRefused
from gitops_ctl.forge.conversation import CLOSE_MARKER
from gitops_ctl.forge.errors import BaseMissing, ForbiddenOrMissing, ReplyLost
from gitops_ctl.forge.marker import Marker, read_marker
from gitops_ctl.forge.model import Action, Refresh, Remembered
from gitops_ctl.git.pushing import LeaseLost, PushRefused
from tests.support.git_keys import SshKey
from tests.support.proposals import ADD, REPLACE, TEXT, VALUES, Desktop


async def test_one_pass_makes_one_branch_with_one_signed_commit_and_one_pull_request(
    desk: Desktop, key: SshKey, tmp_path: Path
):
    outcome = await desk.run()
    assert (outcome.decision.phase, outcome.decision.reason) == ("Open", "Open")
    (pull,) = desk.forge.open()
    assert pull.head.branch == desk.branch
    assert desk.commits_of(desk.branch) == 1
    assert desk.remote.show(desk.branch, VALUES) == TEXT.replace("false", "true").strip()
    assert desk.remote.git("diff", "--stat", "main", desk.branch).endswith(
        "1 file changed, 1 insertion(+), 1 deletion(-)"
    )
    marker = read_marker(pull.body)
    assert isinstance(marker, Marker)
    assert (marker.head, marker.op, marker.base) == (pull.head.sha, "op-1", desk.remote.head("main"))
    allowed = tmp_path / "allowed"
    allowed.write_text(f"gitops-ctl@example.net {key.public}\n")
    desk.remote.git("-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit", desk.branch)
    assert desk.status.number == 1
    assert desk.status.head == pull.head.sha


async def test_P05_ten_more_passes_push_and_write_nothing(desk: Desktop):
    await desk.run()
    written, updates = len(desk.written), desk.forge.calls["update"]
    for _ in range(10):
        await desk.run()
    assert len(desk.git.pushes) == 1
    assert (len(desk.written), desk.forge.calls["update"], desk.forge.calls["create"]) == (written, updates, 1)


async def test_P09_and_rule_01_a_persons_commit_on_our_branch_is_never_overwritten(desk: Desktop):
    await desk.run()
    person = desk.remote.commit_on(desk.branch, {VALUES: "mine: true\n"})
    desk.edits = (REPLACE, ADD)
    outcome = await desk.settle()
    assert outcome.decision.reason == "ModifiedByOthers"
    assert desk.remote.head(desk.branch) == person
    assert len(desk.git.pushes) == 1
    assert [comment.text.count("Not touched any more") for comment in desk.forge.said[1]] == [1]


async def test_rule_01_a_tip_that_moves_between_look_and_push_stops_the_push(desk: Desktop):
    await desk.run()
    desk.git.between = lambda _: desk.remote.commit_on(desk.branch, {"mine.yaml": "a: 1\n"})
    desk.edits = (REPLACE, ADD)
    with pytest.raises(LeaseLost):
        await desk.run()
    desk.git.between = lambda _: None
    assert (await desk.run()).decision.reason == "ModifiedByOthers"


@pytest.mark.parametrize("ended", ["withdrawn", "superseded", "expired", "deleted"])
async def test_rule_02_a_modified_pull_request_is_commented_and_never_closed(desk: Desktop, ended: str):
    await desk.run()
    desk.remote.commit_on(desk.branch, {"mine.yaml": "a: 1\n"})
    await desk.settle(ended=ended)
    (pull,) = desk.forge.open()
    assert desk.forge.said[pull.number]
    assert not any(CLOSE_MARKER in comment.text for comment in desk.forge.said[pull.number])


@pytest.mark.parametrize(
    ("ended", "phase"),
    [("withdrawn", "Superseded"), ("superseded", "Superseded"), ("expired", "Expired"), ("deleted", "Superseded")],
)
async def test_an_unmodified_pull_request_is_closed_with_its_reason(desk: Desktop, ended: str, phase: str):
    await desk.run()
    assert (await desk.settle(ended=ended)).decision.phase == phase
    assert desk.forge.open() == []
    assert CLOSE_MARKER in desk.forge.said[1][0].text
    assert desk.branch in desk.remote.branches()  # our branch is kept
    # Wanted again, it is proposed again: that was no person's no.
    desk.status = replace(desk.status, number=0) if ended == "deleted" else desk.status
    assert (await desk.settle()).decision.phase == "Open"
    assert [pull.number for pull in desk.forge.open()] == [2]


@pytest.mark.parametrize("ended", ["withdrawn", "deleted"])
async def test_what_is_withdrawn_after_it_was_merged_is_merged(desk: Desktop, ended: str):
    await desk.run()
    desk.forge.merged_by_person(1)
    assert (await desk.settle(ended=ended)).decision.phase == "Merged"
    assert desk.forge.said.get(1, []) == []


async def test_what_is_withdrawn_before_the_forge_notices_the_merge_is_merged(desk: Desktop):
    await desk.run()
    desk.remote.merge(desk.branch)
    assert (await desk.settle(ended="withdrawn")).decision.phase == "Merged"
    assert "the base branch has taken the change" in desk.forge.said[1][0].text


async def test_rule_03_a_reopened_one_is_pushed_again_and_its_head_is_verified(desk: Desktop):
    await desk.run()
    desk.forge.closed_by_person(1)
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"
    desk.remote.commit({"README.md": "# moved\n"})
    desk.forge.stale_heads = 2
    outcome = await desk.run(reopen="now")
    assert outcome.decision.action is Action.PUSH_REOPEN
    (pull,) = desk.forge.open()
    assert pull.number == 1
    assert pull.head.sha == desk.status.head == desk.remote.head(desk.branch)
    assert desk.remote.git("merge-base", "main", desk.branch) == desk.remote.head("main")
    assert desk.clock.slept == [1.0]
    assert desk.status.reopen_answered == "now"
    assert (await desk.settle()).decision.reason == "Open"


async def test_a_head_that_the_forge_never_shows_is_told_after_five_reads(desk: Desktop):
    desk.forge.stale_heads = 20
    outcome = await desk.run()
    assert "still shows the head" in outcome.warning
    assert len(desk.clock.slept) == 5


async def test_rule_04_equal_trees_push_nothing_although_the_base_moved(desk: Desktop):
    await desk.run()
    desk.remote.commit({"README.md": "# other\n"})
    assert (await desk.settle()).decision.action is Action.NOTHING
    assert len(desk.git.pushes) == 1


async def test_rule_05_where_force_is_forbidden_it_goes_on_under_the_next_name(desk: Desktop):
    await desk.run()
    desk.git.refuse = lambda request: "force push is forbidden" if request.expected else ""
    desk.edits = (REPLACE, ADD)
    await desk.settle()
    (pull,) = desk.forge.open()
    assert pull.head.branch == f"{desk.branch}-2"
    assert desk.forge.pulls[1].state == "closed"
    assert "must not be rebuilt" in desk.forge.said[1][0].text
    assert len(desk.git.pushes) == 2
    assert desk.commits_of(pull.head.branch) == 1


async def test_P13_a_push_that_is_refused_for_a_new_branch_is_reported_and_nothing_else_is_tried(desk: Desktop):
    desk.git.refuse = lambda _: "pre-receive hook declined"
    with pytest.raises(PushRefused, match="pre-receive hook declined"):
        await desk.run()
    assert desk.forge.pulls == {}
    assert desk.remote.branches() == ["main"]


async def test_rule_06_a_look_up_compares_repository_branch_and_base(desk: Desktop):
    desk.remote.point(desk.branch, desk.remote.person.head())
    fork = desk.forge.opened_by_person(desk.branch, body="from a fork", fork=True)
    desk.remote.delete(desk.branch)
    await desk.settle()
    assert {pull.number for pull in desk.forge.open()} == {fork, 2}
    assert desk.forge.pulls[fork].body == "from a fork"


async def test_rule_07_a_stale_local_idea_of_the_branch_counts_for_nothing(desk: Desktop):
    await desk.run()
    desk.remote.commit({VALUES: TEXT + "tunnel: true\n"})
    desk.edits = (REPLACE, ADD)
    await desk.settle()
    assert "tunnel: true" in desk.remote.show(desk.branch, VALUES)
    assert desk.remote.git("merge-base", "main", desk.branch) == desk.remote.head("main")


async def test_P12_and_rule_08_what_the_base_has_already_is_never_proposed(desk: Desktop):
    desk.remote.commit({VALUES: TEXT.replace("false", "true")})
    outcome = await desk.settle()
    assert outcome.decision.phase == "Merged"
    assert (desk.git.pushes, desk.forge.pulls) == ([], {})


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("keep", [True, False])
async def test_P01_and_rule_09_merged_is_what_the_base_holds_however_it_got_there(desk: Desktop, how: str, keep: bool):
    await desk.run()
    desk.forge.merged_by_person(1, how=how)
    if not keep:
        desk.remote.delete(desk.branch)
    assert (await desk.settle()).decision.phase == "Merged"
    assert len(desk.git.pushes) == 1
    # The next change of the same subject is a new commit, also on the branch that was kept.
    desk.edits, desk.operation, desk.status = (ADD,), "op-2", Remembered()
    assert (await desk.settle()).decision.phase == "Open"
    (pull,) = desk.forge.open()
    assert pull.number == 2
    assert desk.commits_of(pull.head.branch) == 1


async def test_P04_and_rule_10_a_rebuilt_branch_is_one_commit_on_the_present_base(desk: Desktop):
    await desk.run()
    for line in ("a", "b"):
        desk.remote.commit({VALUES: TEXT.replace("false  # for now", f"false  # {line}")})
        await desk.settle()
        assert desk.commits_of(desk.branch) == 1
        assert f"true  # {line}" in desk.remote.show(desk.branch, VALUES)
    assert len(desk.git.pushes) == 3
    assert len(desk.forge.pulls) == 1


@pytest.mark.parametrize(("policy", "pushes"), [(Refresh.NEVER, 1), (Refresh.ON_CONFLICT, 1), (Refresh.ALWAYS, 6)])
async def test_P10_and_rule_11_the_refresh_policy_says_whether_a_moved_base_is_followed(
    desk: Desktop, policy: Refresh, pushes: int
):
    desk.options = {"refresh": policy}
    await desk.run()
    for number in range(5):
        desk.remote.commit({"README.md": f"# {number}\n"})
        await desk.run()
    assert len(desk.git.pushes) == pushes


@pytest.mark.parametrize("policy", Refresh, ids=[policy.value for policy in Refresh])
async def test_P10_an_open_one_is_rebuilt_on_the_present_base_on_request_once_for_each_request(
    desk: Desktop, policy: Refresh
):
    desk.options = {"refresh": policy}
    await desk.run()
    desk.remote.commit({"README.md": "# moved\n"})
    outcome = await desk.run(reopen="now")
    assert outcome.decision.action is Action.PUSH_UPDATE
    assert desk.status.reopen_answered == "now"
    assert desk.remote.git("merge-base", "main", desk.branch) == desk.remote.head("main")
    desk.remote.commit({"README.md": "# moved again\n"})
    await desk.settle()
    assert len(desk.git.pushes) == (3 if policy is Refresh.ALWAYS else 2)
    assert (list(desk.forge.pulls), desk.commits_of(desk.branch)) == ([1], 1)


async def test_P11_and_rule_12_a_closed_one_is_remembered_by_content_also_when_the_base_moves(desk: Desktop):
    await desk.run()
    desk.forge.closed_by_person(1)
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"
    desk.remote.commit({VALUES: TEXT + "tunnel: true\n"})
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"
    desk.remote.delete(desk.branch)
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"
    assert len(desk.forge.pulls) == 1
    # A restart without any memory reads it from the forge.
    desk.status = Remembered()
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"


async def test_rule_12_and_15_other_content_gets_a_new_pull_request_on_a_new_name(desk: Desktop):
    await desk.run()
    desk.forge.closed_by_person(1)
    await desk.settle()
    desk.edits = (REPLACE, ADD)
    await desk.settle()
    (pull,) = desk.forge.open()
    assert pull.head.branch == f"{desk.branch}-2"
    marker = read_marker(pull.body)
    assert isinstance(marker, Marker)
    assert marker.closed_for  # what was declined is written into the new one
    desk.edits = (REPLACE,)
    desk.forge.closed_by_person(2)
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"


async def test_rule_12_the_reopen_command_works_after_the_branch_was_deleted_too(desk: Desktop):
    await desk.run()
    desk.remote.delete(desk.branch)  # the forge closes it
    assert (await desk.settle()).decision.reason == "DeclinedByHuman"
    await desk.run(reopen="1")
    await desk.settle()
    (pull,) = desk.forge.open()
    assert pull.number == 2
    assert pull.head.branch == f"{desk.branch}-2"


async def test_a_person_who_opens_it_again_is_heard(desk: Desktop):
    await desk.run()
    desk.forge.closed_by_person(1)
    await desk.settle()
    desk.forge.reopened_by_person(1)
    assert (await desk.settle()).decision.reason == "Open"
    assert len(desk.git.pushes) == 1


async def test_rule_13_a_branch_without_a_difference_is_never_pushed(desk: Desktop):
    await desk.run()
    desk.remote.commit({VALUES: TEXT.replace("false", "true")})
    outcome = await desk.settle()
    assert outcome.decision.phase == "Merged"
    assert len(desk.git.pushes) == 1
    assert desk.forge.pulls[1].state == "closed"
    assert "has the change" in desk.forge.said[1][0].text


async def test_rule_14_a_refusal_of_unsigned_commits_is_shown_with_the_words_of_the_forge(desk: Desktop):
    desk.git.refuse = lambda _: "the branch requires signed commits"
    with pytest.raises(PushRefused, match="requires signed commits"):
        await desk.run()


async def test_rule_15_a_persons_branch_of_our_name_stays_and_ours_gets_a_suffix(desk: Desktop):
    desk.remote.commit_on("main", {"other.yaml": "a: 1\n"})
    theirs = desk.remote.head("main")
    desk.remote.point(desk.branch, theirs)
    await desk.settle()
    (pull,) = desk.forge.open()
    assert pull.head.branch == f"{desk.branch}-2"
    assert desk.remote.head(desk.branch) == theirs


async def test_merged_and_reverted_is_told_and_proposed_anew_only_by_command_or_a_new_operation(desk: Desktop):
    await desk.run()
    desk.forge.merged_by_person(1)
    await desk.settle()
    desk.remote.commit({VALUES: TEXT})
    assert (await desk.settle()).decision.reason == "MergedButNotEffective"
    assert len(desk.git.pushes) == 1
    await desk.run(reopen="1")
    assert [pull.number for pull in desk.forge.open()] == [2]
    desk.forge.merged_by_person(2)
    desk.remote.commit({VALUES: TEXT + "x: 1\n"})
    desk.operation = "op-2"
    await desk.settle()
    assert [pull.number for pull in desk.forge.open()] == [3]


async def test_peoples_text_in_the_body_stays_and_a_damaged_marker_stops_all_writing(desk: Desktop):
    await desk.run()
    body = desk.forge.pulls[1].body
    desk.forge.edited_by_person(1, f"Reviewed on Monday.\n\n{body}\nSee the wiki.\n")
    desk.edits = (REPLACE, ADD)
    await desk.settle()
    after = desk.forge.pulls[1].body
    assert after.startswith("Reviewed on Monday.")
    assert "See the wiki." in after
    assert "k8sServicePort" in after
    desk.forge.edited_by_person(1, after.replace('"v":1', '"v":2'))
    damaged = desk.forge.pulls[1].body
    desk.edits = (REPLACE,)
    await desk.settle()
    assert desk.forge.pulls[1].body == damaged
    assert desk.remote.show(desk.branch, VALUES) == TEXT.replace("false", "true").strip()


async def test_a_value_that_is_not_what_it_was_pushes_nothing_and_tells_the_open_one(desk: Desktop):
    await desk.run()
    desk.remote.commit({VALUES: TEXT.replace("false", "maybe")})
    for _ in range(2):
        with pytest.raises(SpliceRefused) as error:
            await desk.run()
    assert error.value.reason == "FromMismatch"
    assert error.value.message.startswith(VALUES)
    assert len(desk.git.pushes) == 1
    assert len(desk.forge.said[1]) == 1


async def test_P16_edits_that_fail_half_way_leave_nothing_behind(desk: Desktop):
    desk.edits = (REPLACE, (VALUES, Edit(0, "/no/such/place", "replace", 1, 2)))
    with pytest.raises(SpliceRefused):
        await desk.run()
    assert desk.remote.branches() == ["main"]
    assert desk.forge.pulls == {}
    assert desk.status.pushing == ""


async def test_a_base_that_is_gone_is_named_and_nothing_is_guessed(desk: Desktop):
    desk.remote.git("branch", "-m", "main", "trunk")
    with pytest.raises(BaseMissing, match="the branch main is not there"):
        await desk.run()


async def test_P13_a_lost_reply_of_create_is_looked_up_before_anything_is_sent_again(desk: Desktop):
    def lose(call: str, when: str) -> None:
        if (call, when) == ("create", "after"):
            raise ReplyLost("no answer")

    desk.watch(lose)
    with pytest.raises(ReplyLost):
        await desk.run()
    desk.watch(lambda _call, _when: None)
    await desk.settle()
    assert desk.forge.calls["create"] == 1
    assert len(desk.forge.pulls) == 1


@pytest.mark.parametrize("error", [ForbiddenOrMissing("POST pulls: 403"), RateLimited("slow", retry_after_s=60)])
async def test_P13_a_missing_right_or_a_limit_leaves_a_branch_that_the_next_pass_goes_on_from(
    desk: Desktop, error: Exception
):
    def refuse(call: str, when: str) -> None:
        if (call, when) == ("create", "before"):
            raise error

    desk.watch(refuse)
    with pytest.raises(type(error)):
        await desk.run()
    desk.watch(lambda _call, _when: None)
    await desk.settle()
    assert len(desk.git.pushes) == 1
    assert len(desk.forge.open()) == 1


async def test_P12_one_that_exists_already_is_adopted(desk: Desktop):
    await desk.run()
    desk.status = replace(desk.status, number=0, url="")
    await desk.settle()
    assert desk.forge.calls["create"] == 1
    assert desk.status.number == 1


async def test_P08_the_same_base_with_other_edits_is_another_change(desk: Desktop):
    await desk.run()
    first = desk.status.content
    desk.edits = (REPLACE, ADD)
    await desk.settle()
    assert desk.status.content != first
    assert "k8sServicePort: 7445" in desk.remote.show(desk.branch, VALUES)
    # The branch that somebody moved back to our older commit is built again: what counts is what it holds.
    desk.remote.git("update-ref", f"refs/heads/{desk.branch}", desk.git.pushes[0].commit)
    desk.status = replace(desk.status, head=desk.git.pushes[0].commit)
    await desk.settle()
    assert "k8sServicePort: 7445" in desk.remote.show(desk.branch, VALUES)


async def test_P07_two_managers_at_once_end_with_one_pull_request(desk: Desktop):
    other = replace(
        desk, git=type(desk.git)(), written=[], status=Remembered(), clones=None, folder=desk.folder / "other"
    )
    other.operation = desk.operation

    def second(_request: object) -> None:
        desk.git.between = lambda _: None
        other_request = _request
        desk.remote.git(
            "fetch", str(other_request.remote.repository), f"{other_request.commit}:refs/heads/{desk.branch}"
        )  # type: ignore[attr-defined]

    desk.git.between = second
    with pytest.raises(LeaseLost):
        await desk.run()
    await desk.settle()
    await other.settle()
    assert len(desk.forge.open()) == 1
    assert desk.commits_of(desk.branch) == 1
    assert not any(ref.startswith("refs/notes") for ref in desk.remote.refs())


async def test_labels_that_cannot_be_set_are_a_warning_only(desk: Desktop):
    desk.forge.labels_allowed = False
    outcome = await desk.run()
    assert "label" in outcome.warning
    assert outcome.decision.reason == "Open"

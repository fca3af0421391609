"""Merges on a real Gitea, and what the trust policy makes of them (forges.md, sections 11 and 13; acceptance checks 11 and 12)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cli.main import run
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.local.gitea import BOT
from gitops_ctl.source.forge_reviews import Reading
from gitops_ctl.source.reviewing import Reviewed
from gitops_ctl.trust.chain import RefusedCommit
from gitops_ctl.trust.kindverbs import ROLLOUT
from tests.support.forge_merges import (
    APPROVER,
    AUTHOR,
    SECOND,
    STRANGER,
    OnForge,
    instance_key,
    on_forge,
    people_of,
)
from tests.support.gitea import GiteaHandle
from tests.support.trust import POLICY_PATH, Team, config_map
from tests.support.trust_rollouts import rollout

pytestmark = pytest.mark.peers

A, B, R = "clusters/a.yaml", "clusters/b.yaml", "clusters/r.yaml"
PLAN, APPROVED = rollout(plan={"image": "17.12"}), rollout(plan={"image": "17.12"}, approval={"planHash": "x"})


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("forge-keys"))


@pytest.fixture
async def forge(gitea: GiteaHandle, team: Team, tmp_path: Path) -> AsyncIterator[OnForge]:
    async with on_forge(gitea, team, tmp_path) as made:
        yield made


def refused(found: Reviewed) -> RefusedCommit:
    verdict = found.judged.verdict
    assert verdict.refused is not None
    assert not verdict.pending, verdict.message
    return verdict.refused


def proposal(forge: OnForge, text: str = "", *, path: str = A) -> tuple[str, int]:
    """The proposer's commit on its branch and its pull request: (head, number)."""
    head = forge.commit({path: text or config_map("a", x="proposed")}, by="robot", branch="robot")
    return head, forge.open("robot")


async def test_a_clean_merge_of_commits_that_persons_signed_needs_no_review(forge: OnForge) -> None:
    forge.commit({A: config_map("a")}, by=AUTHOR, branch="topic")
    merge = forge.merge(forge.open("topic", user=AUTHOR))
    found = await forge.judge()
    assert (found.judged.verdict.accepted, found.readings) == (merge, ())


async def test_X16_a_merge_of_proposed_changes_needs_a_review_of_exactly_its_head(forge: OnForge) -> None:
    head, number = proposal(forge)
    merge = forge.merge(number)
    assert merge != head
    lacking = refused(await forge.judge())
    assert (lacking.commit, lacking.reason) == (head, "PathNotAuthorised")
    assert f"1 approving reviews by persons of {head} are needed, counted are 0 (nobody)" in lacking.message
    assert f"approve pull request {number} at exactly {head}" in lacking.hint
    forge.take_back()
    again = forge.open("robot")
    forge.approve(again, AUTHOR)
    merge = forge.merge(again)
    found = await forge.judge()
    assert found.judged.verdict.accepted == merge
    assert people_of(found) == [AUTHOR]
    (reading,) = found.readings
    assert (reading.evidence.head, reading.evidence.number, reading.forge) == (head, again, "gitea")


async def test_an_approval_of_an_older_head_is_not_counted(forge: OnForge) -> None:
    old, number = proposal(forge)
    forge.approve(number, AUTHOR)
    head = forge.commit({A: config_map("a", x="worse")}, by="robot", branch="robot")
    forge.merge(number)
    found = refused(await forge.judge())
    assert f"of {head} are needed, counted are 0" in found.message
    # Gitea itself calls it stale; either way it is not a review of what was merged.
    assert f"{AUTHOR}#{forge.gitea.account_id(AUTHOR)}: " in found.message
    assert old != head


async def test_an_account_that_maps_to_nobody_is_not_counted(forge: OnForge) -> None:
    _, number = proposal(forge)
    forge.approve(number, STRANGER)
    forge.merge(number)
    found = refused(await forge.judge())
    assert f"{STRANGER}#{forge.gitea.account_id(STRANGER)}: is nobody's account in the policy" in found.message


async def test_two_accounts_of_one_person_count_once(gitea: GiteaHandle, team: Team, tmp_path: Path) -> None:
    async with on_forge(gitea, team, tmp_path, requireReviews=2) as forge:
        forge.commit({R: PLAN}, by=AUTHOR)
        _, number = proposal(forge, APPROVED, path=R)
        forge.approve(number, APPROVER, SECOND)
        forge.merge(number)
        found = refused(await forge.judge())
        assert f"counted are 1 ({APPROVER})" in found.message
        forge.take_back()
        again = forge.open("robot")
        forge.approve(again, APPROVER, AUTHOR)
        merge = forge.merge(again)
        assert (await forge.judge()).judged.verdict.accepted == merge


async def test_the_author_of_the_plan_does_not_approve_it_by_a_review(forge: OnForge) -> None:
    forge.commit({R: PLAN}, by=AUTHOR)
    _, number = proposal(forge, APPROVED, path=R)
    forge.approve(number, AUTHOR)
    forge.merge(number)
    found = refused(await forge.judge())
    assert (found.verb, found.reason) == ("approve", "PathNotAuthorised")
    assert f"{AUTHOR} introduced what it authorises" in found.message
    forge.take_back()
    again = forge.open("robot")
    forge.approve(again, AUTHOR, SECOND, APPROVER)
    merge = forge.merge(again)
    accepted = await forge.judge()
    assert accepted.judged.verdict.accepted == merge
    answers = forge.answers(accepted)
    approval = answers.of(ObjectId(ROLLOUT.group, ROLLOUT.kind, "demo", "r"), "/spec/approval")
    assert approval is not None
    assert (approval.person, approval.judged) == (APPROVER, (AUTHOR, APPROVER))


async def test_a_dismissed_approval_does_not_count_and_what_counted_once_counts_again_without_the_forge(
    forge: OnForge,
) -> None:
    _, number = proposal(forge)
    forge.approve(number, AUTHOR)
    (review,) = forge.repo.api("GET", f"/pulls/{number}/reviews").body
    said = forge.repo.api("POST", f"/pulls/{number}/reviews/{review['id']}/dismissals", {"message": "no"})
    assert said.status == 200, said
    forge.merge(number)
    assert "does not approve, or was dismissed" in refused(await forge.judge()).message
    forge.take_back()
    again = forge.open("robot")
    forge.approve(again, AUTHOR)
    merge = forge.merge(again)
    accepted = await forge.judge()
    assert accepted.judged.verdict.accepted == merge
    forge.story.accepted = None  # judged again from the root, with what was kept and without the forge
    kept = await forge.judge(read=_never, reviews=accepted.request.reviews)
    assert kept.judged.verdict.accepted == merge


async def _never(merge: str) -> Reading:
    raise Unavailable(f"nobody is asked about {merge}")


async def test_a_verb_outside_of_allow_verbs_is_refused(gitea: GiteaHandle, team: Team, tmp_path: Path) -> None:
    async with on_forge(gitea, team, tmp_path, allowVerbs=[]) as forge:
        forge.commit({R: PLAN}, by=AUTHOR)
        _, number = proposal(forge, APPROVED, path=R)
        forge.approve(number, APPROVER)
        forge.merge(number)
        found = refused(await forge.judge())
        assert (found.verb, found.rule) == ("approve", "merges.allowVerbs")


@pytest.mark.parametrize("how", ["squash", "rebase"])
async def test_a_squash_or_a_rebase_by_the_forge_is_refused_with_the_hint(forge: OnForge, how: str) -> None:
    forge.commit({B: config_map("b")}, by=AUTHOR, branch="topic")
    number = forge.open("topic", user=AUTHOR)
    forge.commit({A: config_map("a")}, by=AUTHOR)  # main moves, so that a rebase makes new commits
    tip = forge.merge(number, how=how)
    found = refused(await forge.judge())
    assert (found.commit, found.reason) == (tip, "PathNotAuthorised")
    assert "use merge commits" in found.hint


async def test_an_edit_in_the_browser_is_refused_unsigned_as_well_as_signed_by_the_forge(
    forge: OnForge, tmp_path: Path
) -> None:
    content = {"content": "eDogMQo=", "message": "by the browser", "branch": "main"}
    said = forge.repo.api("POST", "/contents/clusters/web.yaml", content)
    assert said.status == 201, said
    forge.pull()
    found = refused(await forge.judge())
    assert (found.commit, found.reason) == (forge.story.repo.head("main"), "Unsigned")
    forge.take_back()
    signed = forge.story.repo.commit(
        {"clusters/web.yaml": "x: 1\n"}, signer=instance_key(forge.gitea, tmp_path), message="by the browser"
    )
    forge.push()
    found = refused(await forge.judge())
    assert (found.commit, found.reason) == (signed, "PathNotAuthorised")
    assert "use merge commits" in found.hint


async def test_X16_the_forges_own_key_on_a_merge_with_an_extra_change_is_refused(
    forge: OnForge, tmp_path: Path
) -> None:
    key = instance_key(forge.gitea, tmp_path)
    forge.commit({B: config_map("b")}, by=AUTHOR, branch="topic")
    forge.story.repo.git("checkout", "--quiet", "main")
    forge.story.repo.merge("topic", signer=key, resolve={"clusters/evil.yaml": config_map("evil")})
    forge.push()
    found = refused(await forge.judge())
    assert "the forge's key signed a merge that is not clean; it differs in clusters/evil.yaml" in found.message


async def test_without_an_instance_key_a_web_merge_is_refused_with_the_hint(
    gitea_unsigned: GiteaHandle, team: Team, tmp_path: Path
) -> None:
    async with on_forge(gitea_unsigned, team, tmp_path, forgeKeys=[]) as forge:
        forge.commit({A: config_map("a")}, by=AUTHOR, branch="topic")
        merge = forge.merge(forge.open("topic", user=AUTHOR))
        found = refused(await forge.judge())
        assert (found.commit, found.reason) == (merge, "Unsigned")
        assert "let the forge sign its merges and list its key in merges.forgeKeys" in found.hint


async def test_a_forge_that_is_down_is_waited_for(forge: OnForge) -> None:
    _, number = proposal(forge)
    forge.approve(number, AUTHOR)
    merge = forge.merge(number)
    down = await forge.judge(read=_never)
    assert (down.judged.verdict.verdict, down.judged.verdict.pending) == ("NeedsForgeReviews", True)
    assert "nobody is asked about" in down.judged.verdict.message
    assert down.judged.verdict.accepted == forge.story.root.commit
    assert (await forge.judge()).judged.verdict.accepted == merge


async def test_offline_verify_says_what_the_reviews_would_have_to_satisfy(
    forge: OnForge, capsys: pytest.CaptureFixture[str]
) -> None:
    head, number = proposal(forge)
    forge.approve(number, AUTHOR)
    forge.merge(number)
    assert run(["verify", f"{forge.story.root.commit}..HEAD", "-C", str(forge.story.repo.path), "-o", "json"]) == 1
    told: Any = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "NeedsForgeReviews"
    assert f"needs forge reviews: 1 approving reviews by persons of {head}" in told["commits"][0]["refusal"]["message"]


async def test_a_proposal_merged_by_a_persons_signed_merge_is_that_persons(forge: OnForge, team: Team) -> None:
    forge.commit({R: PLAN}, by=AUTHOR)
    proposal(forge, APPROVED, path=R)
    forge.story.repo.git("checkout", "--quiet", "main")
    merge = forge.story.repo.merge("robot", signer=team[APPROVER])
    forge.push()
    found = await forge.judge()
    assert (found.judged.verdict.accepted, found.readings) == (merge, ())
    approval = forge.answers(found).of(ObjectId(ROLLOUT.group, ROLLOUT.kind, "demo", "r"), "/spec/approval")
    assert approval is not None
    assert approval.person == APPROVER


async def test_a_proposal_squashed_by_a_person_is_that_persons_own_commit(forge: OnForge, team: Team) -> None:
    proposal(forge)
    forge.story.repo.git("checkout", "--quiet", "main")
    forge.story.repo.git("merge", "--quiet", "--squash", "robot")
    squash = forge.story.repo.commit(signer=team[AUTHOR])
    forge.push()
    assert (await forge.judge()).judged.verdict.accepted == squash


async def test_a_proposal_that_is_fast_forwarded_is_refused_with_the_hint(forge: OnForge) -> None:
    head, number = proposal(forge)
    forge.approve(number, AUTHOR)
    assert forge.merge(number, how="fast-forward-only") == head
    found = refused(await forge.judge())
    assert (found.commit, found.reason, found.hint) == (head, "PathNotAuthorised", "merge it, don't fast-forward")


async def test_a_proposal_outside_of_its_paths_is_refused_whoever_merges_it(forge: OnForge, team: Team) -> None:
    outside, number = proposal(forge, "x: 1\n", path="other/x.yaml")
    forge.approve(number, AUTHOR)
    forge.merge(number)
    found = refused(await forge.judge())
    assert (found.commit, found.reason) == (outside, "PathNotAuthorised")
    assert "may not propose a change of other/x.yaml" in found.message


async def test_the_bot_reviews_nothing(forge: OnForge) -> None:
    forge.commit({A: config_map("a")}, by="robot", branch="robot")
    number = forge.open("robot", user=AUTHOR)
    forge.approve(number, BOT)
    forge.merge(number)
    assert "is nobody's account in the policy" in refused(await forge.judge()).message
    assert POLICY_PATH in forge.story.repo.git("ls-tree", "-r", "--name-only", "main")

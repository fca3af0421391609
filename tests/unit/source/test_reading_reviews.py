"""How reviews of a forge's merge are read, kept and asked for again (gitops.md, sections 4.5 and 4.6; forges.md, section 11.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from gitops_ctl.api.gitops import parse_git_source
from gitops_ctl.core.errors import BlockedError, NotFound, Unavailable
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.forge.errors import RepositoryUnavailable
from gitops_ctl.forge.neutral import Account, Base, Head, PullRequest, Repository, Review
from gitops_ctl.forge.neutral import Review as ForgeReview
from gitops_ctl.git.fetching import RemoteTip
from gitops_ctl.source.acceptance import judged_facts, range_request
from gitops_ctl.source.durable import EVIDENCE_KEPT, REVIEWERS_KEPT, acceptance_of, evidence_of, evidence_tree
from gitops_ctl.source.forge_reviews import Reading, read_reviews, reader_of
from gitops_ctl.source.judging import Judged
from gitops_ctl.source.model import Facts
from gitops_ctl.source.plan import RETRY_CAP_S, reviews_retry_s
from gitops_ctl.source.reviewing import MERGES_PER_PASS, judge_reviewed
from gitops_ctl.source.summarise import status_of
from gitops_ctl.trust.chain import RangeRequest, RefusedCommit
from gitops_ctl.trust.reviews import Review as TrustReview
from gitops_ctl.trust.reviews import ReviewEvidence
from tests.unit.source.test_acceptance import BEFORE, NEW, NOW, OLD, REQUEST, ROOT, VERDICT

HEAD, MERGE = "e" * 40, NEW


@dataclass
class Forge:
    """The three calls that reading makes."""

    name: str = "gitea"
    merge_sha: str = MERGE
    said: tuple[ForgeReview, ...] = ()
    calls: list[str] = field(default_factory=list)
    repository: str = "1"

    async def repo(self) -> Repository:
        self.calls.append("repo")
        return Repository("1", "net/fabric", "main", "https://git.example.net/net/fabric.git")

    async def pr_of_merge(self, sha: str) -> PullRequest | None:
        self.calls.append(f"pr_of_merge {sha}")
        if not self.merge_sha:
            return None
        who, head, base = Account("ann", 1), Head("1", "robot", HEAD), Base("main", OLD, self.repository)
        return PullRequest(
            7, "https://forge.example.net/7", "merged", "t", "", head, base, who, NOW, NOW, merge_sha=self.merge_sha
        )

    async def reviews(self, pr: PullRequest) -> tuple[ForgeReview, ...]:
        self.calls.append(f"reviews {pr.number}")
        return self.said


def said(login: str, state: Any = "approved", *, minutes: int = 0, **members: Any) -> ForgeReview:
    return Review(Account(login, 17), state, HEAD, NOW + timedelta(minutes=minutes), **members)


async def read(forge: Any) -> Reading:
    return await read_reviews(forge, merge=MERGE, now=NOW)


async def test_a_reading_is_three_calls_and_names_the_head_that_was_merged() -> None:
    forge = Forge(said=(said("ann"),))
    found = await read(forge)
    assert forge.calls == ["repo", f"pr_of_merge {MERGE}", "reviews 7"]
    assert (found.forge, found.read_at, found.evidence.head, found.evidence.number) == ("gitea", NOW, HEAD, 7)
    assert found.evidence.reviews == (TrustReview("ann", 17, HEAD, True, NOW),)


async def test_reviews_of_another_repository_that_the_forge_redirects_to_are_no_evidence() -> None:
    forge = Forge(said=(said("ann"),), repository="2")
    with pytest.raises(RepositoryUnavailable, match="pull request 7 of repository 2"):
        await read(forge)
    assert forge.calls == ["repo", f"pr_of_merge {MERGE}"]


async def test_comments_and_unfinished_reviews_decide_nothing() -> None:
    forge = Forge(said=(said("ann"), said("ann", "commented", minutes=1), said("ann", "pending", minutes=2)))
    assert [review.approves for review in (await read(forge)).evidence.reviews] == [True]


@pytest.mark.parametrize(
    "review",
    [said("ann", "changes_requested"), said("ann", "dismissed"), said("ann", dismissed=True), said("ann", stale=True)],
)
async def test_a_rejection_and_a_dismissed_or_stale_approval_do_not_approve(review: ForgeReview) -> None:
    assert [each.approves for each in (await read(Forge(said=(review,)))).evidence.reviews] == [False]


@pytest.mark.parametrize("merge_sha", ["", "f" * 40])
async def test_a_forge_that_does_not_know_the_pull_request_has_said_nothing(merge_sha: str) -> None:
    with pytest.raises(NotFound, match="knows no pull request whose merge made"):
        await read(Forge(merge_sha=merge_sha))


def source(*, status: JsonObject | None = None, **forge: object) -> Any:
    spec = {
        "url": REQUEST.url,
        "ref": {"branch": "main"},
        "trust": {"root": {"commit": ROOT, "policyDigest": "sha256:" + "0" * 64}},
    }
    metadata = {"name": "network", "namespace": "tenant"}
    tree = {"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": "GitSource", "metadata": metadata}
    whole: Any = {**tree, "spec": {**spec, **({"forge": forge} if forge else {})}, "status": status or {}}
    return parse_git_source(whole)


@pytest.mark.parametrize(
    "wanted", [source(), source(provider="plain", baseURL="https://git.example.net", project="net/fabric")]
)
async def test_a_source_without_a_forge_says_how_reviews_could_be_read(wanted: Any) -> None:
    nobody: Any = None

    class Clock:
        def wall(self) -> datetime:
            return NOW

    clock: Any = Clock()
    with pytest.raises(BlockedError, match="names no forge") as caught:
        await reader_of(nobody, http=nobody, clock=clock)(wanted)(MERGE)
    assert "spec.forge" in caught.value.hint


def asked(*merges: str) -> Any:
    """A judge that asks for the reviews of each of these merges in turn."""
    seen: list[Mapping[str, ReviewEvidence]] = []

    async def judge(request: RangeRequest) -> Judged:
        seen.append(request.reviews)
        missing = next((merge for merge in merges if merge not in request.reviews), "")
        if not missing:
            return Judged(VERDICT, tree="c" * 40)
        refused = RefusedCommit(HEAD, "NeedsForgeReviews", "", "", "", "h", "needs forge reviews", missing, HEAD)
        verdict = replace(
            VERDICT, verdict="NeedsForgeReviews", pending=True, refused=refused, message=refused.message, accepted=OLD
        )
        return Judged(verdict)

    return judge, seen


async def reading(merge: str) -> Reading:
    return Reading(ReviewEvidence(merge, HEAD, (TrustReview("ann", 17, HEAD, True, NOW),), 7), "gitea", NOW)


async def test_the_judge_is_asked_again_with_what_was_read() -> None:
    judge, seen = asked("1" * 40, "2" * 40)
    found = await judge_reviewed(REQUEST, judge=judge, read=reading)
    assert found.judged.verdict.verdict == "Accepted"
    assert [len(reviews) for reviews in seen] == [0, 1, 2]
    assert [each.evidence.merge for each in found.readings] == ["1" * 40, "2" * 40]


async def test_one_pass_reads_a_bounded_number_of_merges() -> None:
    judge, seen = asked(*(f"{number:040x}" for number in range(MERGES_PER_PASS + 5)))
    found = await judge_reviewed(REQUEST, judge=judge, read=reading)
    assert (found.judged.verdict.pending, len(found.readings), len(seen)) == (
        True,
        MERGES_PER_PASS,
        MERGES_PER_PASS + 1,
    )


async def test_a_forge_that_is_down_is_no_refusal_and_its_answer_is_told() -> None:
    async def down(_merge: str) -> Reading:
        raise Unavailable("no answer from the forge")

    judge, _ = asked(MERGE)
    found = await judge_reviewed(REQUEST, judge=judge, read=down)
    assert (found.judged.verdict.verdict, found.judged.verdict.pending) == ("NeedsForgeReviews", True)
    facts = judged_facts(Facts(trusted=True, accepted=BEFORE), judged=found.judged, request=found.request)
    status: Any = status_of(facts, previous={}, generation=1, interval_s=60, now=NOW)
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert "the forge was asked: no answer from the forge" in ready["message"]
    assert "rejected" not in status
    assert status["accepted"]["revision"] == OLD


async def test_what_a_forge_said_in_the_last_pass_stands_while_it_is_down() -> None:
    async def down(_merge: str) -> Reading:
        raise Unavailable("no answer from the forge")

    judge, seen = asked(MERGE)
    found = await judge_reviewed(REQUEST, judge=judge, read=down, known={MERGE: await reading(MERGE)})
    assert (found.judged.verdict.verdict, found.failure) == ("Accepted", None)
    assert list(seen[-1]) == [MERGE]


def test_a_forge_that_stays_down_is_asked_ever_more_rarely_and_its_wish_is_honoured() -> None:
    waits = [reviews_retry_s(number, draw=0.99) for number in range(1, 9)]
    assert waits == sorted(waits)
    assert waits[0] < 16
    assert waits[-1] <= RETRY_CAP_S
    assert reviews_retry_s(1, draw=0.0, retry_after_s=900.0) == 900.0


def accepted(readings: tuple[Reading, ...], counted: Mapping[str, Any], stored: tuple[JsonObject, ...] = ()) -> Any:
    before = replace(BEFORE, reviews=stored)
    digest = f"sha256:{'0' * 64}"
    verdict = replace(VERDICT, policy_digest=digest, key_set_digest=digest)
    judged = Judged(verdict, tree="c" * 40, counted=counted)
    return judged_facts(Facts(trusted=True, accepted=before), judged=judged, request=REQUEST, readings=readings)


async def test_what_counted_is_stored_with_the_acceptance_and_counts_again_without_the_forge() -> None:
    said_so = await reading(MERGE)
    review = said_so.evidence.reviews[0]
    facts = accepted((said_so,), {MERGE: (("ann", review),)})
    (stored,) = facts.accepted.reviews
    assert stored == {
        "merge": MERGE,
        "head": HEAD,
        "forge": "gitea",
        "number": 7,
        "readAt": "2026-11-30T08:00:00Z",
        "reviewers": [{"person": "ann", "account": "ann#17", "at": "2026-11-30T08:00:00Z"}],
    }
    status = status_of(facts, previous={}, generation=1, interval_s=60, now=NOW)
    wanted = source(status=status)
    again = acceptance_of(wanted.status)
    assert again is not None
    assert evidence_of(again.reviews) == {MERGE: replace(said_so.evidence, reviews=(review,))}
    request = range_request(wanted, facts=facts, tip=RemoteTip(NEW, None), url=REQUEST.url, now=NOW)
    assert (list(request.reviews), list(request.stored_reviews)) == ([MERGE], [MERGE])


async def test_evidence_that_was_read_for_a_refused_merge_is_not_stored() -> None:
    assert accepted((await reading(MERGE),), {}).accepted.reviews == ()


async def test_the_newest_merges_are_kept() -> None:
    old: tuple[JsonObject, ...] = tuple({"merge": f"{number:040x}"} for number in range(EVIDENCE_KEPT))
    facts = accepted((await reading(MERGE),), {MERGE: ()}, old)
    assert len(facts.accepted.reviews) == EVIDENCE_KEPT
    assert facts.accepted.reviews[-1]["merge"] == MERGE
    assert facts.accepted.reviews[0] == old[1]


async def test_a_crowd_of_reviewers_does_not_outgrow_the_status() -> None:
    crowd = [(f"p{number}", TrustReview(f"p{number}", number, HEAD, True, NOW)) for number in range(40)]
    entry: Any = evidence_tree(await reading(MERGE), counted=crowd)
    assert len(entry["reviewers"]) == REVIEWERS_KEPT

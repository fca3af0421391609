"""Reads the reviews of a forge's merge, once, before the merge is accepted (forges.md, section 11.2; gitops.md, section 4.6).

Three calls: the project, which of its pull requests the merge commit came from, and the reviews of that one.  What is read is evidence,
not a verdict: the trust room decides which of it counts.  Nothing is concluded from a forge that cannot be read.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from gitops_ctl.api.gitops import GitSource
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, NotFound
from gitops_ctl.core.http import HttpClient
from gitops_ctl.forge.access import read_authorities, read_forge_token
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.neutral import Review as ForgeReview
from gitops_ctl.forge.project import of_project
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.reviews import Review, ReviewEvidence


@dataclass(frozen=True, slots=True)
class Reading:
    """The evidence about one merge, where it was read, and when."""

    evidence: ReviewEvidence
    forge: str
    read_at: datetime


ReadReviews: TypeAlias = Callable[[str], Awaitable[Reading]]
"""From the id of a forge's merge to its reviews; raises GitopsError when they cannot be read (yet)."""

ReaderOf: TypeAlias = Callable[[GitSource], ReadReviews]
"""The reader of a source."""


def reader_of(client: KubeClient, *, http: HttpClient, clock: Clock) -> ReaderOf:
    """Readers that speak to the forge of the source with the source's own credentials, which are read anew each time."""

    def of(source: GitSource) -> ReadReviews:
        async def read(merge: str) -> Reading:
            adapter = await _adapter(client, source, http=http, clock=clock)
            return await read_reviews(adapter, merge=merge, now=clock.wall())

        return read

    return of


async def _adapter(client: KubeClient, source: GitSource, *, http: HttpClient, clock: Clock) -> ForgeAdapter:
    forge = source.spec.forge
    if forge is None or forge.provider == "plain":
        raise BlockedError(
            "the source names no forge with pull requests, so reviews cannot be read",
            code=ErrorCode.BLOCKED,
            hint="set spec.forge of the GitSource, or merge on a workstation with a signed commit",
        )
    return forge_adapter(
        forge.provider,
        base_url=forge.base_url,
        project=forge.project,
        token=await read_forge_token(client, source=source),
        http=http,
        clock=clock,
        ca=await read_authorities(client, source=source),
    )


async def read_reviews(adapter: ForgeAdapter, *, merge: str, now: datetime) -> Reading:
    """The reviews of the pull request that a merge commit came from.

    Raises:
        RepositoryUnavailable: the project was moved, or the forge answers for another repository.
        NotFound: the forge does not know the pull request (yet).
        GitopsError: the forge cannot be read.
    """
    project = await adapter.repo()
    pull = await adapter.pr_of_merge(merge)
    if pull is None or of_project(pull, project).merge_sha != merge:
        raise NotFound(f"the forge knows no pull request whose merge made {merge}", subject=merge)
    reviews = tuple(_review(each) for each in await adapter.reviews(pull) if _decides(each))
    evidence = ReviewEvidence(merge, pull.head.sha, reviews, number=pull.number)
    return Reading(evidence, adapter.name, now)


def _decides(review: ForgeReview) -> bool:
    return review.state not in ("commented", "pending")


def _review(review: ForgeReview) -> Review:
    approves = review.state == "approved" and not review.stale and not review.dismissed
    return Review(review.user.login, review.user.id, review.commit, approves, review.at)

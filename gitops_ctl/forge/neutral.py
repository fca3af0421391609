"""One model for all forges (forges.md, sections 3 and 11.1).  Pure values; texts in them are foreign: never markup, never paths.

A repository is named by the id that its forge gives it, as text: names change owners, ids do not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

PullState = Literal["open", "merged", "closed"]
ReviewState = Literal["approved", "changes_requested", "commented", "pending", "dismissed"]
StatusState = Literal["pending", "success", "failure", "error"]


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody at the forge.  The number cannot be given to somebody else, the login can; 0 and "" for a deleted account."""

    login: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Repository:
    """The project.

    Attributes:
        can_push: what the token may do, None when the forge does not say.
        clone_url: https address without user info.
    """

    id: str
    full_name: str
    default_branch: str
    clone_url: str
    archived: bool = False
    can_push: bool | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and what the token may do with it; None: the forge does not say without more rights."""

    name: str
    sha: str
    protected: bool = False
    can_push: bool | None = None
    required_approvals: int | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Where the change is.  `repository` is empty for a fork that was deleted."""

    repository: str
    branch: str
    sha: str


@dataclass(frozen=True, slots=True)
class Base:
    """Where the change goes.  `sha` is what the forge compares with, which may lag behind the tip."""

    branch: str
    sha: str
    repository: str = ""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request, or GitLab's merge request.

    Attributes:
        number: as people see it; 0 for plain Git.
        mergeable: None while the forge does not know.
        merge_sha: the commit that the merge made on base; empty unless merged.
        version: optimistic lock on the text, None where the forge has none.
    """

    number: int
    url: str
    state: PullState
    title: str
    body: str
    head: Head
    base: Base
    author: Account
    created: datetime
    updated: datetime
    draft: bool = False
    labels: tuple[str, ...] = ()
    mergeable: bool | None = None
    merge_sha: str = ""
    merged_at: datetime | None = None
    merged_by: Account | None = None
    version: int | None = None

    @property
    def is_fork(self) -> bool:
        """Whether the head is in another repository, or nobody knows in which."""
        return not self.head.repository or self.head.repository != self.base.repository


@dataclass(frozen=True, slots=True)
class Review:
    """One review.

    Attributes:
        commit: the head that was reviewed; empty when the forge does not bind a review to a head: then it counts nowhere.
        stale: the forge says that the head moved on, or the commit is not the present head.
        official: the forge itself would count it; None when it does not say.
    """

    user: Account
    state: ReviewState
    commit: str
    at: datetime
    stale: bool = False
    dismissed: bool = False
    official: bool | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment of the conversation."""

    id: int
    author: Account
    text: str
    updated: datetime


@dataclass(frozen=True, slots=True)
class MergeState:
    """How far a pull request is from being merged.

    Attributes:
        blocked: reasons for people, such as `approvals missing: 1 of 2`; never decided upon.
    """

    state: PullState
    head_sha: str
    base_sha: str
    mergeable: bool | None
    blocked: tuple[str, ...] = ()
    merge_sha: str = ""
    merged_at: datetime | None = None
    merged_by: Account | None = None

    @classmethod
    def of(cls, pr: PullRequest, *, blocked: tuple[str, ...]) -> Self:
        """What a pull request says about its own merge."""
        return cls(
            state=pr.state,
            head_sha=pr.head.sha,
            base_sha=pr.base.sha,
            mergeable=pr.mergeable,
            blocked=blocked,
            merge_sha=pr.merge_sha,
            merged_at=pr.merged_at,
            merged_by=pr.merged_by,
        )


def latest_reviews(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """The latest review of each account, in the order of their times; comments and unfinished reviews change no earlier one."""
    latest: dict[tuple[int, str], Review] = {}
    for review in sorted(reviews, key=lambda each: each.at):
        if review.state not in ("commented", "pending"):
            latest[(review.user.id, review.user.login)] = review
    return tuple(sorted(latest.values(), key=lambda each: each.at))


def approvals(reviews: Iterable[Review], *, head: str) -> tuple[Review, ...]:
    """Reviews that approve exactly `head`: the latest of their account, not stale, not dismissed; the earliest first."""
    return tuple(
        review
        for review in latest_reviews(reviews)
        if review.state == "approved" and review.commit == head and not review.stale and not review.dismissed
    )

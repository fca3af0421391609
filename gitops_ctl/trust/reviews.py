"""Approving reviews at a forge, as evidence for a merge that the forge signed (gitops.md, section 4.6, "Reviews")."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.trust.rulebook import Person, TrustPolicy


@dataclass(frozen=True, slots=True)
class Review:
    """The state of one account's latest review.

    Attributes:
        login, account_id: at the forge; the number is what cannot be given to somebody else.
        head: commit that was reviewed.
        approves: False for a dismissed review, a rejection, or a comment.
    """

    login: str
    account_id: int
    head: str
    approves: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class ReviewEvidence:
    """What the forge said about one merge."""

    merge: str
    head: str
    reviews: tuple[Review, ...]


def reviewers(evidence: ReviewEvidence, *, policy: TrustPolicy, head: str) -> tuple[str, ...]:
    """Persons whose latest review approves exactly the head that was merged, the earliest approval first.

    When the policy names reviewer roles, only persons in one of them count.
    """
    latest: dict[int, Review] = {}
    for review in sorted(evidence.reviews, key=lambda each: each.at):
        latest[review.account_id] = review
    found: dict[str, None] = {}
    for review in sorted(latest.values(), key=lambda each: each.at):
        person = _person_of(review, people=policy.people.values())
        if person is not None and review.approves and review.head == head == evidence.head:
            found[person.name] = None
    roles = policy.merges.reviewer_roles if policy.merges else ()
    return tuple(name for name in found if not roles or policy.holds_role(name, roles))


def _person_of(review: Review, *, people: Iterable[Person]) -> Person | None:
    for person in people:
        for account in person.accounts:
            login, mark, number = account.partition("#")
            if login.lower() == review.login.lower() and (not mark or int(number) == review.account_id):
                return person
    return None

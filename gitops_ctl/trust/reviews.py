"""Approving reviews at a forge, as evidence for a merge that the forge signed (gitops.md, section 4.6; forges.md, section 11.2)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.trust.rulebook import Person, TrustPolicy


@dataclass(frozen=True, slots=True)
class Review:
    """What one account decided.  Comments and unfinished reviews decide nothing and are left out by whoever reads.

    Attributes:
        login, account_id: at the forge; the number is what cannot be given to somebody else, 0 when there is none.
        head: commit that was reviewed; empty when the forge does not bind the review to a head.
        approves: False for a dismissed or stale review and for a rejection.
    """

    login: str
    account_id: int
    head: str
    approves: bool
    at: datetime

    @property
    def account(self) -> str:
        """`login#id`, as a policy may write it."""
        return f"{self.login}#{self.account_id}" if self.account_id else self.login


@dataclass(frozen=True, slots=True)
class ReviewEvidence:
    """What the forge said about one merge.

    Attributes:
        head: that the forge merged; it must be the second parent of the merge.
        number: of the pull request, for people.
    """

    merge: str
    head: str
    reviews: tuple[Review, ...]
    number: int = 0


def reviewers(evidence: ReviewEvidence, *, policy: TrustPolicy, head: str) -> tuple[str, ...]:
    """Persons whose latest review approves exactly the head that was merged, the earliest approval first.

    When the policy names reviewer roles, only persons in one of them count.
    """
    return tuple(dict.fromkeys(name for name, _ in counted(evidence, policy=policy, head=head)))


def counted(evidence: ReviewEvidence, *, policy: TrustPolicy, head: str) -> Iterator[tuple[str, Review]]:
    """(person, review) of each review that counts, the earliest first; a person with two accounts comes twice."""
    for review in _latest(evidence.reviews):
        person = _person_of(review, people=policy.people.values())
        if person is not None and not _why_not(review, person, evidence=evidence, policy=policy, head=head):
            yield person.name, review


def uncounted(evidence: ReviewEvidence, *, policy: TrustPolicy, head: str) -> tuple[str, ...]:
    """`account: reason` of each account whose latest review does not count, for people."""
    found = []
    for review in _latest(evidence.reviews):
        person = _person_of(review, people=policy.people.values())
        reason = _why_not(review, person, evidence=evidence, policy=policy, head=head)
        found += [f"{review.account}: {reason}"] if reason else []
    return tuple(found)


def _why_not(review: Review, person: Person | None, *, evidence: ReviewEvidence, policy: TrustPolicy, head: str) -> str:
    """Why a review does not count; empty when it does."""
    if not review.approves:
        return "does not approve, or was dismissed"
    if not review.head:
        return "the forge does not bind it to a head"
    if not review.head == head == evidence.head:
        return f"is about {review.head}"
    if person is None:
        return "is nobody's account in the policy"
    roles = policy.merges.reviewer_roles if policy.merges else ()
    if roles and not policy.holds_role(person.name, roles):
        return f"{person.name} is in none of {', '.join(roles)}"
    return ""


def _latest(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """The latest review of each account, by time."""
    latest: dict[tuple[int, str], Review] = {}
    for review in sorted(reviews, key=lambda each: each.at):
        latest[(review.account_id, "" if review.account_id else review.login.lower())] = review
    return tuple(sorted(latest.values(), key=lambda each: each.at))


def _person_of(review: Review, *, people: Iterable[Person]) -> Person | None:
    for person in people:
        for account in person.accounts:
            login, mark, number = account.partition("#")
            if login.lower() == review.login.lower() and (not mark or int(number) == review.account_id):
                return person
    return None

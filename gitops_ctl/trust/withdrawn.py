"""Whether who stood behind an older commit was revoked since (gitops.md, 4.4; rollouts.md, 2.6).

What was taken up by a controller stands although the commit lies at or below a root that was pinned later, where nobody judges it any more.
Only a revocation ends it, and the newest policy says so.
"""

from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.bounded import Bounded
from gitops_ctl.trust.lockout import people_with_a_key
from gitops_ctl.trust.policies import Policies
from gitops_ctl.trust.rulebook import TrustPolicy
from gitops_ctl.trust.signers import Sight, signer_of
from gitops_ctl.trust.verdict import CommitRefused

_POLICIES = 4


@dataclass(frozen=True, slots=True)
class TakenUp:
    """What a controller took up, as its own record says.

    Attributes:
        at: when, by its own clock: it had seen the commit by then.
    """

    commit: str
    person: str
    at: datetime


def is_withdrawn(store: ObjectStore, taken: TakenUp, *, tip: str, policy_path: str) -> bool:
    """Whether the policy at `tip` revokes the key that signed the commit, from a moment or commit that covers it.

    A commit that is not in the store any more cannot be looked at: then a person counts as revoked who has keys in the policy and none
    that counts.
    """
    policies = Policies(store, path=policy_path, cache=Bounded(_POLICIES))
    try:
        newest = policies.at(tip)
    except GitopsError:
        return False  # a tip without a policy has no effects: that is said elsewhere
    if not newest.revoked:
        return False
    if not taken.commit or not store.contains(taken.commit):
        return taken.person in newest.people and taken.person not in people_with_a_key(newest, now=taken.at)
    return _is_revoked(store, taken, policies=policies, newest=newest)


def _is_revoked(store: ObjectStore, taken: TakenUp, *, policies: Policies, newest: TrustPolicy) -> bool:
    raw = store.commit(taken.commit)
    try:
        signer_of(
            store,
            raw,
            policy=_of_its_time(policies, raw.parents, newest),
            revoked=newest.revoked,
            sight=Sight(taken.at, taken.at),
        )
    except CommitRefused as error:
        return error.code is ErrorCode.REVOKED_SIGNER
    return False


def _of_its_time(policies: Policies, parents: tuple[str, ...], newest: TrustPolicy) -> TrustPolicy:
    """The policy by which the commit was judged: that of its first parent; the newest where it cannot be read any more."""
    try:
        return policies.at(parents[0]) if parents else newest
    except GitopsError:
        return newest

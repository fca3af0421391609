"""Who signed an object, by one policy: signature, validity, revocation, committer (gitops.md, section 4.3, steps 2 to 4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound
from gitops_ctl.git.history import is_ancestor
from gitops_ctl.git.objects import RawCommit, RawTag
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.keys import OwnerKind
from gitops_ctl.trust.rulebook import Revocation, TrustPolicy
from gitops_ctl.trust.signature import SignatureRefused, Signer, verify_signature
from gitops_ctl.trust.verdict import CommitRefused, Where
from gitops_ctl.trust.verifiers import VERIFIERS


@dataclass(frozen=True, slots=True)
class Sight:
    """The moments by which an object is judged; both are our own.

    Attributes:
        at: first sight of the object.
        now: the present moment.
    """

    at: datetime
    now: datetime


def signer_of(
    store: ObjectStore,
    found: RawCommit | RawTag,
    *,
    policy: TrustPolicy,
    revoked: Iterable[Revocation],
    sight: Sight,
) -> Signer:
    """The signer of a commit or tag object.

    Args:
        store: only for the ancestry that a revocation asks about.
        found: the object.
        policy: whose keys count.
        revoked: entries in force, those of the policy and newer ones.
        sight: moments of the judgement.

    Raises:
        CommitRefused: the code is the verdict.
    """
    what = "tag object" if isinstance(found, RawTag) else "commit"
    if found.signature is None:
        raise CommitRefused(f"the {what} has no signature", code=ErrorCode.UNSIGNED, commit=found.id)
    try:
        signer = verify_signature(
            found.payload,
            signature=found.signature,
            keys=policy.keys,
            at=sight.at,
            now=sight.now,
            verifiers=VERIFIERS,
        )
    except SignatureRefused as error:
        where = Where(key_seen=error.key_seen)
        raise CommitRefused(error.message, code=error.code, commit=found.id, hint=error.hint, where=where) from error
    _require_not_revoked(store, found, signer=signer, revoked=(*policy.revoked, *revoked), at=sight.at)
    _require_committer(found, signer=signer, policy=policy)
    return signer


def _require_not_revoked(
    store: ObjectStore, found: RawCommit | RawTag, *, signer: Signer, revoked: Iterable[Revocation], at: datetime
) -> None:
    for entry in revoked:
        if entry.fingerprint not in signer.fingerprints:
            continue
        if entry.time is not None and at < entry.time:
            continue
        # A tag object has no place in the history: it can be made later, on any commit.
        if entry.commit is not None and isinstance(found, RawCommit) and _is_before(store, found.id, entry.commit):
            continue
        since = entry.commit or (to_rfc3339(entry.time) if entry.time else "")
        raise CommitRefused(
            f"the trust policy distrusts the key of {signer.key.owner} from {since} on",
            code=ErrorCode.REVOKED_SIGNER,
            commit=found.id,
            hint="" if entry.time is None else f"it was first seen at {to_rfc3339(at)}; sign it again with another key",
            where=_where(signer),
        )


def _is_before(store: ObjectStore, commit: str, limit: str) -> bool:
    """Whether the commit is an ancestor of the limit, and not the limit itself; not, when that cannot be told."""
    if commit == limit or not store.contains(limit):
        return False
    try:
        return is_ancestor(store, commit, limit)
    except NotFound:
        return False


def _require_committer(found: RawCommit | RawTag, *, signer: Signer, policy: TrustPolicy) -> None:
    if signer.key.owner.kind is not OwnerKind.PERSON:
        return
    person = policy.people[signer.key.owner.name]
    email = found.tagger_email if isinstance(found, RawTag) else found.committer_email
    if person.emails and email.lower() not in person.emails:
        raise CommitRefused(
            f"{person.name} signed it, but the committer is {email}; "
            f"the policy lists {', '.join(sorted(person.emails))}",
            code=ErrorCode.COMMITTER_MISMATCH,
            commit=found.id,
            where=_where(signer),
        )


def _where(signer: Signer) -> Where:
    return Where(person=str(signer.key.owner), key_seen=f"{signer.key_type} {signer.fingerprint}")

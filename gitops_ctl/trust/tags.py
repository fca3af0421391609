"""The annotated tag object of a source that follows a tag (gitops.md, section 4.3; faults X03, X08)."""

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.authority import View, authorise_merge
from gitops_ctl.trust.judge import Scope
from gitops_ctl.trust.keys import OwnerKind
from gitops_ctl.trust.rulebook import TrustPolicy
from gitops_ctl.trust.signers import Sight, signer_of
from gitops_ctl.trust.verdict import CommitRefused, refusal_from


def judge_tag(store: ObjectStore, *, tag: str | None, ref: str, tip: str, policy: TrustPolicy, scope: Scope) -> None:
    """Require that an entitled person signed the tag, for this name and this commit.

    A tag object is judged at the present moment, until it is accepted: it can be made anew on an old commit, so the first
    sight of its commit proves nothing about it (fault X07).

    Args:
        store: the objects.
        tag: the tag object; None for a lightweight tag.
        ref: `refs/tags/<name>`.
        tip: the commit that the ref leads to.
        policy: at the last accepted commit.
        scope: moments and revocations.

    Raises:
        CommitRefused: the code is the verdict; the object judged is the tag.
    """
    name = ref.removeprefix("refs/tags/")
    if tag is None:
        raise CommitRefused(
            f"{name} is a lightweight tag; an annotated, signed one is needed",
            code=ErrorCode.UNSIGNED,
            commit=tip,
            hint=f"git tag --force --sign {name} {tip}, and push it",
        )
    try:
        found = store.tag(tag)
    except GitopsError as error:
        raise refusal_from(error, commit=tag) from error
    if found.name != name or found.target != tip or found.target_kind != "commit":
        raise CommitRefused(
            f"the tag object names {found.name!r} and the {found.target_kind} {found.target}, "
            f"the ref is {name!r} and leads to {tip}",
            code=ErrorCode.MALFORMED_OBJECT,
            commit=tag,
        )
    sight = Sight(at=scope.now, now=scope.now)
    signer = signer_of(store, found, policy=policy, revoked=scope.revoked, sight=sight)
    if signer.key.owner.kind is not OwnerKind.PERSON:
        raise CommitRefused(
            f"the tag is signed by {signer.key.owner}; a person with the verb merge is needed",
            code=ErrorCode.PATH_NOT_AUTHORISED,
            commit=tag,
        )
    authorise_merge(view=View(policy, (signer.key.owner.name,)), commit=tag)

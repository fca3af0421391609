"""What is asked about a range of commits, and what is answered (gitops.md, section 4.5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.trust.firstseen import FirstSeen
from gitops_ctl.trust.reviews import ReviewEvidence


@dataclass(frozen=True, slots=True)
class Root:
    """The pinned start, given by the operator out of band."""

    commit: str
    policy_digest: str


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """What is asked, with everything that decides about it.

    Attributes:
        url, ref: for messages; `ref` is `refs/heads/…` or `refs/tags/…`, or a short branch name.
        root: the pinned start.
        accepted: L, None when nothing was accepted under this root yet.
        tip: T, a commit.
        tag: id of the tag object when the source follows a tag; None for a branch, and for a lightweight tag.
        limit: commits to judge in this call.
        accepted_root, accepted_key_set_digest, accepted_verifier_version: from the status, under which L was judged; None
            takes the present ones.
        accepted_tag: the tag object that was accepted with L.
        reviews: merge commit to what the forge said.
        stored_reviews: merges whose evidence was stored with an earlier acceptance.
    """

    url: str
    ref: str
    root: Root
    accepted: str | None
    tip: str
    first_seen: FirstSeen
    now: datetime
    tag: str | None = None
    policy_path: str = POLICY_PATH
    limit: int = 1000
    accepted_root: str | None = None
    accepted_key_set_digest: str | None = None
    accepted_verifier_version: str | None = None
    accepted_tag: str | None = None
    reviews: Mapping[str, ReviewEvidence] = field(default_factory=dict)
    stored_reviews: frozenset[str] = frozenset()

    @property
    def follows_tag(self) -> bool:
        return self.tag is not None or self.ref.startswith("refs/tags/")


@dataclass(frozen=True, slots=True)
class RefusedCommit:
    """The oldest commit (or the tag object) that stopped the range."""

    commit: str
    reason: str
    path: str
    verb: str
    rule: str
    hint: str
    message: str
    merge: str = ""
    """The forge's merge whose reviews have to be read before anything can be said."""
    head: str = ""


@dataclass(frozen=True, slots=True)
class RangeVerdict:
    """The outcome of one call.

    Attributes:
        accepted: the newest accepted commit of the first-parent line; the request's own when nothing moved.
        verdict: one of the names of gitops.md, section 4.5.
        refused: what stopped it, None when nothing did.
        pending: whether the verdict is no refusal and clears without a new commit.
        judged, remaining: commits of this call, and those still to judge.
        policy_digest: of the policy at `accepted`, which judges the next commit.
        key_set_digest: under which root..accepted was judged; it lags behind the policy while that is judged again.
        effects_allowed: False while root..accepted is judged again, and when that was refused.
        objects_judged: for the status: which objects the verdict is about.
        signer: who stands behind the newest commit that this call accepted; empty when none was.
    """

    accepted: str | None
    verdict: str
    refused: RefusedCommit | None
    pending: bool
    judged: int
    remaining: int
    policy_digest: str
    key_set_digest: str
    objects_judged: str
    effects_allowed: bool = True
    message: str = ""
    signer: str = ""

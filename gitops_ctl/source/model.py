"""What one pass over a source learns (gitops.md, section 4.5).  Values only."""

from dataclasses import dataclass, field
from datetime import datetime

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.firstseen import FirstSeen


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The durable record of an accepted revision; `accepted` in the status.

    Attributes:
        tag: id of the tag object when a tag is followed, else empty.
        policy_digest: of the policy at the revision, which judges the next commit.
        key_set_digest: over fingerprints, roles and revocations in force.
        root: the pinned commit under which it was accepted.
        at: our own time of the acceptance.
        reviews: evidence of merges by a forge, as stored.
    """

    revision: str
    tag: str
    policy_digest: str
    key_set_digest: str
    root: str
    verifier_version: str
    at: datetime
    reviews: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The tip at the last poll, and when it was first observed."""

    revision: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """The oldest refused commit above the accepted revision, or the accepted revision itself."""

    commit: str
    reason: str
    message: str
    path: str = ""
    verb: str = ""
    rule: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the status is computed from.

    Attributes:
        trusted: the spec has a trust root.
        verdict: a word of gitops.md 4.5 about the tip; empty while nothing was judged.
        message: what the verdict says to people.
        pending: the verdict is no refusal; it is tried again each cycle.
        effects_allowed: False when the accepted revision itself is refused.
        error: what ended the pass early.
        stale_since_s: seconds without a successful fetch when that is an alarm, else None.
        old_tip: the age that the spec allows, when the tip was first seen longer ago than that; else empty.
        requested_at: the annotation that this pass answers.
        signer: who stands behind the newest commit that this pass accepted; not stored.
    """

    trusted: bool
    suspended: bool = False
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    observed: Observed | None = None
    accepted: Acceptance | None = None
    refusal: Refusal | None = None
    verdict: str = ""
    message: str = ""
    pending: bool = False
    effects_allowed: bool = True
    error: GitopsError | None = None
    stale_since_s: float | None = None
    old_tip: str = ""
    requested_at: str = ""
    signer: str = ""

"""What judging a commit gives: who, which changes, by which rule, or why not (gitops.md, sections 4.5 and 4.6)."""

from dataclasses import dataclass, field
from datetime import datetime

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, Refused
from gitops_ctl.trust.changes import Change
from gitops_ctl.trust.keys import Owner

ACCEPTED = "Accepted"

PENDING = frozenset(
    {
        ErrorCode.NEEDS_FORGE_REVIEWS,
        ErrorCode.SIGNATURE_IN_FUTURE,
        ErrorCode.VERIFICATION_IN_PROGRESS,
        ErrorCode.HISTORY_UNAVAILABLE,
    }
)
"""Verdicts that are no refusal: tried again each cycle, cleared without a new commit."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One change that a rule allows, and the people who were counted for it."""

    change: Change
    rule: str
    persons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A commit that everything allows.

    Attributes:
        owner: whose key signed it.
        fingerprint: of that key.
        persons: judged persons: the signer, or for a proposer's commit those of the merge that brings it in; the first is
            the introducer of what the commit changed.
        decisions: by the policy of the first-parent line; none where the paths alone told that all is allowed (see `plain`).
    """

    commit: str
    owner: Owner
    fingerprint: str
    persons: tuple[str, ...]
    first_seen: datetime
    decisions: tuple[Decision, ...] = field(default=(), compare=False)

    @property
    def signer_text(self) -> str:
        """Who is judged and, where that is somebody else, whose key signed."""
        judged, owner = ", ".join(self.persons), str(self.owner)
        return owner if judged in ("", owner) else f"{judged} (by {owner})"


class CommitRefused(Refused):
    """A commit or tag object that is not accepted, or not yet; the code is the verdict.

    Attributes:
        commit: the object that was judged.
        path, verb, rule, person, key_seen: what was found, empty where it does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        commit: str,
        hint: str = "",
        where: "Where | None" = None,
    ) -> None:
        super().__init__(message, code=code, subject=commit, hint=hint)
        self.commit = commit
        self.where = where or Where()

    @property
    def is_pending(self) -> bool:
        return self.code in PENDING


@dataclass(frozen=True, slots=True)
class Where:
    """What a refusal is about; `merge` and `head`: the forge's merge whose reviews are needed, and what it merged."""

    path: str = ""
    verb: str = ""
    rule: str = ""
    person: str = ""
    key_seen: str = ""
    merge: str = ""
    head: str = ""


def refusal_from(error: GitopsError, *, commit: str, where: Where | None = None) -> CommitRefused:
    """The same finding, as a verdict on the commit."""
    # A tree beyond the bounds of a walk has a name of its own among the errors of transport, and none among the verdicts.
    code = ErrorCode.OBJECT_TOO_LARGE if error.code is ErrorCode.TREE_LIMIT else error.code
    return CommitRefused(error.message, code=code, commit=commit, hint=error.hint, where=where)

"""What one pass over a Proposal knows, and what it decides (forges.md, section 9).  Values only."""

import enum
from dataclasses import dataclass
from typing import Literal

from gitops_ctl.forge.neutral import PullState

Phase = Literal["Pending", "Open", "Merged", "Closed", "Superseded", "Expired"]
Ended = Literal["", "withdrawn", "superseded", "expired", "deleted"]


class Refresh(enum.Enum):
    """When an open pull request is rebuilt only because the base moved, as `spec.proposer.refresh` names it (rule 11)."""

    NEVER = "Never"
    ON_CONFLICT = "OnConflict"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the status holds from earlier passes.

    Attributes:
        number: 0 for none.
        head, base: our last commit and what it stands on; empty for none.
        pushing: a commit whose push was begun; empty when it was finished.
        declined: digests that a person closed a pull request for.
    """

    phase: str = ""
    branch: str = ""
    number: int = 0
    url: str = ""
    head: str = ""
    base: str = ""
    content: str = ""
    pushing: str = ""
    pushing_branch: str = ""
    declined: tuple[str, ...] = ()
    reopen_answered: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the Proposal asks for, seen from the present base.

    Attributes:
        operation: UID of the operation that asks.
        content: digest of the files as they will be.
        edits: digest of the edits themselves, the same whatever the base looks like.
        in_base: the base has all of it.
        ended: why nothing is wanted any more; empty while it is.
        reopen: a person asked for it in spite of an earlier answer.
        is_merged: what was pushed last has been merged; looked for only when the change is withdrawn.
    """

    operation: str
    content: str
    edits: str
    in_base: bool
    ended: Ended = ""
    reopen: bool = False
    is_merged: bool = False


@dataclass(frozen=True, slots=True)
class Tip:
    """The commit on a branch of the remote.

    Attributes:
        ours: we pushed it.
        is_current: it stands on the base tip and holds exactly what is wanted.
        same_edit: it holds what is wanted, seen from the commit that it stands on.
        conflicts: the base has moved so that the two cannot be merged.
    """

    commit: str
    ours: bool
    is_current: bool = False
    same_edit: bool = False
    conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request of this purpose.

    Attributes:
        closed_by_us: our own closing comment is in it.
        content, operation: from its marker; empty when that is damaged.
        closed_for: from its marker.
        text_differs: our block in its body is not what it should be.
        marked: its marker is whole.
    """

    number: int
    state: PullState
    branch: str
    closed_by_us: bool = False
    content: str = ""
    operation: str = ""
    closed_for: tuple[str, ...] = ()
    text_differs: bool = False
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """One look at everything.

    Attributes:
        branch: the name that is looked at.
        tip: what it is at the remote; None for no such branch.
        pull: the pull request of it; None for none.
        plain: there is no forge: a branch is all there is.
    """

    wanted: Wanted
    remembered: Remembered
    branch: str
    tip: Tip | None
    pull: Pull | None
    plain: bool = False
    refresh: Refresh = Refresh.ON_CONFLICT


class Action(enum.Enum):
    """The one thing that a pass does."""

    NOTHING = "nothing"
    PUSH_CREATE = "push and create"
    CREATE = "create"
    PUSH_UPDATE = "push and update the text"
    PUSH_REOPEN = "push and open again"
    UPDATE = "update the text"
    NEXT_BRANCH = "look at the next branch name"
    CLOSE = "close"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done, and what the status will say.

    Attributes:
        reason: of the condition Ready.
        message: for people, of Ready and of comments.
        declined: digests that are remembered as declined from now on.
    """

    action: Action
    phase: Phase
    reason: str
    message: str
    declined: tuple[str, ...] = ()

"""The install commit of IOS-XE (devices.md, section 15.1; rollouts.md, section 13.3, steps 9 and 10).

`send_commit` is the one request of this room that changes a device.  It is sent once for each marker that was written before; who
calls it writes the marker and the journal first, and settles every outcome by looking.  An answer proves little either way: the
device says yes before it is done.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lxml import etree

from gitops_ctl.core.errors import ReplyLost, Unavailable
from gitops_ctl.device.netconf import AnswerUnusable, NetconfRefused, NetconfSession
from gitops_ctl.device.operational import InstallState, Seen
from gitops_ctl.device.operationalxml import MODELS
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from gitops_ctl.fleet.receipt import matches_target

_NAMESPACE: Final = f"{MODELS}install-rpc"
COMMIT_S: Final = 120.0
"""Seconds to wait for the reply (devices.md, section 6)."""


async def send_commit(session: NetconfSession, *, operation_id: str, timeout_s: float = COMMIT_S) -> Outcome:
    """Ask the device to keep the version that runs.

    Args:
        session: an open one.
        operation_id: names this request to the device; the marker's own id, so that the device's history can be matched.
        timeout_s: how long the reply may take.

    Raises:
        Unavailable: nothing was sent.
    """
    operation = etree.fromstring(f'<install-commit xmlns="{_NAMESPACE}"/>')
    etree.SubElement(operation, f"{{{_NAMESPACE}}}uuid").text = operation_id
    try:
        await session.call(operation, timeout_s=timeout_s)
    except Unavailable:
        raise
    except NetconfRefused as error:
        return Refused(error.errors[0].tag or "rpc-error", error.message)
    except (ReplyLost, AnswerUnusable) as error:
        return Unknown(error.message)
    return Accepted()


class CommitNeed(StrEnum):
    """What a look at the install state says about the commit."""

    DONE = "Done"
    """The wanted version runs, is committed, and nothing is left to end it."""
    NEEDED = "Needed"
    """The wanted version runs and is not committed, or something is left to end it."""
    BUSY = "Busy"
    """The install manager is at work: look again."""
    LEFT = "Left"
    """Another version runs: the device went back, or somebody changed it."""
    UNKNOWN = "Unknown"
    """It cannot be told from this look."""


@dataclass(frozen=True, slots=True)
class CommitSight:
    """The need, and what was seen, for people."""

    need: CommitNeed
    message: str


def commit_need(seen: Seen[InstallState], *, version: str) -> CommitSight:
    """Whether `version` still has to be committed.  Only a complete look concludes anything but that it is unknown."""
    state = seen.value
    if not seen.complete:
        return CommitSight(CommitNeed.UNKNOWN, seen.why)
    if not matches_target(state.running, version):
        return CommitSight(CommitNeed.LEFT, f"{state.running} runs, not {version}")
    if state.operation or state.pending:
        return CommitSight(CommitNeed.BUSY, "an install operation is in progress")
    if state.committed and not state.timer:
        return CommitSight(CommitNeed.DONE, f"{state.running} runs and is committed")
    what = "the auto-abort timer still runs" if state.committed else "it is not committed"
    return CommitSight(CommitNeed.NEEDED, f"{state.running} runs, and {what}")

"""Decides what happens to the pull request of one Proposal: the table of forges.md, section 9.5, with the rules of section 10.

A pure function.  Content decides, not the existence of a branch: what the base has is done, however it got there (rule 9).  A tip that
we did not push is never touched (rules 1 and 2), a person's "no" is remembered by content (rule 12), and a fresh name is preferred
over using a closed one again (rule 15).
"""

from gitops_ctl.forge.model import Action, Decision, Facts, Pull, Refresh, Tip

OPEN, MERGED, CLOSED, PENDING = "Open", "Merged", "Closed", "Pending"
DECLINED = "DeclinedByHuman"
MODIFIED = "ModifiedByOthers"
DELETED = "BranchDeleted"
REVERTED = "MergedButNotEffective"

_ENDED = {
    "withdrawn": "the change is not wanted any more",
    "superseded": "a newer Proposal of the same purpose takes over",
    "expired": "its time is over",
    "deleted": "the Proposal was deleted",
}


def decide(facts: Facts) -> Decision:
    """The one action that these facts ask for."""
    if facts.wanted.in_base and facts.wanted.ended not in ("withdrawn", "deleted"):
        return _finish(facts, phase="Merged", why="the base branch has the change")
    if facts.wanted.ended:
        return _end(facts)
    if facts.pull is None:
        return _without_pull(facts)
    match facts.pull.state:
        case "open":
            return _open(facts, facts.pull)
        case "merged":
            return _merged(facts, facts.pull)
        case _:
            return _closed(facts, facts.pull)


def _end(facts: Facts) -> Decision:
    why = _ENDED[facts.wanted.ended]
    if facts.wanted.ended == "expired":
        return _finish(facts, phase="Expired", why=why)
    if facts.wanted.is_merged:
        # Whoever asked takes back what is done: that is noticed a moment earlier there than here, or by the forge.
        return _finish(facts, phase="Merged", why="the base branch has taken the change")
    if facts.remembered.phase == "Merged" and not _is_open(facts.pull):
        return Decision(Action.NOTHING, "Merged", MERGED, "the base branch had the change; it is not watched any more")
    return _finish(facts, phase="Superseded", why=why)


def _finish(facts: Facts, *, phase: str, why: str) -> Decision:
    """Close what is still open when it is all ours, else say so in a comment (rule 2)."""
    action = Action.NOTHING
    if _is_open(facts.pull) and not facts.plain:
        action = Action.CLOSE if facts.tip is None or facts.tip.ours else Action.COMMENT
    match phase:
        case "Merged":
            return Decision(action, "Merged", MERGED, why)
        case "Expired":
            return Decision(action, "Expired", "Expired", why)
        case _:
            return Decision(action, "Superseded", "Superseded", why)


def _without_pull(facts: Facts) -> Decision:
    tip = facts.tip
    if _is_declined(facts, ()) and not facts.wanted.reopen:
        return _declined(())
    if facts.plain:
        return _branch_alone(facts)
    if tip is None:
        return _proceed(Action.PUSH_CREATE)
    if not tip.ours:
        return Decision(Action.NEXT_BRANCH, "Pending", PENDING, "the branch name is taken by somebody else")
    return _proceed(Action.CREATE if tip.is_current else Action.PUSH_CREATE)


def _branch_alone(facts: Facts) -> Decision:
    """Plain Git: the branch is the proposal."""
    tip, remembered = facts.tip, facts.remembered
    was_open = remembered.phase == OPEN and remembered.branch == facts.branch
    if tip is None and was_open and not facts.wanted.reopen:
        return _declined((facts.wanted.content, facts.wanted.edits), how="a person deleted the branch")
    if tip is None:
        return _proceed(Action.PUSH_CREATE)
    if tip.ours:
        return _rebuild_or(facts, tip, Action.NOTHING)
    if was_open:
        return _modified()
    return Decision(Action.NEXT_BRANCH, "Pending", PENDING, "the branch name is taken by somebody else")


def _open(facts: Facts, pull: Pull) -> Decision:
    tip = facts.tip
    if tip is None:
        # Forges close it in a moment.  One that a person opened again without its branch gets the branch again (rule 3).
        deleted = facts.remembered.phase == OPEN and bool(facts.remembered.head) and not facts.wanted.reopen
        return _branch_deleted() if deleted else _proceed(Action.PUSH_UPDATE)
    if not tip.ours:
        return _modified()
    return _rebuild_or(facts, tip, Action.UPDATE if pull.text_differs and pull.marked else Action.NOTHING)


def _rebuild_or(facts: Facts, tip: Tip, otherwise: Action) -> Decision:
    """Push when the change is another one, or when the refresh policy or a person says so for a base that moved; else `otherwise`."""
    if tip.is_current:
        stale = False
    elif tip.same_edit:
        moved = tip.conflicts and facts.refresh is not Refresh.NEVER
        stale = moved or facts.refresh is Refresh.ALWAYS or facts.wanted.reopen
    else:
        stale = True
    return _proceed(Action.PUSH_UPDATE if stale else otherwise)


def _merged(facts: Facts, pull: Pull) -> Decision:
    if facts.wanted.reopen or (pull.marked and pull.operation != facts.wanted.operation):
        return Decision(
            Action.NEXT_BRANCH, "Pending", PENDING, f"pull request {pull.number} was merged and reverted; asked anew"
        )
    message = (
        f"pull request {pull.number} is merged, and the base branch does not hold the change: it was reverted or changed since; "
        "annotate the Proposal with gitops-ctl.dev/reopen-at to propose it again"
    )
    return Decision(Action.NOTHING, "Pending", REVERTED, message)


def _closed(facts: Facts, pull: Pull) -> Decision:
    if pull.closed_by_us:
        return _without_pull(facts)
    answer = (pull.content or facts.remembered.content, *((facts.wanted.edits,) if _is_same(facts, pull) else ()))
    declined = tuple(dict.fromkeys((*pull.closed_for, *filter(None, answer))))
    if facts.wanted.reopen:
        if facts.tip is not None and facts.tip.ours:
            return _proceed(Action.PUSH_REOPEN)
        return Decision(Action.NEXT_BRANCH, "Pending", PENDING, "a person asked for it again", declined)
    if _is_declined(facts, declined):
        return _declined(declined, how=f"a person closed pull request {pull.number}")
    return Decision(Action.NEXT_BRANCH, "Pending", PENDING, "another change than the one that was declined", declined)


def _is_same(facts: Facts, pull: Pull) -> bool:
    """Whether the closed one was about the present edits, also when the base has moved since."""
    return pull.content == facts.wanted.content or (facts.tip is not None and facts.tip.ours and facts.tip.same_edit)


def _is_declined(facts: Facts, more: tuple[str, ...]) -> bool:
    known = (*facts.remembered.declined, *more)
    return facts.wanted.content in known or facts.wanted.edits in known


def _is_open(pull: Pull | None) -> bool:
    return pull is not None and pull.state == "open"


def _proceed(action: Action) -> Decision:
    return Decision(action, "Open", OPEN, "")


def _modified() -> Decision:
    message = "somebody else has commits on the branch: it is not touched any more; merge or close it by hand"
    return Decision(Action.COMMENT, "Open", MODIFIED, message)


def _branch_deleted() -> Decision:
    message = "a person deleted the branch: nothing is pushed; annotate the Proposal with gitops-ctl.dev/reopen-at to ask once more"
    return Decision(Action.NOTHING, "Open", DELETED, message)


def _declined(digests: tuple[str, ...], *, how: str = "a person has declined this content") -> Decision:
    message = f"{how}: it is not proposed again; annotate the Proposal with gitops-ctl.dev/reopen-at to ask once more"
    return Decision(Action.NOTHING, "Closed", DECLINED, message, digests)

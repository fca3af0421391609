"""Each row of the decision table of forges.md, section 9.5, as a pure function of facts."""

from dataclasses import replace

import pytest

from gitops_ctl.forge.model import Action, Facts, Pull, Refresh, Remembered, Tip, Wanted
from gitops_ctl.forge.plan import decide

CONTENT, OTHER, EDITS = "sha256:" + "a" * 64, "sha256:" + "b" * 64, "sha256:" + "e" * 64
OURS, THEIRS = "1" * 40, "9" * 40
WANTED = Wanted(operation="op", content=CONTENT, edits=EDITS, in_base=False)
CURRENT = Tip(OURS, ours=True, is_current=True, same_edit=True)
STALE = Tip(OURS, ours=True, same_edit=True)
CHANGED = Tip(OURS, ours=True)
FOREIGN = Tip(THEIRS, ours=False)
OPEN = Pull(7, "open", "b", content=CONTENT, operation="op")
CLOSED = replace(OPEN, state="closed")
MERGED = replace(OPEN, state="merged")
FACTS = Facts(WANTED, Remembered(), "b", None, None)

ROWS = [
    ("no PR, no branch", {}, Action.PUSH_CREATE, "Open"),
    ("no PR, our tip, right", {"tip": CURRENT}, Action.CREATE, "Open"),
    ("no PR, our tip, base moved", {"tip": STALE}, Action.PUSH_CREATE, "Open"),
    ("no PR, our tip, other tree", {"tip": CHANGED}, Action.PUSH_CREATE, "Open"),
    ("no PR, foreign tip", {"tip": FOREIGN}, Action.NEXT_BRANCH, "Pending"),
    ("open, our tip, right", {"tip": CURRENT, "pull": OPEN}, Action.NOTHING, "Open"),
    ("open, text differs", {"tip": CURRENT, "pull": replace(OPEN, text_differs=True)}, Action.UPDATE, "Open"),
    (
        "open, text differs, marker damaged",
        {"tip": CURRENT, "pull": replace(OPEN, text_differs=True, marked=False)},
        Action.NOTHING,
        "Open",
    ),
    ("open, same tree, base moved", {"tip": STALE, "pull": OPEN}, Action.NOTHING, "Open"),
    ("open, base moved, conflict", {"tip": replace(STALE, conflicts=True), "pull": OPEN}, Action.PUSH_UPDATE, "Open"),
    (
        "open, conflict, policy never",
        {"tip": replace(STALE, conflicts=True), "pull": OPEN, "refresh": Refresh.NEVER},
        Action.NOTHING,
        "Open",
    ),
    (
        "open, base moved, policy always",
        {"tip": STALE, "pull": OPEN, "refresh": Refresh.ALWAYS},
        Action.PUSH_UPDATE,
        "Open",
    ),
    (
        "open, base moved, a person asks, policy never",
        {"tip": STALE, "pull": OPEN, "wanted": replace(WANTED, reopen=True), "refresh": Refresh.NEVER},
        Action.PUSH_UPDATE,
        "Open",
    ),
    (
        "open, base not moved, a person asks",
        {"tip": CURRENT, "pull": OPEN, "wanted": replace(WANTED, reopen=True)},
        Action.NOTHING,
        "Open",
    ),
    (
        "open, foreign tip, a person asks",
        {"tip": FOREIGN, "pull": OPEN, "wanted": replace(WANTED, reopen=True)},
        Action.COMMENT,
        "ModifiedByOthers",
    ),
    ("open, other tree", {"tip": CHANGED, "pull": OPEN}, Action.PUSH_UPDATE, "Open"),
    (
        "open, other tree, policy never",
        {"tip": CHANGED, "pull": OPEN, "refresh": Refresh.NEVER},
        Action.PUSH_UPDATE,
        "Open",
    ),
    ("open again without its branch", {"pull": OPEN}, Action.PUSH_UPDATE, "Open"),
    (
        "open, a person deleted the branch",
        {"pull": OPEN, "remembered": Remembered(phase="Open", head=OURS)},
        Action.NOTHING,
        "BranchDeleted",
    ),
    ("open, foreign tip", {"tip": FOREIGN, "pull": OPEN}, Action.COMMENT, "ModifiedByOthers"),
    ("closed, same content", {"tip": CURRENT, "pull": CLOSED}, Action.NOTHING, "DeclinedByHuman"),
    (
        "closed, same edits, base moved",
        {"tip": STALE, "pull": replace(CLOSED, content=OTHER)},
        Action.NOTHING,
        "DeclinedByHuman",
    ),
    ("closed, other content", {"tip": CHANGED, "pull": replace(CLOSED, content=OTHER)}, Action.NEXT_BRANCH, "Pending"),
    (
        "closed earlier for this content",
        {"pull": replace(CLOSED, content=OTHER, closed_for=(CONTENT,))},
        Action.NOTHING,
        "DeclinedByHuman",
    ),
    ("closed by us", {"tip": CURRENT, "pull": replace(CLOSED, closed_by_us=True)}, Action.CREATE, "Open"),
    ("merged, content in base", {"pull": MERGED, "wanted": replace(WANTED, in_base=True)}, Action.NOTHING, "Merged"),
    ("merged, reverted", {"pull": MERGED}, Action.NOTHING, "MergedButNotEffective"),
    ("merged, reverted, new operation", {"pull": replace(MERGED, operation="old")}, Action.NEXT_BRANCH, "Pending"),
    (
        "merged, reverted, command",
        {"pull": MERGED, "wanted": replace(WANTED, reopen=True)},
        Action.NEXT_BRANCH,
        "Pending",
    ),
    (
        "closed, command, our tip",
        {"tip": CURRENT, "pull": CLOSED, "wanted": replace(WANTED, reopen=True)},
        Action.PUSH_REOPEN,
        "Open",
    ),
    (
        "closed, command, no branch",
        {"pull": CLOSED, "wanted": replace(WANTED, reopen=True)},
        Action.NEXT_BRANCH,
        "Pending",
    ),
    (
        "in base, open, ours",
        {"tip": CURRENT, "pull": OPEN, "wanted": replace(WANTED, in_base=True)},
        Action.CLOSE,
        "Merged",
    ),
    (
        "in base, open, foreign",
        {"tip": FOREIGN, "pull": OPEN, "wanted": replace(WANTED, in_base=True)},
        Action.COMMENT,
        "Merged",
    ),
    ("in base, nothing else", {"wanted": replace(WANTED, in_base=True)}, Action.NOTHING, "Merged"),
    (
        "in base, our branch is left",
        {"tip": CURRENT, "wanted": replace(WANTED, in_base=True)},
        Action.NOTHING,
        "Merged",
    ),
    (
        "expired, open",
        {"tip": CURRENT, "pull": OPEN, "wanted": replace(WANTED, ended="expired")},
        Action.CLOSE,
        "Expired",
    ),
    ("expired, never opened", {"wanted": replace(WANTED, ended="expired")}, Action.NOTHING, "Expired"),
    ("expired, merged before", {"wanted": replace(WANTED, ended="expired", in_base=True)}, Action.NOTHING, "Merged"),
    (
        "withdrawn, open",
        {"tip": CURRENT, "pull": OPEN, "wanted": replace(WANTED, ended="withdrawn")},
        Action.CLOSE,
        "Superseded",
    ),
    (
        "withdrawn, modified",
        {"tip": FOREIGN, "pull": OPEN, "wanted": replace(WANTED, ended="withdrawn")},
        Action.COMMENT,
        "Superseded",
    ),
    (
        "withdrawn, merged",
        {"tip": CURRENT, "pull": MERGED, "wanted": replace(WANTED, ended="withdrawn", is_merged=True)},
        Action.NOTHING,
        "Merged",
    ),
    ("declined before", {"remembered": Remembered(declined=(CONTENT,))}, Action.NOTHING, "DeclinedByHuman"),
    ("declined before, by edits", {"remembered": Remembered(declined=(EDITS,))}, Action.NOTHING, "DeclinedByHuman"),
    ("plain, no branch", {"plain": True}, Action.PUSH_CREATE, "Open"),
    ("plain, our tip", {"plain": True, "tip": CURRENT}, Action.NOTHING, "Open"),
    ("plain, our tip, other tree", {"plain": True, "tip": CHANGED}, Action.PUSH_UPDATE, "Open"),
    ("plain, foreign tip", {"plain": True, "tip": FOREIGN}, Action.NEXT_BRANCH, "Pending"),
    (
        "plain, a person committed",
        {"plain": True, "tip": FOREIGN, "remembered": Remembered(phase="Open", branch="b")},
        Action.COMMENT,
        "ModifiedByOthers",
    ),
    (
        "plain, a person deleted the branch",
        {"plain": True, "remembered": Remembered(phase="Open", branch="b")},
        Action.NOTHING,
        "DeclinedByHuman",
    ),
]


@pytest.mark.parametrize(("row", "changes", "action", "reason"), ROWS, ids=[row[0] for row in ROWS])
def test_each_row_of_the_table(row: str, changes: dict[str, object], action: Action, reason: str):
    found = decide(replace(FACTS, **changes))  # type: ignore[arg-type]
    assert (found.action, found.reason) == (action, reason)


def test_every_reason_that_needs_a_person_says_what_to_do():
    for changes in ({"pull": MERGED}, {"pull": CLOSED}, {"tip": FOREIGN, "pull": OPEN}):
        assert len(decide(replace(FACTS, **changes)).message) > 40  # type: ignore[arg-type]


def test_nothing_but_a_base_with_the_change_makes_it_merged():
    for row, changes, _action, reason in ROWS:
        wanted = changes.get("wanted", WANTED)
        assert isinstance(wanted, Wanted)
        assert (reason == "Merged") <= (wanted.in_base or wanted.is_merged), row


def test_a_foreign_tip_is_never_pushed_over_whatever_else_holds():
    for pull in (None, OPEN, CLOSED, MERGED):
        for refresh in Refresh:
            for reopen in (False, True):
                for plain in (False, True):
                    wanted = replace(WANTED, reopen=reopen)
                    facts = Facts(
                        wanted, Remembered(), "b", FOREIGN, pull, plain=plain and pull is None, refresh=refresh
                    )
                    action = decide(facts).action
                    assert action in (Action.NOTHING, Action.COMMENT, Action.NEXT_BRANCH), facts

"""Holds other than a migration's: of empty queues, of Git, of other people (topology-scheduling.md, 8.2: D24, D28).

A policy that neither Git nor one of our holds explains belongs to somebody else and stays.
"""

from dataclasses import replace

from gitops_ctl.scheduling.queue import (
    APPLIED_POLICY,
    EMPTY_HOLD,
    HOLD,
    HOLD_AND_DRAIN,
    HOLD_RELEASE,
    NONE,
    PHASE,
    SAVED_POLICY,
    UNSET,
    Managed,
    Queue,
)

_TRUE = "true"
_PENDING = "pending"


def held_while_empty(queue: Queue) -> Managed:
    """A queue without groups never admits: on Hold with our mark, unless it is held already."""
    managed = queue.managed
    if managed.groups or not managed.is_open:
        return managed
    return replace(managed, policy=HOLD, marks=managed.marks_with({EMPTY_HOLD: _TRUE}))


def first_plan(queue: Queue) -> Managed:
    """What becomes of the hold in the update that brings the first groups.

    Our own Hold stays, to be released once Kueue has observed the groups; the drain of an older version ends.
    """
    managed = queue.managed
    if managed.policy == HOLD_AND_DRAIN:
        return replace(managed, policy=queue.wanted, marks=managed.marks_with({APPLIED_POLICY: queue.wanted}))
    is_ours = managed.policy == HOLD and EMPTY_HOLD in managed.marks
    return replace(managed, marks=managed.marks_with({HOLD_RELEASE: _PENDING})) if is_ours else managed


def released(queue: Queue) -> Managed:
    """The second update after a first plan; the queue as it is while Kueue has not observed the groups."""
    managed = queue.managed
    without = managed.marks_with({HOLD_RELEASE: None})
    if not managed.groups:
        # Somebody took the groups away in between: it is an empty queue again, and never open.
        marks = without if managed.policy == HOLD_AND_DRAIN else {**without, EMPTY_HOLD: _TRUE}
        return replace(managed, policy=HOLD if managed.is_open else managed.policy, marks=marks)
    if managed.policy != HOLD:
        return replace(managed, marks=without)
    if not queue.usage.is_current:
        return managed
    return replace(managed, policy=queue.wanted, marks={**without, APPLIED_POLICY: queue.wanted})


def carried_out(queue: Queue) -> Managed | None:
    """The queue with a new policy of Git, outside of a migration; None when nothing is to be done."""
    managed = queue.managed
    if queue.wanted == queue.applied or HOLD_RELEASE in managed.marks:
        return None
    is_applied = _plain(managed.policy) == queue.applied
    done = {APPLIED_POLICY: queue.wanted}
    if managed.groups:
        return replace(managed, policy=queue.wanted, marks=managed.marks_with(done)) if is_applied else None
    if not is_applied and EMPTY_HOLD not in managed.marks:
        return None
    if queue.wanted == NONE:
        return replace(managed, policy=HOLD, marks=managed.marks_with({**done, EMPTY_HOLD: _TRUE}))
    return replace(managed, policy=queue.wanted, marks=managed.marks_with({**done, EMPTY_HOLD: None}))


def saved_for_git(queue: Queue) -> Managed:
    """During a migration a new policy of Git goes to the saved one, if that holds what was applied."""
    managed = queue.managed
    if queue.wanted == queue.applied or _plain(managed.marks[SAVED_POLICY]) != queue.applied:
        return managed
    return replace(managed, marks=managed.marks_with({SAVED_POLICY: queue.wanted, APPLIED_POLICY: queue.wanted}))


def is_short_hold(managed: Managed) -> bool:
    """Whether the queue is on the short Hold before a drop (B17): a saved policy without a phase."""
    return SAVED_POLICY in managed.marks and PHASE not in managed.marks


def short_hold(managed: Managed) -> Managed:
    """An open queue on the short Hold; it evicts nobody and keeps new reservations away."""
    saved = managed.marks.get(SAVED_POLICY, managed.policy or UNSET)
    return replace(managed, policy=HOLD, marks=managed.marks_with({SAVED_POLICY: saved}))


def without_short_hold(managed: Managed) -> Managed:
    """As before the short Hold; a policy that somebody set in between stays."""
    if not is_short_hold(managed):
        return managed
    saved = managed.marks[SAVED_POLICY]
    # Only an open queue is held shortly: another word there is not ours to carry out.
    policy = {UNSET: "", NONE: NONE}.get(saved, HOLD) if managed.policy == HOLD else managed.policy
    marks = managed.marks_with({SAVED_POLICY: None})
    if managed.groups:
        return replace(managed, policy=policy, marks=marks)
    return replace(managed, policy=HOLD if managed.is_open else managed.policy, marks={**marks, EMPTY_HOLD: _TRUE})


def is_foreign(managed: Managed, queue: Queue) -> str:
    """The policy, when neither Git nor one of our holds explains it; empty otherwise."""
    policy = _plain(managed.policy)
    ours = {PHASE, EMPTY_HOLD, HOLD_RELEASE, SAVED_POLICY} & set(managed.marks)
    return "" if policy == managed.marks.get(APPLIED_POLICY, NONE) or ours else policy


def _plain(policy: str) -> str:
    """An absent and an unset policy count as None."""
    return NONE if policy in ("", UNSET) else policy

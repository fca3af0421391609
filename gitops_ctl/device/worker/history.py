"""Whether the journal of this worker knows all that was sent to a device, as far as the cluster remembers (rollouts.md, section 13.9).  Pure.

The cluster remembers in two places: the journal that the device was reported with, and the claims that stand in its upgrades.  A journal
that was served by neither has a history that nobody can vouch for, however new and empty it is.
"""

from collections.abc import Iterable
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.device.journal import ClaimHistoryLost, Journal, Reported
from gitops_ctl.device.worker.leafstatus import INSTALL_COMMIT, key_of
from gitops_ctl.fleet.device import JOURNAL_READY, Device
from gitops_ctl.fleet.leaf import Leaf

NOBODYS: Final = "00000000-0000-0000-0000-000000000000"
"""Stands for the journal of a device that was taken and was served by none that is known: no journal has this id."""


def reported_of(device: Device) -> Reported | None:
    """The journal that the device was reported with; None: with none."""
    journal = device.worker_report.journal if device.worker_report is not None else None
    return Reported(journal.id, journal.sequence) if journal is not None and journal.id else None


def unknown_claims(journal: Journal, leaves: Iterable[Leaf]) -> tuple[str, ...]:
    """Claims that upgrades without a proven outcome show and the journal does not know, as `leaf: stage`."""
    known = journal.claims
    return tuple(
        f"{leaf.name}: {stage}"
        for leaf in leaves
        if not leaf.is_outcome_resolved and leaf.recovery is None
        for stage in _claimed(leaf)
        if key_of(leaf, stage) not in known
    )


def _claimed(leaf: Leaf) -> Iterable[str]:
    yield from (one.stage for one in leaf.claims)
    if text_at(leaf.status, "installCommit", "requestedAt"):
        yield INSTALL_COMMIT


def history_problem(journal: Journal, device: Device | None, leaf: Leaf) -> str:
    """Why nothing may be claimed for the leaf, and no claim of it counts as never sent; empty when the journal knows it all."""
    if device is None:
        return "there is no device"
    reported = reported_of(device)
    if reported is None:
        return "no journal was reported for the device yet"
    try:
        journal.require_history(device.uid, reported, name=device.name)
    except ClaimHistoryLost as error:
        return error.message
    told = device.worker_report.journal if device.worker_report is not None else None
    if told is not None and told.state != JOURNAL_READY:
        return f"the history of the device is reported as {told.state}"
    return unknown_problem(journal, unknown_claims(journal, (leaf,)))


def unknown_problem(journal: Journal, unknown: tuple[str, ...]) -> str:
    """That claims are missing from the journal, for people; empty without any."""
    return f"journal {journal.id} does not know claims that stand in the cluster: {listed(unknown)}" if unknown else ""

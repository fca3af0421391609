"""Why a step of a rollout is not taken now: a value that people read, not an exception.

A refusal names numbers and the other party ("3 of 3 transfers in use in zone a: prod/spring-edge-2-1f0c…").  Those that stand for a full
budget, an unhealthy device or somebody else's ownership mark the target Blocked and let the walk over the other targets go on; all others
end the pass (rollouts.md, section 11.2, step 8).
"""

import enum
from dataclasses import dataclass


class Reason(enum.StrEnum):
    """What was found.  The words of the contract where it names one."""

    IDENTITY = "LedgerIdentityMismatch"
    STALE = "StaleAcquisition"
    FLEET_AMBIGUOUS = "FleetAmbiguous"
    DOMAIN_CHANGED = "DomainChanged"
    TRANSITION = "TransitionRefused"
    NOT_PROVEN = "NotProven"
    CAMPAIGN_CHANGED = "CampaignChanged"
    TARGET_CHANGED = "TargetChanged"
    FLEET_INVALID = "FleetInvalid"
    POLICY_CHANGED = "PolicyChanged"
    SOURCE_CHANGED = "SourceChanged"
    CHILD_CONFLICT = "ChildIdentityConflict"
    NOT_ACKNOWLEDGED = "WorkerProtocolPending"
    EVIDENCE_INVALID = "NetworkEvidenceAuthorityInvalid"

    ALREADY_RESERVED = "AlreadyReserved"
    TARGET_UNAVAILABLE = "TargetUnavailable"
    LEDGER_FULL = "LedgerFull"
    LEDGER_TOO_LARGE = "LedgerTooLarge"
    UNAVAILABLE_BUDGET = "UnavailableBudgetExhausted"
    TRANSFER_BUDGET = "TransferBudgetExhausted"
    DEVICE_LOCKED = "DeviceLocked"
    PREPARED_OWNERSHIP = "PreparedOwnershipRetained"
    WORKLOADS = "WorkloadsRunning"
    PREFLIGHT = "PreflightPending"
    WINDOW_NOT_OPEN = "ActivationWindowNotOpen"
    WINDOW_CLOSED = "ActivationWindowClosed"


BLOCKS_TARGET = frozenset(
    {
        Reason.ALREADY_RESERVED,
        Reason.TARGET_UNAVAILABLE,
        Reason.LEDGER_FULL,
        Reason.LEDGER_TOO_LARGE,
        Reason.UNAVAILABLE_BUDGET,
        Reason.TRANSFER_BUDGET,
        Reason.DEVICE_LOCKED,
        Reason.PREPARED_OWNERSHIP,
        Reason.WORKLOADS,
        Reason.PREFLIGHT,
        Reason.WINDOW_NOT_OPEN,
        Reason.WINDOW_CLOSED,
    }
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that was not taken; nothing was changed.

    Attributes:
        message: a sentence with the numbers and the names of the others.
        scope: what a number is about: `fleet`, `campaign`, `zone a`, `risk group core`; empty when there is no number.
        used: what is in use, the refused target not counted.
        limit: the number in force.
        holders: who uses it, `namespace/leaf` each or the names of unavailable devices, sorted.
        check: the word of the check that failed inside the reason; empty when the reason says it all.
    """

    reason: Reason
    message: str
    scope: str = ""
    used: int = 0
    limit: int = 0
    holders: tuple[str, ...] = ()
    check: str = ""

    @property
    def blocks_target(self) -> bool:
        """Whether only this target waits; False ends the pass."""
        return self.reason in BLOCKS_TARGET

    @property
    def target_reason(self) -> str:
        """The reason that the target shows while it waits for this (3.6)."""
        if self.reason in {Reason.PREPARED_OWNERSHIP, Reason.WINDOW_NOT_OPEN, Reason.WINDOW_CLOSED}:
            return self.reason
        if self.reason is Reason.PREFLIGHT:
            return self.check or self.reason
        return self.check if self.check in SHOWN else "AdmissionBlocked"


SHOWN = frozenset({"ClaimHistoryLost", "DeviceRetired"})
"""Checks that a target shows by their own name: only people end what they stand for."""

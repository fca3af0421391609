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
    """

    reason: Reason
    message: str
    scope: str = ""
    used: int = 0
    limit: int = 0
    holders: tuple[str, ...] = ()

    @property
    def blocks_target(self) -> bool:
        """Whether only this target waits; False ends the pass."""
        return self.reason in BLOCKS_TARGET

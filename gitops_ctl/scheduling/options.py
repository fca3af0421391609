"""Options of the controller: where it does better than the reference, and how to turn that off (topology-scheduling.md, 12, D34)."""

from dataclasses import dataclass
from typing import Literal, Self

from gitops_ctl.scheduling.names import WORKER_NAMESPACE

ShortStaleness = Literal["off", "warn", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One value for each option of section 12; the defaults are those of the contract.

    Attributes:
        snapshot_drop_percent: a revision that removes a larger share of a source's NodeFeatures is refused; 100 is never.
        snapshot_drop_nodes: ... if it removes at least so many.
        admission_checks: names of the AdmissionChecks of every queue, in this order.
        drain_warn_after_s: seconds after which a drain is called stuck.
        write_rate: owned writes of one source in a second; 0 is no limit.
    """

    worker_namespace: str = WORKER_NAMESPACE
    keep_profile_while_stale: bool = True
    snapshot_drop_percent: int = 50
    snapshot_drop_nodes: int = 5
    require_nodes: bool = True
    tolerate_unknown_nodes: bool = False
    short_staleness: ShortStaleness = "warn"
    sort_fabric_tiers: bool = False
    hold_before_drop: bool = False
    require_drain_approval: bool = False
    drain_warn_after_s: int = 15 * 60
    mixed_on_node: bool = True
    admission_checks: tuple[str, ...] = ()
    drain_when_no_flavors: bool = True
    write_rate: int = 0

    @classmethod
    def reference(cls) -> Self:
        """What `reference-defaults` means: B1, B2, B3 and B7 are off."""
        return cls(
            keep_profile_while_stale=False, snapshot_drop_percent=100, require_nodes=False, short_staleness="off"
        )

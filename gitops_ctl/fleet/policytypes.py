"""The fleet policy as values, lists in the order in which they were written (rollouts.md, section 7.1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from gitops_ctl.fleet.selector import Selector


@dataclass(frozen=True, slots=True)
class WorkloadDrain:
    """What drains may do; absent when the policy does not enable them.  Times in seconds."""

    allowed_namespaces: tuple[str, ...]
    max_timeout_s: int
    max_pods: int
    max_grace_s: int


@dataclass(frozen=True, slots=True)
class Protection:
    """Devices that no campaign may touch, and why."""

    name: str
    reason: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class RiskGroup:
    """Devices that share limits; groups overlap.  `max_bytes_per_s` is of all transfers together, 0 = none."""

    name: str
    selector: Selector
    max_concurrent_transfers: int
    max_unavailable: int
    max_bytes_per_s: int = 0

    @property
    def bytes_per_transfer(self) -> int:
        """Bytes per second of one of its transfers, 0 where the group has no rate."""
        return self.max_bytes_per_s // self.max_concurrent_transfers


@dataclass(frozen=True, slots=True)
class FleetPolicy:
    """The administrator's rules.  `domain_*` map a topology key to the limit in each of its values."""

    version: str
    app_hosting_account: str
    network_management_account: str
    config_lease_namespace: str
    fleet_selector: Selector
    required_keys: tuple[str, ...]
    projected_keys: tuple[str, ...]
    max_concurrent_transfers: int
    max_unavailable: int
    domain_transfers: Mapping[str, int]
    domain_unavailable: Mapping[str, int]
    health_freshness_s: int
    max_campaign_targets: int
    max_active_reservations: int
    max_ledger_bytes: int
    ledger_name: str
    drain: WorkloadDrain | None = None
    protections: tuple[Protection, ...] = ()
    risk_groups: tuple[RiskGroup, ...] = ()

    @property
    def domain_keys(self) -> tuple[str, ...]:
        """Every key that has a limit of either kind, sorted."""
        return tuple(sorted(self.domain_transfers.keys() | self.domain_unavailable.keys()))

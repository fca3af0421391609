"""The fleet policy as it stood when a plan was frozen, or when an epoch began (rollouts.md, sections 7.5 and 9.3).

A snapshot is published in the status and takes part in the plan hash, so its members have a fixed order.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, objects_at, text_at
from gitops_ctl.fleet.policy import FleetPolicy, semantic_hash, structural_hash


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """A policy and the ConfigMap that it was read from; `ledger_uid` is "" until the manager has bound a ledger."""

    policy: FleetPolicy
    name: str
    namespace: str
    uid: str
    resource_version: str
    ledger_uid: str


@dataclass(frozen=True, slots=True)
class SnapshotDomain:
    """Limits inside each value of one topology key; None where the policy sets none of that kind."""

    key: str
    transfers: int | None
    unavailable: int | None

    def to_json(self) -> JsonObject:
        limits = {"maxConcurrentTransfers": self.transfers, "maxUnavailable": self.unavailable}
        return {"topologyKey": self.key, **{name: limit for name, limit in limits.items() if limit is not None}}


@dataclass(frozen=True, slots=True)
class PolicySnapshot:
    """Identity and numbers of a policy.  `max_targets` is the policy's cap, not that of a plan."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    semantic_hash: str
    structural_hash: str
    max_targets: int
    transfers: int
    unavailable: int
    domains: tuple[SnapshotDomain, ...]
    freshness_s: int
    ledger_namespace: str
    ledger_name: str
    ledger_uid: str
    max_reservations: int
    max_ledger_bytes: int

    def to_json(self) -> JsonObject:
        """The members in the order in which they are hashed and published."""
        tree: dict[str, JsonValue] = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
            "semanticHash": self.semantic_hash,
            "structuralHash": self.structural_hash,
            "maxTargets": self.max_targets,
            "maxConcurrentTransfers": self.transfers,
            "maxUnavailable": self.unavailable,
            "domains": [domain.to_json() for domain in self.domains],
            "healthFreshnessSeconds": self.freshness_s,
            "ledgerNamespace": self.ledger_namespace,
            "ledgerName": self.ledger_name,
            "ledgerUID": self.ledger_uid,
            "maxActiveReservations": self.max_reservations,
            "maxLedgerSizeBytes": self.max_ledger_bytes,
        }
        return tree


def snapshot_of(record: PolicyRecord) -> PolicySnapshot:
    """The snapshot of a policy that is bound to its ledger."""
    policy = record.policy
    return PolicySnapshot(
        name=record.name,
        namespace=record.namespace,
        uid=record.uid,
        resource_version=record.resource_version,
        semantic_hash=semantic_hash(policy),
        structural_hash=structural_hash(policy),
        max_targets=policy.max_campaign_targets,
        transfers=policy.max_concurrent_transfers,
        unavailable=policy.max_unavailable,
        domains=tuple(
            SnapshotDomain(key, policy.domain_transfers.get(key), policy.domain_unavailable.get(key))
            for key in policy.domain_keys
        ),
        freshness_s=policy.health_freshness_s,
        ledger_namespace=record.namespace,
        ledger_name=policy.ledger_name,
        ledger_uid=record.ledger_uid,
        max_reservations=policy.max_active_reservations,
        max_ledger_bytes=policy.max_ledger_bytes,
    )


def snapshot_from(tree: JsonObject) -> PolicySnapshot:
    """A published snapshot, read back; a member that is missing reads as empty or zero."""
    return PolicySnapshot(
        name=text_at(tree, "name"),
        namespace=text_at(tree, "namespace"),
        uid=text_at(tree, "uid"),
        resource_version=text_at(tree, "resourceVersion"),
        semantic_hash=text_at(tree, "semanticHash"),
        structural_hash=text_at(tree, "structuralHash"),
        max_targets=int_at(tree, "maxTargets"),
        transfers=int_at(tree, "maxConcurrentTransfers"),
        unavailable=int_at(tree, "maxUnavailable"),
        domains=tuple(_domains(objects_at(tree, "domains"))),
        freshness_s=int_at(tree, "healthFreshnessSeconds"),
        ledger_namespace=text_at(tree, "ledgerNamespace"),
        ledger_name=text_at(tree, "ledgerName"),
        ledger_uid=text_at(tree, "ledgerUID"),
        max_reservations=int_at(tree, "maxActiveReservations"),
        max_ledger_bytes=int_at(tree, "maxLedgerSizeBytes"),
    )


def _domains(trees: Iterable[JsonObject]) -> Iterable[SnapshotDomain]:
    for tree in trees:
        transfers, unavailable = int_at(tree, "maxConcurrentTransfers"), int_at(tree, "maxUnavailable")
        yield SnapshotDomain(text_at(tree, "topologyKey"), transfers or None, unavailable or None)

"""Reads the text of a fleet policy, every bound checked (rollouts.md, section 7.1)."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.fleet import names
from gitops_ctl.fleet.forms import is_dns_label, is_printable, is_qualified_name, is_subdomain
from gitops_ctl.fleet.policytypes import FleetPolicy, Protection, RiskGroup, WorkloadDrain
from gitops_ctl.fleet.selector import LONGEST_KEY, Selector, selector_of
from gitops_ctl.fleet.strict import Malformed, Reader, decode_object, pointer_to

MOST_KEYS: Final = 16
MOST_TARGETS: Final = 100
MOST_RESERVATIONS: Final = 256
LEAST_LEDGER_BYTES: Final = 4096
MOST_LEDGER_BYTES: Final = 262144
MOST_POLICY_BYTES: Final = 1 << 20
"""What a ConfigMap can hold."""
MOST_RATE: Final = 2**63 - 1
MOST_NAMED: Final = 256
"""Protections: bounded only so that a document ends."""
DRAIN_MARGIN_S: Final = 120

_PREFIXES: Final = (names.TOPOLOGY, names.OPERATIONS, names.DISTRIBUTION)
_NEVER_PROJECTED: Final = (names.OPERATIONS, names.DISTRIBUTION)

T = TypeVar("T", Protection, RiskGroup)


def read_policy(text: str) -> FleetPolicy:
    """The policy that the text is.

    Raises:
        Malformed: with the pointer of the first member that breaks a rule.
    """
    reader = Reader(decode_object(text, most_bytes=MOST_POLICY_BYTES), "", nulls=True)
    version = reader.text("version")
    if version != "v1":
        raise Malformed("/version", f"version must be 'v1', not {version[:64]!r}")
    app, network = _accounts(reader)
    required = _required_keys(reader)
    # Both maps together cannot have more than 16 keys either: each key is a required one.
    transfers, unavailable = (_domains(reader, name, required) for name in _DOMAINS)
    policy = FleetPolicy(
        version=version,
        app_hosting_account=app,
        network_management_account=network,
        config_lease_namespace=_lease_namespace(reader),
        fleet_selector=_fleet_selector(reader),
        required_keys=required,
        projected_keys=_projected_keys(reader, required),
        max_concurrent_transfers=reader.number("globalMaxConcurrentTransfers", 1, 100),
        max_unavailable=reader.number("globalMaxUnavailable", 1, 100),
        domain_transfers=transfers,
        domain_unavailable=unavailable,
        health_freshness_s=reader.number("healthFreshnessSeconds", 30, 3600),
        max_campaign_targets=_limit(reader, "maxCampaignTargets", 1, MOST_TARGETS),
        max_active_reservations=_limit(reader, "maxActiveReservations", 1, MOST_RESERVATIONS),
        max_ledger_bytes=_limit(reader, "maxLedgerBytes", LEAST_LEDGER_BYTES, MOST_LEDGER_BYTES),
        ledger_name=_ledger_name(reader),
        drain=_drain(reader),
        protections=_named(reader, "disruptionProtections", MOST_NAMED, _protection, required),
        risk_groups=_named(reader, "riskGroups", MOST_KEYS, _risk_group, required),
    )
    reader.end()
    return policy


_DOMAINS: Final = ("domainMaxConcurrentTransfers", "domainMaxUnavailable")


def _limit(reader: Reader, name: str, least: int, most: int) -> int:
    """A number whose absence, and whose 0, mean the largest."""
    return reader.number(name, least, most, default=most, zero=most)


def _accounts(reader: Reader) -> tuple[str, str]:
    members = ("appHostingServiceAccountName", "networkManagementServiceAccountName")
    for name in members:
        if not is_dns_label(reader.text(name)):
            raise Malformed(reader.at(name), f"{name} must be a DNS label")
    app, network = (reader.text(name) for name in members)
    if app == network:
        raise Malformed(reader.at(members[1]), f"{members[1]} must differ from {members[0]}")
    return app, network


def _lease_namespace(reader: Reader) -> str:
    text = reader.text("configLeaseNamespace", default="")
    if text and not is_dns_label(text):
        raise Malformed("/configLeaseNamespace", "configLeaseNamespace must be empty or a DNS label")
    return text


def _ledger_name(reader: Reader) -> str:
    text = reader.text("ledgerName")
    if not is_subdomain(text):
        raise Malformed("/ledgerName", "ledgerName must be a DNS subdomain")
    return text


def _fleet_selector(reader: Reader) -> Selector:
    selector = selector_of(reader.take("fleetSelector"), "/fleetSelector")
    if selector.is_empty:
        raise Malformed("/fleetSelector", "fleetSelector must not be empty: it would enrol every device")
    strange = [key for key in sorted(selector.keys) if not key.startswith(names.TOPOLOGY)]
    if strange:
        raise Malformed("/fleetSelector", f"fleetSelector may use keys of {names.TOPOLOGY} only, not {strange[0]!r}")
    return selector


def _required_keys(reader: Reader) -> tuple[str, ...]:
    keys = reader.texts("requiredTopologyKeys", least=1, most=MOST_KEYS)
    for index, key in enumerate(keys):
        place = pointer_to("/requiredTopologyKeys", index)
        if len(key) > LONGEST_KEY or not is_qualified_name(key):
            raise Malformed(place, f"{key[:LONGEST_KEY]!r} is no label key of at most {LONGEST_KEY} bytes")
        if key not in (names.REGION, names.ZONE) and not key.startswith(_PREFIXES):
            raise Malformed(place, f"{key!r} is no topology key: it is none of region, zone, {', '.join(_PREFIXES)}")
    return keys


def _projected_keys(reader: Reader, required: tuple[str, ...]) -> tuple[str, ...]:
    keys = reader.texts("projectedTopologyKeys", least=0, most=MOST_KEYS)
    for index, key in enumerate(keys):
        place = pointer_to("/projectedTopologyKeys", index)
        if key.startswith(_NEVER_PROJECTED):
            raise Malformed(place, f"{key!r} is never projected onto a Node")
        if key not in required:
            raise Malformed(place, f"{key!r} is not among requiredTopologyKeys")
    return keys


def _domains(reader: Reader, name: str, required: tuple[str, ...]) -> dict[str, int]:
    found = Reader(reader.members(name, least=1, most=MOST_KEYS), reader.at(name))
    limits: dict[str, int] = {}
    for key in reader.members(name, least=1, most=MOST_KEYS):
        if key not in required:
            raise Malformed(found.at(key), f"{key!r} is not among requiredTopologyKeys")
        limits[key] = found.number(key, 1, 100)
    return limits


def _drain(reader: Reader) -> WorkloadDrain | None:
    if not reader.has("workloadDrain"):
        return None
    drain = Reader(reader.take("workloadDrain"), "/workloadDrain", nulls=True)
    if not drain.flag("enabled", default=False):
        # A disabled block counts as absent, but nothing unknown hides in it.
        for name in ("allowedNamespaces", "maxTimeoutSeconds", "maxPods", "maxTerminationGraceSeconds"):
            if drain.has(name):
                drain.take(name)
        drain.end()
        return None
    namespaces = drain.texts("allowedNamespaces", least=1, most=MOST_KEYS)
    for index, name in enumerate(namespaces):
        if not is_dns_label(name):
            raise Malformed(pointer_to(drain.at("allowedNamespaces"), index), f"{name[:64]!r} must be a DNS label")
    caps = WorkloadDrain(
        allowed_namespaces=namespaces,
        max_timeout_s=drain.number("maxTimeoutSeconds", 300, 7200),
        max_pods=drain.number("maxPods", 1, 32),
        max_grace_s=drain.number("maxTerminationGraceSeconds", 30, 600),
    )
    drain.end()
    if caps.max_timeout_s < caps.max_grace_s + DRAIN_MARGIN_S:
        rule = f"maxTimeoutSeconds must be at least maxTerminationGraceSeconds + {DRAIN_MARGIN_S}"
        raise Malformed(drain.at("maxTimeoutSeconds"), rule)
    return caps


def _named(
    reader: Reader, name: str, most: int, read: Callable[[Reader, Iterable[str]], T], required: Iterable[str]
) -> tuple[T, ...]:
    """The entries of a list that is keyed by name."""
    found: list[T] = []
    for index, value in enumerate(reader.entries(name, least=0, most=most)):
        entry = Reader(value, pointer_to(reader.at(name), index), nulls=True)
        item = read(entry, required)
        entry.end()
        if any(other.name == item.name for other in found):
            raise Malformed(entry.at("name"), f"{item.name!r} is twice in {name}")
        found.append(item)
    return tuple(found)


def _protection(entry: Reader, required: Iterable[str]) -> Protection:
    name = entry.text("name")
    if len(name) > 63 or not is_printable(name):
        raise Malformed(entry.at("name"), f"{name[:64]!r} must be 1 to 63 printable ASCII characters without a space")
    reason = entry.text("reason")
    if reason not in names.PROTECTION_REASONS:
        known = " or ".join(names.PROTECTION_REASONS)
        raise Malformed(entry.at("reason"), f"reason must be {known}, not {reason[:64]!r}")
    return Protection(name, reason, _selector(entry, required))


def _risk_group(entry: Reader, required: Iterable[str]) -> RiskGroup:
    name = entry.text("name")
    if not is_dns_label(name):
        raise Malformed(entry.at("name"), f"{name[:64]!r} must be a DNS label")
    selector = _selector(entry, required)
    transfers = entry.number("maxConcurrentTransfers", 1, 100)
    unavailable = entry.number("maxUnavailable", 1, 100)
    rate = entry.number("maxAggregateTransferBytesPerSecond", 1, MOST_RATE, default=0, zero=0)
    if rate and rate < transfers:
        rule = "maxAggregateTransferBytesPerSecond must leave each of maxConcurrentTransfers at least 1 byte"
        raise Malformed(entry.at("maxAggregateTransferBytesPerSecond"), rule)
    return RiskGroup(name, selector, transfers, unavailable, rate)


def _selector(entry: Reader, required: Iterable[str]) -> Selector:
    value: JsonValue = entry.take("selector")
    selector = selector_of(value, entry.at("selector"))
    if selector.is_empty:
        raise Malformed(entry.at("selector"), "selector must not be empty: it would match every device")
    strange = sorted(selector.keys - set(required))
    if strange:
        raise Malformed(entry.at("selector"), f"{strange[0]!r} is not among requiredTopologyKeys")
    return selector

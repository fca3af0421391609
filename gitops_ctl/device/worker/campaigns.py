"""What the campaigns of the namespace ask of one device: fresh evidence, and checks before somebody approves (rollouts.md, 9.4, 15.1, 15.5).

Pure, over the trees of rollouts and leaves as they are cached.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.evidence import Rules
from gitops_ctl.fleet.health import DEFAULT_OBSERVATION_AGE_S, freshness_limit
from gitops_ctl.fleet.leaf import TERMINAL

ENDED: Final = ("Succeeded", "Failed", "Cancelled")
"""Phases of a campaign that begins nothing any more."""
SETTLED: Final = ("Succeeded", "Cancelled")
"""Those in which nothing is left to settle: one that Failed needs evidence of what was claimed before (13.7)."""

UNSUPPORTED: Final = {"InstallUnsupported": "OS.Install", "ActivationUnsupported": "OS.Activate"}
"""Why an upgrade failed on a device that does not have the call: the record of that, for the version that ran."""
_BEGUN: Final = ("Admitted", "Running", "Soaking", "Cancelling")
"""Phases of a target whose device is reserved; one that is Blocked may be so because of its journal, and then waits for this worker."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What samples have to serve: the limit of their age in seconds, and the interfaces that somebody requires."""

    freshness_s: int
    interfaces: frozenset[str]


@dataclass(frozen=True, slots=True)
class Order:
    """One preflight: of which plan, from where the image comes; `preinstalled` skips what is about the image.

    Attributes:
        secret: name of the Secret of an sftp source, empty for https.
        secret_uid: that was frozen.
        max_bytes_per_s: of the download; 0: as fast as it goes.
    """

    rollout_uid: str
    plan_hash: str
    url: str
    sha256: str
    secret: str
    secret_uid: str
    preinstalled: bool
    max_bytes_per_s: int = 0


def evidence_for(
    device_uid: str, rollouts: Iterable[JsonObject], *, policy_s: int = DEFAULT_OBSERVATION_AGE_S
) -> Evidence:
    """The smallest of the policy's limit and those of the campaigns that name the device, or may come to name it."""
    freshness_s, wanted = min(policy_s, DEFAULT_OBSERVATION_AGE_S), set[str]()
    for rollout in rollouts:
        targets = objects_at(rollout, "status", "frozenPlan", "targets")
        is_named = not targets or any(text_at(target, "deviceUID") == device_uid for target in targets)
        if text_at(rollout, "status", "phase") in SETTLED or not is_named:
            continue
        health = object_at(rollout, "spec", "plan", "health")
        freshness_s = min(freshness_s, freshness_limit(_policy_s(rollout), int_at(health, "maxObservationAgeSeconds")))
        wanted.update(Rules.of(object_at(health, "network")).required_interfaces)
    return Evidence(freshness_s, frozenset(wanted))


def _policy_s(rollout: JsonObject) -> int:
    """The policy's limit as the campaign knows it: that in force, and that which was frozen."""
    status = object_at(rollout, "status")
    known = (object_at(status, "effectivePolicy", "policy"), object_at(status, "frozenPlan", "policy"))
    found = [int_at(policy, "healthFreshnessSeconds") for policy in known]
    return min((limit for limit in found if limit > 0), default=DEFAULT_OBSERVATION_AGE_S)


def orders_for(device_uid: str, rollouts: Iterable[JsonObject], leaves: Iterable[JsonObject]) -> tuple[Order, ...]:
    """The preflights that are wanted now, by the UID of their campaign."""
    begun = {_begun(leaf) for leaf in leaves}
    found = (_order(device_uid, rollout, begun) for rollout in rollouts)
    return tuple(sorted((order for order in found if order is not None), key=lambda order: order.rollout_uid))


def _begun(leaf: JsonObject) -> tuple[str, str, bool]:
    annotations = object_at(leaf, "metadata", "annotations")
    is_activation = bool(text_at(annotations, names.PREPARED_UPGRADE_UID))
    return text_at(annotations, names.CAMPAIGN_UID), text_at(annotations, names.DEVICE_UID), is_activation


def _order(device_uid: str, rollout: JsonObject, begun: set[tuple[str, str, bool]]) -> Order | None:
    uid, plan = text_at(rollout, "metadata", "uid"), object_at(rollout, "status", "frozenPlan")
    targets = [target for target in objects_at(plan, "targets") if text_at(target, "deviceUID") == device_uid]
    if not targets or not uid:
        return None
    activates = "activationApproval" in object_at(rollout, "spec")
    phase = text_at(rollout, "status", "phase")
    is_over = phase in ENDED and not (activates and phase == "Succeeded")
    if is_over or (uid, device_uid, activates) in begun:
        return None
    source = object_at(targets[0], "source")
    return Order(
        rollout_uid=uid,
        plan_hash=text_at(plan, "hash"),
        url=text_at(source, "url"),
        sha256=text_at(source, "sha256").removeprefix("sha256:"),
        secret=text_at(source, "secretName"),
        secret_uid=text_at(source, "secretUID"),
        preinstalled=activates,
        max_bytes_per_s=int_at(targets[0], "maxTransferBytesPerSecond"),
    )


def has_begun(device_uid: str, rollouts: Iterable[JsonObject]) -> bool:
    """Whether a campaign that is not settled says that it has begun with the device, so that the device is reserved."""
    running = [rollout for rollout in rollouts if text_at(rollout, "status", "phase") not in SETTLED]
    targets = [target for rollout in running for target in objects_at(rollout, "status", "targets")]
    mine = [target for target in targets if text_at(target, "deviceUID") == device_uid]
    return any(text_at(target, "phase") in _BEGUN for target in mine)


def absent_call(device_uid: str, running: str, leaves: Iterable[JsonObject]) -> str:
    """Which call of an upgrade the version that runs does not have, as an earlier upgrade found out; empty when none is known.

    Another version is asked anew (devices.md, section 14).
    """
    for leaf in leaves:
        reason, version = (text_at(leaf, "status", member) for member in ("failureReason", "previousVersion"))
        is_mine = text_at(leaf, "metadata", "annotations", names.DEVICE_UID) == device_uid
        if is_mine and reason in UNSUPPORTED and running and version == running:
            name = text_at(leaf, "metadata", "name")
            return f"{running} does not offer {UNSUPPORTED[reason]}: upgrade {name} ended with {reason}"
    return ""


def sources_in_use(rollouts: Iterable[JsonObject]) -> frozenset[tuple[str, str, str]]:
    """Image sources of campaigns that have not ended: URL, SHA-256 and UID of the Secret."""
    running = [rollout for rollout in rollouts if text_at(rollout, "status", "phase") not in ENDED]
    targets = (target for rollout in running for target in objects_at(rollout, "status", "frozenPlan", "targets"))
    return frozenset(_source_of(object_at(target, "source")) for target in targets)


def _source_of(source: JsonObject) -> tuple[str, str, str]:
    return text_at(source, "url"), text_at(source, "sha256").removeprefix("sha256:"), text_at(source, "secretUID")


def ended_campaigns(rollouts: Iterable[JsonObject]) -> frozenset[str]:
    """UIDs of the campaigns that have ended and are still there."""
    return frozenset(
        text_at(rollout, "metadata", "uid") for rollout in rollouts if text_at(rollout, "status", "phase") in ENDED
    )


def needed_images(leaves: Iterable[JsonObject]) -> frozenset[str]:
    """SHA-256 of the images that leaves without an end need."""
    open_leaves = [leaf for leaf in leaves if text_at(leaf, "status", "phase") not in TERMINAL]
    found = (text_at(leaf, "spec", "imageSource", "sha256").removeprefix("sha256:") for leaf in open_leaves)
    return frozenset(digest for digest in found if digest)

"""Evidence of health: a snapshot that is renewed at a third of its limit, and never earlier without a cause (rollouts.md, section 15).

The snapshot ages with the heartbeat in it; a Node that is silent gets no newer one, since nothing new was seen.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.evidence import Expected, Rules, network_problem
from gitops_ctl.fleet.health import DEFAULT_OBSERVATION_AGE_S, conditions_hash, freshness_limit
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.topology.identity_plan import Claim

_ANY: Final = Rules()
"""No requirement of a plan: origin, time and form only."""
FINISHED: Final = ("Succeeded", "Cancelled")
"""Phases of a campaign that asks for no evidence any more; one that Failed still settles what was claimed, and needs it (13.7)."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What a campaign that has not ended asks for.

    Attributes:
        device_uids: its targets; None before they are frozen: then it is about every device of its namespace.
        age_s: how old evidence of them may be, in seconds.
        secrets: what its image sources name.
        policy_s: how old evidence of any device of the fleet may be, by the epoch of the policy that is in force for it; 0 before there is one.
    """

    namespace: str
    device_uids: frozenset[str] | None
    age_s: int
    secrets: frozenset[str] = frozenset()
    policy_s: int = 0

    def names(self, claim: Claim) -> bool:
        """Whether the device is one of its targets, or may become one."""
        return claim.namespace == self.namespace if self.device_uids is None else claim.uid in self.device_uids


def campaign_of(rollout: JsonObject) -> Campaign | None:
    """What an IOSXESoftwareRollout asks for; None once it has ended."""
    if text_at(rollout, "status", "phase") in FINISHED:
        return None
    plan = object_at(rollout, "spec", "plan")
    targets = objects_at(rollout, "status", "frozenPlan", "targets")
    age = object_at(plan, "health").get("maxObservationAgeSeconds")
    secrets = (text_at(source, "urlSecretRef", "name") for source in objects_at(plan, "image", "sources"))
    return Campaign(
        namespace=text_at(rollout, "metadata", "namespace"),
        device_uids=frozenset(text_at(target, "deviceUID") for target in targets) if targets else None,
        age_s=age if isinstance(age, int) and age > 0 else DEFAULT_OBSERVATION_AGE_S,
        secrets=frozenset(name for name in secrets if name),
        policy_s=int_at(rollout, "status", "effectivePolicy", "policy", "healthFreshnessSeconds"),
    )


def freshness_of(device: Claim, *, policy_s: int, campaigns: Iterable[Campaign]) -> int:
    """The smallest limit in force for a device, in seconds: an epoch's holds for the whole fleet, a plan's for its targets."""
    known = tuple(campaigns)
    strictest_s = min([policy_s, *(one.policy_s for one in known if one.policy_s)])
    return min((freshness_limit(strictest_s, one.age_s) for one in known if one.names(device)), default=strictest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the snapshot is made from.

    Attributes:
        phase, conditions: as they are written together with the snapshot.
        checked: types of the conditions whose check was made in this pass.
        freshness_s: the limit in force.
    """

    phase: str
    conditions: Collection[JsonObject]
    checked: Collection[str]
    node: JsonObject
    now: datetime
    freshness_s: int


def snapshot(old: JsonObject, seen: Observed) -> JsonObject:
    """The snapshot to store, without the network's members: the old one while nothing differs and it is young enough.

    A binding that is not stored yet has none: to make an identity is no evidence.  Nor is there one before the first heartbeat.
    """
    ready = condition_of(object_at(seen.node, "status"), "Ready") or {}
    heartbeat = text_at(ready, "lastHeartbeatTime")
    digest = conditions_hash(seen.phase, seen.conditions)
    has_news = text_at(ready, "status") == "True" and heartbeat != text_at(old, "nodeReadyHeartbeatTime")
    is_same = text_at(old, "deviceConditionsHash") == digest
    is_wanted = is_due(old, now=seen.now, freshness_s=seen.freshness_s) or is_ready_anew(old, seen.node)
    if not heartbeat or (is_same and not (has_news and is_wanted)):
        return {name: value for name, value in old.items() if name not in ("network", "acceptedNetwork")}
    return {
        "observedAt": to_rfc3339(seen.now),
        "nodeReadyHeartbeatTime": heartbeat,
        "deviceConditionsHash": digest,
        "conditionObservations": [*_observations(old, seen)],
    }


def _observations(old: JsonObject, seen: Observed) -> Iterable[JsonValue]:
    """One for each required condition; what was not checked keeps its old time."""
    before = {text_at(item, "type"): item for item in objects_at(old, "conditionObservations")}
    for condition in sorted(seen.conditions, key=lambda item: text_at(item, "type")):
        kind = text_at(condition, "type")
        if kind not in names.REQUIRED_CONDITIONS:
            continue
        at = to_rfc3339(seen.now) if kind in seen.checked else text_at(before.get(kind, {}), "observedAt")
        if at:
            members = {name: condition[name] for name in ("status", "observedGeneration") if name in condition}
            yield {"type": kind, **members, "observedAt": at}


def is_ready_anew(old: JsonObject, node: JsonObject) -> bool:
    """Whether the Node became ready after the heartbeat in the snapshot: that one proves nothing any more (15.3)."""
    ready = condition_of(object_at(node, "status"), "Ready") or {}
    since, seen = moment_at(ready, "lastTransitionTime"), moment_at(old, "nodeReadyHeartbeatTime")
    return text_at(ready, "status") == "True" and since is not None and (seen is None or since > seen)


def is_due(old: JsonObject, *, now: datetime, freshness_s: int) -> bool:
    """Whether a third of the limit has passed; also for an observation from a clock ahead of ours."""
    observed = moment_at(old, "observedAt")
    return observed is None or not timedelta(0) <= now - observed < timedelta(seconds=freshness_s / 3)


def seconds_left(old: JsonObject, *, now: datetime, freshness_s: int) -> float:
    """Seconds until the snapshot is renewed; a third of the limit when there is none."""
    observed = moment_at(old, "observedAt")
    whole_s = freshness_s / 3
    return whole_s if observed is None else min(whole_s, max(0.0, whole_s - (now - observed).total_seconds()))


def is_newer_sample(accepted: JsonObject, sample: JsonObject) -> bool:
    """Whether a sample is another one than the accepted, and not one from before it of the same Pod."""
    if not accepted:
        return True
    if text_at(accepted, "workerPodUID") != text_at(sample, "workerPodUID"):
        return True
    old, new = accepted.get("sampleSequence"), sample.get("sampleSequence")
    return isinstance(new, int) and (not isinstance(old, int) or new > old)


def accepted_sample(
    accepted: JsonObject, sample: JsonObject, *, expected: Expected, now: datetime, freshness_s: int
) -> JsonObject:
    """The sample to hold as accepted: a newer one whose origin, time and form are beyond doubt, else the one that was.

    What a plan requires of it (interfaces, headroom, neighbours) is judged where it is needed; one that has aged stays and proves nothing.
    """
    if not sample or not is_newer_sample(accepted, sample):
        return accepted
    return (
        accepted if network_problem(sample, rules=_ANY, expected=expected, now=now, freshness_s=freshness_s) else sample
    )

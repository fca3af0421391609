"""Health of one object, as kstatus computes it, with three changes (gitops.md, section 10).

A new custom resource is InProgress until its first status or for 30 s; a running Job is InProgress; CEL expressions of the
unit come before the rule of the kind (they are evaluated by `healthchecks`).  Pure: what the passing of time alone changes
is part of the answer, so an object is judged once, when it is decoded.
"""

from collections.abc import Callable, Mapping
from typing import Final

from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.sync.model import CURRENT, Health, HealthStatus

NEW_RESOURCE_S: Final = 30.0
"""How long a custom resource may be without a status before that counts as reconciled."""

UNSCHEDULABLE_S: Final = 15.0
"""How long a Pod may be unschedulable before it counts as failed."""

Rule = Callable[[JsonObject], Health]

_RULES: Final[dict[GroupKind, Rule]] = {}


def register_health(kind: GroupKind, rule: Rule) -> None:
    """Give a kind its own rule; the generic checks of deletion and generation still come first.

    Raises:
        ValueError: the kind has one.
    """
    if kind in _RULES:
        raise ValueError(f"{kind} has a health rule")
    _RULES[kind] = rule


def health_of(tree: JsonObject) -> Health:
    """The health of a live object."""
    metadata = object_at(tree, "metadata")
    if "deletionTimestamp" in metadata:
        return Health(HealthStatus.TERMINATING, "is being deleted")
    status = object_at(tree, "status")
    observed = status.get("observedGeneration")
    if isinstance(observed, int) and observed != int_at(metadata, "generation"):
        return _in_progress("its newest generation is not observed yet")
    conditions = {text_at(item, "type"): item for item in objects_at(status, "conditions")}
    for name in conditions:
        if name == "Reconciling" and _true(conditions, name):
            return _in_progress(_text(conditions, name))
        if name == "Stalled" and _true(conditions, name):
            return _failed(_text(conditions, name))
    kind = GroupVersionKind.of(tree).group_kind
    rule = _RULES.get(kind)
    if rule is not None:
        return rule(tree)
    return _generic(tree, kind, conditions)


def generic_health(tree: JsonObject) -> Health:
    """What is said of kinds without a rule of their own, for a rule that is about some objects of its kind only."""
    return _generic(tree, GroupVersionKind.of(tree).group_kind, _conditions(tree))


def _generic(tree: JsonObject, kind: GroupKind, conditions: Mapping[str, JsonObject]) -> Health:
    if "Ready" in conditions:
        return CURRENT if _true(conditions, "Ready") else _in_progress(_text(conditions, "Ready"))
    if is_custom(kind) and not object_at(tree, "status"):
        return _young(tree)
    return CURRENT


def is_custom(kind: GroupKind) -> bool:
    """Whether a kind comes from a CustomResourceDefinition: its group is neither built in nor one of `k8s.io`."""
    return "." in kind.group and not kind.group.endswith(".k8s.io")


def _young(tree: JsonObject) -> Health:
    """A custom resource whose controller has not answered: maybe there is none, so it is not waited for for ever."""
    try:
        born = from_rfc3339(text_at(tree, "metadata", "creationTimestamp")).timestamp()
    except ValueError:
        return CURRENT
    return Health(HealthStatus.IN_PROGRESS, "has no status yet", turns=(HealthStatus.CURRENT, born + NEW_RESOURCE_S))


def _in_progress(message: str) -> Health:
    return Health(HealthStatus.IN_PROGRESS, message)


def _failed(message: str) -> Health:
    return Health(HealthStatus.FAILED, message)


def _true(conditions: Mapping[str, JsonObject], name: str) -> bool:
    return name in conditions and text_at(conditions[name], "status") == "True"


def _false(conditions: Mapping[str, JsonObject], name: str) -> bool:
    return name in conditions and text_at(conditions[name], "status") == "False"


def _text(conditions: Mapping[str, JsonObject], name: str) -> str:
    found = conditions[name]
    return text_at(found, "message") or text_at(found, "reason") or f"{name}={text_at(found, 'status')}"


def _conditions(tree: JsonObject) -> Mapping[str, JsonObject]:
    return {text_at(item, "type"): item for item in objects_at(tree, "status", "conditions")}


def _first_unmet(*checks: tuple[bool, str]) -> Health:
    """Current when every check holds, else InProgress with the text of the first that does not."""
    return next((_in_progress(text) for holds, text in checks if not holds), CURRENT)


def _deployment(tree: JsonObject) -> Health:
    conditions = _conditions(tree)
    if text_at(conditions.get("Progressing", {}), "reason") == "ProgressDeadlineExceeded":
        return _failed(_text(conditions, "Progressing"))
    wanted = int_at(tree, "spec", "replicas", default=1)
    status = object_at(tree, "status")
    total, updated = int_at(status, "replicas"), int_at(status, "updatedReplicas")
    available, ready = int_at(status, "availableReplicas"), int_at(status, "readyReplicas")
    progressing = conditions.get("Progressing")
    rolled_out = text_at(progressing or {}, "reason") == "NewReplicaSetAvailable"
    return _first_unmet(
        ("observedGeneration" in status, "is not observed yet"),
        (total >= wanted, f"{total} of {wanted} replicas"),
        (updated >= wanted, f"{updated} of {wanted} replicas updated"),
        (total <= updated, f"{total - updated} old replicas are still there"),
        (available >= updated, f"{available} of {updated} replicas available"),
        (ready >= wanted, f"{ready} of {wanted} replicas ready"),
        (progressing is None or rolled_out, "the new replica set is not available yet"),
        (_true(conditions, "Available"), "is not available"),
    )


def _stateful_set(tree: JsonObject) -> Health:
    spec, status = object_at(tree, "spec"), object_at(tree, "status")
    if text_at(spec, "updateStrategy", "type") == "OnDelete":
        return CURRENT
    wanted = int_at(spec, "replicas", default=1)
    total, ready = int_at(status, "replicas"), int_at(status, "readyReplicas")
    current, updated = int_at(status, "currentReplicas"), int_at(status, "updatedReplicas")
    partition = int_at(spec, "updateStrategy", "rollingUpdate", "partition")
    base = (
        ("observedGeneration" in status, "is not observed yet"),
        (total >= wanted, f"{total} of {wanted} replicas"),
        (ready >= wanted, f"{ready} of {wanted} replicas ready"),
        (total <= wanted, f"{total - wanted} replicas too many"),
    )
    if partition:
        due = max(0, wanted - partition)
        return _first_unmet(*base, (updated >= due, f"{updated} of {due} replicas updated"))
    same = text_at(status, "currentRevision") == text_at(status, "updateRevision")
    return _first_unmet(
        *base,
        (current >= wanted, f"{current} of {wanted} replicas current"),
        (same, "the update is not finished"),
    )


def _daemon_set(tree: JsonObject) -> Health:
    status = object_at(tree, "status")
    wanted = int_at(status, "desiredNumberScheduled")
    current, updated = int_at(status, "currentNumberScheduled"), int_at(status, "updatedNumberScheduled")
    available, ready = int_at(status, "numberAvailable"), int_at(status, "numberReady")
    return _first_unmet(
        ("observedGeneration" in status and int_at(tree, "metadata", "generation") > 0, "is not observed yet"),
        (current >= wanted, f"{current} of {wanted} pods scheduled"),
        (updated >= wanted, f"{updated} of {wanted} pods updated"),
        (available >= wanted, f"{available} of {wanted} pods available"),
        (ready >= wanted, f"{ready} of {wanted} pods ready"),
    )


def _replica_set(tree: JsonObject) -> Health:
    conditions, status = _conditions(tree), object_at(tree, "status")
    wanted = int_at(tree, "spec", "replicas", default=1)
    labelled, total = int_at(status, "fullyLabeledReplicas"), int_at(status, "replicas")
    available, ready = int_at(status, "availableReplicas"), int_at(status, "readyReplicas")
    return _first_unmet(
        (not _true(conditions, "ReplicaFailure"), "cannot make its replicas"),
        ("observedGeneration" in status, "is not observed yet"),
        (labelled >= wanted, f"{labelled} of {wanted} replicas labelled"),
        (available >= wanted, f"{available} of {wanted} replicas available"),
        (ready >= wanted, f"{ready} of {wanted} replicas ready"),
        (total <= wanted, f"{total - wanted} replicas too many"),
    )


def _pod(tree: JsonObject) -> Health:
    conditions, phase = _conditions(tree), text_at(tree, "status", "phase")
    if phase in ("Succeeded", "Failed") or (phase == "Running" and _true(conditions, "Ready")):
        return CURRENT
    if any(
        text_at(container, "state", "waiting", "reason") == "CrashLoopBackOff"
        for name in ("containerStatuses", "initContainerStatuses")
        for container in objects_at(tree, "status", name)
    ):
        return _failed("a container ends again and again (CrashLoopBackOff)")
    scheduled = conditions.get("PodScheduled", {})
    if text_at(scheduled, "status") == "False" and text_at(scheduled, "reason") == "Unschedulable":
        return _unschedulable(scheduled)
    return _in_progress(f"is {phase or 'Pending'}")


def _unschedulable(condition: JsonObject) -> Health:
    text = text_at(condition, "message") or "cannot be scheduled"
    try:
        since = from_rfc3339(text_at(condition, "lastTransitionTime")).timestamp()
    except ValueError:
        return _in_progress(text)
    return Health(HealthStatus.IN_PROGRESS, text, turns=(HealthStatus.FAILED, since + UNSCHEDULABLE_S))


def _job(tree: JsonObject) -> Health:
    conditions = _conditions(tree)
    if _true(conditions, "Failed"):
        return _failed(_text(conditions, "Failed"))
    if _true(conditions, "Complete") or _true(conditions, "Suspended"):
        return CURRENT
    started = "startTime" in object_at(tree, "status")
    return _in_progress("is running" if started else "has not started")


def _volume_claim(tree: JsonObject) -> Health:
    phase = text_at(tree, "status", "phase")
    return CURRENT if phase == "Bound" else _in_progress(f"is {phase or 'Pending'}")


def _service(tree: JsonObject) -> Health:
    waits = text_at(tree, "spec", "type") == "LoadBalancer" and not text_at(tree, "spec", "clusterIP")
    return _in_progress("has no cluster IP") if waits else CURRENT


def _disruption_budget(tree: JsonObject) -> Health:
    seen = "observedGeneration" in object_at(tree, "status")
    return CURRENT if seen else _in_progress("is not observed yet")


def _definition(tree: JsonObject) -> Health:
    conditions = _conditions(tree)
    if _false(conditions, "NamesAccepted"):
        return _failed(_text(conditions, "NamesAccepted"))
    if _true(conditions, "Established"):
        return CURRENT
    if _false(conditions, "Established") and text_at(conditions["Established"], "reason") != "Installing":
        return _failed(_text(conditions, "Established"))
    return _in_progress("is not established yet")


def _namespace(tree: JsonObject) -> Health:
    phase = text_at(tree, "status", "phase", default="Active")
    return CURRENT if phase == "Active" else Health(HealthStatus.TERMINATING, f"is {phase}")


for _kind, _rule in (
    (GroupKind("", "Secret"), lambda _tree: CURRENT),
    (GroupKind("", "ConfigMap"), lambda _tree: CURRENT),
    (GroupKind("batch", "CronJob"), lambda _tree: CURRENT),
    (GroupKind("apps", "Deployment"), _deployment),
    (GroupKind("apps", "StatefulSet"), _stateful_set),
    (GroupKind("apps", "DaemonSet"), _daemon_set),
    (GroupKind("apps", "ReplicaSet"), _replica_set),
    (GroupKind("", "Pod"), _pod),
    (GroupKind("batch", "Job"), _job),
    (GroupKind("", "PersistentVolumeClaim"), _volume_claim),
    (GroupKind("", "Service"), _service),
    (GroupKind("policy", "PodDisruptionBudget"), _disruption_budget),
    (GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"), _definition),
    (GroupKind("", "Namespace"), _namespace),
):
    register_health(_kind, _rule)

"""Reads the objects of a switch from their trees; members that are missing or of another form count as absent.

What counts is what the API server has checked already; nothing here refuses a tree.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ANNOTATION_HOLD, ANNOTATION_INTRODUCED_COMMIT
from gitops_ctl.cni.model import (
    Action,
    Baseline,
    CiliumSeen,
    Clock,
    Cluster,
    Consumed,
    Denied,
    Drift,
    Gate,
    Lock,
    Machine,
    MachineSeen,
    Mode,
    Observed,
    Operation,
    Override,
    Pending,
    Phase,
    Problem,
    Progress,
    ProxySeen,
    Receipt,
    Record,
    Request,
    Result,
    Role,
    RollOut,
    Row,
    Said,
    ServiceSeen,
    State,
    Steering,
)
from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, bool_at, int_at, list_at, object_at, objects_at, text_at

W = TypeVar("W", Mode, Phase, Action, Result, Progress)


def cluster_of(tree: JsonObject) -> Cluster:
    """A TalosCluster."""
    cni = object_at(tree, "spec", "cni")
    values = object_at(cni, "values")
    return Cluster(
        key=NamespacedName.of(tree),
        uid=text_at(tree, "metadata", "uid"),
        mode=mode_of(text_at(cni, "kubeProxy")) or Mode.ENABLED,
        consent=text_at(tree, "metadata", "annotations", ANNOTATION_CONFIRM_SWITCH),
        record=record_of(object_at(tree, "status")),
        preset=text_at(cni, "preset", default="cilium"),
        handover=text_at(cni, "handover", default="disabled"),
        locator=values or None,
        contract=text_at(tree, "spec", "contract"),
        denied=tuple(
            Denied(text_at(item, "component"), text_at(item, "versions"), text_at(item, "reason"))
            for item in objects_at(cni, "deniedVersions")
        ),
        parallel=max(1, int_at(cni, "maxParallelWorkers", default=1)),
        cleanup=bool_at(cni, "consentCleanup", default=True),
        steering=steering_of(object_at(cni, "operation")),
        deleted=bool(text_at(tree, "metadata", "deletionTimestamp")),
    )


def record_of(status: JsonObject) -> Record:
    """The executor's part of a TalosCluster's status."""
    cni, lock = object_at(status, "cni"), object_at(status, "lock")
    consumed, drift = object_at(cni, "consumedConsent"), object_at(cni, "drift")
    target = mode_of(text_at(consumed, "target"))
    return Record(
        mode=mode_of(text_at(cni, "kubeProxy")),
        consumed=Consumed(text_at(consumed, "commit"), target, text_at(consumed, "operationUID")) if target else None,
        drift=Drift(text_at(drift, "reason"), text_at(drift, "message"), text_at(drift, "since")) if drift else None,
        lock=Lock(text_at(lock, "holder"), text_at(lock, "operationUID"), text_at(lock, "kind"), text_at(lock, "since"))
        if lock
        else None,
    )


def steering_of(tree: JsonObject) -> Steering:
    """`spec.cni.operation` of a cluster, or its mirror in an operation."""
    return Steering(int_at(tree, "resume"), bool_at(tree, "cancel"), bool_at(tree, "breakLock"))


def machine_of(tree: JsonObject) -> Machine:
    """A TalosMachine."""
    observed = object_at(tree, "status", "observed")
    role: Role = "controlplane" if text_at(tree, "spec", "role") == "controlplane" else "worker"
    return Machine(
        name=text_at(tree, "metadata", "name"),
        role=role,
        held=text_at(tree, "metadata", "annotations", ANNOTATION_HOLD) == "true",
        has_base=bool(object_at(tree, "spec", "configSecretRef")),
        proxy=text_at(observed, "kubeProxy"),
        pending=_pending(observed) if observed else None,
    )


def operation_of(tree: JsonObject) -> Operation | None:
    """A TalosOperation of kind `cni`; None for another kind."""
    target = mode_of(text_at(tree, "spec", "target"))
    if text_at(tree, "spec", "kind") != "cni" or target is None:
        return None
    status = object_at(tree, "status")
    return Operation(
        key=NamespacedName.of(tree),
        uid=text_at(tree, "metadata", "uid"),
        created=text_at(tree, "metadata", "creationTimestamp"),
        cluster=text_at(tree, "spec", "clusterRef", "name"),
        target=target,
        commit=text_at(tree, "spec", "sourceCommit"),
        consent=text_at(tree, "metadata", "annotations", ANNOTATION_INTRODUCED_COMMIT).removeprefix("consent="),
        state=state_of(status),
        claims=frozenset(text_at(item, "id") for item in objects_at(status, "claims")),
        receipts={
            text_at(item, "id"): receipt for item in objects_at(status, "receipts") if (receipt := _receipt(item))
        },
        observed=observed_of(object_at(status, "observed")),
    )


def state_of(status: JsonObject) -> State:
    """The executor's part of an operation's status."""
    phase = _word(Phase, text_at(status, "phase")) or Phase.PENDING
    mirror = object_at(status, "operation")
    return State(
        phase=phase,
        step=text_at(status, "step"),
        steering=steering_of(mirror) if "operation" in status else None,
        clocks=tuple(clock for item in objects_at(status, "clocks") if (clock := _clock(item))),
        requests=tuple(request for item in objects_at(status, "requests") if (request := _request(item))),
        baseline=_baseline(object_at(status, "baseline")),
        rows=tuple(map(_row, objects_at(status, "machines"))),
        said=_said(status, phase),
        pull_request=object_at(status, "pullRequest"),
    )


def observed_of(tree: JsonObject) -> Observed | None:
    """`status.observed`; None while nobody looked."""
    at = _time(tree, "at")
    if at is None:
        return None
    return Observed(
        at=at,
        request=text_at(tree, "request"),
        cilium=_cilium(object_at(tree, "cilium")) if "cilium" in tree else None,
        proxy=_proxy(object_at(tree, "kubeProxy")) if "kubeProxy" in tree else None,
        machines={text_at(item, "name"): _machine_seen(item) for item in objects_at(tree, "machines")},
        service=_service(object_at(tree, "service")) if "service" in tree else None,
        kubernetes_version=text_at(tree, "kubernetesVersion"),
        problems=tuple(map(_problem, objects_at(tree, "problems"))),
    )


def mode_of(text: str) -> Mode | None:
    """The mode that a word names."""
    return _word(Mode, text)


def _cilium(tree: JsonObject) -> CiliumSeen:
    value = tree.get("value")
    return CiliumSeen(
        present=bool_at(tree, "present"),
        value=value if isinstance(value, str) else None,
        agents=_roll_out(tree, "agents"),
        operator=_roll_out(tree, "operator"),
        checksum=text_at(tree, "checksum"),
        template_generation=int_at(tree, "templateGeneration"),
        template_written=_time(tree, "templateWrittenAt"),
        written=_time(tree, "configWrittenAt"),
        oldest_start=_time(tree, "oldestAgentStart"),
        lagging=_texts(list_at(tree, "lagging")),
        overrides=tuple(
            Override(text_at(item, "object"), text_at(item, "value"), _texts(list_at(item, "nodes")))
            for item in objects_at(tree, "overrides")
        ),
        version=text_at(tree, "version"),
        service_host=text_at(tree, "serviceHost"),
        service_port=text_at(tree, "servicePort"),
    )


def _proxy(tree: JsonObject) -> ProxySeen:
    return ProxySeen(
        present=bool_at(tree, "present"),
        roll_out=_roll_out(tree, "rollOut"),
        pods=int_at(tree, "pods"),
        objects=tuple(map(_object_name, objects_at(tree, "objects"))),
        missing=tuple(map(_object_name, objects_at(tree, "missing"))),
        rendered=bool_at(tree, "rendered"),
        lagging=_texts(list_at(tree, "lagging")),
    )


def _machine_seen(tree: JsonObject) -> MachineSeen:
    prism = object_at(tree, "kubePrism")
    return MachineSeen(
        name=text_at(tree, "name"),
        reachable=bool_at(tree, "reachable"),
        problem=_problem(object_at(tree, "problem")) if "problem" in tree else None,
        version=text_at(tree, "version"),
        type=text_at(tree, "type"),
        contract=text_at(tree, "contract"),
        proxy=text_at(tree, "kubeProxy"),
        hash_active=text_at(tree, "hashActive"),
        hash_persistent=text_at(tree, "hashPersistent"),
        hash_wanted=text_at(tree, "hashWanted"),
        pending=_pending(tree),
        prism_healthy=bool_at(prism, "healthy"),
        prism_port=int_at(prism, "port"),
        gates=tuple(
            Gate(text_at(item, "name"), bool_at(item, "passed"), text_at(item, "message"))
            for item in objects_at(tree, "gates")
        ),
    )


def _service(tree: JsonObject) -> ServiceSeen:
    return ServiceSeen(
        text_at(tree, "request"), text_at(tree, "result"), text_at(tree, "reason"), text_at(tree, "message")
    )


def _request(tree: JsonObject) -> Request | None:
    action, mode = _word(Action, text_at(tree, "action")), mode_of(text_at(tree, "mode"))
    if action is None or mode is None:
        return None
    return Request(
        text_at(tree, "id"),
        action,
        mode,
        text_at(tree, "machine"),
        text_at(tree, "hashBefore"),
        text_at(tree, "hashWanted"),
    )


def _receipt(tree: JsonObject) -> Receipt | None:
    result = _word(Result, text_at(tree, "result"))
    if result is None:
        return None
    return Receipt(
        text_at(tree, "id"), result, text_at(tree, "at"), text_at(tree, "message"), text_at(tree, "hashApplied")
    )


def _clock(tree: JsonObject) -> Clock | None:
    started, deadline = _time(tree, "startedAt"), _time(tree, "deadline")
    if started is None or deadline is None:
        return None
    return Clock(text_at(tree, "name"), started, deadline)


def _baseline(tree: JsonObject) -> Baseline | None:
    at = _time(tree, "at")
    return Baseline(text_at(tree, "checksum"), int_at(tree, "generation"), at) if at is not None else None


def _row(tree: JsonObject) -> Row:
    role: Role = "controlplane" if text_at(tree, "role") == "controlplane" else "worker"
    return Row(
        text_at(tree, "name"),
        role,
        _word(Progress, text_at(tree, "state")) or Progress.PENDING,
        text_at(tree, "hashBefore"),
        text_at(tree, "hashWanted"),
        text_at(tree, "hashApplied"),
        text_at(tree, "appliedAt"),
        text_at(tree, "message"),
    )


def _said(status: JsonObject, phase: Phase) -> Said:
    """What the phase says: why it is paused, how it ended, or what it waits for."""
    kind = phase.value if phase in (Phase.PAUSED, Phase.AWAITING, Phase.VERIFYING) else "Succeeded"
    condition = condition_of(status, kind) or EMPTY
    reason = text_at(condition, "reason")
    return Said("" if reason == phase.value and not phase.is_over else reason, text_at(condition, "message"))


def _pending(tree: JsonObject) -> tuple[Pending, ...]:
    return tuple(Pending(text_at(item, "path"), text_at(item, "class")) for item in objects_at(tree, "pending"))


def _problem(tree: JsonObject) -> Problem:
    return Problem(text_at(tree, "reason"), text_at(tree, "message"))


def _roll_out(tree: JsonObject, name: str) -> RollOut | None:
    if name not in tree:
        return None
    counts = object_at(tree, name)
    return RollOut(
        generation=int_at(counts, "generation"),
        observed_generation=int_at(counts, "observedGeneration"),
        desired=int_at(counts, "desired"),
        current=int_at(counts, "current"),
        updated=int_at(counts, "updated"),
        ready=int_at(counts, "ready"),
        available=int_at(counts, "available"),
    )


def _object_name(tree: JsonObject) -> str:
    namespace = f"{text_at(tree, 'namespace')}/" if text_at(tree, "namespace") else ""
    return f"{text_at(tree, 'kind')} {namespace}{text_at(tree, 'name')}"


def _time(tree: JsonObject, name: str) -> datetime | None:
    text = text_at(tree, name)
    try:
        return from_rfc3339(text) if text else None
    except ValueError:
        return None


def _texts(items: Sequence[object]) -> tuple[str, ...]:
    return tuple(item for item in items if isinstance(item, str))


def _word(kind: type[W], text: str) -> W | None:
    return kind(text) if text in {word.value for word in kind} else None

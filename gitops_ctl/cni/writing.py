"""Writes the executor's part of statuses as trees, and the operation that a request becomes (cni-switch.md, section 3).

Only members that the executor owns are in these trees: they are applied, so one that is missing is taken back.
"""

import hashlib
from datetime import datetime

from gitops_ctl.api.names import ANNOTATION_INTRODUCED_BY, ANNOTATION_INTRODUCED_COMMIT, ICHOR_API_VERSION
from gitops_ctl.api.talos import WORKER_MEMBERS
from gitops_ctl.cni.model import KIND, Cluster, Introduction, Operation, Phase, Problem, Record, Request, Row, State
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import MESSAGE_LIMIT, Condition, Status, cut, merge_conditions
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at


def state_tree(state: State, *, tree: JsonObject, now: datetime) -> JsonObject:
    """The executor's members of an operation's status; `tree` is the operation as it is stored."""
    status: dict[str, JsonValue] = {"phase": state.phase.value}
    if state.step:
        status["step"] = state.step
    if state.steering is not None:
        steering = state.steering
        status["operation"] = {
            "resume": steering.resume,
            "cancel": steering.cancel,
            "breakLock": steering.break_lock,
        }
    status["clocks"] = [
        {"name": clock.name, "startedAt": to_rfc3339(clock.started), "deadline": to_rfc3339(clock.deadline)}
        for clock in state.clocks
    ]
    status["requests"] = [_request_tree(request) for request in state.requests]
    status["machines"] = [_row_tree(row) for row in state.rows]
    if state.baseline is not None:
        baseline = {"checksum": state.baseline.checksum} if state.baseline.checksum else {}
        status["baseline"] = {
            **baseline,
            "generation": state.baseline.generation,
            "at": to_rfc3339(state.baseline.at),
        }
    if state.pull_request:
        status["pullRequest"] = state.pull_request
    generation = _generation(tree)
    status["observedGeneration"] = generation
    status["conditions"] = merge_conditions(
        object_at(tree, "status"), wanted=conditions_of(state), generation=generation, now=now
    )
    return status


def conditions_of(state: State) -> list[Condition]:
    """The four conditions of section 3.3; messages hold no counters."""
    phase, said = state.phase, state.said
    parts = [said.message, "" if state.noted in said.message else state.noted]
    text = "; ".join(part for part in parts if part)

    def shown(kind: Phase) -> Condition:
        here = phase is kind
        return Condition(
            kind.value,
            _status(here),
            said.reason or kind.value if here else ("Passed" if phase is Phase.SUCCEEDED else "NotNow"),
            text if here else "",
        )

    reason = said.reason if phase.is_over else phase.value
    done = Condition(
        "Succeeded",
        _status(phase is Phase.SUCCEEDED),
        reason or phase.value,
        state.noted if phase is Phase.PAUSED else text,
    )
    paused = Condition(
        "Paused",
        _status(phase is Phase.PAUSED),
        said.reason if phase is Phase.PAUSED else "NotNow",
        said.message if phase is Phase.PAUSED else "",
    )
    return [shown(Phase.AWAITING), shown(Phase.VERIFYING), paused, done]


def owned_of(status: JsonObject) -> JsonObject:
    """An operation's status without the members of the worker."""
    return {name: value for name, value in status.items() if name not in WORKER_MEMBERS}


def record_tree(record: Record) -> dict[str, JsonValue]:
    """The executor's members of a cluster's status; a lock that another kind of operation holds is not ours to write."""
    cni: dict[str, JsonValue] = {}
    if record.mode is not None:
        cni["kubeProxy"] = record.mode.value
    if record.consumed is not None:
        used = record.consumed
        cni["consumedConsent"] = {"commit": used.commit, "target": used.target.value, "operationUID": used.uid}
    if record.drift is not None:
        drift = record.drift
        message = cut(drift.message, limit=MESSAGE_LIMIT)
        cni["drift"] = {"reason": drift.reason, "message": message, "since": drift.since}
    status: dict[str, JsonValue] = {"cni": cni} if cni else {}
    lock = record.lock
    if lock is not None and lock.kind == KIND:
        status["lock"] = {
            "holder": lock.holder,
            "operationUID": lock.uid,
            "kind": lock.kind,
            "since": lock.since,
        }
    return status


def cluster_ready(cluster: Cluster, *, problem: Problem | None, running: Operation | None) -> Condition:
    """The condition `Ready` of a cluster: what stands in the way of people, and which switch runs."""
    drift = cluster.record.drift
    if problem is not None:
        return Condition("Ready", "False", problem.reason, problem.message)
    if drift is not None:
        return Condition("Ready", "False", drift.reason, drift.message)
    if running is not None:
        return Condition(
            "Ready", "True", "SwitchRunning", f"TalosOperation {running.key.name} switches to {running.target}"
        )
    return Condition("Ready", "True", "Observed")


def operation_name(cluster: Cluster, introduced: Introduction) -> str:
    """The same name for the same consent, so that a repeated creation finds the first one."""
    seed = f"{cluster.uid}\0{introduced.commit}\0{cluster.mode}"
    return f"{cluster.key.name[:200]}-{cluster.mode}-{hashlib.sha256(seed.encode()).hexdigest()[:10]}"


def operation_tree(cluster: Cluster, *, introduced: Introduction, commit: str) -> JsonObject:
    """The TalosOperation that field and consent of an accepted revision ask for (section 5.1)."""
    return {
        "apiVersion": ICHOR_API_VERSION,
        "kind": "TalosOperation",
        "metadata": {
            "name": operation_name(cluster, introduced),
            "namespace": cluster.key.namespace,
            "annotations": {
                ANNOTATION_INTRODUCED_BY: f"consent={introduced.person}",
                ANNOTATION_INTRODUCED_COMMIT: f"consent={introduced.commit}",
            },
            "ownerReferences": [cluster_reference(cluster)],
        },
        "spec": {
            "clusterRef": {"name": cluster.key.name},
            "kind": KIND,
            "target": cluster.mode.value,
            "sourceCommit": commit,
        },
    }


def cluster_reference(cluster: Cluster) -> JsonObject:
    """Owner reference to a cluster: what belongs to it goes with it."""
    return {"apiVersion": ICHOR_API_VERSION, "kind": "TalosCluster", "name": cluster.key.name, "uid": cluster.uid}


def operation_reference(operation: Operation) -> JsonObject:
    """Owner reference to an operation."""
    return {
        "apiVersion": ICHOR_API_VERSION,
        "kind": "TalosOperation",
        "name": operation.key.name,
        "uid": operation.uid,
    }


def _request_tree(request: Request) -> JsonObject:
    members = {
        "id": request.id,
        "action": request.action.value,
        "machine": request.machine,
        "mode": request.mode.value,
        "hashBefore": request.hash_before,
        "hashWanted": request.hash_wanted,
    }
    return {name: value for name, value in members.items() if value}


def _row_tree(row: Row) -> JsonObject:
    members = {
        "name": row.name,
        "role": row.role,
        "state": row.state.value,
        "hashBefore": row.hash_before,
        "hashWanted": row.hash_wanted,
        "hashApplied": row.hash_applied,
        "appliedAt": row.applied_at,
        "message": cut(row.message, limit=MESSAGE_LIMIT),
    }
    return {name: value for name, value in members.items() if value}


def _generation(tree: JsonObject) -> int:
    value = object_at(tree, "metadata").get("generation")
    return value if isinstance(value, int) else 0


def _status(holds: bool) -> Status:
    return "True" if holds else "False"

"""The kstatus table with our three changes."""

from typing import Any

import pytest

from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.sync.health import health_of, register_health
from gitops_ctl.sync.model import CURRENT, HealthStatus

BORN = "2026-11-30T08:00:00Z"


def an(kind: str, *, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    """A live object; `kind` is `<apiVersion>/<Kind>`."""
    version, _, name = kind.rpartition("/")
    tree = {
        "apiVersion": version,
        "kind": name,
        "metadata": {"name": "x", "generation": 1, **metadata},
        "spec": spec or {},
    }
    return {**tree, "status": status} if status is not None else tree


def on(**conditions: str) -> list[dict[str, str]]:
    return [
        {"type": name, "status": word.split("/")[0], "reason": word.partition("/")[2]}
        for name, word in conditions.items()
    ]


DONE = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
ROLLED_OUT = on(Progressing="True/NewReplicaSetAvailable", Available="True")
SET_DONE = {**DONE, "currentReplicas": 2, "currentRevision": "r", "updateRevision": "r"}
DAEMON = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 1,
    "currentNumberScheduled": 1,
    "updatedNumberScheduled": 1,
    "numberAvailable": 1,
    "numberReady": 1,
}
TWO = {"replicas": 2}

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("being deleted", an("v1/ConfigMap", deletionTimestamp=BORN), "Terminating"),
    ("generation not observed", an("a.example/v1/W", status={"observedGeneration": 0}), "InProgress"),
    ("reconciling", an("a.example/v1/W", status={"conditions": on(Reconciling="True", Ready="True")}), "InProgress"),
    ("stalled", an("a.example/v1/W", status={"conditions": on(Stalled="True")}), "Failed"),
    ("ready", an("a.example/v1/W", status={"conditions": on(Ready="True")}), "Current"),
    ("not ready", an("a.example/v1/W", status={"conditions": on(Ready="False/Waits")}), "InProgress"),
    ("no known condition", an("a.example/v1/W", status={"phase": "x"}), "Current"),
    ("new custom resource", an("a.example/v1/W", creationTimestamp=BORN), "InProgress"),
    ("config map", an("v1/ConfigMap"), "Current"),
    ("secret", an("v1/Secret"), "Current"),
    ("cron job", an("batch/v1/CronJob"), "Current"),
    ("deployment done", an("apps/v1/Deployment", spec=TWO, status={**DONE, "conditions": ROLLED_OUT}), "Current"),
    ("deployment without status", an("apps/v1/Deployment", spec=TWO), "InProgress"),
    (
        "deployment past its deadline",
        an("apps/v1/Deployment", status={"conditions": on(Progressing="False/ProgressDeadlineExceeded")}),
        "Failed",
    ),
    (
        "deployment with an old pod",
        an("apps/v1/Deployment", spec=TWO, status={**DONE, "replicas": 3, "conditions": ROLLED_OUT}),
        "InProgress",
    ),
    (
        "deployment not available",
        an("apps/v1/Deployment", spec=TWO, status={**DONE, "conditions": on(Available="False")}),
        "InProgress",
    ),
    ("stateful set done", an("apps/v1/StatefulSet", spec=TWO, status=SET_DONE), "Current"),
    (
        "stateful set updating",
        an("apps/v1/StatefulSet", spec=TWO, status={**SET_DONE, "updateRevision": "s"}),
        "InProgress",
    ),
    (
        "stateful set with a partition",
        an(
            "apps/v1/StatefulSet",
            spec={**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            status={**SET_DONE, "updatedReplicas": 1, "updateRevision": "s"},
        ),
        "Current",
    ),
    ("stateful set on delete", an("apps/v1/StatefulSet", spec={"updateStrategy": {"type": "OnDelete"}}), "Current"),
    ("daemon set done", an("apps/v1/DaemonSet", status=DAEMON), "Current"),
    # siderolabs/talos#13875: a check that asks only whether something is broken does not wait for pods that nobody wants.
    ("daemon set that wants no pod", an("apps/v1/DaemonSet", status={"observedGeneration": 1}), "Current"),
    ("daemon set not observed", an("apps/v1/DaemonSet"), "InProgress"),
    ("daemon set not ready", an("apps/v1/DaemonSet", status={**DAEMON, "numberReady": 0}), "InProgress"),
    (
        "replica set failing",
        an("apps/v1/ReplicaSet", status={**DONE, "conditions": on(ReplicaFailure="True")}),
        "InProgress",
    ),
    ("replica set done", an("apps/v1/ReplicaSet", spec=TWO, status={**DONE, "fullyLabeledReplicas": 2}), "Current"),
    ("pod completed", an("v1/Pod", status={"phase": "Succeeded"}), "Current"),
    ("pod failed counts as completed", an("v1/Pod", status={"phase": "Failed"}), "Current"),
    ("pod ready", an("v1/Pod", status={"phase": "Running", "conditions": on(Ready="True")}), "Current"),
    (
        "pod that crashes",
        an(
            "v1/Pod",
            status={"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        ),
        "Failed",
    ),
    ("pod pending", an("v1/Pod", status={"phase": "Pending"}), "InProgress"),
    ("job complete", an("batch/v1/Job", status={"conditions": on(Complete="True")}), "Current"),
    ("job suspended", an("batch/v1/Job", status={"conditions": on(Suspended="True")}), "Current"),
    ("job failed", an("batch/v1/Job", status={"conditions": on(Failed="True")}), "Failed"),
    ("running job is in progress", an("batch/v1/Job", status={"startTime": BORN}), "InProgress"),
    ("claim bound", an("v1/PersistentVolumeClaim", status={"phase": "Bound"}), "Current"),
    ("claim pending", an("v1/PersistentVolumeClaim", status={"phase": "Pending"}), "InProgress"),
    ("load balancer", an("v1/Service", spec={"type": "LoadBalancer"}), "InProgress"),
    ("service", an("v1/Service", spec={"type": "ClusterIP"}), "Current"),
    ("disruption budget", an("policy/v1/PodDisruptionBudget", status={"observedGeneration": 1}), "Current"),
    (
        "definition",
        an("apiextensions.k8s.io/v1/CustomResourceDefinition", status={"conditions": on(Established="True")}),
        "Current",
    ),
    (
        "definition with a name clash",
        an("apiextensions.k8s.io/v1/CustomResourceDefinition", status={"conditions": on(NamesAccepted="False")}),
        "Failed",
    ),
    (
        "definition that is installed",
        an(
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            status={"conditions": on(Established="False/Installing")},
        ),
        "InProgress",
    ),
    (
        "definition that cannot be",
        an(
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            status={"conditions": on(Established="False/NotAccepted")},
        ),
        "Failed",
    ),
    ("namespace on its way out", an("v1/Namespace", status={"phase": "Terminating"}), "Terminating"),
]


@pytest.mark.parametrize(("tree", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_status_of_one_object(tree: dict[str, Any], expected: str) -> None:
    assert health_of(tree).status == expected


def test_a_custom_resource_that_nobody_answers_becomes_current_after_thirty_seconds() -> None:
    health = health_of(an("a.example/v1/W", creationTimestamp=BORN))
    born_s = from_rfc3339(BORN).timestamp()
    assert health.at(born_s + 29) is HealthStatus.IN_PROGRESS
    assert health.at(born_s + 30) is HealthStatus.CURRENT


def test_an_unschedulable_pod_fails_after_fifteen_seconds() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": BORN}
    health = health_of(an("v1/Pod", status={"phase": "Pending", "conditions": [condition]}))
    since_s = from_rfc3339(BORN).timestamp()
    assert health.at(since_s + 14) is HealthStatus.IN_PROGRESS
    assert health.at(since_s + 15) is HealthStatus.FAILED


def test_a_kind_has_at_most_one_rule() -> None:
    with pytest.raises(ValueError, match="has a health rule"):
        register_health(GroupKind("apps", "Deployment"), lambda _: CURRENT)

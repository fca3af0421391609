"""Queues and plans for the tests of the transition machine."""

from datetime import UTC, datetime
from fractions import Fraction

from gitops_ctl.scheduling.migration import Desired, decide
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import Group, Queue
from gitops_ctl.scheduling.queue_plan import Plan

TOPOLOGY = "topology.gpustack.ai"
TAS = f"{TOPOLOGY}/tas-queue"
PHASE, SAVED = f"{TOPOLOGY}/migration-phase", f"{TOPOLOGY}/migration-stop-policy"
STARTED, EMPTY = f"{TOPOLOGY}/migration-started-at", f"{TOPOLOGY}/empty-plan-hold"
WANTED, APPLIED = f"{TOPOLOGY}/wanted-stop-policy", f"{TOPOLOGY}/applied-stop-policy"
RELEASE = f"{TOPOLOGY}/hold-release"
ALLOW, WINDOW = "gitops-ctl.dev/allow-drain", "gitops-ctl.dev/drain-window"
NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)
OURS = Options()


def groups(**quotas):
    """The groups of a plan: quota by flavor."""
    if not quotas:
        return ()
    return (Group(("cpu",), tuple((name, (("cpu", Fraction(quota)),)) for name, quota in quotas.items())),)


def plan(**quotas):
    return Plan(groups(**quotas), {})


def queue(
    policy="None",
    marks=None,
    *,
    generation=3,
    observed=3,
    active=("True", "Ready"),
    reserved=None,
    used=None,
    workloads=0,
    deleted=False,
    **quotas,
):
    """A live queue with these quotas; Kueue lists each flavor of it unless `reserved` says otherwise."""
    counted = dict.fromkeys(quotas, 0) if reserved is None else reserved
    metadata = {"name": "q", "uid": "uid", "generation": generation, "resourceVersion": "7", "annotations": marks or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2031-01-01T00:00:00Z"
    flavors = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": str(quota)}]} for name, quota in quotas.items()
    ]
    spec = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}] if flavors else []}
    return Queue.of(
        {
            "metadata": metadata,
            "spec": {**spec, "stopPolicy": policy} if policy else spec,
            "status": {
                "conditions": [
                    {"type": "Active", "status": active[0], "reason": active[1], "observedGeneration": observed}
                ],
                "reservingWorkloads": workloads,
                "admittedWorkloads": workloads,
                "flavorsReservation": listed(counted),
                "flavorsUsage": listed(counted if used is None else used),
            },
        }
    )


def listed(counted):
    return [
        {"name": name, "resources": [{"name": "cpu", "total": str(total), "borrowed": "0"}]}
        for name, total in counted.items()
    ]


STOPPED = ("False", "Stopped")


def step(live, desired, *, options=OURS, now=NOW):
    """One decision; `desired` is a plan, a refusal, or everything."""
    return decide(live, desired if isinstance(desired, Desired) else Desired(desired), now=now, options=options)


def row(decision):
    """Status and reason of the condition, and the requeue."""
    condition = decision.condition
    return (f"{condition.status}/{condition.reason}" if condition else None, decision.requeue_s)

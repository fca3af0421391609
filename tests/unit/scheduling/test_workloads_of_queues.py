"""Workloads as people ask about them: what holds quota, what waits, and for what in vain (topology-scheduling.md, 12: B10)."""

from gitops_ctl.scheduling.queue import Queue
from gitops_ctl.scheduling.workload import Workload, holding, local_queues_of, uncovered, waiting
from tests.support.scheduling_objects import ZONE, ZONED_FLAVOR, local_queue, nodes, queue, workload


def test_a_workload_with_quota_is_read():
    found = Workload.of(workload("train", queue="pool", flavor=ZONED_FLAVOR, required=ZONE, evicted=True))
    assert (found.name, found.queue, found.local_queue) == ("default/train", "pool", "default/users")
    assert (found.flavors, found.required) == (frozenset({ZONED_FLAVOR}), frozenset({ZONE}))
    assert found.since == found.evicted_since == "2031-04-02T05:00:00Z"


def test_only_what_is_not_finished_holds_quota_the_oldest_first():
    young, old = workload("a", queue="pool"), workload("b", queue="pool")
    young["status"]["conditions"][0] = {
        **young["status"]["conditions"][0],
        "lastTransitionTime": "2031-04-02T05:30:00Z",
    }
    trees = (young, old, workload("c", queue="other"), workload("d", queue="pool", finished=True), workload("e"))
    assert [one.name for one in holding(map(Workload.of, trees), "pool")] == ["default/b", "default/a"]


def test_a_workload_waits_for_the_queue_behind_its_local_queue():
    behind = local_queues_of([local_queue(), local_queue("users", namespace="another", queue="other")])
    trees = (workload("a"), workload("b", queue="pool"), workload("c", finished=True))
    assert [one.name for one in waiting(map(Workload.of, trees), "pool", behind)] == ["default/a"]
    assert waiting(map(Workload.of, trees), "other", behind) == ()


def test_resources_that_no_group_covers_are_named_with_who_requests_them():
    pool = Queue.of(queue(nodes("a")))
    asking = [workload("a", requests=("cpu", "memory")), workload("b", requests=("memory", "pods"))]
    assert uncovered(map(Workload.of, asking), pool) == {"memory": ("default/a", "default/b")}

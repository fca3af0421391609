"""What `status` and `report` say about TopologySources and managed queues (topology-scheduling.md, 9 and 8.1: D39)."""

from datetime import UTC, datetime

from gitops_ctl.cli.main import run
from gitops_ctl.cli.report import page_of
from gitops_ctl.cli.switches import is_fine
from gitops_ctl.cli.topologystatus import is_running, queue_summary, source_summary
from tests.support.listed_cluster import listed_cluster
from tests.support.scheduling_objects import REGION, ZONE, nodes, queue, source

NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)
DRAINING = {
    "topology.gpustack.ai/migration-phase": "draining",
    "topology.gpustack.ai/migration-stop-policy": "None",
    "topology.gpustack.ai/migration-started-at": "2031-04-02T05:20:00Z",
}
MIGRATING = {
    "type": "TopologyReady",
    "status": "False",
    "reason": "Migrating",
    "message": "2 Workloads reserve",
    "lastTransitionTime": "2031-04-02T05:20:00Z",
}


def drained():
    tree = queue(nodes("a"), reserved=2, marks=DRAINING, policy="HoldAndDrain")
    tree["status"]["conditions"].append(MIGRATING)
    return tree


def test_a_source_shows_its_revision_and_what_is_wrong_with_the_newest_one():
    fine = source_summary(source(REGION, ZONE))
    assert (fine["ready"], fine["reason"], fine["revision"]) == ("True", "Observed", "hall-7/1")
    assert is_fine(fine)
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Stale", "message": "the last revision is in use"},
        {"type": "Valid", "status": "False", "reason": "SnapshotInvalid", "message": "rule 8, line 4"},
    ]
    stale = source_summary(source(REGION, ZONE, conditions=conditions))
    assert (stale["reason"], stale["message"]) == ("Stale", "rule 8, line 4")
    assert not is_fine(stale)


def test_a_drain_shows_its_age_and_is_no_error():
    found = queue_summary(drained(), now=NOW)
    assert found["message"] == "draining for 40m; 2 Workloads reserve"
    assert (found["reason"], found["phase"], found["reservingWorkloads"]) == ("Migrating", "draining", 2)
    assert is_running(found)


def test_a_queue_that_waits_drained_for_flavors_shows_no_age():
    tree = queue({}, marks={**DRAINING, "topology.gpustack.ai/migration-phase": "switched"}, policy="HoldAndDrain")
    stopped = {"type": "Active", "status": "False", "reason": "Stopped", "observedGeneration": 9}
    ready = {"type": "TopologyReady", "status": "True", "reason": "Ready", "message": "the pool has no flavor"}
    tree["status"]["conditions"] = [stopped, ready]
    assert queue_summary(tree, now=NOW)["message"] == "the pool has no flavor"


def test_a_queue_that_waits_for_approval_is_one():
    tree = queue(nodes("a"))
    tree["status"]["conditions"].append({**MIGRATING, "reason": "AwaitingDrainApproval"})
    found = queue_summary(tree, now=NOW)
    assert not is_running(found)
    assert not is_fine(found)


def test_a_queue_that_nobody_looked_at_is_unknown():
    assert queue_summary({"metadata": {"name": "new"}}, now=NOW)["ready"] == "Unknown"


def test_status_of_all_namespaces_shows_them_and_that_of_one_does_not(tmp_path, capsys):
    lists = {"sources": (source(REGION, ZONE),), "queues": (drained(), {"metadata": {"name": "plain"}})}
    empty = {
        f"/apis/gitops-ctl.dev/v1alpha1{scope}/{plural}": {"kind": "List", "metadata": {}, "items": []}
        for plural in ("gitsources", "syncs")
        for scope in ("", "/namespaces/team")
    }
    with listed_cluster(tmp_path, lists, reads=empty) as kubeconfig:
        assert run(["status", "--kubeconfig", str(kubeconfig)]) == 0
        told = capsys.readouterr().out
        assert "TopologySource" in told
        assert "draining for" in told
        assert "plain" not in told
        assert run(["status", "-n", "team", "--kubeconfig", str(kubeconfig)]) == 0
        assert "TopologySource" not in capsys.readouterr().out


def test_the_report_has_a_table_of_them():
    state = {"scheduling": [source_summary(source(REGION, ZONE)), queue_summary(drained(), now=NOW)]}
    page = page_of(state)
    assert "<h2>Scheduling</h2>" in page
    assert "draining for 40m" in page
    assert "<h2>Scheduling</h2>" not in page_of({})

"""The benchmark of rollouts counts what it says: evidence that was due, passes, looks; and its contestants do the same work each time."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.clock import to_rfc3339
from tests.doubles.apiserver.request import Request
from tools.bench import planning
from tools.bench.devices import MARK, Site, collection
from tools.bench.figures import Report
from tools.bench.fleetrest import Rest, passes_in, rest_figures
from tools.bench.memoryserver import Writes, filled
from tools.bench.realfleet import is_write, looks_in, observed, renewals
from tools.bench.rollout import medians

NOW = datetime(2026, 11, 30, tzinfo=UTC)
STATUS = "/apis/cisco.vk/v1alpha1/namespaces/campus-00/ciscodevices/edge-00-0000/status"


def observed_ago(seconds: float) -> Any:
    at = to_rfc3339(NOW - timedelta(seconds=seconds))
    return {"metadata": {"uid": "u"}, "status": {"healthObservation": {"observedAt": at}}}


def patch(status: Any, path: str = STATUS) -> Request:
    return Request("PATCH", path, {}, {}, json.dumps({"status": status}).encode())


def test_only_evidence_that_was_due_is_left_out_of_the_writes() -> None:
    writes = Writes()
    evidence = patch({"healthObservation": {"observedAt": "x"}})
    writes.add(evidence, "ciscodevices/status", before=observed_ago(100), now=NOW)
    writes.add(evidence, "ciscodevices/status", before=observed_ago(50), now=NOW)
    writes.add(evidence, "ciscodevices/status", before={"status": {}}, now=NOW)
    writes.add(patch({"healthObservation": {}, "phase": "Ready"}), "ciscodevices/status", before=None, now=NOW)
    writes.add(patch({}), "nodes", before=None, now=NOW)
    writes.add(Request("GET", "/api/v1/nodes"), "nodes", before=None, now=NOW)
    writes.add(patch({}), "leases", before=None, now=NOW)
    assert (writes.evidence, writes.early) == (3, 1)
    assert writes.others == {"PATCH ciscodevices/status": 1, "PATCH nodes": 1}
    assert writes.requests["GET nodes"] == 1


def test_a_write_at_rest_misses_the_target_and_evidence_does_not() -> None:
    report = Report()
    rest_figures(report, Rest(90, {"PATCH nodes": 2}, 1.0, 200.0, 310.0), where="here", count=100, window_s=100.0)
    met = {figure.name: figure.met for figure in report.figures}
    assert met["100 devices at rest here, writes beside due evidence"] is False
    assert met["the same, evidence renewed"] is None
    assert met["the same, memory of the manager"] is True
    assert met["the same, most since the start"] is False


def test_passes_and_looks_are_read_from_the_metrics() -> None:
    passes = 'cisco_vk_topology_projection_reconciliations_total{result="Ready"} 40.0\n'
    assert passes_in(f"# HELP x\n{passes}{passes.replace('Ready', 'Pending')}other 7\n") == 80.0
    looks = 'gitops_ctl_device_worker_looks_total{duty="sample",result="success"} 7.0\n'
    assert looks_in(looks + looks.replace("success", "failure") + looks.replace("sample", "node"), "sample") == 7.0


def test_renewed_evidence_is_told_by_its_time() -> None:
    before = observed([observed_ago(100)])
    assert renewals(before, observed([observed_ago(100)])) == []
    assert renewals(before, observed([observed_ago(1)])) == ["u"]
    assert [name for name in ("patch nodes", "get nodes", "update leases", "create events") if is_write(name)] == [
        "patch nodes"
    ]


async def test_the_contestants_plan_the_written_fleet_and_plan_it_again(tmp_path: Path) -> None:
    planning.write_fleet(tmp_path, 40, targets=4)
    planner = planning.Planner(tmp_path)
    first = await planner.plan()
    planner.renew(planner.names[:10])
    assert await planner.plan() == first
    assert len(planner.names) == 40
    assert sum(b'"example.net/campaign"' in text for text in planner.client.texts.values()) == 4
    assert len(await planning.loop_all(tmp_path, {"rounds": 2, "targets": 4})) == 2
    assert len(await planning.parse_all(tmp_path, {})) == 1


async def test_the_life_of_a_record_leaves_a_full_ledger_as_long_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "RECORDS", 8)
    assert len(await planning.swap_ledger(Path(), {"rounds": 2})) == 8
    assert len(await planning.print_text(Path(), {"rounds": 1})) == 4


def test_the_middle_of_each_run_counts_and_its_cpu_alone() -> None:
    runs = [{"took": [[9, 0.1], [9, 0.3], [9, 0.2]]}, {"took": [[9, 0.5]]}]
    assert medians(runs, scale=10) == (2.0, 5.0)


def test_a_server_in_memory_begins_with_one_device_in_each_namespace() -> None:
    site = Site(2, 3, targets=2)
    assert [tree["metadata"]["labels"].items() >= MARK.items() for tree in site.devices()] == [True, True, *[False] * 4]
    api = filled(site)
    assert sorted(api.store.objects["cisco.vk", "ciscodevices"]) == [
        ("campus-00", "edge-00-0000"),
        ("campus-01", "edge-01-0000"),
    ]
    made = site.rollout()
    headers = {"content-type": "application/json"}
    assert api.handle(Request("POST", collection(made), {}, headers, json.dumps(made).encode())).code == 201

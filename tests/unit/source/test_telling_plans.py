"""Whoever opens a pull request that touches a rollout is told its devices and its plan (forges.md, section 11.3)."""

import json
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cli import pullplans
from gitops_ctl.cli.pullcheck import MODULE
from gitops_ctl.source import pullplans as source_plans
from gitops_ctl.source.pullcheck import check_pull
from gitops_ctl.source.pullchild import PullChild
from gitops_ctl.source.pullplans import MOST_LINES, MOST_PLANS, Foreseen, PullPlan
from gitops_ctl.source.pullreport import PullReport
from gitops_ctl.source.pulltext import comment_of
from tests.support.rollout_planning import fleet, policy_map
from tests.support.telling import Bench
from tests.unit.cli.test_plan_rollout import INTENT, document, policy

SPRING, FLEET, POLICY = "clusters/spring.yaml", "clusters/devices.json", "clusters/policy.json"


@pytest.fixture(autouse=True)
def _registered() -> None:
    pullplans.register()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A fleet of three and its policy are accepted."""
    bench = Bench.make(tmp_path)
    items = {"apiVersion": "v1", "kind": "List", "items": [document(tree) for tree in fleet(3)]}
    bench.accept({FLEET: json.dumps(items), POLICY: json.dumps(policy())})
    return bench


def intent(**plan: Any) -> str:
    return json.dumps({**INTENT, "spec": {"plan": {**INTENT["spec"]["plan"], **plan}}})  # type: ignore[index]


def devices_of(report: PullReport) -> list[str]:
    return [name.rpartition("/")[2] for name in report.devices]


def touching(bench: Bench, files: dict[str, str], **more: Any) -> PullReport:
    return check_pull(bench.order(bench.head(files, signer=bench.team["ann"]), **more))


def test_a_rollout_that_is_added_names_its_devices_its_waves_and_what_the_plan_says(bench: Bench) -> None:
    report = touching(bench, {SPRING: intent()})
    assert devices_of(report) == ["edge-1", "edge-2", "edge-3"]
    (plan,) = report.plans
    assert plan.object.endswith("spring")
    assert "3 devices to 17.18.03 by Reload: 1 canary first, then 2 more after a resume." in plan.lines
    assert "Canaries: edge-1" in plan.lines
    assert "Wave 1: edge-2, edge-3" in plan.lines
    assert "Not looked at: the state of the devices and of their Nodes in a cluster." in plan.lines
    text = comment_of(report, head="a" * 40, base_branch="main")
    assert "- 3 devices: " in text
    assert f"### The plan of `{plan.object}`" in text
    assert "- `Wave 1: edge-2, edge-3`" in text


def test_a_rollout_that_is_cancelled_or_approved_names_its_devices_too(bench: Bench) -> None:
    bench.accept({SPRING: intent()})
    cancelled = json.loads(intent())
    cancelled["spec"]["cancel"] = True
    report = touching(bench, {SPRING: json.dumps(cancelled)})
    assert [each.action for each in report.touched] == ["changed"]
    assert devices_of(report) == ["edge-1", "edge-2", "edge-3"]
    assert report.plan_count == 1


def test_a_rollout_that_is_removed_names_the_devices_that_it_had_and_no_plan(bench: Bench) -> None:
    bench.accept({SPRING: intent()})
    report = check_pull(bench.order(bench.head(delete=(SPRING,), signer=bench.team["ann"])))
    assert devices_of(report) == ["edge-1", "edge-2", "edge-3"]
    assert (report.plans, report.plan_count) == ((), 0)


def test_the_devices_are_those_that_the_merge_would_have_and_the_selector_takes(bench: Bench) -> None:
    spare = document(fleet(4)[3])
    spare["metadata"]["labels"] |= {"topology.cisco.vk/managed": "no"}
    more = {SPRING: intent(), "clusters/more.json": json.dumps(spare)}
    report = touching(bench, more)
    assert "edge-4" in devices_of(report)  # it is added itself
    (plan,) = report.plans
    assert any(line.startswith("3 devices to") for line in plan.lines)


def test_a_plan_that_cannot_be_foreseen_says_why(bench: Bench) -> None:
    second = json.dumps({**policy_map(), "metadata": {**policy_map()["metadata"], "name": "other"}})
    report = touching(bench, {SPRING: intent(), "clusters/second.json": second})
    (plan,) = report.plans
    assert plan.lines[0].startswith("It cannot be foreseen from the documents: there are several fleet policies")


def test_a_fork_and_an_unsigned_head_are_not_planned_at_all(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> Foreseen:
        raise AssertionError("nothing of an untrusted head is planned")

    monkeypatch.setitem(source_plans._PLANNED, pullplans.ROLLOUT, never)
    forked = touching(bench, {SPRING: intent()}, is_fork=True)
    unsigned = check_pull(bench.order(bench.head({SPRING: intent()})))
    for report in (forked, unsigned):
        assert (report.plans, report.plan_count, report.devices) == ((), 0, ())


async def test_the_child_of_the_manager_plans_too(bench: Bench) -> None:
    order = bench.order(bench.head({SPRING: intent()}, signer=bench.team["ann"]))
    report = await PullChild(MODULE).check(order)
    assert report.plans == check_pull(order).plans
    assert devices_of(report) == ["edge-1", "edge-2", "edge-3"]


def test_many_plans_and_long_ones_are_cut_and_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def long(*_: object) -> Foreseen:
        return Foreseen(lines=tuple(f"line {number} {'x' * 900}" for number in range(MOST_LINES + 3)))

    monkeypatch.setitem(source_plans._PLANNED, pullplans.ROLLOUT, long)
    many = {
        f"clusters/r{number}.json": json.dumps({**INTENT, "metadata": {"name": f"r{number}", "namespace": "prod"}})
        for number in range(MOST_PLANS + 2)
    }
    report = touching(bench, many)
    assert (len(report.plans), report.plan_count) == (MOST_PLANS, MOST_PLANS + 2)
    assert {len(plan.lines) for plan in report.plans} == {MOST_LINES + 1}
    assert max(len(line) for plan in report.plans for line in plan.lines) <= 500
    assert "The plans of 2 more objects are left out." in comment_of(
        PullReport(trusted=True, touched=report.touched, plans=(PullPlan("a", ()),), plan_count=3),
        head="a" * 40,
        base_branch="main",
    )

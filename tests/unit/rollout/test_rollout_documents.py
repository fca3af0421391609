"""Rollouts, leaves and devices in Git: what no campaign of ours does, and what contradicts itself (rollouts.md, 2.6, 3.2 and 5).

Bounds and rules of the kinds are in tests/unit/api/test_rules.py; fleet policies in test_policy_documents.py.
"""

from collections.abc import Iterable
from typing import Any

import pytest

import gitops_ctl.rollout.documentrules  # noqa: F401 - registers what is tried here
from gitops_ctl.api.generate import to_yaml
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.check import Checker
from gitops_ctl.documents.loader import Document, load
from gitops_ctl.documents.schema import SchemaCatalog
from gitops_ctl.documents.setrules import judge_set
from gitops_ctl.rollout.documentrules import quantity
from tests.support.api_rollouts import (
    a_device,
    a_full_rollout,
    a_plan,
    a_rollout,
    an_approval,
    an_https_source,
    an_image,
    an_upgrade,
    full_plan,
)

CHECKER = Checker(SchemaCatalog())
PEOPLE = ("requestedBy", "requestedAt", "approvedBy", "approvedAt")


def documents(*trees: Any) -> tuple[Document, ...]:
    return load("---\n".join(to_yaml(tree) for tree in trees).encode(), file="fleet.yaml").documents


def said(tree: Any, *, severity: str = "error") -> list[tuple[str, str, str]]:
    """Reason, place and text of every finding of that severity."""
    (document,) = documents(tree)
    return [
        (problem.code.reason, problem.pointer, problem.message)
        for problem in CHECKER.check(document)
        if problem.severity == severity
    ]


def plan(**members: Any) -> Any:
    return a_rollout(plan=a_plan(**members))


def from_git(tree: Any) -> Any:
    """Without status and without the names of people that a Sync fills in."""
    spec = {
        block: {name: value for name, value in members.items() if name not in PEOPLE}
        for block, members in tree["spec"].items()
    }
    return {**{key: value for key, value in tree.items() if key != "status"}, "spec": spec}


def test_a_rollout_needs_neither_the_names_of_people_nor_a_status_in_git():
    tree = from_git(a_full_rollout())
    tree["spec"]["plan"] |= {"workloads": {"policy": "BlockIfRunning"}}
    assert said(tree) == []
    assert said(tree, severity="warning") == []


def test_an_approval_in_git_is_judged_by_its_form_alone():
    assert said(a_rollout(approval=an_approval())) == []
    found = said(a_rollout(approval=an_approval(planHash="sha256:1")))
    assert {item[:2] for item in found} == {("DocumentInvalid", "/spec/approval/planHash")}


def test_a_rule_between_members_is_told_with_its_place():
    (found,) = said(plan(targets={"selector": {}}))
    assert "spec.plan.targets: give a selector that is not empty, or an empty one together with allowAll" in found[2]


def test_a_campaign_that_drains_is_refused_with_its_reason():
    found = said(a_rollout(plan=full_plan()))
    assert [item[:2] for item in found] == [("WorkloadPolicyUnsupported", "/spec/plan/workloads/policy")]


def test_a_source_of_a_catalyst_center_is_refused_with_its_reason():
    center = {"name": "center", "priority": 1, "catalystCenter": {"imageName": "cat9k"}}
    scoped = {**center, "deviceSelector": {"matchLabels": {"topology.cisco.vk/site": "north"}}}
    (found,) = said(plan(image=an_image(an_https_source(), scoped)))
    assert found[:2] == ("SourceKindUnsupported", "/spec/plan/image/sources/1/catalystCenter")
    assert found[2].startswith("source center: images of a Catalyst Center")


def test_a_device_is_a_canary_of_one_cohort():
    cohorts = [{"name": "c9300", "devices": ["switch-1"]}, {"name": "c9500", "devices": ["switch-2", "switch-1"]}]
    (found,) = said(plan(canaries=cohorts))
    assert found[1:] == (
        "/spec/plan/canaries/1/devices",
        "device switch-1 is a canary of c9300 and of c9500; it has one cohort",
    )


def test_canaries_are_counted_as_targets():
    targets = {**a_plan()["targets"], "maxTargets": 1}
    cohorts = [{"name": "c9300", "devices": ["switch-1", "switch-2"]}]
    (found,) = said(plan(targets=targets, canaries=cohorts))
    assert found[1:] == ("/spec/plan/targets/maxTargets", "2 canaries, and maxTargets is 1: canaries are targets")


@pytest.mark.parametrize("url", ["https://images.example.net:99999/a.bin", "https://:443/a.bin"])
def test_an_url_without_a_host_or_with_an_impossible_port_is_refused(url: str):
    (found,) = said(plan(image=an_image(an_https_source(url=url))))
    assert found[1] == "/spec/plan/image/sources/0/url"
    assert "names no host, or no port that exists" in found[2]


def test_numbers_without_effect_are_warnings():
    tree = plan(health={"canarySoakSeconds": 0, "maxObservationAgeSeconds": 86400})
    assert said(tree) == []
    told = [item[2] for item in said(tree, severity="warning")]
    assert [text.rpartition(" (")[2] for text in told] == ["SoakZeroUsesDefault)", "ObservationAgeWithoutEffect)"]


def test_a_leaf_does_not_come_from_git():
    (found,) = said(an_upgrade())
    assert found[2].startswith("leaves are made by the manager alone")


@pytest.mark.parametrize("identity", [" FOC1", "FOC1.", "FOC 1", "fóc1"])
def test_an_identity_that_can_never_be_bound_is_refused_because_it_is_written_once(identity: str):
    (found,) = said(a_device(physicalIdentity=identity))
    assert found[:2] == ("PhysicalIdentityInvalid", "/spec/physicalIdentity")


def test_labels_that_contradict_each_other_are_refused():
    tree = a_device(zone="zone-b", labels={"example.net/hall": "7"})
    tree["metadata"]["labels"] = {"topology.kubernetes.io/zone": "zone-a", "example.net/hall": "8"}
    zone, hall = said(tree)
    assert zone[2] == (
        "spec.zone is 'zone-b', the label topology.kubernetes.io/zone is 'zone-a': the device would not be projected"
    )
    assert "spec.labels has example.net/hall=7, which is '8' elsewhere" in hall[2]
    tree["spec"] |= {"zone": "zone-a", "labels": {"example.net/hall": "8"}}
    assert said(tree) == []


def test_a_managed_device_has_room_for_pods_that_a_scheduler_can_count():
    tree = a_device(maxPods=0)
    assert said(tree) == []
    tree["metadata"]["labels"] = {"topology.cisco.vk/managed": "true"}
    (found,) = said(tree)
    assert found[1:] == ("/spec/maxPods", "maxPods is 0, and a managed device needs 1 to 110")


@pytest.mark.parametrize(
    ("worker", "told"),
    [
        ({"resources": {"limits": {"gpu": 1}}}, "gpu: only cpu, memory, ephemeral-storage can be given"),
        ({"resources": {"requests": {"cpu": "-1"}}}, "cpu: '-1' is no quantity of zero or more"),
        ({"resources": {"requests": {"memory": "lots"}}}, "memory: 'lots' is no quantity of zero or more"),
        (
            {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1000M"}}},
            "memory: the request 1Gi is above its limit 1000M",
        ),
        ({"tmpSizeLimit": "0"}, "tmpSizeLimit: '0' is no quantity above zero"),
    ],
)
def test_resources_of_a_worker_make_sense(worker: Any, told: str):
    (found,) = said(a_device(worker=worker))
    assert found[2] == told


def test_good_resources_are_accepted():
    fine = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": 2, "memory": "1Gi"}}
    assert said(a_device(worker={"resources": fine, "tmpSizeLimit": "3Gi"})) == []


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1Ki", 1024), ("1k", 1000), (2, 2), ("1.5Gi", 1.5 * 2**30), ("500m", 0.5), (True, None), ("1K", None)],
)
def test_quantities_are_exact(text: object, amount: float | None):
    assert quantity(text) == amount


def test_two_devices_with_one_chassis_are_told_about_whatever_the_case_of_its_letters():
    first, second, other = (
        a_device(name=name, physicalIdentity=identity)
        for name, identity in (("switch-1", "FOC1"), ("switch-2", "foc1"), ("switch-3", "FOC2"))
    )
    found = list(_about_chassis(documents(first, second, other)))
    assert [(item.object, item.severity) for item in found] == [
        (ObjectId("cisco.vk", "CiscoDevice", "team-a", "switch-2"), "warning")
    ]
    assert "CiscoDevice.cisco.vk/team-a/switch-1 has the physical identity foc1 too" in found[0].message
    assert list(_about_chassis(documents(first, other, a_device(name="switch-4"), a_device(name="switch-5")))) == []


def _about_chassis(found: Iterable[Document]) -> list[Any]:
    return [problem for problem in judge_set(tuple(found)) if "physical identity" in problem.message]

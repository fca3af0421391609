"""Devices, rollouts and leaves on a real API server: what may follow what, what is filled in, what is kept, what is shown.

The rules of a single version are in tests/cluster/test_crds.py, the same steps on the in-memory server in
tests/unit/doubles/test_steps_of_the_product.py.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gitops_ctl.api.rollout import parse_rollout
from gitops_ctl.api.softwareupgrade import parse_upgrade
from tests.support.api import MOMENT, with_status
from tests.support.api_device_steps import DEVICE_STEPS
from tests.support.api_devices import a_full_device
from tests.support.api_leaf_steps import LEAF_STEPS
from tests.support.api_leaves import a_full_upgrade
from tests.support.api_rollout_steps import ROLLOUT_STEPS
from tests.support.api_rollouts import (
    a_control,
    a_device,
    a_frozen_plan,
    a_full_rollout,
    a_planned_target,
    a_policy_snapshot,
    a_recovery,
    a_recovery_status,
    a_rollout,
    a_target_status,
    an_approval,
    an_upgrade,
)
from tests.support.api_step import PLACES, Call, Stage, Step
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import MERGE, PlainApi, install_crds

pytestmark = pytest.mark.cluster

STEPS = (*DEVICE_STEPS, *ROLLOUT_STEPS, *LEAF_STEPS)


@pytest.fixture(scope="module")
def server(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    """The API server with our kinds, and the namespace of the examples."""
    api = PlainApi(control_plane)
    install_crds(api)
    api.post("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    yield api
    api.close()


@pytest.fixture(scope="module")
def call(server: PlainApi) -> Call:
    def send(method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        reply = server.request(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
        return reply.status, reply.body

    return send


@pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])
def test_only_what_the_contract_allows_follows(call: Call, step: Step) -> None:
    with Stage(call, step.old) as stage:
        assert stage.says(step.good, part=step.part) == ""
        for bad in step.bad:
            assert step.told in stage.says(bad, part=step.part), bad.get(step.part, "gone")


def path_of(tree: dict[str, Any]) -> str:
    return PLACES[tree["kind"]].format(tree["metadata"]["namespace"])


def test_defaults_of_a_plan_are_stored_because_they_are_hashed(server: PlainApi):
    stored = server.post(f"{path_of(a_rollout())}?dryRun=All", a_rollout()).body["spec"]["plan"]
    told = {name: stored[name] for name in stored if name not in a_rollout()["spec"]["plan"]}
    assert told == {
        "strategy": "Reload",
        "rollbackOnFailure": True,
        "installTimeoutSeconds": 3600,
        "rebootTimeoutSeconds": 1800,
        "pauseAfterCanary": True,
        "budgets": {"maxConcurrentTransfers": 1, "maxUnavailable": 1},
        "workloads": {"policy": "BlockIfRunning"},
        "health": {"maxObservationAgeSeconds": 300, "canarySoakSeconds": 600, "waveSoakSeconds": 300},
    }
    assert {name: stored["targets"][name] for name in ("allowAll", "maxTargets")} == {
        "allowAll": False,
        "maxTargets": 100,
    }
    assert parse_rollout({**a_rollout(), "spec": {"plan": stored}}) == parse_rollout(a_rollout())


def test_defaults_of_a_leaf_are_stored(server: PlainApi):
    stored = server.post(f"{path_of(an_upgrade())}?dryRun=All", an_upgrade()).body["spec"]
    assert {name: stored[name] for name in stored if name not in an_upgrade()["spec"]} == {
        "requireNetworkEvidence": False,
        "strategy": "Reload",
        "rollbackOnFailure": True,
        "resumePolicy": "Retry",
        "maxRetries": 3,
        "installTimeoutSeconds": 3600,
        "rebootTimeoutSeconds": 1800,
    }
    assert parse_upgrade({**an_upgrade(), "spec": stored}) == parse_upgrade(an_upgrade())


def test_a_device_keeps_members_of_another_release_at_every_depth(server: PlainApi):
    newer = {"transport": "restconf", "tls": {"minVersion": "1.3"}, "xe": {"gnoi": {"x": 1}, "networking": {"y": [1]}}}
    stored = server.post(f"{path_of(a_device())}?dryRun=All&fieldValidation=Strict", a_device(**newer))
    assert stored.message == ""
    assert stored.body["spec"] == {**a_device(**newer)["spec"], "maxPods": 16}


SHOWN = [
    (a_full_device, ["switch-1", "XE", "192.0.2.1", "Ready", "switch-1"]),
    (a_full_rollout, ["to-17-18", "17.18.03", "Cancelled", 1, 1, 1]),
    (a_full_upgrade, ["to-17-18-switch-1-55f6d2ef", "switch-1", "17.18.03", "PreparedInvalidated", "17.18.02"]),
]


@pytest.mark.parametrize(("full", "shown"), SHOWN, ids=["device", "rollout", "leaf"])
def test_a_table_shows_where_an_object_stands(server: PlainApi, call: Call, full: Any, shown: list[Any]):
    tree = full()
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    with Stage(call, tree):
        table = server.get(f"{path_of(tree)}/{tree['metadata']['name']}", accept=accept).body
    assert table["rows"][0]["cells"][: len(shown)] == shown


def largest_rollout() -> dict[str, Any]:
    """A hundred targets with the longest texts, each with an accepted recovery."""
    numbers = range(100)
    domains = [{"topologyKey": f"topology.cisco.vk/{n:02}{'k' * 40}", "maxUnavailable": 100} for n in range(16)]
    topology = [{"key": domain["topologyKey"], "value": "v" * 63} for domain in domains]
    policy = a_policy_snapshot(domains=domains)
    planned = [
        a_planned_target(deviceUID=f"device-{n}", deviceName=f"{n:03}" + "d" * 250, topology=topology, wave=1)
        for n in numbers
    ]
    targets = [
        a_target_status(deviceUID=f"device-{n}", leafUID=f"leaf-{n}", leafName="n" * 253, message="m" * 512)
        for n in numbers
    ]
    people = [f"{n}" + "p" * 250 for n in range(8)]
    recoveries = [a_recovery_status(leafUID=f"leaf-{n}", state="Accepted", persons=people) for n in numbers]
    return with_status(
        a_rollout(approval=an_approval(), recovery=a_recovery(leafUID="leaf-99")),
        frozenPlan=a_frozen_plan(policy=policy, targets=planned),
        effectivePolicy={"epoch": 1, "policy": policy, "updatedAt": MOMENT},
        targets=targets,
        recoveries=recoveries,
    )


def test_the_rules_of_the_largest_campaign_are_within_the_servers_budget(call: Call):
    tree = largest_rollout()
    with Stage(call, tree) as stage:
        assert stage.says({**tree, "status": {**tree["status"], "phase": "Executing"}}, part="status") == ""
        paused = {**tree["spec"], "control": a_control(pause=True)}
        assert stage.says({**tree, "spec": paused}, part="spec") == ""
        gone = {**tree["status"], "recoveries": tree["status"]["recoveries"][:-1]}
        assert "an accepted recovery must not go away" in stage.says({**tree, "status": gone}, part="status")

"""The leaf of a target: what it does, which protocol it needs, and the Pods that it names (rollouts.md, sections 4.1, 4.4 and 6.2)."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from gitops_ctl.api.softwareupgrade import parse_upgrade
from gitops_ctl.rollout.admission import admit
from gitops_ctl.rollout.bindings import renew_binding
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.leafplan import Activation, LeafPlan, control_tree
from gitops_ctl.rollout.refusal import Reason
from gitops_ctl.rollout.sources import Source
from tests.support.admission_world import DEVICES, GATED, LEAVES, NODES, AdmissionWorld, a_sample, admitting
from tests.support.ledger import refused
from tests.support.rollout_planning import NOW

ACTIVATION = Activation(
    prepared_name="spring-edge-1-abea5bb0",
    prepared_uid="prepared-uid",
    receipt_hash=f"sha256:{'1' * 64}",
    authorization_hash=f"sha256:{'2' * 64}",
    not_before=NOW,
    not_after=NOW + timedelta(hours=2),
)
SFTP = Source("south", 5, "sftp://images.example.net/cat9k.bin", "a" * 64, "images", "secret-uid")


def a_plan(activation: Activation | None = None, *, target: dict[str, Any] | None = None, **plan: Any) -> LeafPlan:
    found = AdmissionWorld(1, **plan).plan(activation=activation)
    return dataclasses.replace(found, target=dataclasses.replace(found.target, **(target or {})))


def spec_of(plan: LeafPlan) -> Any:
    return plan.spec()


def test_the_leaf_is_valid_as_it_is_made() -> None:
    for plan in (a_plan(), a_plan(ACTIVATION), a_plan(target={"source": SFTP, "max_bytes_per_s": 8_000_000})):
        parse_upgrade({**plan.tree(), "status": {}})


def test_everything_of_the_plan_is_in_the_leaf() -> None:
    window = {"notBefore": "2026-11-02T12:00:00Z", "notAfter": "2026-11-02T14:00:00Z"}
    spec = spec_of(
        a_plan(
            target={"source": SFTP, "max_bytes_per_s": 8_000_000},
            strategy="PrepareOnly",
            rollbackOnFailure=False,
            installTimeoutSeconds=900,
            rebootTimeoutSeconds=600,
            maintenanceWindow=window,
        )
    )

    assert spec == {
        "deviceRef": {"name": "edge-1"},
        "imageSource": {"url": SFTP.url, "sha256": SFTP.sha256, "urlSecretRef": {"name": "images"}},
        "targetVersion": "17.18.03",
        "strategy": "PrepareOnly",
        "rollbackOnFailure": False,
        "installTimeoutSeconds": 900,
        "rebootTimeoutSeconds": 600,
        "maxTransferBytesPerSecond": 8_000_000,
        "maintenanceWindow": window,
    }


def test_an_sftp_leaf_names_the_uid_of_its_secret_and_an_activation_does_not() -> None:
    key = "topology.cisco.vk/source-secret-uid"

    assert a_plan(target={"source": SFTP}).binding()[key] == "secret-uid"
    assert key not in a_plan(ACTIVATION, target={"source": SFTP}).binding()
    assert key not in a_plan().binding()


def test_an_activation_only_activates_in_its_window() -> None:
    plan = a_plan(ACTIVATION, strategy="PrepareOnly")
    spec = spec_of(plan)

    assert spec["imageSource"] == {"preinstalled": {}}
    assert spec["strategy"] == "Reload"
    assert spec["maintenanceWindow"] == {"notBefore": "2026-11-02T12:00:00Z", "notAfter": "2026-11-02T14:00:00Z"}
    assert plan.name.startswith("spring-edge-1-abea5bb0-activate-")
    assert plan.binding()["topology.cisco.vk/prepared-upgrade-uid"] == "prepared-uid"
    assert plan.campaign.reservation_of(plan.target) == plan.binding()["topology.cisco.vk/reservation-id"]


def test_the_window_is_judged_by_our_clock() -> None:
    assert ACTIVATION.closed(NOW) is None
    early = refused(ACTIVATION.closed(NOW - timedelta(seconds=1)), Reason.WINDOW_NOT_OPEN)
    late = refused(ACTIVATION.closed(NOW + timedelta(hours=2)), Reason.WINDOW_CLOSED)

    assert early.target_reason == "ActivationWindowNotOpen"
    assert late.target_reason == "ActivationWindowClosed"
    assert early.blocks_target


def test_the_first_protocol_that_fits_is_chosen() -> None:
    gated = AdmissionWorld(1, samples={"edge-1": a_sample()}, health=GATED).plan()
    paced = dataclasses.replace(gated, target=dataclasses.replace(gated.target, max_bytes_per_s=5))

    assert a_plan().protocol() == "rollout-v1"
    assert a_plan(target={"max_bytes_per_s": 5}).protocol() == "rollout-byte-pacing-v1"
    assert gated.protocol() == paced.protocol() == "rollout-network-evidence-v1"
    assert a_plan(ACTIVATION).protocol() == "rollout-staged-activation-v1"


def test_a_preparation_is_staged() -> None:
    assert a_plan(strategy="PrepareOnly").protocol() == "rollout-staged-activation-v1"


def test_the_control_of_a_leaf_leaves_out_what_is_false() -> None:
    assert control_tree(Control(), now=NOW) == {
        "revision": 0,
        "updatedAt": "2026-11-02T12:00:00Z",
        "reason": "CampaignControl",
    }
    assert control_tree(Control(3, pause=True, cancel=True), now=NOW)["pause"] is True


async def test_an_activation_outside_of_its_window_is_not_admitted() -> None:
    world = AdmissionWorld(1)
    late = dataclasses.replace(ACTIVATION, not_before=NOW - timedelta(hours=2), not_after=NOW)
    async with world.client() as client:
        answer = await admit(world.ports(client), world.campaign(), world.target(), activation=late)

    refused(answer, Reason.WINDOW_CLOSED)
    assert world.faults.writes == []


POD = "topology.cisco.vk/network-worker-pod-uid"
NAME = "topology.cisco.vk/network-worker-pod-name"


@pytest.fixture
async def bound() -> AdmissionWorld:
    """A leaf that names its network worker."""
    world = AdmissionWorld(1)
    _bind(world, "worker-1", "pod-uid")
    await admitting(world)
    world.faults.writes.clear()
    return world


def _bind(world: AdmissionWorld, name: str, uid: str) -> None:
    annotations = world.tree(NODES, "edge-1", "")["metadata"]["annotations"] | {NAME: name, POD: uid}
    world.change(NODES, "edge-1", "metadata", "annotations", to=annotations, namespace="")


async def renewing(world: AdmissionWorld) -> bool:
    async with world.client() as client:
        ports = world.ports(client)
        leaf = await ports.leaf("prod", world.target().child_name)
        assert leaf is not None
        return await renew_binding(ports, leaf)


async def test_another_proven_pod_is_named_and_nothing_else_changes(bound: AdmissionWorld) -> None:
    assert not await renewing(bound)
    before = bound.leaf()
    _bind(bound, "worker-2", "pod-2")
    bound.change(DEVICES, "edge-1", "status", "networkWorkerRevision", "podUID", to="pod-2")

    assert await renewing(bound)
    after = bound.leaf()
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"] | {NAME: "worker-2", POD: "pod-2"}
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert bound.plan().difference(after) == ""
    assert not await renewing(bound)


async def test_a_pod_that_is_not_proven_yet_is_not_named(bound: AdmissionWorld) -> None:
    _bind(bound, "worker-2", "pod-2")

    assert not await renewing(bound)


async def test_a_settled_leaf_keeps_its_names(bound: AdmissionWorld) -> None:
    bound.change(LEAVES, bound.target().child_name, "status", "managerAdmission", "state", to="Settled")
    _bind(bound, "worker-2", "pod-2")
    bound.change(DEVICES, "edge-1", "status", "networkWorkerRevision", "podUID", to="pod-2")

    assert not await renewing(bound)

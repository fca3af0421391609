"""Conditions, phase, guard and evidence of a device, pass after pass (rollouts.md, 5.2, 5.3, 15 and 16)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import Condition
from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.health import conditions_hash, evidence_time
from gitops_ctl.fleet.identity import device_identity_hash
from gitops_ctl.fleet.node import node_of
from gitops_ctl.topology.condition_plan import Topology
from gitops_ctl.topology.evidence_plan import Campaign, campaign_of, freshness_of, seconds_left
from gitops_ctl.topology.findings import Finding, Reason
from gitops_ctl.topology.identity_plan import Claim
from gitops_ctl.topology.maintenance_plan import MaintenanceStep
from gitops_ctl.topology.node_plan import NodeWanted, Worker, new_node, node_patch, projection_of
from gitops_ctl.topology.revision_plan import Proof
from gitops_ctl.topology.status_plan import Found, status_of, status_patch
from tests.doubles.apiserver.patches import merge_patched
from tests.support.topology_devices import NODE_UID, NOW, device, policy

APP, NETWORK = Worker("system:app"), Worker("system:network")
IDLE = MaintenanceStep(False, None, Condition(names.MAINTENANCE_READY, "True", Reason.IDLE, "idle"))
VALIDATED = Condition(names.GNOI_READY, "True", Reason.VALIDATED, "good")
REVISION = "sha256:" + "1" * 64
PROVEN = Proof({"observedRevision": REVISION, "podUID": "pod-uid-1"}, "")


class Story:
    """One device and its Node through passes on a clock that the test moves."""

    def __init__(self, tree: Any = None) -> None:
        self.device: Any = tree or device()
        self.policy = policy()
        self.now: datetime = NOW
        self.node: Any = None
        self.identity: Finding | None = None
        self.gnoi: Condition | None = VALIDATED
        self.freshness_s = 300

    @property
    def topology(self) -> Topology:
        projection, problem = projection_of(self.device, self.policy)
        stored = object_at(self.device, "status", "topologyProjection")
        recorded = text_at(stored, "lastSuccessfulTime")
        is_current = projection is not None and stored.get("effectiveLabelHash") == projection.hash
        return Topology(
            device=self.device,
            node=self.node,
            identity=self.identity,
            problem=problem,
            projection=projection,
            projected_at=datetime.fromisoformat(recorded) if is_current else None,
        )

    def step(self, seconds: int = 1) -> Any:
        """One pass: the Node first, then the status.  Returns the status patch."""
        self.now += timedelta(seconds=seconds)
        found = self.topology
        if self.node is None and found.projection is not None:
            self.node = new_node(self.device, found.projection, app=APP, network=NETWORK)
            self.node["metadata"] |= {"uid": NODE_UID, "resourceVersion": "20"}
        if self.node is not None:
            wanted = NodeWanted(
                projection=found.projection,
                app=APP,
                network=NETWORK,
                guard=bool(found.guard_problem()[1]),
                maintenance=False,
            )
            self.node = merge_patched(self.node, node_patch(self.device, self.node, wanted) or {})
        status = status_of(
            Found(
                topology=self.topology,
                maintenance=IDLE,
                gnoi=self.gnoi,
                app=PROVEN,
                network=PROVEN,
                now=self.now,
                freshness_s=self.freshness_s,
            )
        )
        patch: Any = status_patch(self.device, status)
        self.device = merge_patched(self.device, {"status": (patch or {}).get("status", {})})
        return patch and patch["status"]

    def pulse(self, *, ready: str = "True", since: datetime = NOW, chassis: str = "foc-access-1") -> None:
        """The worker writes the Node's status."""
        at = to_rfc3339(self.now)
        writer = {
            "type": names.MANAGED_WRITER,
            "status": "True",
            "reason": names.MANAGED_WRITER_REASON,
            "lastHeartbeatTime": at,
            "lastTransitionTime": to_rfc3339(NOW),
        }
        kubelet = {"type": "Ready", "status": ready, "lastHeartbeatTime": at, "lastTransitionTime": to_rfc3339(since)}
        self.node["status"] = {"nodeInfo": {"machineID": chassis}, "conditions": [kubelet, writer]}

    def settle(self) -> "Story":
        """Until the device is ready."""
        for _ in range(3):
            self.step()
            self.pulse()
        self.step()
        self.step()
        assert self.status["phase"] == "Ready"
        return self

    @property
    def status(self) -> Any:
        return self.device["status"]

    def condition(self, kind: str) -> tuple[str, str]:
        [found] = [each for each in self.status["conditions"] if each["type"] == kind]
        return found["status"], found["reason"]

    @property
    def is_guarded(self) -> bool:
        return any(each["key"] == names.UNINITIALIZED for each in self.node["spec"]["taints"])


def test_a_device_goes_from_pending_by_provisioning_to_ready_and_the_guard_goes_last() -> None:
    story = Story()
    story.step()
    assert (story.status["phase"], story.is_guarded) == ("Pending", True)
    assert story.status["nodeIdentity"]["physicalIdentity"] == "foc-access-1"
    assert "healthObservation" not in story.status
    story.step()
    assert (story.status["phase"], story.is_guarded) == ("Provisioning", True)
    assert story.condition(names.NODE_IDENTITY_READY) == ("True", "UIDBound")
    assert story.condition(names.TOPOLOGY_READY) == ("False", "ManagedWriterHandoffPending")
    story.pulse()
    story.step()
    assert not story.is_guarded
    assert story.condition(names.TOPOLOGY_READY) == ("True", "ProjectionComplete")
    assert story.condition(names.TOPOLOGY_INCOMPLETE) == ("False", "ProjectionComplete")
    assert story.condition(names.TOPOLOGY_CONFLICT) == ("False", "ProjectionComplete")
    assert story.status["phase"] == "Ready"


def test_a_settled_device_is_not_written_before_its_evidence_is_due() -> None:
    story = Story().settle()
    for _ in range(30):
        story.pulse()
        assert story.step(3) is None
    story.pulse()
    written = story.step(10)
    assert set(written) == {"healthObservation"}
    assert set(written["healthObservation"]) == {"observedAt", "nodeReadyHeartbeatTime", "conditionObservations"}


def test_evidence_is_good_by_the_gates_own_reading() -> None:
    story = Story().settle()
    first_pulse = NOW + timedelta(seconds=1)
    assert evidence_time(device_of(story.device), node_of(story.node)) == first_pulse
    health = story.status["healthObservation"]
    assert health["deviceConditionsHash"] == conditions_hash("Ready", story.status["conditions"])
    assert {each["type"] for each in health["conditionObservations"]} == set(names.REQUIRED_CONDITIONS)


def test_a_silent_node_gets_no_newer_evidence() -> None:
    story = Story().settle()
    assert story.step(1000) is not None  # the last heartbeat came after the snapshot
    assert story.step(1000) is None


def test_a_node_that_became_ready_again_is_observed_at_once() -> None:
    story = Story().settle()
    story.pulse(ready="Unknown", since=story.now)
    assert story.step() is None
    story.now += timedelta(seconds=5)
    story.pulse(since=story.now)
    assert story.step(0)["healthObservation"]["nodeReadyHeartbeatTime"] == to_rfc3339(story.now)


def test_a_changed_condition_is_observed_in_the_same_write() -> None:
    story = Story().settle()
    story.gnoi = Condition(names.GNOI_READY, "False", Reason.WORKER_ROLLOUT_PENDING, "rotated")
    written = story.step()
    assert {"conditions", "healthObservation"} <= set(written)
    health = story.status["healthObservation"]
    assert health["deviceConditionsHash"] == conditions_hash("Ready", story.status["conditions"])


def test_what_could_not_be_checked_keeps_its_condition_and_its_time() -> None:
    story = Story().settle()
    before = {each["type"]: each["observedAt"] for each in story.status["healthObservation"]["conditionObservations"]}
    story.gnoi = None
    story.pulse()
    story.step(200)
    story.pulse()
    story.step(200)
    after = {each["type"]: each["observedAt"] for each in story.status["healthObservation"]["conditionObservations"]}
    assert after[names.GNOI_READY] == before[names.GNOI_READY]
    assert after[names.TOPOLOGY_READY] > before[names.TOPOLOGY_READY]


def test_an_approved_reclassification_guards_the_node_until_the_writer_answers() -> None:
    story = Story().settle()
    story.device["metadata"]["labels"][names.ZONE] = "hall-2"
    story.step()
    assert story.condition(names.TOPOLOGY_CONFLICT) == ("True", "ReclassificationNotApproved")
    assert (story.status["phase"], story.is_guarded) == ("Error", True)
    assert story.node["metadata"]["labels"][names.ZONE] == "hall-1"
    former = story.status["topologyProjection"]["effectiveLabelHash"]
    story.device["metadata"]["annotations"] = {names.APPROVE_RECLASSIFICATION: former}
    story.step()
    assert story.node["metadata"]["labels"][names.ZONE] == "hall-2"
    story.step()
    assert story.is_guarded
    assert story.condition(names.TOPOLOGY_READY) == ("False", "ManagedWriterHandoffPending")
    story.pulse()
    story.step()
    story.step()
    assert (story.status["phase"], story.is_guarded) == ("Ready", False)


def test_a_missing_label_is_incomplete_and_makes_no_node() -> None:
    tree = device()
    del tree["metadata"]["labels"][names.ZONE]
    story = Story(tree)
    story.step()
    assert story.node is None
    assert story.condition(names.TOPOLOGY_INCOMPLETE) == ("True", "RequiredLabelsMissing")
    assert story.condition(names.TOPOLOGY_READY) == ("False", "TopologyIncomplete")
    assert story.status["phase"] == "Error"


def test_a_legacy_member_that_disagrees_is_a_conflict() -> None:
    tree = device()
    tree["spec"]["zone"] = "elsewhere"
    story = Story(tree)
    story.step()
    assert story.condition(names.TOPOLOGY_CONFLICT) == ("True", "LegacyTopologyDisagrees")


def test_another_chassis_on_the_node_puts_the_guard_back() -> None:
    story = Story().settle()
    story.pulse(chassis="foc-other")
    story.step()
    assert story.is_guarded
    assert story.condition(names.TOPOLOGY_READY) == ("False", "InitializationGuardActive")
    assert story.status["phase"] == "Provisioning"
    assert story.status["nodeIdentity"]["physicalIdentity"] == "foc-access-1"


def test_an_identity_problem_is_an_error_with_its_reason() -> None:
    story = Story()
    story.identity = Finding(Reason.IDENTITY_DUPLICATE, "campus/one has it")
    story.step()
    assert story.condition(names.NODE_IDENTITY_READY) == ("False", "PhysicalIdentityDuplicate")
    assert story.status["phase"] == "Error"
    assert "nodeIdentity" not in story.status


def test_a_deleted_device_is_deleting_whatever_else_holds() -> None:
    story = Story().settle()
    story.device["metadata"]["deletionTimestamp"] = "2026-02-01T01:00:00Z"
    story.step()
    assert story.status["phase"] == "Deleting"


def test_members_of_other_writers_stay() -> None:
    story = Story().settle()
    others = {"topologyLock": {"state": "Active"}, "workerReport": {"podUID": "x"}, "preflight": [{"rolloutUID": "r"}]}
    story.device["status"] |= others
    story.pulse()
    story.step(200)
    assert others.items() <= story.status.items()


def sample(story: Story, sequence: int = 1, **members: Any) -> Any:
    at = to_rfc3339(story.now)
    return {
        "workerPodUID": "pod-uid-1",
        "collectionStartedAt": at,
        "collectionEndedAt": at,
        "observedAt": at,
        "sampleSequence": sequence,
        "complete": True,
        "producerRevision": REVISION,
        "deviceIdentityHash": device_identity_hash("foc-access-1"),
        "interfaces": [{"name": "TenGigabitEthernet1/1/1", "operUp": True}],
        **members,
    }


def accepted(story: Story, tree: Any) -> Any:
    story.status["healthObservation"]["network"] = tree
    story.step()
    assert story.status["healthObservation"]["network"] == tree
    return story.status["healthObservation"].get("acceptedNetwork")


def test_a_sample_of_the_proven_worker_is_accepted_once_and_a_newer_one_replaces_it_whole() -> None:
    story = Story().settle()
    first = sample(story, neighbors=[])
    assert accepted(story, first) == first
    assert story.step() is None
    second = sample(story, 2)
    assert accepted(story, second) == second


@pytest.mark.parametrize(
    "members",
    [
        {"workerPodUID": "pod-uid-0"},
        {"producerRevision": "sha256:0"},
        {"deviceIdentityHash": device_identity_hash("foc-other")},
        {"complete": False, "unknownReason": "timeout"},
        {"collectionStartedAt": "2026-01-01T00:00:00Z"},
        {"interfaces": [{"name": "x", "operUp": True}, {"name": "x", "operUp": False}]},
    ],
    ids=["pod", "revision", "chassis", "incomplete", "slow", "ambiguous"],
)
def test_a_doubtful_sample_leaves_the_accepted_one(members: Any) -> None:
    story = Story().settle()
    first = sample(story)
    assert accepted(story, first) == first
    assert accepted(story, sample(story, 2, **members)) == first


def test_an_older_sample_of_the_same_pod_is_not_accepted_again() -> None:
    story = Story().settle()
    newest = sample(story, 7)
    accepted(story, newest)
    assert accepted(story, sample(story, 6)) == newest


def test_the_limit_in_force_is_the_smallest_of_policy_and_campaigns_that_name_the_device() -> None:
    named = Campaign("campus", frozenset({"device-uid-1"}), 60)
    other = Campaign("campus", frozenset({"device-uid-2"}), 30)
    planned = Campaign("campus", None, 90)
    elsewhere = Campaign("branch", None, 30)
    assert freshness_of(Claim.of(device()), policy_s=300, campaigns=[]) == 300
    assert freshness_of(Claim.of(device()), policy_s=300, campaigns=[other, elsewhere]) == 300
    assert freshness_of(Claim.of(device()), policy_s=300, campaigns=[named, other]) == 60
    assert freshness_of(Claim.of(device()), policy_s=300, campaigns=[planned]) == 90
    assert freshness_of(Claim.of(device()), policy_s=40, campaigns=[named]) == 40


def test_a_stricter_epoch_of_a_campaign_elsewhere_holds_for_the_whole_fleet() -> None:
    strict = Campaign("branch", frozenset({"device-uid-9"}), 300, policy_s=120)
    loose = Campaign("branch", frozenset({"device-uid-9"}), 30, policy_s=3600)
    assert freshness_of(Claim.of(device()), policy_s=3600, campaigns=[strict, loose]) == 120
    named = Campaign("campus", frozenset({"device-uid-1"}), 60, policy_s=3600)
    assert freshness_of(Claim.of(device()), policy_s=3600, campaigns=[strict, named]) == 60


def test_a_campaign_asks_until_it_has_ended() -> None:
    plan = {"health": {"maxObservationAgeSeconds": 60}, "image": {"sources": [{"urlSecretRef": {"name": "sftp"}}, {}]}}
    tree: Any = {"metadata": {"namespace": "campus"}, "spec": {"plan": plan}, "status": {"phase": "Executing"}}
    assert campaign_of(tree) == Campaign("campus", None, 60, frozenset({"sftp"}))
    tree["status"]["frozenPlan"] = {"targets": [{"deviceUID": "device-uid-1"}]}
    assert campaign_of(tree) == Campaign("campus", frozenset({"device-uid-1"}), 60, frozenset({"sftp"}))
    tree["status"]["effectivePolicy"] = {"epoch": 2, "policy": {"healthFreshnessSeconds": 90}}
    found = campaign_of(tree)
    assert found is not None
    assert found.policy_s == 90
    tree["status"]["phase"] = "Succeeded"
    assert campaign_of(tree) is None


def test_seconds_left_count_to_a_third_of_the_limit() -> None:
    observed = {"observedAt": to_rfc3339(NOW)}
    assert seconds_left(observed, now=NOW + timedelta(seconds=40), freshness_s=300) == 60
    assert seconds_left(observed, now=NOW + timedelta(seconds=400), freshness_s=300) == 0
    assert seconds_left(observed, now=NOW - timedelta(hours=1), freshness_s=300) == 100
    assert seconds_left({}, now=NOW, freshness_s=300) == 100

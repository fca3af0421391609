"""Freezing a plan: what is frozen, byte for byte, and everything that keeps a device from being frozen."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from gitops_ctl.fleet.policy import parse_policy
from gitops_ctl.rollout.freeze import FreezeProblem, Frozen, freeze, planning_digest
from gitops_ctl.rollout.planhash import published_hash_input
from gitops_ctl.rollout.problem import Reason
from gitops_ctl.rollout.snapshot import PolicyRecord, snapshot_from
from gitops_ctl.rollout.targets import target_from
from tests.support.rollout_planning import (
    FAMILY,
    NOW,
    SECRET,
    SITE,
    ago,
    changed,
    condition,
    device,
    fleet,
    given,
    node,
    observed,
    policy_record,
    rollout,
    source,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "rollouts"
RISK = [
    {
        "name": "north-pair",
        "selector": {"matchLabels": {SITE: "site-a"}},
        "maxConcurrentTransfers": 2,
        "maxUnavailable": 1,
        "maxAggregateTransferBytesPerSecond": 20_000_001,
    }
]


def frozen(found):
    """The frozen plan, or the words of why there is none."""
    assert isinstance(found, Frozen), found
    return found


def refused(found):
    """The reasons why there is no plan, the deciding one first."""
    assert isinstance(found, FreezeProblem), found
    return [problem.reason for problem in found.problems]


def vector(name):
    return json.loads((VECTORS / f"{name}.json").read_text())


def published_world():
    """The objects behind the published plan, in a state in which it can be frozen."""
    stored, config_map = vector("plan-hash")["derived_from"], vector("policy-semantic-hash")["derived_from"]
    (target,) = stored["status"]["frozenPlan"]["targets"]
    labels = {entry["key"]: entry["value"] for entry in target["topology"]}
    labels |= {
        "topology.cisco.vk/managed": "true",
        "operations.cisco.vk/qualification-cohort": target["qualificationCohort"],
        FAMILY: target["imageFamily"],
    }
    tree = device(target["deviceName"], namespace=stored["metadata"]["namespace"], labels=labels)
    tree["metadata"] |= {"uid": target["deviceUID"], "generation": 7}
    tree["spec"]["physicalIdentity"] = "FOC2416U0MV"
    conditions = [{**one, "observedGeneration": 7} for one in tree["status"]["conditions"]]
    sample = {
        "workerPodUID": "pod-uid",
        "collectionStartedAt": ago(40),
        "collectionEndedAt": ago(35),
        "sampleSequence": 9,
        "observedAt": ago(35),
        "complete": True,
        "producerRevision": tree["status"]["networkWorkerRevision"]["observedRevision"],
        "deviceIdentityHash": f"sha256:{vector('device-identity-hash')['sha256']}",
    }
    tree["status"] |= {
        "conditions": conditions,
        "nodeIdentity": {
            "nodeName": target["nodeName"],
            "nodeUID": target["nodeUID"],
            "deviceUID": target["deviceUID"],
            "physicalIdentity": "foc2416u0mv",
        },
        "healthObservation": {**observed(conditions), "network": sample, "acceptedNetwork": sample},
    }
    tree["status"]["topologyProjection"]["effectiveLabelHash"] = target["projectionHash"]
    seen = node(tree)
    seen["metadata"]["labels"] = vector("projection-hash")["input"]
    meta = config_map["metadata"]
    record = PolicyRecord(
        parse_policy(config_map["data"]["policy.json"]),
        meta["name"],
        meta["namespace"],
        meta["uid"],
        meta["resourceVersion"],
        meta["annotations"]["topology.cisco.vk/ledger-uid"],
    )
    secret = replace(SECRET, name=target["source"]["secretName"], uid=target["source"]["secretUID"])
    secret = replace(secret, allowed_host="10.0.2.2")
    return {"devices": [tree], "nodes": [seen], "policy": record, "plan": stored, "secrets": (secret,)}


def test_the_published_plan_is_frozen_byte_for_byte_from_its_objects():
    world = published_world()
    found = frozen(freeze(given(**world)))
    published = world["plan"]["status"]["frozenPlan"]
    assert (found.hash, found.size) == (published["hash"], published["encodedSizeBytes"])
    assert found.membership_hash == published["riskGroupMembershipHash"]
    made = dict(found.to_json(created_at=NOW))
    assert made == {**published, "createdAt": made["createdAt"]}


def test_what_is_published_reads_back_as_what_was_frozen():
    found = frozen(freeze(given(policy=policy_record(riskGroups=RISK))))
    tree = json.loads(json.dumps(found.to_json(created_at=NOW)))
    assert snapshot_from(tree["policy"]) == found.snapshot
    assert tuple(map(target_from, tree["targets"])) == found.targets
    stored = {**rollout(), "status": {"frozenPlan": tree}}
    assert published_hash_input(stored)["targets"] == [target.to_json() for target in found.targets]


@pytest.mark.parametrize("seed", range(8))
def test_the_hash_does_not_depend_on_the_order_in_which_objects_are_listed(seed):
    randomness = random.Random(seed)
    devices = fleet(6)
    before = frozen(freeze(given(devices, policy=policy_record(riskGroups=RISK))))
    shuffled = [
        {**tree, "metadata": {**tree["metadata"], "labels": dict(reversed(tree["metadata"]["labels"].items()))}}
        for tree in devices
    ]
    randomness.shuffle(shuffled)
    nodes = [node(tree) for tree in shuffled]
    randomness.shuffle(nodes)
    keys = list(policy_record().policy.required_keys)
    randomness.shuffle(keys)
    again = policy_record(riskGroups=RISK, requiredTopologyKeys=keys)
    assert frozen(freeze(given(shuffled, nodes=nodes, policy=again))).hash == before.hash


def test_targets_stand_in_name_order_with_wave_cohort_groups_and_rate():
    devices = [device("edge-2"), device("edge-10", zone="b"), device("edge-1")]
    found = frozen(freeze(given(devices, policy=policy_record(riskGroups=RISK))))
    assert [target.device_name for target in found.targets] == ["edge-1", "edge-10", "edge-2"]
    assert [(target.wave, target.canary_cohort) for target in found.targets] == [(0, "c9300"), (1, ""), (1, "")]
    assert [target.risk_groups for target in found.targets] == [("north-pair",), (), ("north-pair",)]
    assert [target.max_bytes_per_s for target in found.targets] == [10_000_000, 0, 10_000_000]
    assert "riskGroups" not in found.targets[1].to_json()
    assert {target.source.name for target in found.targets} == {"north"}


def test_other_namespaces_and_other_labels_are_not_taken():
    devices = [*fleet(2), device("edge-3", **{"topology.cisco.vk/role": "spare"})]
    elsewhere = device("edge-9", namespace="lab")
    plan = rollout(
        selector={"matchExpressions": [{"key": "topology.cisco.vk/role", "operator": "DoesNotExist"}]},
    )
    found = frozen(freeze(given([*devices, elsewhere], plan=plan)))
    assert [target.device_name for target in found.targets] == ["edge-1", "edge-2"]


def test_a_retired_device_is_not_taken():
    gone = changed(device("edge-2"), "status", "retired", to={"rolloutName": "winter", "leafUID": "x"})
    found = frozen(freeze(given([device("edge-1"), gone])))
    assert [target.device_name for target in found.targets] == ["edge-1"]
    assert found.fleet_problems == ()


OTHER = f"sha256:{'9' * 64}"
GUARD = [{"key": "topology.cisco.vk/uninitialized", "value": "true", "effect": "NoSchedule"}]
CHECKS = [
    ("driver", lambda d: changed(d, "spec", "driver", to="NXOS"), None, Reason.DRIVER_UNSUPPORTED),
    (
        "outside the fleet",
        lambda d: changed(d, "metadata", "labels", "topology.cisco.vk/managed", to="no"),
        None,
        Reason.OUTSIDE_FLEET,
    ),
    ("family", lambda d: changed(d, "metadata", "labels", FAMILY, to="cat8k"), None, Reason.IMAGE_FAMILY),
    (
        "required label",
        lambda d: changed(d, "metadata", "labels", "operations.cisco.vk/redundancy-domain", to=None),
        None,
        Reason.LABEL_MISSING,
    ),
    ("no identity", lambda d: changed(d, "status", "nodeIdentity", to=None), None, Reason.IDENTITY_MISSING),
    (
        "identity of an earlier object",
        lambda d: changed(d, "status", "nodeIdentity", "deviceUID", to="old"),
        None,
        Reason.IDENTITY_MISSING,
    ),
    ("no projection", lambda d: changed(d, "status", "topologyProjection", to=None), None, Reason.PROJECTION_MISSING),
    ("no Node", None, lambda n: None, Reason.NODE_MISSING),
    ("another Node", None, lambda n: changed(n, "metadata", "uid", to="other"), Reason.NODE_BINDING),
    (
        "a Node of another device",
        None,
        lambda n: changed(n, "metadata", "annotations", "topology.cisco.vk/device-name", to="edge-7"),
        Reason.NODE_BINDING,
    ),
    (
        "protocol",
        None,
        lambda n: changed(n, "metadata", "annotations", "topology.cisco.vk/worker-protocol", to="rollout-v0"),
        Reason.WORKER_PROTOCOL,
    ),
    (
        "no worker",
        None,
        lambda n: changed(n, "metadata", "annotations", "topology.cisco.vk/worker-username", to=None),
        Reason.WORKER_PROTOCOL,
    ),
    ("guard", None, lambda n: changed(n, "spec", "taints", to=GUARD), Reason.INITIALIZATION_GUARD),
    ("phase", lambda d: changed(d, "status", "phase", to="Error"), None, Reason.PHASE_NOT_READY),
    (
        "condition of an older generation",
        lambda d: changed(d, "metadata", "generation", to=4),
        None,
        Reason.CONDITION_NOT_TRUE,
    ),
    (
        "worker revision",
        lambda d: changed(d, "status", "networkWorkerRevision", "observedRevision", to=OTHER),
        None,
        Reason.WORKER_REVISION,
    ),
    (
        "Node not ready",
        None,
        lambda n: changed(n, "status", "conditions", 0, "status", to="Unknown"),
        Reason.NODE_NOT_READY,
    ),
    (
        "writer of another kind",
        None,
        lambda n: changed(n, "status", "conditions", 1, "reason", to="Kubelet"),
        Reason.MANAGED_WRITER,
    ),
    (
        "writer behind the projection",
        lambda d: changed(d, "status", "topologyProjection", "lastSuccessfulTime", to=ago(10)),
        None,
        Reason.MANAGED_WRITER,
    ),
    ("no evidence", lambda d: changed(d, "status", "healthObservation", to=None), None, Reason.HEALTH_NOT_FRESH),
    (
        "stale evidence",
        lambda d: changed(d, "status", "healthObservation", to=observed(d["status"]["conditions"], age=301)),
        None,
        Reason.HEALTH_NOT_FRESH,
    ),
    ("label of the Node", None, lambda n: changed(n, "metadata", "labels", SITE, to="x"), Reason.LABELS_DIFFER),
    (
        "chassis seen",
        None,
        lambda n: changed(n, "status", "nodeInfo", "machineID", to="FOC-OTHER"),
        Reason.PHYSICAL_IDENTITY,
    ),
    ("chassis declared", lambda d: changed(d, "spec", "physicalIdentity", to="X1"), None, Reason.PHYSICAL_IDENTITY),
    (
        "journal",
        lambda d: changed(d, "status", "workerReport", "journal", "state", to="HistoryLost"),
        None,
        Reason.CLAIM_HISTORY_LOST,
    ),
]


@pytest.mark.parametrize(
    ("alter_device", "alter_node", "reason"),
    [pytest.param(alter, seen, reason, id=name) for name, alter, seen, reason in CHECKS],
)
def test_each_check_of_a_target_names_the_device(alter_device, alter_node, reason):
    good, other = device("edge-1"), device("edge-2")
    bad = alter_device(other) if alter_device else other
    seen = node(other) if alter_node is None else alter_node(node(other))
    plan = rollout(selector={}, targets={"selector": {}, "allowAll": True, "maxTargets": 100})
    found = freeze(given([good, bad], nodes=[node(good), *([seen] if seen else [])], plan=plan))
    assert refused(found)[0] is reason
    assert found.first.device == "prod/edge-2"
    assert "prod/edge-2" in found.message
    assert found.is_deferred is (reason is Reason.INITIALIZATION_GUARD)


def test_a_device_that_is_still_taken_up_defers_planning_by_its_condition_too():
    bad = device("edge-2")
    bad["status"] |= {"phase": "Provisioning"}
    bad["status"]["conditions"][2] = condition("TopologyReady", "InitializationGuardActive", status="False")
    found = freeze(given([device("edge-1"), bad]))
    assert found.is_deferred
    assert found.first.device == "prod/edge-2"


@pytest.mark.parametrize("reason", ["CriticalService", "SingletonPath"])
def test_a_protected_device_is_refused_with_the_word_of_its_protection(reason):
    protections = [{"name": "core", "reason": reason, "selector": {"matchLabels": {SITE: "site-b"}}}]
    found = freeze(
        given([device("edge-1"), device("edge-2", zone="b")], policy=policy_record(disruptionProtections=protections))
    )
    assert refused(found) == [Reason(f"{reason}Protected")]


def test_an_open_leaf_without_its_claim_history_blocks_its_device():
    leaf = {
        "metadata": {"name": "winter-edge-1", "namespace": "prod"},
        "spec": {"deviceRef": {"name": "edge-1"}},
        "status": {"phase": "Activating", "failureReason": "ClaimHistoryLost"},
    }
    assert refused(freeze(given(leaves=(leaf,)))) == [Reason.CLAIM_HISTORY_LOST]
    ended = changed(
        leaf, "status", to={"phase": "Failed", "failureReason": "ClaimHistoryLost", "completionTime": ago(9)}
    )
    frozen(freeze(given(leaves=(ended,))))


def test_the_network_gate_of_a_plan_must_pass_and_its_reason_is_told():
    health = {"maxObservationAgeSeconds": 300, "network": {"enabled": True, "requireCompleteEvidence": True}}
    found = freeze(given(plan=rollout(health=health)))
    assert refused(found)[0] is Reason.NETWORK_GATE
    assert found.first.check == "EvidenceMissing"
    frozen(freeze(given(plan=rollout(health={**health, "network": {"enabled": False}}))))


@pytest.mark.parametrize(
    ("control", "ok"),
    [
        ({}, True),
        ({"revision": 0}, True),
        ({"revision": 1, "pause": True}, False),
        ({"revision": 2, "pause": False}, False),
    ],
    ids=["none", "neutral", "paused", "resumed"],
)
def test_a_plan_is_frozen_under_a_neutral_control_only(control, ok):
    tree = rollout()
    tree["spec"]["control"] = control
    found = freeze(given(plan=tree))
    assert isinstance(found, Frozen) if ok else refused(found) == [Reason.CONTROL_NOT_NEUTRAL]


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        pytest.param(
            rollout(workloads={"policy": "Drain", "drain": {"namespaces": ["apps"]}}),
            Reason.WORKLOAD_POLICY_UNSUPPORTED,
            id="drain",
        ),
        pytest.param(rollout(strategy="NoReboot"), Reason.STRATEGY_UNSUPPORTED, id="no reboot"),
        pytest.param(
            rollout(sources=[{"name": "center", "priority": 1, "catalystCenter": {"image": "x"}}]),
            Reason.SOURCE_KIND_UNSUPPORTED,
            id="catalyst center",
        ),
    ],
)
def test_what_this_version_does_not_run_is_held_and_not_failed(plan, reason):
    found = freeze(given(plan=plan))
    assert found.is_held
    assert reason in refused(found)


def test_a_budget_needs_the_same_kind_of_budget_in_the_policy():
    budgets = {
        "domains": [{"topologyKey": "topology.kubernetes.io/zone", "maxConcurrentTransfers": 1, "maxUnavailable": 1}]
    }
    found = freeze(given(plan=rollout(budgets=budgets)))
    assert refused(found) == [Reason.BUDGET_KEY_UNKNOWN]
    assert "maxConcurrentTransfers for topology.kubernetes.io/zone" in found.message


def test_two_devices_with_one_chassis_are_refused_both():
    first, second = device("edge-1"), device("edge-2")
    second = changed(second, "spec", "physicalIdentity", to=first["spec"]["physicalIdentity"].lower())
    second = changed(second, "status", "nodeIdentity", "physicalIdentity", to="foc-edge-1-uid")
    found = freeze(given([first, second]))
    assert refused(found) == [Reason.IDENTITY_REPEATED] * 2
    assert [problem.device for problem in found.problems] == ["prod/edge-1", "prod/edge-2"]


def test_a_policy_without_a_ledger_freezes_nothing():
    unbound = replace(policy_record(), ledger_uid="")
    assert refused(freeze(given(policy=unbound))) == [Reason.POLICY_UNBOUND]


def test_a_plan_that_is_too_large_is_refused_with_both_numbers():
    sites = [f"{'x' * 60}{number}" for number in range(30)]
    expression = {"key": SITE, "operator": "NotIn", "values": sites}
    sources = [
        source(),
        *(source(f"s{n}", priority=n, selector={"matchExpressions": [expression] * 30}) for n in range(15)),
    ]
    found = freeze(given(plan=rollout(sources=sources)))
    assert refused(found) == [Reason.PLAN_TOO_LARGE]
    assert "262144 are allowed" in found.message


def test_a_badly_formed_device_of_another_namespace_is_named_before_anything_is_admitted():
    broken = changed(device("edge-9", namespace="lab"), "status", "nodeIdentity", to=None)
    nodes = [node(tree) for tree in fleet()]
    found = frozen(freeze(given(fleet(), nodes=nodes, everywhere=[*fleet(), broken])))
    (problem,) = found.fleet_problems
    assert (problem.device, problem.check) == ("lab/edge-9", "IdentityMissing")
    assert any("lab/edge-9: it blocks every admission" in str(warning) for warning in found.warnings)
    plain = frozen(freeze(given()))
    assert plain.hash == found.hash


def test_with_risk_groups_a_badly_formed_device_keeps_the_plan_from_being_frozen():
    broken = changed(device("edge-9", namespace="lab"), "status", "nodeIdentity", to=None)
    nodes = [node(tree) for tree in fleet()]
    policy = policy_record(riskGroups=RISK)
    found = freeze(given(fleet(), nodes=nodes, everywhere=[*fleet(), broken], policy=policy))
    assert refused(found) == [Reason.FLEET_INCOMPLETE]
    assert found.message == (
        "lab/edge-9: CiscoDevice lab/edge-9 has no recorded identity (FleetIncomplete/IdentityMissing)"
    )


def test_an_unhealthy_device_elsewhere_is_no_badly_formed_one():
    ill = device("edge-9", namespace="lab")
    ill["status"]["phase"] = "Error"
    everywhere = [*fleet(), ill]
    found = frozen(freeze(given(fleet(), everywhere=everywhere, policy=policy_record(riskGroups=RISK))))
    assert found.fleet_problems == ()


def test_planning_is_tried_again_only_when_something_changed():
    world = {"devices": fleet(2), "nodes": [node(tree) for tree in fleet(2)], "secrets": (SECRET,)}
    before = planning_digest(given(**world))
    beating = [changed(tree, "status", "conditions", 0, "lastHeartbeatTime", to=ago(1)) for tree in world["nodes"]]
    assert planning_digest(given(**{**world, "nodes": beating})) == before
    others = {
        "device": {"devices": [changed(fleet(2)[0], "metadata", "resourceVersion", to="42"), fleet(2)[1]]},
        "one device less": {"devices": fleet(1), "nodes": world["nodes"][:1]},
        "guard": {"nodes": [changed(tree, "spec", "taints", to=GUARD) for tree in world["nodes"]]},
        "policy": {"policy": replace(policy_record(), resource_version="901")},
        "ledger": {"policy": replace(policy_record(), ledger_uid="other")},
        "Secret": {"secrets": (replace(SECRET, resource_version="6"),)},
        "Secret made anew": {"secrets": (replace(SECRET, uid="other"),)},
        "labels of the policy": {"policy": policy_record(riskGroups=RISK)},
    }
    digests = {name: planning_digest(given(**{**world, **change})) for name, change in others.items()}
    assert before not in digests.values()
    assert len(set(digests.values())) == len(digests)

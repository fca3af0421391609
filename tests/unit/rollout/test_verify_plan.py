"""Published hashes are recomputed from the objects that publish them, and the member that differs is named."""

import copy
import json
from pathlib import Path

import pytest

from gitops_ctl.fleet.evidence import sample_hash
from gitops_ctl.fleet.identity import activation_child_name, child_name, reservation_id
from gitops_ctl.rollout.activation import authorization_hash
from gitops_ctl.rollout.freeze import freeze
from gitops_ctl.rollout.verifyplan import State, verified
from gitops_ctl.rollout.verifytogether import verified_together
from tests.support.rollout_planning import NOW, SITE, changed, device, fleet, given, node, policy_map, rollout
from tests.support.rollout_prepared import activation_approval, prepared_campaign, prepared_leaves

VECTORS = Path(__file__).parents[2] / "vectors" / "rollouts"
HASH = "status.frozenPlan.hash"


def published(name):
    """The extract of a published object."""
    return json.loads((VECTORS / f"{name}.json").read_text())["derived_from"]


def differing(findings):
    """Member and detail of what differs."""
    return {one.member: one.detail for one in findings if one.state is State.DIFFERS}


@pytest.mark.parametrize("name", ["plan-hash", "projection-hash"])
def test_every_hash_of_a_published_object_is_the_recomputed_one(name):
    findings = verified(published(name))
    assert findings
    assert {one.state for one in findings} == {State.SAME}


def test_the_conditions_of_a_published_device_give_the_hash_that_was_observed():
    said = f"sha256:{json.loads((VECTORS / 'conditions-hash.json').read_text())['sha256']}"
    tree = published("conditions-hash")
    (found,) = verified(tree)
    assert (found.state, found.computed) == (State.COMPUTED, said)
    tree["status"]["healthObservation"] = {"deviceConditionsHash": said}
    assert [one.state for one in verified(tree)] == [State.SAME]


def test_the_hashes_of_a_published_policy_are_those_that_the_published_plan_names():
    policy, plan = published("policy-semantic-hash"), published("plan-hash")
    semantic, structural = verified(policy)
    snapshot = plan["status"]["frozenPlan"]["policy"]
    assert (semantic.computed, structural.computed) == (snapshot["semanticHash"], snapshot["structuralHash"])
    together = verified_together((plan, policy, published("projection-hash")))
    assert len(together) == 18
    assert {one.state for one in together} == {State.SAME}


EDITS = [
    (("spec", "plan", "requestedBy"), "somebody-else", None),
    (("spec", "plan", "rollbackOnFailure"), False, "/plan/rollbackOnFailure = true"),
    (("spec", "plan", "pauseAfterCanary"), None, "/plan/pauseAfterCanary = false"),
    (("spec", "plan", "installTimeoutSeconds"), 3600, None),
    (("spec", "plan", "health", "network", "requireCompleteEvidence"), None, "requireCompleteEvidence = true"),
    (("spec", "plan", "targets", "allowAll"), True, "/plan/targets/allowAll = false"),
    (("spec", "plan", "budgets", "domains"), "reversed", "/plan/budgets/domains sorted"),
    (("status", "frozenPlan", "campaignGeneration"), 2, "/generation = 1"),
    (("status", "frozenPlan", "targets", 0, "childName"), "other", "/targets/0/childName ="),
    (("status", "frozenPlan", "targets", 0, "wave"), 1, "/targets/0/wave = 0"),
]


@pytest.mark.parametrize(("path", "value", "named"), EDITS, ids=[".".join(map(str, path)) for path, _, _ in EDITS])
def test_an_edit_changes_the_hash_and_the_member_is_named_where_it_can_be(path, value, named):
    tree = published("plan-hash")
    if value == "reversed":
        inner = tree["spec"]["plan"]["budgets"]["domains"]
        edited = changed(tree, *path, to=list(reversed(inner)))
    else:
        edited = changed(tree, *path, to=value)
    detail = differing(verified(edited))[HASH]
    assert (named or "no change of a single member gives the published hash") in detail


def test_a_member_that_was_added_is_named():
    edited = changed(
        published("plan-hash"), "spec", "plan", "maintenanceWindow", to={"notBefore": "2026-10-01T00:00:00Z"}
    )
    assert "/plan/maintenanceWindow left out" in differing(verified(edited))[HASH]


def test_an_edited_policy_in_the_plan_is_found_in_the_effective_policy():
    tree = published("plan-hash")
    tree["status"]["effectivePolicy"] = {"epoch": 1, "policy": copy.deepcopy(tree["status"]["frozenPlan"]["policy"])}
    assert differing(verified(tree)) == {}
    tree["status"]["frozenPlan"]["policy"]["maxUnavailable"] = 9
    found = differing(verified(tree))
    assert "/policy/maxUnavailable = 1" in found[HASH]
    assert found["status.effectivePolicy.policy"] == "they differ in maxUnavailable"


def test_an_approval_of_another_hash_is_named():
    tree = published("plan-hash")
    tree["spec"]["approval"] = {"planHash": f"sha256:{'0' * 64}"}
    assert differing(verified(tree)) == {"spec.approval.planHash": "it is the hash of another plan"}


def test_a_changed_label_of_a_node_is_told():
    tree = published("projection-hash")
    key = "metadata.annotations[topology.cisco.vk/projection-hash]"
    assert differing(verified(changed(tree, "metadata", "labels", "platform", to="x")))[key] == (
        "a projected label was changed"
    )
    gone = changed(tree, "metadata", "labels", "platform", to=None)
    assert differing(verified(gone))[key] == "the Node lacks label platform"


def test_a_condition_that_changed_since_the_observation_is_told():
    tree = changed(device("edge-1"), "status", "conditions", 1, "message", to="new")
    assert differing(verified(tree)) == {
        "status.healthObservation.deviceConditionsHash": "phase or conditions changed since the observation was made"
    }


def test_another_chassis_than_declared_is_told():
    tree = changed(device("edge-1"), "spec", "physicalIdentity", to="OTHER")
    assert "status.nodeIdentity.physicalIdentity" in differing(verified(tree))


def frozen_world():
    """A frozen rollout with its policy, devices, Nodes and one leaf."""
    devices, stored = fleet(2), rollout()
    plan = freeze(given(devices)).to_json(created_at=NOW)
    stored["status"] = {"frozenPlan": plan}
    target = plan["targets"][0]
    reservation = reservation_id("rollout-uid", target["deviceUID"])
    binding = {
        "campaign-uid": "rollout-uid",
        "campaign-name": "spring",
        "plan-hash": plan["hash"],
        "device-name": "edge-1",
        "device-uid": target["deviceUID"],
        "device-generation": "3",
        "node-uid": target["nodeUID"],
        "reservation-id": reservation,
    }
    leaf = {
        "kind": "IOSXESoftwareUpgrade",
        "metadata": {
            "name": child_name("spring", "edge-1", reservation),
            "namespace": "prod",
            "annotations": {f"topology.cisco.vk/{key}": value for key, value in binding.items()},
        },
        "spec": {"imageSource": {"sha256": "a" * 64}},
        "status": {
            "sourceDigest": f"sha256:{'a' * 64}",
            "managerAdmission": {
                "planHash": plan["hash"],
                "reservationID": reservation,
                "deviceUID": target["deviceUID"],
            },
        },
    }
    return {
        "rollout": stored,
        "policy": policy_map(),
        "devices": devices,
        "nodes": list(map(node, devices)),
        "leaf": leaf,
    }


def everything(world):
    trees = (world["rollout"], world["policy"], *world["devices"], *world["nodes"], world["leaf"])
    return (*(one for tree in trees for one in verified(tree)), *verified_together(trees))


def test_a_plan_agrees_with_its_policy_nodes_devices_and_leaf():
    findings = everything(frozen_world())
    assert differing(findings) == {}
    assert len([one for one in findings if one.state is State.SAME]) > 50


@pytest.mark.parametrize(
    ("part", "path", "value", "member"),
    [
        ("devices", ("metadata", "generation"), 4, "status.frozenPlan.targets[0].deviceGeneration"),
        ("devices", ("metadata", "labels", SITE), "elsewhere", f"status.frozenPlan.targets[0].topology[{SITE}]"),
        ("nodes", ("metadata", "uid"), "other", "status.frozenPlan.targets[0].nodeUID"),
        (
            "leaf",
            ("metadata", "annotations", "topology.cisco.vk/plan-hash"),
            "sha256:0",
            "metadata.annotations[topology.cisco.vk/plan-hash]",
        ),
        ("leaf", ("status", "sourceDigest"), "sha256:0", "status.sourceDigest"),
        ("leaf", ("status", "managerAdmission", "deviceUID"), "other", "status.managerAdmission.deviceUID"),
    ],
    ids=["generation", "label", "node", "plan hash of the leaf", "digest", "admission"],
)
def test_what_disagrees_with_the_plan_is_named(part, path, value, member):
    world = frozen_world()
    if part == "leaf":
        world["leaf"] = changed(world["leaf"], *path, to=value)
    else:
        world[part][0] = changed(world[part][0], *path, to=value)
    assert member in differing(everything(world))


def test_a_policy_that_was_written_since_is_not_compared():
    world = frozen_world()
    world["policy"]["metadata"]["resourceVersion"] = "901"
    findings = everything(world)
    assert differing(findings) == {}
    assert [one.member for one in findings if one.state is State.UNKNOWN] == ["status.frozenPlan.policy"]


def test_a_receipt_and_the_activation_that_rests_on_it_are_verified():
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    live = activation_approval(tree, leaves)
    tree["spec"]["activationApproval"] = live
    (target, _) = tree["status"]["frozenPlan"]["targets"]
    receipt = dict(leaves[target["deviceUID"]].receipt)
    binding = frozen_world()["leaf"]["metadata"]["annotations"]
    binding = {**binding, "topology.cisco.vk/plan-hash": tree["status"]["frozenPlan"]["hash"]}
    leaf = {
        "kind": "IOSXESoftwareUpgrade",
        "metadata": {"name": target["childName"], "namespace": "prod", "uid": "edge-1-leaf", "annotations": binding},
        "spec": {"imageSource": {"url": target["source"]["url"], "sha256": target["source"]["sha256"]}},
        "status": {"phase": "Prepared", "preparedReceipt": receipt},
    }
    more = {
        "prepared-upgrade-uid": "edge-1-leaf",
        "prepared-receipt-hash": receipt["receiptHash"],
        "activation-authorization-hash": authorization_hash(live, campaign_uid="rollout-uid"),
    }
    bound = {**binding, **{f"topology.cisco.vk/{name}": value for name, value in more.items()}}
    activation = {
        "kind": "IOSXESoftwareUpgrade",
        "metadata": {"name": activation_child_name(target["childName"]), "namespace": "prod", "annotations": bound},
        "spec": {"imageSource": {"preinstalled": {}}},
    }
    found = (*verified(leaf), *verified(activation), *verified_together((tree, leaf, activation)))
    assert differing(found) == {}
    assert {"status.preparedReceipt.receiptHash", "status.preparedReceipt.sourceIdentityHash"} <= {
        one.member for one in found
    }
    edited = changed(leaf, "status", "preparedReceipt", "sourceSize", to=1)
    assert differing(verified(edited)) == {"status.preparedReceipt.receiptHash": "a member of the receipt was changed"}
    later = {**tree, "spec": {**tree["spec"], "activationApproval": {**live, "approvedBy": "somebody-else"}}}
    assert "metadata.annotations[topology.cisco.vk/activation-authorization-hash]" in differing(
        verified_together((later, leaf, activation))
    )


def test_the_sample_that_a_grant_rests_on_is_verified_while_it_is_accepted():
    world = frozen_world()
    sample = {"sampleSequence": 7, "observedAt": "2026-11-02T11:59:00Z", "complete": True}
    world["devices"][0]["status"]["healthObservation"]["acceptedNetwork"] = sample
    world["leaf"]["status"]["managerAdmission"] |= {
        "networkEvidenceHash": sample_hash(sample),
        "networkEvidenceSampleSequence": 7,
    }
    member = "status.managerAdmission.networkEvidenceHash"
    assert [one.state for one in everything(world) if one.member == member] == [State.SAME]
    sample["complete"] = False
    assert member in differing(everything(world))
    sample["sampleSequence"] = 8
    assert member not in {one.member for one in everything(world)}


def test_objects_without_a_hash_have_no_finding_and_broken_ones_are_unknown():
    assert verified({"kind": "Secret", "metadata": {"name": "x"}}) == ()
    assert verified({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}) == ()
    (found,) = verified({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"policy.json": "{"}})
    assert found.state is State.UNKNOWN
    (found,) = verified(rollout())
    assert (found.state, found.detail) == (State.UNKNOWN, "the rollout has no frozen plan")

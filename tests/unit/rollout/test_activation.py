"""Prepared devices are activated by an approval that names every receipt exactly, in its window, from a commit."""

import copy
from datetime import timedelta

import pytest

from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.receipt import receipt_problem
from gitops_ctl.rollout.activation import ActivationState, authorization_hash, judge_activation
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignstate import campaign_state
from gitops_ctl.trust.provenance import Introduced
from tests.support.rollout_planning import NOW, ago
from tests.support.rollout_prepared import a_receipt, activation_approval, prepared_campaign, prepared_leaves

BY = Introduced("c0ffee", "window-owner", "activate", "gitops-ctl:window-owner", NOW, NOW)


def judged(tree, leaves, block=None, *, live=None, now=NOW, has_begun=False):
    live = activation_approval(tree, leaves) if live is None else live
    tree = copy.deepcopy(tree)
    tree["spec"]["activationApproval"] = live
    given_ = Block(declared=live, introduced=BY) if block is None else block
    return judge_activation(campaign_state(tree), given_, leaves, now=now, has_begun=has_begun)


def test_an_exact_approval_authorises_each_target():
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    found = judged(tree, leaves)
    assert found.state is ActivationState.AUTHORIZED
    assert set(found.activations) == set(leaves)
    one = found.activations["edge-1-uid"]
    assert (one.prepared_uid, one.receipt_hash) == ("edge-1-leaf", leaves["edge-1-uid"].receipt["receiptHash"])
    assert one.not_after == NOW + timedelta(seconds=3600)
    assert len({activation.authorization_hash for activation in found.activations.values()}) == 1


def test_without_an_approval_nothing_is_judged():
    tree = prepared_campaign()
    state = campaign_state(tree)
    assert judge_activation(state, Block(), {}, now=NOW, has_begun=False).state is ActivationState.NONE


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(Block(), id="not in Git"),
        pytest.param(Block(introduced=BY, declared={"planHash": "sha256:0"}), id="Git says another thing"),
    ],
)
def test_an_approval_without_a_commit_has_no_effect(block):
    tree = prepared_campaign()
    found = judged(tree, prepared_leaves(tree), block)
    assert (found.state, found.reason) == (ActivationState.REFUSED, "NotFromGit")


def test_after_a_start_nothing_is_concluded_before_a_revision_was_looked_at():
    tree = prepared_campaign()
    assert judged(tree, prepared_leaves(tree), Block(known=False)).state is ActivationState.UNKNOWN
    begun = judged(tree, prepared_leaves(tree), Block(known=False), has_begun=True)
    assert begun.state is ActivationState.AUTHORIZED


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"planHash": "sha256:0"}, "is approved for activation, the plan is"),
        ({"receipts": []}, "exactly one receipt for each of the 2 targets"),
        ({"notBefore": ago(-7200)}, "it names no window"),
        ({"notAfter": ago(10)}, "its window closed at"),
        ({"notBefore": None}, "it names no window"),
    ],
    ids=["another plan", "no receipts", "a window turned round", "too late", "no window"],
)
def test_an_approval_that_does_not_fit_is_refused_with_the_reason(changed, message):
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    found = judged(tree, leaves, live=activation_approval(tree, leaves, **changed))
    assert (found.state, found.reason) == (ActivationState.REFUSED, "ActivationAuthorizationInvalid")
    assert message in found.message


def test_what_has_begun_is_not_undone_by_the_clock():
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    late = NOW + timedelta(days=1)
    assert judged(tree, leaves, now=late).state is ActivationState.REFUSED
    assert judged(tree, leaves, now=late, has_begun=True).state is ActivationState.AUTHORIZED


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"campaignUID": "other"}, "campaignUID"),
        ({"deviceGeneration": 4}, "deviceGeneration"),
        ({"physicalIdentity": "foc-other"}, "physicalIdentity"),
        ({"sourceDigest": f"sha256:{'b' * 64}"}, "sourceDigest"),
        ({"sourceIdentityHash": f"sha256:{'b' * 64}"}, "sourceIdentityHash"),
        ({"policyUID": "other"}, "policyUID"),
        ({"validatedVersion": "17.18.030"}, "17.18.030 was validated"),
        ({"runningVersion": "17.18.03.0.5496"}, "the device runs 17.18.03 already"),
        ({"trustIdentityHash": None}, "the receipt lacks trustIdentityHash"),
        ({"preparedAt": ago(700)}, "before the installation began"),
        ({"managedMutationClaims": []}, "not those of a preparation"),
        ({"managedMutationClaims": [{"stage": "PrimaryActivation"}]}, "not those of a preparation"),
        ({"managedMutationClaims": [{"stage": "StandbyInstall"}]}, "not those of a preparation"),
        ({"primarySupervisorInstalled": False}, "the primary supervisor was not installed"),
        ({"individualSupervisorInstall": True}, "the standby supervisor was not installed"),
        ({"standbySupervisorInstalled": True}, "a standby supervisor that is not installed by itself"),
        ({"contentBinding": "other"}, "of another protocol"),
    ],
    ids=lambda value: "/".join(value) if isinstance(value, dict) else "",
)
def test_a_receipt_that_does_not_prove_this_preparation_is_refused(changed, message):
    tree = prepared_campaign()
    found = judged(tree, prepared_leaves(tree, **changed))
    assert (found.state, found.reason) == (ActivationState.REFUSED, "ActivationAuthorizationInvalid")
    assert found.message.startswith("edge-1: ")
    assert message in found.message


def test_a_receipt_that_was_edited_is_told_by_its_hash():
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    leaf = leaves["edge-1-uid"]
    edited = leaf_of(
        {
            "metadata": {"name": leaf.name, "uid": leaf.uid},
            "status": {"phase": "Prepared", "preparedReceipt": {**leaf.receipt, "sourceSize": 1}},
        }
    )
    assert "its hash is that of another one" in judged(tree, {**leaves, "edge-1-uid": edited}).message


def test_a_reference_to_another_receipt_and_a_leaf_that_is_not_prepared_are_refused():
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    wrong = activation_approval(tree, leaves)
    wrong["receipts"][1]["receiptHash"] = "sha256:0"
    assert "edge-2: its receipt is another one: receiptHash" in judged(tree, leaves, live=wrong).message
    gone = {uid: leaf for uid, leaf in leaves.items() if uid != "edge-2-uid"}
    assert "edge-2: nothing is prepared on it" in judged(tree, gone, live=activation_approval(tree, leaves)).message


def test_a_plan_that_prepares_nothing_is_never_activated():
    tree = prepared_campaign("Reload")
    assert "nothing is prepared" in judged(tree, prepared_leaves(tree)).message


def test_the_hash_of_an_authorisation_binds_everything_and_no_order():
    tree = prepared_campaign()
    leaves = prepared_leaves(tree)
    block = activation_approval(tree, leaves)
    said = authorization_hash(block, campaign_uid="rollout-uid")
    turned = {**block, "receipts": list(reversed(block["receipts"])), "unheardOf": 1}
    assert authorization_hash(turned, campaign_uid="rollout-uid") == said
    offset = {**block, "approvedAt": "2026-11-02T12:59:30.25+01:00"}
    assert authorization_hash(offset, campaign_uid="rollout-uid") == said
    for name, value in (("planHash", "x"), ("notBefore", ago(61)), ("notAfter", ago(0)), ("approvedBy", "y")):
        assert authorization_hash({**block, name: value}, campaign_uid="rollout-uid") != said
    assert authorization_hash(block, campaign_uid="other") != said


def test_the_order_of_claims_is_not_part_of_a_receipt():
    tree = prepared_campaign()
    target = tree["status"]["frozenPlan"]["targets"][0]
    claims = [{"stage": stage, "claimedAt": ago(599)} for stage in ("Staging", "PrimaryInstall")]
    one = a_receipt(target, "x", managedMutationClaims=claims)
    other = a_receipt(target, "x", managedMutationClaims=list(reversed(claims)))
    assert one["receiptHash"] == other["receiptHash"]
    assert receipt_problem(one) == ""


def test_a_receipt_outside_a_campaign_needs_less():
    target = prepared_campaign()["status"]["frozenPlan"]["targets"][0]
    bare = a_receipt(target, None, nodeUID=None, policyUID=None, policyEpoch=None, managedMutationClaims=[])
    assert receipt_problem(bare, managed=False) == ""
    assert "the receipt lacks nodeUID, policyUID" in receipt_problem(bare)

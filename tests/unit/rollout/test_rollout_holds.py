"""What holds a rollout or a device as it is, and what of a live one Git does not put back (rollouts.md, 2.6, 8.6, 11.1 to 11.6)."""

from dataclasses import dataclass, field
from typing import Any

import pytest

import gitops_ctl.rollout.holds  # noqa: F401 - registers what is tried here
from gitops_ctl.documents.holds import HoldQuestion, hold_of
from gitops_ctl.documents.living import register_living, with_living
from gitops_ctl.rollout.documentrules import ROLLOUT
from tests.support.api import with_status
from tests.support.api_devices import a_lock
from tests.support.api_rollouts import (
    LEAF_UID,
    OTHER_DIGEST,
    a_control,
    a_device,
    a_frozen_plan,
    a_plan,
    a_recovery,
    a_recovery_status,
    a_rollout,
    a_target_status,
    an_activation,
    an_approval,
    an_invalidation,
)

COMMITTED = "c" * 40
PUBLISHED = {"phase": "Executing", "frozenPlan": a_frozen_plan(), "targets": [a_target_status()]}


def live(tree: Any, *, commit: str = "", **status: Any) -> Any:
    metadata = {**tree["metadata"], "uid": "rollout-uid", "resourceVersion": "7"}
    if commit:
        metadata["annotations"] = {"gitops-ctl.dev/introduced-commit": f"plan=aaaa,control={commit}"}
    return with_status({**tree, "metadata": metadata}, **status)


@dataclass(frozen=True)
class By:
    commit: str
    person: str = "network-author"


@dataclass(frozen=True)
class Authors:
    found: dict[str, By] = field(default_factory=dict)

    def of(self, pointer: str) -> By | None:
        return self.found.get(pointer)

    def why_void(self, pointer: str) -> str:
        return ""


def held(new: Any, old: Any, *, commit: str = "") -> tuple[str, str, str]:
    """Reason, place and text; empty when nothing holds it."""
    authors = Authors({"/spec/control": By(commit)}) if commit else Authors()
    flaw = hold_of(HoldQuestion(new, old, authors))
    return ("", "", "") if flaw is None else (flaw.code.reason, flaw.pointer, flaw.message)


FREE = ("", "", "")


# -- emergency stop ------------------------------------------------------------------------------------------------------


def test_a_newer_live_control_stands_in_place_of_gits_without_its_names():
    git = a_rollout(control=a_control(1))
    stopped = live(a_rollout(control=a_control(2, pause=True, reason="smoke", requestedBy="change-approver")))
    kept = with_living(git, live=stopped)
    assert kept["spec"]["control"] == {"revision": 2, "pause": True, "reason": "smoke"}
    assert kept["spec"]["plan"] == git["spec"]["plan"]
    assert with_living(a_rollout(), live=stopped)["spec"]["control"]["revision"] == 2


def test_git_stands_once_it_has_caught_up():
    stopped = live(a_rollout(control=a_control(2, pause=True)))
    for revision in (2, 3):
        git = a_rollout(control=a_control(revision))
        assert with_living(git, live=stopped) is git
    git = a_rollout()
    assert with_living(git, live=None) is git
    assert with_living(git, live=live(a_rollout())) is git


def test_what_stays_of_a_live_kind_is_said_once():
    with pytest.raises(RuntimeError, match=r"IOSXESoftwareRollout.* is registered twice"):
        register_living(ROLLOUT, lambda tree, _: tree)


def test_a_change_without_a_larger_revision_is_held_and_the_next_free_one_is_named():
    stopped = live(a_rollout(control=a_control(3, pause=True, requestedBy="change-approver")))
    assert held(a_rollout(control=a_control(3)), stopped) == (
        "ControlRevisionStale",
        "/spec/control/revision",
        "control has the revision 3 and differs from the live one, revision 3 of change-approver: "
        "the next free revision is 4",
    )
    assert held(a_rollout(control=a_control(4)), stopped) == FREE
    assert held(a_rollout(control={"revision": 3, "pause": True}), stopped) == FREE


def test_a_lower_revision_is_held_only_when_it_is_news():
    stopped = live(a_rollout(control=a_control(5, pause=True)), commit=COMMITTED)
    behind = a_rollout(control=a_control(4))
    assert held(behind, stopped, commit=COMMITTED) == FREE
    assert held(behind, stopped, commit="d" * 40)[0] == "ControlRevisionStale"
    assert held(a_rollout(), stopped) == FREE


# -- blocks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "value"),
    [("approval", an_approval), ("activationApproval", an_activation), ("preparationInvalidation", an_invalidation)],
)
def test_a_block_for_another_plan_is_held_with_both_hashes(block: str, value: Any):
    tree = a_rollout(plan=a_plan(strategy="PrepareOnly"), **{block: value(planHash=OTHER_DIGEST)})
    cancelled = {**PUBLISHED, "phase": "Cancelled"}
    reason, place, text = held(tree, live(a_rollout(), **cancelled))
    assert (reason, place) == ("ApprovalHashMismatch", f"/spec/{block}/planHash")
    assert (
        text == f"{block} is for the plan {OTHER_DIGEST}, and the published plan has {PUBLISHED['frozenPlan']['hash']}"
    )
    assert held(a_rollout(plan=tree["spec"]["plan"], **{block: value()}), live(a_rollout(), **cancelled)) == FREE


def test_an_approval_before_there_is_a_plan_is_held():
    assert held(a_rollout(approval=an_approval()), live(a_rollout()))[2].endswith("and no plan is published yet")


def test_a_checkout_is_not_asked_about_hashes_and_states():
    assert held(a_rollout(approval=an_approval(), recovery=a_recovery()), a_rollout()) == FREE


def test_an_invalidation_waits_for_the_cancellation():
    tree = a_rollout(preparationInvalidation=an_invalidation())
    assert held(tree, live(a_rollout(), **PUBLISHED)) == (
        "WrongRolloutState",
        "/spec/preparationInvalidation",
        "preparationInvalidation is for cancelled campaigns, and this one is Executing",
    )
    assert held(tree, live(tree, **PUBLISHED)) == FREE


def recovering(state: str, *, block: Any = None) -> Any:
    entries = [a_recovery_status(state=state)]
    return live(a_rollout(**({"recovery": block} if block else {})), **PUBLISHED, recoveries=entries)


def test_a_recovery_names_a_leaf_of_the_campaign():
    assert held(a_rollout(recovery=a_recovery(leafUID="other")), live(a_rollout(), **PUBLISHED)) == (
        "WrongRolloutState",
        "/spec/recovery/leafUID",
        "other is the UID of no leaf of this campaign",
    )
    assert held(a_rollout(recovery=a_recovery()), live(a_rollout(), **PUBLISHED)) == FREE


def test_a_held_recovery_may_be_corrected_and_an_accepted_one_may_not():
    corrected = a_rollout(recovery=a_recovery(reason="burnt down"))
    assert held(corrected, recovering("Held", block=a_recovery())) == FREE
    assert held(a_rollout(), recovering("Held", block=a_recovery())) == FREE
    for new in (corrected, a_rollout()):
        assert held(new, recovering("Accepted", block=a_recovery()))[2] == (
            f"the recovery of leaf {LEAF_UID} is Accepted: it neither changes nor goes away"
        )
        assert held(new, recovering("Settled", block=a_recovery()))[0] == "WrongRolloutState"
    assert (
        held(a_rollout(recovery=a_recovery()), recovering("Settled"))[2]
        == f"the recovery of leaf {LEAF_UID} is Settled already"
    )


# -- devices -------------------------------------------------------------------------------------------------------------


def locked(tree: Any, state: str = "Active") -> Any:
    return live(tree, topologyLock=a_lock(state))


def test_a_locked_device_is_held_with_its_campaign():
    reason, place, text = held(a_device(port=443), locked(a_device(port=22), "Releasing"))
    assert (reason, place) == ("DeviceLocked", "/spec/port")
    assert text == "the campaign team-a/to-17-18 has the device (Releasing); the change waits until it lets go"
    assert held(a_device(port=443), live(a_device(port=22), phase="Ready")) == FREE


def test_what_the_server_adds_to_a_locked_device_is_no_change():
    stored = a_device(maxPods=16, gnoi={"port": 9339, "transportSecurity": "tls"})
    assert held(a_device(gnoi={"port": 9339}, taints=[]), locked(stored)) == FREE
    assert held(a_device(gnoi={"port": 9340}), locked(stored))[1] == "/spec/gnoi"
    taint = {"key": "example.net/lab", "effect": "NoSchedule"}
    assert held(a_device(taints=[taint]), locked(a_device(taints=[{**taint, "value": "1"}]))) == FREE
    assert held(a_device(taints=[taint]), locked(a_device()))[1] == "/spec/taints"


@pytest.mark.parametrize(
    ("part", "name", "place"),
    [
        ("labels", "operations.cisco.vk/image-family", "/metadata/labels/operations.cisco.vk~1image-family"),
        ("labels", "topology.kubernetes.io/zone", "/metadata/labels/topology.kubernetes.io~1zone"),
        ("annotations", "topology.cisco.vk/adopt-node-uid", "/metadata/annotations/topology.cisco.vk~1adopt-node-uid"),
    ],
)
def test_protected_labels_and_approvals_of_a_locked_device_are_held_and_others_are_not(
    part: str, name: str, place: str
):
    tree = a_device()
    tree["metadata"][part] = {name: "new"}
    assert held(tree, locked(a_device()))[1] == place
    tree["metadata"][part] = {"example.net/team": "new"}
    assert held(tree, locked(a_device())) == FREE

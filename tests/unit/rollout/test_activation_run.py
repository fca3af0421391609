"""Prepared devices are activated in their window, or given up (rollouts.md, sections 12.4 and 12.5)."""

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gitops_ctl.fleet.identity import activation_child_name
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.rollout.activationrun import LOOK_S, PREPARATION, Run, goes_on, run_of
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.invalidation import receipt_refusal
from gitops_ctl.rollout.progress import Phase, TargetPhase, standings_of
from tests.support.rollout_authority import by
from tests.support.rollout_planning import NOW, ago
from tests.support.rollout_prepared import activation_approval, prepared_campaign, prepared_leaves
from tests.support.rollout_simulation import RolloutWorld

OPENS_IN_S = 300


class Prepared:
    """A campaign whose two devices are prepared and given back, with an approval for a window."""

    def __init__(
        self, *, opens_in_s: int = OPENS_IN_S, target: dict[str, str] | None = None, taken_up: bool = False
    ) -> None:
        tree: Any = prepared_campaign()  # type: ignore[no-untyped-call]
        found: Any = prepared_leaves(tree)  # type: ignore[no-untyped-call]
        window = {"notBefore": ago(-opens_in_s), "notAfter": ago(-opens_in_s - 3600)}  # type: ignore[no-untyped-call]
        self.approval = {**activation_approval(tree, found), **window}  # type: ignore[no-untyped-call]
        tree["spec"]["activationApproval"] = self.approval
        stood = target or {"phase": "Succeeded", "reason": "HealthGatePassed"}
        frozen = tree["status"]["frozenPlan"]["targets"]
        tree["status"]["targets"] = [
            {"deviceName": one["deviceName"], "deviceUID": one["deviceUID"], **stood} for one in frozen
        ]
        self.tree = tree
        self.leaves: dict[str, Leaf] = {leaf.name: _given_back(leaf) for leaf in found.values()}
        if taken_up:
            self.record()

    def record(self, **given: Any) -> Any:
        """Write what a pass says about the approval, as the controller does; gives what the status says then."""
        record = self.run(**given).record
        if record is not None:
            self.tree["status"]["activation"] = {**record}
        return self.tree["status"].get("activation")

    @property
    def state(self) -> CampaignState:
        found = campaign_state(self.tree)
        assert found is not None
        return found

    def run(self, *, later_s: int = 0, block: Block | None = None) -> Run:
        given = block or Block(declared=self.approval, introduced=by("activate"))
        return run_of(self.state, given, self.leaves, now=NOW + timedelta(seconds=later_s))

    def waits(self, *, later_s: int = 0) -> Any:
        now = NOW + timedelta(seconds=later_s)
        return self.run(later_s=later_s).waits(self.state, standings_of(self.tree), now=now)


def _given_back(leaf: Leaf) -> Leaf:
    settled = leaf_of({"status": {"managerAdmission": {"state": "Settled"}}}).admission
    return replace(leaf, admission=settled)


def test_before_its_window_every_device_waits_and_the_opening_is_looked_for() -> None:
    waits = Prepared().waits()
    assert (waits.standing.phase, waits.standing.ready_reason) == (Phase.PAUSED, "ActivationWindowNotOpen")
    assert {one.reason for one in waits.standing.targets} == {"ActivationWindowNotOpen"}
    assert {one.phase for one in waits.standing.targets} == {TargetPhase.BLOCKED}
    assert waits.until == NOW + timedelta(seconds=LOOK_S)
    assert Prepared().waits(later_s=OPENS_IN_S - 5).until == NOW + timedelta(seconds=OPENS_IN_S)


def test_the_first_pass_in_the_window_says_that_activation_is_authorised() -> None:
    waits = Prepared().waits(later_s=OPENS_IN_S)
    assert waits.standing.phase is Phase.EXECUTING
    assert {one.reason for one in waits.standing.targets} == {"ActivationAuthorized"}
    assert waits.again


def test_the_next_pass_goes_on() -> None:
    told = Prepared(target={"phase": "Blocked", "reason": "ActivationAuthorized"})
    assert told.waits(later_s=OPENS_IN_S + 1) is None
    names = {told.run().leaf_name(target) for target in told.state.targets}
    assert all("-activate-" in name for name in names)


def test_what_was_taken_up_is_not_undone_by_a_clock() -> None:
    told = Prepared(target={"phase": "Blocked", "reason": "ActivationWindowClosed"}, taken_up=True)
    run = told.run(later_s=OPENS_IN_S + 7200)
    assert not run.refused[0]
    assert run.activations
    late = Prepared().run(later_s=OPENS_IN_S + 7200)
    assert late.refused[0] == "ActivationAuthorizationInvalid"


def test_who_approved_an_activation_and_in_which_commit_is_recorded_once() -> None:
    prepared = Prepared()
    recorded = prepared.record()
    person = by("activate")
    assert (recorded["valid"], recorded["reason"]) == (True, "ActivationAuthorized")
    assert (recorded["person"], recorded["commit"]) == (person.person, person.commit)
    assert recorded["planHash"] == prepared.state.plan_hash
    assert recorded["authorizationHash"].startswith("sha256:")
    assert prepared.run(later_s=60).record is None


def test_what_was_taken_up_stands_although_git_does_not_hold_it_any_more() -> None:
    prepared = Prepared(taken_up=True)
    for block in (Block(known=False), Block(why="the document is gone"), Block(why="since the pinned root")):
        run = prepared.run(later_s=OPENS_IN_S + 7200, block=block)
        assert run.refused == ("", "")
        assert run.activations
        assert run.record is None


def test_the_word_of_a_target_takes_no_approval_up() -> None:
    prepared = Prepared(target={"phase": "Blocked", "reason": "ActivationWindowNotOpen"})
    assert prepared.run(block=Block()).refused[0] == "NotFromGit"
    assert prepared.run(block=Block(known=False)) == PREPARATION


def test_a_record_counts_for_the_approval_that_it_names_only() -> None:
    prepared = Prepared(taken_up=True)
    prepared.tree["status"]["activation"]["authorizationHash"] = f"sha256:{'0' * 64}"
    assert prepared.run(block=Block()).refused[0] == "NotFromGit"


@pytest.mark.parametrize("has_begun", [False, True], ids=["nothing-began", "a-leaf-is-there"])
def test_a_revocation_is_recorded_and_stays_when_nobody_can_look_at_the_commit_any_more(has_begun: bool) -> None:
    prepared = Prepared(opens_in_s=-10, taken_up=True)
    if has_begun:
        name = activation_child_name(prepared.state.targets[0].child_name)
        prepared.leaves[name] = replace(next(iter(prepared.leaves.values())), name=name)
    revoked = Block(declared=prepared.approval, introduced=by("activate"), revoked=True)
    recorded = prepared.record(block=revoked)
    assert (recorded["valid"], recorded["reason"], recorded["person"]) == (
        False,
        "ApproverRevoked",
        by("activate").person,
    )
    for block in (Block(known=False), Block(why="since the pinned root"), revoked):
        run = prepared.run(block=block)
        assert run.refused[0] == "ApproverRevoked"
        assert run.record is None
        assert bool(run.activations) is has_begun


def test_a_receipt_that_does_not_fit_for_the_moment_takes_nothing_back() -> None:
    prepared = Prepared(taken_up=True)
    name, leaf = next(iter(prepared.leaves.items()))
    prepared.leaves[name] = replace(leaf, phase="Failed")
    run = prepared.run(later_s=OPENS_IN_S + 7200)
    assert run.refused[0] == "ActivationAuthorizationInvalid"
    assert run.record is None
    prepared.leaves[name] = leaf
    assert not prepared.run(later_s=OPENS_IN_S + 7200).refused[0]


def test_an_approval_without_a_commit_changes_nothing_and_says_so() -> None:
    prepared = Prepared()
    run = prepared.run(block=Block())
    waits = run.waits(prepared.state, standings_of(prepared.tree), now=NOW)
    assert waits is not None
    assert (waits.standing.phase, waits.standing.ready_reason) == (Phase.SUCCEEDED, "NotFromGit")
    assert not run.activations


@pytest.mark.parametrize("reason", ["HealthGatePassed", "ActivationWindowNotOpen", "ActivationAuthorized"])
def test_an_approval_that_was_taken_up_ends_with_the_key_of_its_person(reason: str) -> None:
    prepared = Prepared(target={"phase": "Blocked", "reason": reason})
    revoked = Block(declared=prepared.approval, introduced=by("activate"), revoked=True)
    run = prepared.run(block=revoked)
    waits = run.waits(prepared.state, standings_of(prepared.tree), now=NOW)
    assert waits is not None
    assert (waits.standing.phase, waits.standing.ready_reason) == (Phase.SUCCEEDED, "ApproverRevoked")
    assert not run.activations


def test_a_run_that_has_begun_without_its_approval_any_more_still_names_its_leaves() -> None:
    prepared = Prepared(opens_in_s=-10)
    name = activation_child_name(prepared.state.targets[0].child_name)
    prepared.leaves[name] = replace(next(iter(prepared.leaves.values())), name=name)
    run = prepared.run(block=Block(declared=prepared.approval, introduced=by("activate"), revoked=True))
    assert run.refused[0] == "ApproverRevoked"
    assert run.leaf_name(prepared.state.targets[0]) == name
    waits = run.waits(prepared.state, standings_of(prepared.tree), now=NOW)
    assert waits is not None
    assert waits.standing.phase is Phase.PAUSED


def test_until_every_device_is_given_back_the_campaign_prepares() -> None:
    prepared = Prepared()
    name = next(iter(prepared.leaves))
    prepared.leaves[name] = replace(prepared.leaves[name], admission=None)
    assert prepared.run() == PREPARATION


@pytest.mark.parametrize(
    ("phase", "spec", "expected"),
    [
        pytest.param("Succeeded", {}, False, id="prepared"),
        pytest.param("Succeeded", {"activationApproval": {"planHash": "h"}}, True, id="approved"),
        pytest.param("Succeeded", {"control": {"revision": 1, "cancel": True}}, True, id="cancelled later"),
        pytest.param("Cancelled", {}, False, id="cancelled"),
        pytest.param("Cancelled", {"preparationInvalidation": {"planHash": "h"}}, True, id="given up"),
        pytest.param("Cancelled", {"activationApproval": {"planHash": "h"}}, False, id="approved and cancelled"),
    ],
)
def test_a_campaign_that_ended_goes_on_only_for_what_was_asked(
    phase: str, spec: dict[str, Any], expected: bool
) -> None:
    tree: dict[str, Any] = {
        "metadata": {},
        "spec": {"plan": {"strategy": "PrepareOnly"}, **spec},
        "status": {"phase": phase},
    }
    assert goes_on(tree) is expected
    assert not goes_on({**tree, "spec": {**spec, "plan": {"strategy": "Reload"}}})


CONTROL = {"revision": 3, "cancel": True}


def _cancelled(leaf: Leaf, **control: Any) -> Leaf:
    told = leaf_of({"status": {"managerControl": {**CONTROL, **control}}}).manager_control
    return replace(leaf, manager_control=told)


def test_exactly_the_receipts_that_are_named_are_given_up() -> None:
    prepared = Prepared()
    reference = copy.deepcopy(prepared.approval["receipts"][0])
    leaf = _cancelled(next(one for one in prepared.leaves.values() if one.uid == reference["upgradeUID"]))
    leaves = {leaf.name: leaf}
    assert receipt_refusal(prepared.state, reference, leaf, leaves) == ""
    other = {**reference, "receiptHash": f"sha256:{'0' * 64}"}
    assert receipt_refusal(prepared.state, other, leaf, leaves) == "the receipt of edge-1 is another one"
    assert "no device of this plan" in receipt_refusal(prepared.state, {"deviceUID": "x"}, None, leaves)
    assert receipt_refusal(prepared.state, reference, None, leaves) == "nothing is prepared on edge-1"
    paused = _cancelled(leaf, pause=True)
    assert "not settled under a cancellation" in receipt_refusal(prepared.state, reference, paused, leaves)


def test_a_receipt_whose_activation_was_claimed_is_not_given_up() -> None:
    prepared = Prepared()
    reference = prepared.approval["receipts"][0]
    leaf = _cancelled(next(one for one in prepared.leaves.values() if one.uid == reference["upgradeUID"]))
    claimed = leaf_of({"status": {"managedMutationClaims": [{"stage": "PrimaryActivation"}]}})
    child = replace(claimed, name="child", binding=replace(leaf.binding, prepared_upgrade_uid=leaf.uid))
    said = receipt_refusal(prepared.state, reference, leaf, {leaf.name: leaf, "child": child})
    assert said == "the activation of edge-1 was claimed by leaf child"


async def test_prepared_devices_are_activated_one_after_the_other() -> None:
    world = RolloutWorld(strategy="PrepareOnly", decides=True)
    await world.finish()
    world.laws.at_the_end()
    assert world.status["phase"] == "Succeeded"
    assert {switch.read()["running"] for switch in world.equipment.switches.values()} == {"17.18.03.0.5496"}
    assert all("-activate-" in one["leafName"] for one in world.status["targets"])


async def test_a_cancelled_preparation_is_given_up_leaf_by_leaf_and_nothing_is_deleted() -> None:
    world = RolloutWorld(strategy="PrepareOnly", decides=True)
    while world.status.get("phase") != "Succeeded":
        await world.take_turn()
    await world.persons.ask(cancel=True)
    await world.finish()
    world.laws.at_the_end()
    assert (world.status["phase"], world.status["message"]) == ("Cancelled", "every receipt was given up")
    for switch in world.equipment.switches.values():
        assert [one["version"] for one in switch.read()["packages"]][-1] == "17.18.03.0.5496"

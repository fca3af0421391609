"""Resume, cancel and breakLock, each by a signed commit (cni-switch.md, section 6.6), and revisions that are refused later (section 17)."""

from dataclasses import replace

import pytest

from gitops_ctl.cni.model import Introduction, Mode, Steering
from tests.support.switch_bench import Bench, make_bench


def waiting(target: str = "replaced") -> Bench:
    bench = make_bench(target)
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    return bench


def paused_at(bench: Bench, name: str) -> Bench:
    """Paused at a machine that refuses what is asked."""
    bench.live.machines[name].refuses = "ApplyRefused: two documents are wrong"
    bench.live.change_cni("true" if bench.target == "replaced" else "false")
    bench.run()
    assert bench.phase == "Paused"
    return bench


def test_cancel_is_honoured_while_the_mode_was_not_set() -> None:
    bench = waiting()
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "Cancelled"
    assert bench.mode is None
    assert bench.lock is None
    assert bench.live.effects == []
    assert bench.status["operation"]["cancel"] is True


def test_cancel_ends_an_operation_that_is_paused_in_preflight() -> None:
    bench = make_bench("enabled")
    bench.live.machines["cp-1"].staged = True
    bench.run()
    assert bench.phase == "Paused"
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "Cancelled"


def test_cancel_is_refused_once_the_mode_is_set_and_says_how_to_go_back() -> None:
    bench = waiting("enabled")
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    message = bench.condition("AwaitingCNIChange")["message"]
    assert "machines were already switched; start the switch back to replaced instead" in message
    bench.steer()
    bench.run()
    assert "switch back" not in bench.condition("AwaitingCNIChange")["message"]


def test_break_lock_is_honoured_only_while_paused() -> None:
    bench = waiting()
    bench.steer(break_lock=True)
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert "only while the operation is Paused" in bench.condition("AwaitingCNIChange")["message"]
    assert bench.lock is not None


def test_break_lock_ends_a_paused_operation_undoes_nothing_and_lists_what_was_switched() -> None:
    bench = paused_at(make_bench("replaced"), "cp-3")
    effects = list(bench.live.effects)
    bench.steer(break_lock=True)
    bench.run()
    assert bench.phase == "Cancelled"
    found = bench.condition("Succeeded")
    assert found["reason"] == "LockBroken"
    assert "cp-1, cp-2" in found["message"]
    assert "cp-3" not in found["message"]
    assert bench.lock is None
    assert bench.mode == "replaced"
    assert bench.live.effects == effects


def test_after_a_broken_lock_a_fresh_consent_to_the_same_target_finds_what_still_differs() -> None:
    bench = paused_at(make_bench("replaced"), "cp-3")
    bench.steer(break_lock=True)
    bench.run()
    bench.steer()
    bench.run()
    assert len(bench.operations) == 1
    bench.live.machines["cp-3"].refuses = ""
    bench.authority = replace(bench.authority, introduced=Introduction("b" * 40, "network-author"))
    bench.run()
    assert len(bench.operations) == 2
    assert bench.phase == "Succeeded"
    assert all(machine.proxy == "disabled" for machine in bench.live.machines.values())


def test_a_resume_repeats_the_failed_step_only() -> None:
    bench = paused_at(make_bench("replaced"), "cp-2")
    assert bench.rows == {"cp-1": "Done", "cp-2": "Failed", "cp-3": "Pending", "node-1": "Pending", "node-2": "Pending"}
    step = bench.step
    bench.live.machines["cp-2"].refuses = ""
    bench.steer(resume=1)
    bench.rest()
    assert bench.step == step
    bench.run()
    assert bench.phase == "Succeeded"
    assert len([one for one in bench.live.effects if "/cp-1#" in one]) == 1


def test_an_old_value_of_resume_does_not_wake_a_later_pause() -> None:
    bench = make_bench("replaced")
    bench.steer(resume=4)
    bench = paused_at(bench, "cp-1")
    bench.run()
    assert bench.phase == "Paused"
    assert "spec.cni.operation.resume: 5" in bench.paused[1]
    bench.live.machines["cp-1"].refuses = ""
    bench.steer(resume=5)
    bench.run()
    assert bench.phase == "Succeeded"


def test_a_resume_that_was_raised_while_nothing_was_paused_counts_for_nothing_later() -> None:
    bench = waiting()
    bench.steer(resume=1)
    bench.run()
    bench = paused_at(bench, "cp-1")
    assert bench.phase == "Paused"


def test_a_field_that_names_the_other_mode_cancels_an_operation_that_touched_nothing() -> None:
    bench = waiting()
    bench.cluster["spec"]["cni"]["kubeProxy"] = "enabled"
    bench.run()
    assert bench.phase == "Cancelled"
    assert bench.condition("Succeeded")["reason"] == "TargetChanged"
    assert bench.lock is None


def test_a_field_that_names_the_other_mode_later_changes_nothing_of_the_operation() -> None:
    bench = waiting("enabled")
    bench.cluster["spec"]["cni"]["kubeProxy"] = "replaced"
    bench.live.change_cni("false")
    bench.run()
    assert bench.operations[next(iter(bench.operations))]["status"]["phase"] == "Succeeded"


def reverted(bench: Bench, **steering: bool) -> None:
    """A signed commit takes field and consent back; without a consent to the way back the object is held as it was."""
    other = Mode(bench.target).other
    bench.authority = replace(
        bench.authority,
        revision="d" * 40,
        mode=other,
        consent="",
        introduced=None,
        held=f"ConsentMissing: spec.cni.kubeProxy changes from {bench.target} to {other}, and nobody consents",
        steering=Steering(**steering),
    )


def test_a_revert_of_field_and_consent_ends_an_operation_that_touched_nothing_although_the_object_is_held() -> None:
    bench = waiting()
    reverted(bench)
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Cancelled"
    found = bench.condition("Succeeded")
    assert found["reason"] == "TargetChanged"
    assert found["message"] == "spec.cni.kubeProxy names enabled in the accepted revision now; nothing was touched"
    assert (bench.mode, bench.lock, bench.live.effects) == (None, None, [])
    assert bench.cluster["spec"]["cni"]["kubeProxy"] == "replaced"
    assert len(bench.operations) == 1
    bench.run()
    assert (len(bench.operations), bench.lock, bench.live.effects) == (1, None, [])
    assert bench.last.problem is not None
    assert bench.last.problem.reason == "NotFromGit"


@pytest.mark.parametrize("target", ["replaced", "enabled"])
def test_a_revert_ends_an_operation_that_is_paused_in_preflight(target: str) -> None:
    bench = make_bench(target)
    bench.live.machines["cp-1"].staged = True
    bench.run()
    assert bench.phase == "Paused"
    reverted(bench)
    bench.run()
    assert bench.phase == "Cancelled"
    assert bench.condition("Succeeded")["reason"] == "TargetChanged"


def test_a_revert_with_cancel_in_the_same_commit_ends_the_operation() -> None:
    bench = waiting()
    reverted(bench, cancel=True)
    bench.run()
    assert bench.phase == "Cancelled"
    assert bench.condition("Succeeded")["reason"] == "Cancelled"
    assert bench.status["operation"]["cancel"] is True


def test_a_revert_ends_an_operation_before_it_has_the_lock() -> None:
    bench = make_bench("replaced")
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "Pending"
    reverted(bench, cancel=True)
    bench.run()
    assert bench.phase == "Cancelled"
    assert (bench.lock, bench.live.effects) == (None, [])


def test_after_a_revert_field_and_consent_that_are_introduced_anew_start_another_operation() -> None:
    bench = waiting()
    known = bench.authority
    reverted(bench)
    bench.run()
    bench.authority = replace(known, revision="e" * 40, introduced=Introduction("e" * 40, "network-author"))
    bench.live.change_cni("true")
    bench.run()
    assert len(bench.operations) == 2
    assert bench.phase == "Succeeded"


def test_a_revert_after_the_mode_was_set_changes_nothing_of_the_operation() -> None:
    bench = make_bench("replaced").start_machines()
    reverted(bench)
    bench.run()
    assert bench.phase == "Succeeded"
    assert all(machine.proxy == "disabled" for machine in bench.live.machines.values())


def test_X01_a_revision_that_is_refused_later_stops_new_requests_and_undoes_nothing() -> None:
    bench = make_bench("replaced").start_machines()
    known = bench.authority
    bench.authority = replace(known, revision="", why="the accepted commit itself is refused now", steering=Steering())
    bench.run()
    assert bench.actions == ["observe"]
    assert bench.live.effects == []
    assert "no accepted revision" in bench.condition("Succeeded")["message"]
    assert (bench.mode, bench.phase) == ("replaced", "SwitchingMachines")
    bench.authority = known
    bench.run()
    assert bench.phase == "Succeeded"


def test_what_was_claimed_is_read_back_although_the_revision_is_refused_and_goes_on_later() -> None:
    bench = make_bench("replaced").start_machines()
    bench.work(claims_only=True)
    known = bench.authority
    bench.authority = replace(known, revision="", why="the accepted commit itself is refused now")
    bench.rest()
    assert "apply-mode" in bench.actions
    bench.run()
    assert len(bench.live.effects) == 1
    bench.authority = known
    bench.run()
    assert bench.phase == "Succeeded"
    assert len([one for one in bench.live.effects if "/cp-1#" in one]) == 1


def test_a_process_that_has_not_looked_at_the_sources_yet_writes_nothing() -> None:
    bench = waiting()
    bench.authority = replace(bench.authority, revision="", why="")
    assert not bench.round()

"""Machines that are taken out of the cluster, and statuses that are damaged, while a switch runs (cni-switch.md, sections 6.2, 7 and 17)."""

import pytest

from tests.support.switch_bench import WORKERS, Bench, make_bench


def switching(name: str, target: str = "replaced") -> Bench:
    """One machine is asked for, and nobody has answered yet."""
    bench = make_bench(target)
    if target == "replaced":
        bench.start_machines()
    for _ in range(100):
        if bench.rows.get(name) == "Applying":
            return bench
        bench.rest()
        if bench.rows.get(name) == "Applying":
            return bench
        bench.later(seconds=10)
        bench.work()
    raise AssertionError(f"{name} is never asked for: {bench.rows}")


def removals(bench: Bench) -> list[str]:
    return [one for one in bench.live.effects if "remove" in one]


def test_a_control_plane_that_is_taken_out_before_its_turn_pauses_and_nothing_is_removed() -> None:
    bench = switching("cp-1")
    del bench.machines["cp-3"]
    bench.run()
    reason, message = bench.paused
    assert reason == "MachineGone"
    assert "cp-3" in message
    assert removals(bench) == []


def test_a_resume_goes_on_without_the_control_plane_that_is_gone() -> None:
    bench = switching("cp-1")
    del bench.machines["cp-3"]
    bench.run()
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"
    assert "cp-3" not in bench.rows


def test_a_machine_that_is_taken_out_while_it_is_switched_pauses() -> None:
    bench = switching("node-1")
    del bench.machines["node-1"]
    bench.run()
    assert bench.paused[0] == "MachineGone"


def test_a_worker_that_is_taken_out_before_its_turn_stops_nothing() -> None:
    bench = switching("cp-1")
    for name in WORKERS:
        del bench.machines[name]
    bench.run()
    assert bench.phase == "Succeeded"


@pytest.mark.parametrize("moment", ["before any machine", "between machines"])
def test_without_a_control_plane_nothing_counts_as_switched(moment: str) -> None:
    bench = switching("cp-1") if moment == "between machines" else make_bench("replaced")
    bench.rest()
    if moment == "before any machine":
        bench.run()
        assert bench.phase == "AwaitingCNIChange"
        bench.live.change_cni("true")
    bench.machines.clear()
    bench.run()
    assert bench.paused[0] == "NoControlPlane"
    assert removals(bench) == []


def test_a_held_control_plane_that_is_taken_out_does_not_let_the_removal_through() -> None:
    bench = switching("cp-1")
    bench.hold("cp-3")
    bench.run()
    assert bench.phase == "Paused"
    del bench.machines["cp-3"]
    bench.steer(resume=1)
    bench.run()
    assert bench.paused[0] == "MachineGone"
    assert removals(bench) == []


def test_a_switched_machine_that_is_taken_out_stops_nothing() -> None:
    bench = switching("cp-2")
    assert bench.rows["cp-1"] == "Done"
    del bench.machines["cp-1"]
    bench.run()
    assert bench.phase == "Succeeded"


@pytest.mark.parametrize("step", ["", "replaced/9-unknown", "enabled/1-preflight"])
def test_a_status_whose_step_is_damaged_begins_anew_and_ends_the_same(step: str) -> None:
    bench = switching("cp-2")
    bench.operation["status"]["step"] = step
    bench.run()
    assert bench.phase == "Succeeded"
    assert len(removals(bench)) == 1


def test_a_damaged_step_is_no_way_to_cancel_what_was_begun() -> None:
    bench = switching("cp-2")
    bench.operation["status"]["step"] = ""
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.rows["cp-1"] == "Done"


def test_a_paused_operation_whose_step_is_lost_stays_paused_until_it_is_resumed() -> None:
    bench = switching("cp-2")
    bench.live.machines["cp-2"].refuses = "ApplyRefused: two documents are wrong"
    bench.run()
    assert bench.phase == "Paused"
    del bench.operation["status"]["step"]
    bench.live.machines["cp-2"].refuses = ""
    bench.run()
    assert bench.phase == "Paused"
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"

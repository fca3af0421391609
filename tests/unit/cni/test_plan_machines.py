"""Machine by machine: order, hashes, lost replies, gates, holds (cni-switch.md, sections 7 and 17)."""

import pytest

from tests.support.switch_bench import Bench, make_bench


def subjects(bench: Bench) -> list[str]:
    return [one.split("/")[2].split("#")[0] for one in bench.live.effects if "switch-machines" in one]


def test_never_more_than_one_machine_is_asked_for_at_a_time() -> None:
    bench = make_bench("replaced").start_machines()
    for _ in range(80):
        assert bench.actions.count("apply-mode") <= 1
        flying = [name for name, state in bench.rows.items() if state in ("Applying", "Preparing", "Verifying")]
        assert len(flying) <= 1
        if bench.phase == "Succeeded":
            break
        bench.later(seconds=10)
        bench.work()
        bench.rest()
    assert bench.phase == "Succeeded"


def test_workers_go_in_waves_only_where_the_cluster_allows_it() -> None:
    bench = make_bench("replaced", workers=("node-1", "node-2", "node-3"))
    bench.cluster["spec"]["cni"]["maxParallelWorkers"] = 2
    bench.start_machines()
    waves: list[set[str]] = []
    for _ in range(80):
        names = {one.get("machine", "") for one in bench.status["requests"] if one["action"] == "apply-mode"}
        if names and names not in waves:
            waves.append(names)
        if bench.phase == "Succeeded":
            break
        bench.later(seconds=10)
        bench.work()
        bench.rest()
    assert bench.phase == "Succeeded"
    assert waves == [{"cp-1"}, {"cp-2"}, {"cp-3"}, {"node-1", "node-2"}, {"node-3"}]


def test_many_waves_have_clocks_of_their_own() -> None:
    bench = make_bench("replaced", planes=("cp-1",), workers=tuple(f"node-{number}" for number in range(9)))
    bench.cluster["spec"]["cni"]["maxParallelWorkers"] = 2
    bench.start_machines()
    for _ in range(200):
        bench.later(minutes=2)
        bench.work()
        bench.rest()
        if bench.phase in ("Succeeded", "Paused"):
            break
    assert bench.phase == "Succeeded"


def test_a_request_carries_the_hashes_that_were_judged() -> None:
    bench = make_bench("replaced").start_machines()
    [request] = [one for one in bench.status["requests"] if one["action"] == "apply-mode"]
    machine = bench.live.machines["cp-1"]
    assert request["hashBefore"] == machine.hash("enabled")
    assert request["hashWanted"] == machine.hash("disabled")
    assert request["mode"] == "replaced"
    assert request["id"].startswith("replaced/5-switch-machines/cp-1#")


def test_promise_04_a_lost_reply_is_settled_by_reading_back_and_asked_once_more_under_a_new_id() -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-1"].loses = 1
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"
    ids = [one for one in bench.live.effects if "/cp-1#" in one]
    assert len(ids) == len(set(ids)) == 2


def test_a_second_attempt_without_effect_pauses() -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-1"].loses = 2
    bench.live.change_cni("true")
    bench.run()
    assert bench.paused[0] == "NotApplied"
    assert subjects(bench) == ["cp-1", "cp-1"]
    assert bench.rows["cp-1"] == "Failed"
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"


def test_a_refusal_by_validation_pauses_with_every_error_and_nothing_changed() -> None:
    bench = make_bench("replaced")
    errors = "ApplyRefused: proxy image cannot be empty; unknown keys found: a, b"
    bench.live.machines["cp-1"].refuses = errors
    bench.live.change_cni("true")
    bench.run()
    reason, message = bench.paused
    assert reason == "ApplyRefused"
    assert errors in message
    assert bench.live.effects == []
    assert bench.live.proxy


def test_a_machine_that_does_not_answer_pauses_at_that_machine_after_two_minutes() -> None:
    bench = make_bench("replaced").start_machines()
    bench.live.machines["cp-2"].reachable = False
    bench.run()
    assert bench.phase == "SwitchingMachines"
    bench.later(minutes=2)
    bench.run()
    assert bench.paused[0] == "MachineUnreachable"
    assert bench.rows["cp-1"] == "Done"
    assert bench.live.proxy, "kube-proxy is removed last"
    bench.live.machines["cp-2"].reachable = True
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"


@pytest.mark.parametrize(
    ("gate", "minutes"), [("api", 2), ("services", 5), ("proxy", 2), ("manifest", 2), ("static-pods", 5), ("node", 5)]
)
def test_a_gate_that_does_not_pass_in_its_time_pauses_at_that_machine(gate: str, minutes: int) -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-1"].gates = {gate}
    bench.live.change_cni("true")
    bench.run()
    assert bench.rows["cp-1"] == "Verifying"
    bench.later(minutes=minutes, seconds=-30)
    bench.run(seconds=1)
    assert bench.phase == "SwitchingMachines"
    bench.later(minutes=1)
    bench.run()
    reason, message = bench.paused
    assert reason == "GateFailed"
    assert f"cp-1: {gate}" in message
    assert subjects(bench) == ["cp-1"]


def test_a_worker_has_no_gates_of_a_control_plane() -> None:
    bench = make_bench("replaced", planes=("cp-1",), workers=("node-1",))
    bench.live.machines["node-1"].gates = {"proxy", "manifest", "static-pods"}
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"


def test_a_machine_that_somebody_changed_after_the_apply_pauses() -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-1"].gates = {"services"}
    bench.live.change_cni("true")
    bench.run()
    bench.live.machines["cp-1"].touched = 1
    bench.run()
    assert bench.paused[0] == "ConfigChangedByOthers"


def test_a_machine_that_somebody_changed_before_the_apply_is_refused_by_its_hash() -> None:
    bench = make_bench("replaced").start_machines()
    bench.live.machines["cp-1"].touched = 1
    bench.run()
    assert bench.paused[0] == "HashChanged"
    assert bench.live.effects == []
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"


def test_workers_in_the_document_form_have_nothing_to_apply_and_are_done() -> None:
    bench = make_bench("replaced", contract="v1.14")
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"
    assert subjects(bench) == ["cp-1", "cp-2", "cp-3"]
    assert bench.rows["node-1"] == "Done"


def test_a_worker_on_hold_is_left_out() -> None:
    bench = make_bench("replaced")
    bench.hold("node-1")
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"
    assert "node-1" not in subjects(bench)
    assert bench.rows["node-1"] == "OnHold"


def test_a_control_plane_that_is_put_on_hold_fails_the_removal_until_the_hold_is_lifted() -> None:
    bench = make_bench("replaced").start_machines()
    bench.hold("cp-3")
    bench.run()
    assert bench.step == "replaced/6-remove-kube-proxy"
    reason, message = bench.paused
    assert reason == "ControlPlaneOnHold"
    assert "cp-3" in message
    assert bench.live.proxy
    bench.hold("cp-3", on=False)
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"
    assert subjects(bench)[-1] == "cp-3"
    assert bench.live.broken == []


def test_a_control_plane_on_hold_fails_the_removal_although_somebody_deleted_the_objects_by_hand() -> None:
    bench = make_bench("replaced").start_machines()
    bench.hold("cp-3")
    bench.live.proxy, bench.live.proxy_pods = False, 0
    bench.run()
    assert (bench.phase, bench.step) == ("Paused", "replaced/6-remove-kube-proxy")
    reason, message = bench.paused
    assert reason == "ControlPlaneOnHold"
    assert "cp-3" in message
    bench.hold("cp-3", on=False)
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.rows["cp-3"] == "Done"


def test_no_machine_is_asked_for_while_an_agent_may_run_the_old_mode() -> None:
    bench = make_bench("replaced").start_machines()
    bench.live.agents_ready = False
    bench.run()
    assert subjects(bench) == ["cp-1"]
    assert bench.condition("Succeeded")["message"] == "the Cilium agents are rolling out"
    bench.live.agents_ready = True
    bench.run()
    assert bench.phase == "Succeeded"


def test_a_machine_that_joins_on_the_way_is_switched_before_anything_is_removed() -> None:
    from tests.support.switch_bench import machine_tree
    from tests.support.switch_live import LiveMachine

    bench = make_bench("replaced").start_machines()
    bench.machines["cp-9"] = machine_tree("cp-9", "controlplane")
    bench.live.machines["cp-9"] = LiveMachine("cp-9", "controlplane", "enabled")
    bench.run()
    assert bench.phase == "Succeeded"
    assert "cp-9" in subjects(bench)
    assert bench.live.broken == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("HashChanged: somebody", "HashChanged"),
        ("503: away", "ApplyRefused"),
        ("no word", "ApplyRefused"),
        ("", "ApplyRefused"),
    ],
)
def test_a_reason_is_taken_from_a_message_only_where_it_is_one(message: str, reason: str) -> None:
    bench = make_bench("replaced").start_machines()
    bench.live.machines["cp-1"].refuses = message or "?"
    bench.run()
    assert bench.paused[0] == reason


def test_a_message_of_any_length_is_stored() -> None:
    bench = make_bench("replaced").start_machines()
    bench.live.machines["cp-1"].refuses = f"ApplyRefused: {'x' * 5000}"
    bench.run()
    [row] = [one for one in bench.status["machines"] if one["name"] == "cp-1"]
    assert len(row["message"]) == 2000
    assert bench.paused[1].endswith("to try this step again set spec.cni.operation.resume: 1 in Git")

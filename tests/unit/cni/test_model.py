"""Values of a switch: numbers of requests, records that stay, roll-outs, and statuses that are read as they were written."""

from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.api.talos import parse_talos_operation
from gitops_ctl.cni.model import RollOut, Steering, kept_ids, number_of
from gitops_ctl.cni.reading import operation_of, state_of
from gitops_ctl.cni.writing import conditions_of, owned_of, state_tree
from tests.support.switch_bench import BEGIN, make_bench


def test_records_of_the_running_step_stay_and_of_the_others_the_newest_fifty() -> None:
    old = [{"id": f"replaced/5-switch-machines/node-{number}#{number}"} for number in range(1, 81)]
    running = [{"id": f"replaced/6-remove-kube-proxy/north#{number}"} for number in (90, 91)]
    kept = kept_ids({"claims": old[:40], "receipts": [*old, *running]}, step="replaced/6-remove-kube-proxy")
    assert {one["id"] for one in running} <= kept
    numbers = sorted(number_of(identity) for identity in kept if "5-switch" in identity)
    assert numbers == list(range(31, 81))


def test_all_records_of_a_step_with_many_machines_stay_while_it_runs() -> None:
    status = {"receipts": [{"id": f"replaced/5-switch-machines/node-{number}#{number}"} for number in range(1, 201)]}
    assert len(kept_ids(status, step="replaced/5-switch-machines")) == 200


@pytest.mark.parametrize(("identity", "number"), [("a/1-b/c#12", 12), ("a/1-b/c", 0), ("a/1-b/c#x", 0), ("", 0)])
def test_the_number_of_a_request_is_behind_its_last_mark(identity: str, number: int) -> None:
    assert number_of(identity) == number


def test_nothing_desired_is_no_complete_roll_out() -> None:
    assert RollOut(3, 3, 5, 5, 5, 5, 5).is_complete
    assert not RollOut(3, 3).is_complete
    assert not RollOut(3, 2, 5, 5, 5, 5, 5).is_complete


@pytest.mark.parametrize("phase", ["AwaitingCNIChange", "Paused", "SwitchingMachines", "Succeeded", "Cancelled"])
def test_a_status_is_read_as_it_was_written_and_the_schema_takes_it(phase: str) -> None:
    bench = make_bench("replaced")
    bench.run()
    if phase == "Cancelled":
        bench.steer(cancel=True)
    elif phase != "AwaitingCNIChange":
        bench.live.machines["cp-2"].refuses = "ApplyRefused: no" if phase == "Paused" else ""
        bench.live.machines["cp-2"].gates = {"node"} if phase == "SwitchingMachines" else set()
        bench.live.change_cni("true")
    bench.run()
    assert bench.phase == phase
    tree: Any = bench.operation
    state = state_of(tree["status"])
    again = state_tree(state, tree=tree, now=BEGIN)
    stored = {name: value for name, value in owned_of(tree["status"]).items() if name != "conditions"}
    assert {name: value for name, value in again.items() if name != "conditions"} == stored
    served = {**tree, "metadata": {**tree["metadata"], "resourceVersion": "1"}}
    assert parse_talos_operation(served).status.phase == phase


def test_an_operation_of_another_kind_is_none_of_ours() -> None:
    bench = make_bench("replaced")
    bench.run()
    tree: Any = bench.operation
    assert operation_of({**tree, "spec": {**tree["spec"], "kind": "upgrade"}}) is None


def test_only_the_four_conditions_of_the_contract_are_written() -> None:
    bench = make_bench("replaced")
    bench.run()
    assert [one["type"] for one in bench.status["conditions"]] == [
        "AwaitingCNIChange",
        "Paused",
        "Succeeded",
        "VerifyingNewSide",
    ]


def test_a_remark_is_said_once_beside_the_message() -> None:
    bench = make_bench("replaced")
    bench.run()
    state = replace(state_of(bench.status), noted="not honoured", steering=Steering())
    once = next(one.message for one in conditions_of(state) if one.type == "AwaitingCNIChange")
    again = replace(state, said=replace(state.said, message=once))
    assert once.endswith("; not honoured")
    assert next(one.message for one in conditions_of(again) if one.type == "AwaitingCNIChange") == once

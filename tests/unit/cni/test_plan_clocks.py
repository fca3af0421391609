"""Waits have clocks that are written before they begin, survive restarts and end in a pause (cni-switch.md, sections 2.1, 6.5 and 17)."""

import pytest

from gitops_ctl.cni.reading import operation_of
from tests.support.switch_bench import Bench, make_bench


def clock(bench: Bench, name: str) -> dict[str, str]:
    return next((one for one in bench.status["clocks"] if one["name"] == name), {})


def waiting(target: str = "replaced") -> Bench:
    bench = make_bench(target)
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    return bench


def alive(bench: Bench, *, minutes: int) -> None:
    """The time goes on, and the worker answers whenever it is asked."""
    for _ in range(minutes // 5):
        bench.later(minutes=5)
        bench.run(seconds=1)


def test_the_wait_for_the_cni_has_24_hours_that_are_stored_with_it() -> None:
    bench = waiting()
    found = clock(bench, "await-cni")
    assert found["startedAt"] < found["deadline"]
    assert found["deadline"][:10] == "2026-03-02"
    assert found["startedAt"][11:] == found["deadline"][11:]


def test_a_restart_never_makes_a_wait_longer() -> None:
    bench = waiting()
    before = clock(bench, "await-cni")
    alive(bench, minutes=120)
    assert clock(bench, "await-cni") == before


@pytest.mark.parametrize(("target", "text"), [("replaced", "no node was touched"), ("enabled", "both sides run")])
def test_after_24_hours_the_operation_pauses_and_goes_on_only_when_a_person_says_so(target: str, text: str) -> None:
    bench = waiting(target)
    alive(bench, minutes=24 * 60)
    reason, message = bench.paused
    assert reason == "CNIChangeTimeout"
    assert text in message
    alive(bench, minutes=60)
    assert bench.phase == "Paused"
    assert bench.lock is not None
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert clock(bench, "await-cni")["startedAt"] > "2026-03-02"


def test_a_check_that_is_true_already_never_starts_its_clock() -> None:
    bench = make_bench("replaced")
    bench.live.change_cni("true")
    names: set[str] = set()
    for _ in range(60):
        bench.rest()
        names |= {one["name"] for one in bench.status.get("clocks", [])}
        bench.later(seconds=10)
        if not bench.work():
            break
    assert bench.phase == "Succeeded"
    assert not names & {"await-cni", "verify-cni"}


def test_agents_that_do_not_finish_in_30_minutes_pause_with_counts_and_names() -> None:
    bench = waiting()
    bench.live.change_cni("true")
    bench.live.agents_ready = False
    bench.run()
    assert bench.phase == "VerifyingNewSide"
    alive(bench, minutes=35)
    reason, message = bench.paused
    assert reason == "NewSideNotReady"
    assert "4 of 5" in message
    assert "cilium-x1" in message
    assert bench.live.effects == []


def test_no_condition_of_a_wait_holds_a_counter() -> None:
    bench = waiting()
    bench.live.change_cni("true")
    bench.live.agents_ready = False
    bench.run()
    assert bench.condition("VerifyingNewSide")["message"] == "the Cilium agents are rolling out"


def test_a_worker_that_answers_nothing_for_ten_minutes_pauses_the_operation() -> None:
    bench = make_bench("replaced")
    bench.rest()
    bench.later(minutes=9, seconds=59)
    bench.rest()
    assert bench.phase == "Preflight"
    bench.later(seconds=1)
    bench.rest()
    assert bench.paused[0] == "WorkerUnavailable"


def test_a_long_wait_asks_every_ten_minutes_whether_a_worker_is_there() -> None:
    bench = waiting()
    before = operation_of(bench.operation)
    bench.later(minutes=10)
    bench.rest()
    after = operation_of(bench.operation)
    assert before is not None
    assert after is not None
    assert before.state.requests[0].number < after.state.requests[0].number
    bench.later(minutes=10)
    bench.rest()
    assert bench.paused[0] == "WorkerUnavailable"


def test_a_request_that_nobody_claims_is_taken_back_when_the_operation_pauses() -> None:
    bench = make_bench("replaced").start_machines()
    asked = [one["id"] for one in bench.status["requests"]]
    bench.later(minutes=10)
    bench.rest()
    assert bench.paused[0] == "WorkerUnavailable"
    assert bench.actions == ["observe"]
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"
    assert not set(asked[1:]) & set(bench.live.effects), "a number was given twice"


def test_a_claimed_request_stays_over_a_pause_and_its_receipt_is_taken_in_after_the_resume() -> None:
    bench = make_bench("replaced").start_machines()
    bench.work(claims_only=True)
    bench.later(minutes=11)
    bench.rest()
    assert bench.paused[0] == "WorkerUnavailable"
    assert "apply-mode" in bench.actions
    bench.work()
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"
    assert len([one for one in bench.live.effects if "/cp-1#" in one]) == 1


def test_the_question_whether_somebody_is_there_does_not_change_what_a_wait_says() -> None:
    bench = waiting()
    before = bench.condition("AwaitingCNIChange")
    bench.later(minutes=10)
    bench.rest()
    assert bench.condition("AwaitingCNIChange") == before
    bench.run()
    assert bench.condition("AwaitingCNIChange") == before

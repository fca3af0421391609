"""Runs that leave a common beginning say what runs from the start say, word for word."""

import asyncio
from typing import Any

import pytest

from tests.support.simulation import Broken
from tests.support.simulation_faults import Fault, FaultPlan, IoPoint, Kind, Side
from tests.support.simulation_loop import run_virtually
from tests.support.simulation_search import Search

pytestmark = pytest.mark.simulation

SEVERAL = (Kind.CRASH, Kind.LOST, Kind.CONFLICT, Kind.AWAY)


async def counted(plan: FaultPlan) -> dict[str, Any]:
    """Five writes: a crash does one again, a lost reply of the third is believed, a conflict of the second breaks a rule."""
    plan.armed, written, passed_s = True, 0, asyncio.get_running_loop().time()
    for number in range(1, 6):
        await asyncio.sleep(1.0)
        for side in Side:
            kind = plan.pass_by(f"apply {number}", side, state=f"one {number}")
            if kind is Kind.CONFLICT and number == 2:
                raise Broken("two at once")
            if kind is Kind.CRASH and side is Side.BEFORE:
                plan.pass_by(f"get {number}", side, state=f"one {number}")
            written += side is Side.AFTER and not (kind is Kind.LOST and number == 3)
    return {"written": written, "seconds": asyncio.get_running_loop().time() - passed_s}


def search(*, one_process: bool) -> Search:
    return Search("counted", lambda plan: run_virtually(counted(plan)), one_process=one_process)


def test_every_single_fault_says_the_same_as_in_a_run_of_its_own() -> None:
    shared, anew = search(one_process=True), search(one_process=False)
    found = shared.explore(SEVERAL, count=1000, seed=1)
    assert found == anew.explore(SEVERAL, count=1000, seed=1)
    assert sorted(found) == [
        "counted, conflict before apply 2 no. 1: two at once",
        "counted, lost reply after apply 3 no. 1: another end: [(4, 5)]",
    ]
    assert anew.runs == 1 + len(anew.singles(SEVERAL))
    assert shared.runs == anew.runs + 1, "the common beginning is a run too"


def test_a_second_fault_says_the_same_as_in_a_run_of_its_own() -> None:
    found = search(one_process=True).explore_pairs(SEVERAL, count=1000, seed=2)
    assert found == search(one_process=False).explore_pairs(SEVERAL, count=1000, seed=2)
    assert any(" and " in text for text in found)


def test_a_point_that_is_never_passed_is_told() -> None:
    shared = search(one_process=True)
    nowhere = Fault(Kind.CRASH, IoPoint("apply 6", 1, Side.BEFORE))
    assert [outcome.wrong for outcome in shared._outcomes([(nowhere,)] * 3)] == [
        "counted, crash before apply 6 no. 1: the run never came there"
    ] * 3


def test_an_error_in_a_run_is_told_of_that_run() -> None:
    async def failing(plan: FaultPlan) -> dict[str, Any]:
        plan.armed = True
        for number in range(3):
            if plan.pass_by(f"apply {number}", Side.BEFORE, state=f"one {number}"):
                raise RuntimeError(f"at {number}")
        return {"done": True}

    found = Search("failing", lambda plan: run_virtually(failing(plan)), one_process=True)
    told = found.explore((Kind.AWAY,), count=3, seed=1)
    assert sorted(told) == [
        f"server away before apply {number} no. 1: RuntimeError('at {number}')" for number in range(3)
    ]

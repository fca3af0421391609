"""The checks behind `make check` and `make faults` find what they are for."""

from pathlib import Path

import pytest

from tools.check_rooms import complaints
from tools.fault_tests import ids_in
from tools.faults import catalogue, outcomes, summary

PAGE = "| id | what |\n|---|---|\n| G01 | a |\n| G02 | b |\n| D01 | c |\n"
DONE: dict[str, list[str] | list[int]] = {"families": ["G"], "promises": [1]}


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_G07_a_ref_switch", ["G07"]),
        ("test_S12_S15_defaults", ["S12", "S15"]),
        ("test_promise_07_kill", ["promise 7"]),
        ("test_Gear_07", []),
        ("test_G7_short", []),
        ("test_the_G07_rule", []),
    ],
    ids=str,
)
def test_a_test_stands_for_the_ids_its_name_begins_with(name: str, ids: list[str]) -> None:
    assert list(ids_in(name)) == ids


def test_an_id_that_is_due_and_has_no_passing_test_fails_the_run() -> None:
    lines, complete = summary(catalogue(PAGE, DONE), good=["test_G01_x", "test_promise_01_y"], bad=[])
    assert not complete
    assert "without a passing test, of parts that are done: G02" in lines
    assert "without a passing test, of parts that are not done: D01, promise 2" in lines[0]
    assert lines[-1] == "faults: 2 of 13 ids have a passing test, 1 missing"


def test_all_due_ids_with_a_passing_test_are_enough() -> None:
    good = ["test_G01_G02_x", "test_promise_01_y"]
    assert summary(catalogue(PAGE, DONE), good=good, bad=[])[1]
    assert not summary(catalogue(PAGE, DONE), good=good, bad=["test_D01_z"])[1]
    assert not summary(catalogue(PAGE, DONE), good=[*good, "test_G99_unknown"], bad=[])[1]


def test_one_bad_case_makes_a_test_bad_and_a_skipped_one_is_bad() -> None:
    report = (
        "<testsuites><testsuite>"
        '<testcase name="test_G01_x[a]"/><testcase name="test_G01_x[b]"><failure/></testcase>'
        '<testcase name="test_G02_y"><skipped/></testcase><testcase name="test_D01_z"/>'
        "</testsuite></testsuites>"
    )
    assert outcomes(report) == ({"test_D01_z"}, {"test_G01_x", "test_G02_y"})


def test_a_file_and_a_function_that_outgrow_their_room_are_named() -> None:
    body = "".join(f"    x{i} = {i}\n" for i in range(41))
    assert list(complaints(Path("gitops_ctl/a.py"), "x = 1\n" * 500)) == []
    assert "501 lines" in next(complaints(Path("gitops_ctl/a.py"), "x = 1\n" * 501))
    assert "f has 41 lines" in next(complaints(Path("gitops_ctl/a.py"), f"def f():\n{body}"))
    assert (
        list(complaints(Path("gitops_ctl/a.py"), f'def f():\n    """What.\n\n    More.\n    """\n{body[:-12]}')) == []
    )
    assert list(complaints(Path("gitops_ctl/a.py"), f"def f():\n    # whole: one table\n{body}")) == []
    assert "says nothing" in next(complaints(Path("gitops_ctl/core/helpers.py"), ""))

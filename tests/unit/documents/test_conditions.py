"""Conditions of users end, whatever they ask for, and the program that asks goes on.

In scope: the process around the engine.  Out of scope: CEL itself (test_expressions.py).
"""

from collections.abc import Iterator

import pytest

from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.documents.conditions import ConditionGuard
from gitops_ctl.documents.expressions import EvaluationError, compile_condition


@pytest.fixture(scope="module")
def guard() -> Iterator[ConditionGuard]:
    made = ConditionGuard()
    yield made
    made.close()


def test_the_first_condition_that_is_true_is_named(guard: ConditionGuard) -> None:
    binding = {"object": {"status": {"phase": "Ready"}}}
    conditions = ["object.status.phase == 'Failed'", "object.status.phase == 'Ready'", "true"]
    assert guard.first_true(conditions, binding) == 1
    assert guard.first_true(conditions[:1], binding) is None


def test_a_condition_that_fails_is_no_answer(guard: ConditionGuard) -> None:
    with pytest.raises(EvaluationError):
        guard.first_true(["object.missing == 1"], {"object": {}})


@pytest.mark.parametrize("value", ["prod\0", {"deep": ["\0"]}, {"k\0": 1}], ids=["text", "deep", "key"])
def test_a_null_character_is_no_end_of_a_text(value: JsonValue) -> None:
    """The engine would cut the text there, and judge another value than the API server stores."""
    expression = compile_condition("object.x == 'prod'", variables={"object"})
    with pytest.raises(EvaluationError, match=r"U\+0000"):
        expression.is_true({"object": {"x": value}})


@pytest.mark.parametrize(
    "condition",
    [
        "object.x.replace('a', object.x).size() > 0",
        "[object.x]" + ".map(a, a + a)" * 25 + ".size() > 0",
    ],
    ids=["texts that grow by replacement", "texts that double"],
)
def test_promise_10_a_condition_without_end_ends_and_the_next_one_is_answered(condition: str) -> None:
    guard = ConditionGuard(deadline_s=1.0)
    try:
        assert guard.first_true(["true"], {"object": {}}) == 0
        with pytest.raises(EvaluationError, match="no end"):
            guard.first_true([condition], {"object": {"x": "a" * 60_000}})
        assert guard.first_true(["object.x == 'b'"], {"object": {"x": "b"}}) == 0
    finally:
        guard.close()

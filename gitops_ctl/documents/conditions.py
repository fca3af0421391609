"""Evaluates conditions of users (CEL) in a process of its own, for a program that must go on whatever they ask for."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.documents.confined import Confined
from gitops_ctl.documents.expressions import EvaluationError, Expression, compile_condition

DEADLINE_S: Final = 2.0

_Question = tuple[tuple[str, ...], Mapping[str, JsonValue]]


class ConditionGuard:
    """Answers from any thread, one after the other; close it at the end."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        """`deadline_s`: for the conditions of one question."""
        self._confined = Confined(_answers, None, deadline_s=deadline_s)
        self._lock = Lock()

    def first_true(self, conditions: Sequence[str], binding: Mapping[str, JsonValue]) -> int | None:
        """Place of the first condition that is true, None when none is.

        Raises:
            EvaluationError: one before it fails, or they come to no end.
        """
        with self._lock:
            answer = self._confined.ask((tuple(conditions), binding))
        if answer is None:
            raise EvaluationError(f"no end within {self._confined.deadline_s:g} s, or too much memory")
        found = answer[0]
        if isinstance(found, str):
            raise EvaluationError(found)
        place: int | None = found
        return place

    def close(self) -> None:
        """End the process, at once."""
        with self._lock:
            self._confined.close()


def _answers(_nothing: object) -> Callable[[_Question], int | str | None]:
    known: dict[tuple[str, tuple[str, ...]], Expression] = {}

    def answer(question: _Question) -> int | str | None:
        conditions, binding = question
        names = tuple(sorted(binding))
        for place, text in enumerate(conditions):
            try:
                if len(known) > 1000:
                    known.clear()
                expression = known.get((text, names)) or known.setdefault(
                    (text, names), compile_condition(text, variables=names)
                )
                if expression.is_true(binding):
                    return place
            except EvaluationError as error:
                return str(error)
            except Refused as error:
                return error.message
        return None

    return answer

"""CEL, as Kubernetes users write it in admission policies, evaluated here.

The engine answers a failed evaluation with a value that counts as true, so truth has one test: type BOOL and `True`.
Everything else is an error, and an error is never read as a permission.  Texts of the engine may quote the document, so
they are shown without what stands in quotes, and without what looks like a secret.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_optional, ext_strings

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.core.redact import redact_text

MAX_EXPRESSION: Final = 16_384
"""Characters of one expression, somewhat above what the API server lets through."""

_VALUES: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|-?\d[\d.]*")
_STATUS: Final = re.compile(r"^[A-Z_]+: (?:ERROR: )?(?:<input>:)?")


class EvaluationError(Exception):
    """The expression has no boolean for this input; the text is fit for a message."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression.  `variables` are the names that an evaluation binds."""

    text: str
    variables: frozenset[str]
    compiled: cel.Expression = field(repr=False, compare=False)

    def is_true(self, binding: Mapping[str, JsonValue]) -> bool:
        """The boolean that the expression gives; names that are not bound are null.

        Raises:
            EvaluationError: it gives something else, it fails, or it exceeds its budget.
        """
        result = self._evaluate(binding)
        if result.type() != cel.Type.BOOL:
            raise EvaluationError(f"it gives {_type_name(result)}, not a boolean")
        return result.value() is True

    def value(self, binding: Mapping[str, JsonValue]) -> JsonValue:
        """The plain value that the expression gives.

        Raises:
            EvaluationError: it fails, exceeds its budget, or gives what JSON cannot hold.
        """
        return _plain(self._evaluate(binding).plain_value())

    def _evaluate(self, binding: Mapping[str, JsonValue]) -> cel.Value:
        data = {name: binding.get(name) for name in self.variables}
        if _has_null_character(data):
            raise EvaluationError("the value has a text with the character U+0000, which the engine would cut off")
        try:
            result = self.compiled.eval(data=data)
        except (RuntimeError, ValueError, TypeError, OverflowError) as error:
            raise EvaluationError(readable(str(error), source=self.text)) from None
        if result.type() == cel.Type.ERROR:
            raise EvaluationError(readable(str(result.value()), source=self.text))
        return result


def compile_expression(text: str, *, variables: Iterable[str]) -> Expression:
    """Compile `text`; unknown names and functions are refused here, not at evaluation.

    Raises:
        Refused: RULE; not CEL, too long, or of a type that can never be what it is used for.
    """
    if len(text) > MAX_EXPRESSION:
        raise Refused(f"the expression is longer than {MAX_EXPRESSION} characters", code=ErrorCode.RULE)
    names = frozenset(variables)
    try:
        compiled = _environment(names).compile(text)
    except (RuntimeError, ValueError) as error:
        message = f"not a CEL expression: {_first_line(str(error))}"
        hint = "known are the standard functions and the extensions for strings, optional values and mathematics"
        raise Refused(message, code=ErrorCode.RULE, hint=hint) from None
    return Expression(text, names, compiled)


def compile_condition(text: str, *, variables: Iterable[str]) -> Expression:
    """Compile an expression that has to give a boolean.

    Raises:
        Refused: RULE; as for `compile_expression`, or it can never give a boolean.
    """
    expression = compile_expression(text, variables=variables)
    found = expression.compiled.return_type()
    if found not in (cel.Type.BOOL, cel.Type.DYN):
        raise Refused(f"the expression gives {found.name()}, not a boolean", code=ErrorCode.RULE)
    return expression


def readable(text: str, *, source: str = "") -> str:
    """One line of the engine without values of the document: quoted texts and numbers stay only if `source` has them."""

    def keep(match: re.Match[str]) -> str:
        return match.group() if match.group().strip("\"'") in source else "…"

    return redact_text(_VALUES.sub(keep, _first_line(text)))


@cache
def _environment(variables: frozenset[str]) -> cel.Env:
    """One environment for each set of names; all have the same functions."""
    return cel.NewEnv(
        variables=dict.fromkeys(variables, cel.Type.DYN),
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional(), ext_math.ExtMath()],
    )


def _has_null_character(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in key or _has_null_character(member) for key, member in value.items())
    return isinstance(value, (list, tuple)) and any(map(_has_null_character, value))


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return _STATUS.sub("", line)[:300]


def _type_name(result: cel.Value) -> str:
    return str(result.type().name()).lower()


def _plain(value: object) -> JsonValue:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    raise EvaluationError("it gives a value that JSON cannot hold")

"""Rules of `x-kubernetes-validations`: one compiled expression each, evaluated over plain JSON."""

import re
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from gitops_ctl.core.goduration import nanoseconds
from tests.doubles.apiserver.answers import not_implemented
from tests.doubles.apiserver.schema_facts import ANY, Fact, Schema

RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


class RuleFailed(Exception):
    """The rule could not be evaluated."""


@cache
def _environment() -> Any:
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN},
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()],
    )


@cache
def _compiled(text: str) -> Any:
    """One compiled form of each text for all servers of a process: compiling costs more than evaluating."""
    return _environment().compile(text)


class Rules:
    """Compiles each text once.  What the engine does not know is answered with 501, never ignored."""

    def compile(self, text: str) -> Any:
        try:
            return _compiled(text)
        except Exception as error:
            raise not_implemented(f"the expression {text!r}: {error}") from error

    def holds(self, text: str, *, value: Any, old: Any) -> bool:
        """Whether the rule is exactly true.

        Raises:
            RuleFailed: it is neither true nor false.
        """
        result = self._value(text, value, old)
        if result.type() != cel.Type.BOOL:
            raise RuleFailed(str(result.value()))
        return result.value() is True

    def message(self, text: str, *, value: Any, old: Any) -> str:
        result = self._value(text, value, old)
        return str(result.value()) if result.type() == cel.Type.STRING else ""

    def _value(self, text: str, value: Any, old: Any) -> Any:
        if "duration(" in text:
            value, old = _with_durations(value), _with_durations(old)
        try:
            return self.compile(text).eval(data={"self": value, "oldSelf": old})
        except RuntimeError as error:
            raise RuleFailed(str(error)) from error


def _with_durations(value: Any) -> Any:
    """Durations as this engine reads them: it knows no `µs`, and takes what does not fit in 64 bits, both unlike the server's."""
    if isinstance(value, dict):
        return {name: _with_durations(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_durations(item) for item in value]
    if not isinstance(value, str) or re.search(r"[0-9.][a-z\u00b5\u03bc]+$", value) is None:
        return value
    try:
        return f"{nanoseconds(value)}ns"
    except ValueError:
        return "no duration"


@lru_cache(maxsize=4096)
def is_transition(text: str) -> bool:
    """Whether the rule speaks of the old value."""
    return re.search(r"\boldSelf\b", text) is not None


def bound(schema: Schema, value: Any) -> Any:
    """`value` as the rules see it: numbers are doubles, odd member names escaped.

    Date-times stay text, because the engine takes no moments inside of untyped values: `timestamp(self.at)` works on both.
    """
    if isinstance(value, dict) and _differs(schema):
        properties = schema.get("properties", {})
        extra = schema.get("additionalProperties")
        rest = extra if isinstance(extra, dict) else ANY
        return {
            (escaped(name) if name in properties else name): bound(properties.get(name, rest), item)
            for name, item in value.items()
        }
    if isinstance(value, list) and _differs(schema):
        return [bound(schema.get("items", ANY), item) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


@lru_cache(maxsize=4096)
def escaped(name: str) -> str:
    """The name of a member as the rules write it."""
    if name in RESERVED:
        return f"__{name}__"
    if IDENTIFIER.match(name) and "__" not in name:
        return name
    for plain, escape in ESCAPES:
        name = name.replace(plain, escape)
    return name


def _has_other_form(schema: Schema) -> bool:
    """Whether a value of it may look otherwise to the rules than it is stored."""
    if schema.get("type") == "number":
        return True
    properties = schema.get("properties", {})
    below = [*properties.values(), schema.get("items"), schema.get("additionalProperties")]
    return any(escaped(name) != name for name in properties) or any(
        isinstance(child, dict) and _differs(child) for child in below
    )


_differs = Fact(_has_other_form)

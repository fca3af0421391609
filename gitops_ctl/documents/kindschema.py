"""The schema of one kind at one version, and what it says about an object.

Validation is done by a Rust library with linear-time patterns and without a network (fault Y11).  Its messages quote
values; ours do not.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NoReturn

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, text_at
from gitops_ctl.documents.merge_keys import MergeKeys, merge_keys_of
from gitops_ctl.documents.pointer import pointer_of, steps_of
from gitops_ctl.documents.problem import Severity
from gitops_ctl.documents.shape import Flaw, type_name

MOST_FLAWS: Final = 50
"""Of one object; more help nobody."""

_TYPE_NAMES: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "a boolean",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "a string",
}
_FROM_THE_SERVER: Final = (Kind.AdditionalProperties, Kind.Enum, Kind.Required)
"""What a newer server may see differently for its own kinds."""


class SchemaRefusedError(ValueError):
    """The schema cannot be used: remote references, or patterns that are not linear-time."""


@dataclass(frozen=True)
class KindSchema:
    """A JSON Schema with the marks of Kubernetes.

    Attributes:
        schema: self-contained; references point into its `$defs`.
        namespaced: None when it is not known.
        lenient: what a newer server may allow is a warning.
    """

    gvk: GroupVersionKind
    schema: JsonObject = field(repr=False)
    namespaced: bool | None
    lenient: bool = False

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return validator_of(self.schema)

    @cached_property
    def _merge_keys(self) -> MergeKeys | None:
        return merge_keys_of(self.schema)

    def flaws(self, tree: JsonObject, *, nulls: Iterable[str] = ()) -> Iterator[Flaw]:
        """What is wrong with an object of this kind.

        Raises:
            SchemaRefusedError: the schema cannot be used.
        """
        if not self._validator.is_valid(tree):
            for number, error in enumerate(self._validator.iter_errors(tree)):
                if number >= MOST_FLAWS:
                    break
                yield from self._of_error(error)
        if self._merge_keys is not None:
            yield from self._merge_keys.flaws(tree)
        yield from self._of_nulls(nulls)

    def node_at(self, steps: Iterable[str | int]) -> JsonObject:
        """The schema of the member at a place; empty when the schema says nothing about it."""
        node = resolved(self.schema, self.schema)
        for step in steps:
            below = object_at(node, "properties").get(str(step), node.get("additionalProperties"))
            if str(step).isdecimal() and "items" in node:
                below = node["items"]
            if not isinstance(below, Mapping):
                return EMPTY
            node = resolved(below, self.schema)
        return node

    def _of_error(self, error: jsonschema_rs.ValidationError) -> Iterator[Flaw]:
        severity: Severity = "warning" if self.lenient and isinstance(error.kind, _FROM_THE_SERVER) else "error"
        steps = list(error.instance_path)
        match error.kind:
            case Kind.AdditionalProperties(unexpected):
                known = list(object_at(self.node_at(steps), "properties"))
                for name in unexpected:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = f"did you mean {near[0]}?" if near else "remove it, or correct its name or its indentation"
                    message = f"{name} is no member here"
                    yield Flaw(ErrorCode.SCHEMA, message, pointer_of((*steps, name)), hint, severity)
            case Kind.Required(missing):
                yield Flaw(ErrorCode.SCHEMA, f"{missing} is missing", pointer_of(steps), f"add {missing}", severity)
            case Kind.Type(types) if types == ["string"] and isinstance(error.instance, (bool, int, float)):
                message = f"{_shown(steps)} is {type_name(error.instance)}, a string is due"
                yield Flaw(ErrorCode.NOT_A_STRING, message, pointer_of(steps))
            case _:
                yield Flaw(ErrorCode.SCHEMA, _message(error), pointer_of(steps), severity=severity)

    def _of_nulls(self, nulls: Iterable[str]) -> Iterator[Flaw]:
        """A member of a struct without a value is one that was left out; an entry of a map of strings is not (S16)."""
        for pointer in nulls:
            steps = steps_of(pointer)
            parent, node = self.node_at(steps[:-1]), self.node_at(steps)
            types = node.get("type")
            if steps[-1] not in object_at(parent, "properties") and types == "string":
                hint = 'write "" for an empty string, or remove the line'
                yield Flaw(ErrorCode.NOT_A_STRING, f"{_shown(steps)} has no value, a string is due", pointer, hint)
            elif isinstance(types, list) and "null" in types:
                message = f"{_shown(steps)} is null, which counts as left out"
                yield Flaw(ErrorCode.SCHEMA, message, pointer, "remove the line", "warning")


def validator_of(schema: JsonObject) -> jsonschema_rs.Validator:
    """A validator that never opens a socket and never takes exponential time.

    Raises:
        SchemaRefusedError: a reference leaves the schema, or a pattern is no linear-time pattern.
    """
    try:
        return jsonschema_rs.Draft202012Validator(
            dict(schema), pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaRefusedError(str(error).partition("\n")[0][:200]) from error


def resolved(node: JsonObject, root: JsonObject) -> JsonObject:
    """The node, or the definition that it refers to."""
    for _ in range(20):
        name = text_at(node, "$ref").removeprefix("#/$defs/")
        if not name:
            break
        node = object_at(root, "$defs", name)
    return node


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"the reference {uri[:100]} leaves the schema")


def _shown(steps: Iterable[str | int]) -> str:
    """The last steps, from a name on: `env[2].value`."""
    last = [str(step) for step in steps][-3:]
    if len(last) > 1 and last[0].isdecimal():
        del last[0]
    return "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in last).lstrip(".") or "the document"


def _message(error: jsonschema_rs.ValidationError) -> str:
    match error.kind:
        case Kind.Type(types):
            due = " or ".join(_TYPE_NAMES.get(name, name) for name in types)
            cause = f"is {_type_of(error)}, {due} is due"
        case Kind.Enum(options):
            cause = f"is none of {_listed(options)}"
        case Kind.Constant(expected_value=value):
            cause = f"is not {_listed([value])}"
        case Kind.Pattern(pattern):
            cause = f"does not match {pattern[:120]}"
        case Kind.AnyOf(context) | Kind.OneOfNotValid(context):
            cause = f"has none of the allowed forms{_closest(context)}"
        case Kind.OneOfMultipleValid():
            cause = "has more than one of the allowed forms"
        case Kind.Not() | Kind.FalseSchema():
            cause = "has a form that is not allowed"
        case _:
            cause = f"breaks {error.kind.name} {getattr(error.kind, 'limit', '')}".rstrip()
    return f"{_shown(error.instance_path)} {cause}"


def _type_of(error: jsonschema_rs.ValidationError) -> str:
    match error.instance:
        case bool() | str() | None as value:
            return type_name(value)
        case dict():
            return "a mapping"
        case list():
            return "a list"
    return "a number"


def _closest(context: list[list[jsonschema_rs.ValidationError]]) -> str:
    """What is missing in the branch that went deepest."""
    branches = [branch for branch in context if branch]
    if not branches:
        return ""
    nearest = max(branches, key=lambda branch: max(len(error.instance_path) for error in branch))
    first = nearest[0]
    inner = f"{first.kind.property} is missing" if isinstance(first.kind, Kind.Required) else _message(first)
    return f"; closest: {inner}"


def _listed(options: Sequence[object], *, limit: int = 10) -> str:
    shown = ", ".join(str(option) for option in options[:limit] if option is not None)
    return shown if len(options) <= limit else f"{shown} and {len(options) - limit} more"

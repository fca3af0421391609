"""Base of the models of our kinds: strict types, camelCase outside, and rules that are written once for Python and for CEL.

What a model refuses the API server refuses, and the other way round: bounds and patterns become JSON Schema keywords, and
a method marked with `rule` carries the CEL expression that the CustomResourceDefinition gets (engineering rule: models at
the edges only).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from gitops_ctl.api.docstrings import member_texts
from gitops_ctl.api.patterns import MEANING
from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at

M = TypeVar("M")

RULES_KEY = "x-kubernetes-validations"
LISTED_ERRORS = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule of a schema node, and the method that says the same in Python."""

    expression: str
    message: str
    method: str

    def schema(self) -> dict[str, str]:
        return {"rule": self.expression, "message": self.message}


@dataclass(frozen=True, slots=True)
class Transition:
    """A CEL rule about an old and a new version.  A document alone has no old version: only the API server judges it."""

    expression: str
    message: str

    def schema(self) -> dict[str, str]:
        return {"rule": self.expression, "message": self.message}


def kept(member: str, *, message: str = "") -> Transition:
    """A member that may be added, and neither changes nor goes away afterwards."""
    return Transition(
        f"!has(oldSelf.{member}) || (has(self.{member}) && self.{member} == oldSelf.{member})",
        message or f"{member} must not change or go away once it is set",
    )


def never_lower(member: str) -> Transition:
    """A number that grows or stays, and does not go away."""
    return Transition(
        f"!has(oldSelf.{member}) || (has(self.{member}) && self.{member} >= oldSelf.{member})",
        f"{member} must never fall",
    )


def rule(expression: str, *, message: str) -> Callable[[Callable[[M], bool]], Callable[[M], bool]]:
    """Mark a method as the Python twin of a CEL `expression`; `message` is shown when either of them is false."""

    def mark(check: Callable[[M], bool]) -> Callable[[M], bool]:
        setattr(check, RULES_KEY, Rule(expression, message, check.__name__))
        return check

    return mark


class Model(BaseModel):
    """A part of a document.  Members that it does not know are left out, as the API server prunes them."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        frozen=True,
        strict=True,
        extra="ignore",
        # A process builds the validators that it uses, when it uses them.
        defer_build=True,
    )
    cel_rules: ClassVar[tuple[Rule, ...]] = ()
    cel_transitions: ClassVar[tuple[Transition, ...]] = ()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        # Only functions are asked: a question to what stands for the validator until it is built would build it.
        own = (getattr(member, RULES_KEY, None) for member in vars(cls).values() if isinstance(member, FunctionType))
        cls.cel_rules = (*cls.cel_rules, *(found for found in own if isinstance(found, Rule)))

    @model_validator(mode="after")
    def _obeys_the_rules(self) -> Self:
        for item in type(self).cel_rules:
            if not getattr(self, item.method)():
                raise PydanticCustomError("rule", "{message}", {"message": item.message})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core))
        cls._describe(schema.get("properties", {}))
        rules = [item.schema() for item in cls.cel_rules] + [item.schema() for item in cls.cel_transitions]
        if rules:
            schema[RULES_KEY] = rules
        return schema

    @classmethod
    def _describe(cls, properties: dict[str, JsonSchemaValue]) -> None:
        texts: dict[str, str] = {}
        for each in reversed(cls.__mro__):
            texts |= member_texts(each) if issubclass(each, Model) else {}
        for name, text in texts.items():
            field = cls.model_fields.get(name)
            if field is not None and field.description is None:
                properties[field.alias or name].setdefault("description", text)

    def to_tree(self, *, minimal: bool = False) -> dict[str, JsonValue]:
        """The JSON form, without absent members; `minimal` leaves out what has its default value too."""
        tree: dict[str, JsonValue] = self.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude_defaults=minimal
        )
        return tree


class StrictModel(Model):
    """A part of a document that lives in Git only: a member that it does not know is an error."""

    model_config = ConfigDict(extra="forbid")


K = TypeVar("K", bound=Model)


def parse(model: type[K], tree: JsonObject, *, code: ErrorCode = ErrorCode.SCHEMA) -> K:
    """`tree` as a `model`.  A null counts as an absent member, as it does for the API server, unless the model is strict.

    Raises:
        Refused: with `code`; the message names every wrong field by its path, the subject names the object.
    """
    found = tree if issubclass(model, StrictModel) else _without_nulls(tree)
    try:
        return model.model_validate_json(canonical_json(found), by_alias=True, by_name=False)
    except ValidationError as error:
        raise Refused(_explained(error), code=code, subject=_named(tree)) from None
    except ValueError as error:
        raise Refused(f"not JSON: {error}", code=code, subject=_named(tree)) from None


def _without_nulls(tree: JsonObject) -> dict[str, JsonValue]:
    return {key: _cleaned(value) for key, value in tree.items() if value is not None}


def _cleaned(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return _without_nulls(value)
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in value]
    return value


def _explained(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    told = [f"{_path(item['loc'])}: {_said(item)}" for item in problems[:LISTED_ERRORS]]
    more = len(problems) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")


def _said(problem: ErrorDetails) -> str:
    if problem["type"] != "string_pattern_mismatch":
        return problem["msg"]
    pattern = str(problem.get("ctx", {}).get("pattern", ""))
    return MEANING.get(pattern, f"must match {pattern}")


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or "document"


def _named(tree: JsonObject) -> str:
    place = "/".join(
        part for part in (text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name")) if part
    )
    return f"{text_at(tree, 'kind', default='document')} {place}".strip()

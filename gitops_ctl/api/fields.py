"""Field types that several kinds share.  Every text has a length limit, and a pattern where its form matters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gitops_ctl.api import patterns
from gitops_ctl.api.model import RULES_KEY, Model
from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.conditions import MESSAGE_LIMIT
from gitops_ctl.core.duration import DURATION_PATTERN, to_seconds

DnsLabel = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.LABEL)]
DnsName = Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.NAME)]
DataKey = Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.DATA_KEY)]
KindName = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.KIND)]
GroupName = Annotated[str, Field(max_length=253, pattern=patterns.OPTIONAL_NAME)]
"""An API group; the core group is the empty text."""

CommitId = Annotated[str, Field(min_length=40, max_length=40, pattern=patterns.COMMIT)]
Digest = Annotated[str, Field(min_length=71, max_length=71, pattern=patterns.DIGEST)]
FolderPath = Annotated[str, Field(max_length=1024, pattern=patterns.FOLDER_PATH)]
FilePath = Annotated[str, Field(min_length=1, max_length=4096, pattern=patterns.FILE_PATH)]
ObjectName = Annotated[str, Field(min_length=1, max_length=640)]
"""`<Kind>.<group>/<namespace>/<name>` of an object; without the namespace for cluster-scoped ones."""

ShortText = Annotated[str, Field(max_length=256)]
LongText = Annotated[str, Field(max_length=1000)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Generation = Annotated[int, Field(ge=0, le=2**53)]


def _is_a_moment(text: str) -> str:
    try:
        from_rfc3339(text)
    except ValueError:
        raise PydanticCustomError("timestamp", "must be a day that exists, as in 2026-11-30T08:00:00Z") from None
    return text


Timestamp = Annotated[
    str,
    Field(max_length=35, pattern=patterns.MOMENT, json_schema_extra={"format": "date-time"}),
    AfterValidator(_is_a_moment),
]


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A CEL rule on one text value with its Python twin."""

    expression: str
    message: str
    holds: Callable[[str], bool]

    def _checked(self, text: str) -> str:
        if not self.holds(text):
            raise PydanticCustomError("rule", "{message}", {"message": self.message})
        return text

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        schema[RULES_KEY] = [*schema.get(RULES_KEY, []), {"rule": self.expression, "message": self.message}]
        return schema


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose items are told apart by one member, or, without `key`, by themselves; the server merges it so.

    `attribute` is the member's name in Python where it is another one.
    """

    key: str = ""
    attribute: str = ""

    def _checked(self, items: tuple[object, ...]) -> tuple[object, ...]:
        keys = [getattr(item, self.attribute or self.key) if self.key else item for item in items]
        if len(set(keys)) != len(keys):
            raise PydanticCustomError("duplicate", "must not name the same {what} twice", {"what": self.key or "item"})
        return items

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        schema["x-kubernetes-list-type"] = "map" if self.key else "set"
        if self.key:
            schema["x-kubernetes-list-map-keys"] = [self.key]
        return schema


UNIQUE = Keyed()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that never changes once it is set.  Only the API server can say so: a document alone has no old version."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        unchanged = {"rule": "self == oldSelf", "message": "must not change"}
        # A reference is a schema of its own that others share: the rule stands beside it.
        schema[RULES_KEY] = [*schema.get(RULES_KEY, []), unchanged]
        return schema


FIXED = Fixed()


@dataclass(frozen=True, slots=True)
class Atomic:
    """An object that one writer replaces as a whole: the server does not keep who wrote which of its members."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "x-kubernetes-map-type": "atomic"}


ATOMIC = Atomic()


def duration_within(low: str, high: str) -> ValueRule:
    """The rule that a duration lies between two others, both included."""
    return ValueRule(
        expression=f"duration(self) >= duration('{low}') && duration(self) <= duration('{high}')",
        message=f"must be between {low} and {high}",
        holds=lambda text: to_seconds(low) <= to_seconds(text) <= to_seconds(high),
    )


_DURATION = Field(min_length=2, max_length=20, pattern=DURATION_PATTERN)
PollInterval = Annotated[str, _DURATION, duration_within("5s", "24h")]
SyncInterval = Annotated[str, _DURATION, duration_within("30s", "24h")]
Timeout = Annotated[str, _DURATION, duration_within("1s", "1h")]
MaxAge = Annotated[str, _DURATION, duration_within("1h", "8784h")]


class SecretRef(Model):
    """A Secret of the same namespace."""

    name: DnsName


class SecretKeyRef(Model):
    """One key of a Secret of the same namespace."""

    name: DnsName
    key: DataKey = "kubeconfig"


class ConfigMapRef(Model):
    """A ConfigMap of the same namespace."""

    name: DnsName


class ConditionEntry(Model):
    """One condition in the kstatus convention."""

    type: Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.KIND)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.KIND)]
    message: Annotated[str, Field(max_length=MESSAGE_LIMIT)] = ""
    observed_generation: Generation = 0
    last_transition_time: Timestamp


Conditions = Annotated[
    tuple[ConditionEntry, ...],
    Field(max_length=16),
    Keyed("type"),
]


class ObjectMeta(Model):
    """The part of an object's metadata that our controllers read."""

    name: DnsName
    namespace: Annotated[str, Field(max_length=63)] = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()

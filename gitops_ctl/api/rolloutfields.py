"""Field types that devices, software rollouts and their leaves share (rollouts.md, sections 3 to 5).

Members follow the published objects: `deviceUID`, `reservationID`.  What stands in a status may come from an older release of
another manager, so a reader accepts what these types accept and asks for nothing that such objects lack.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import UNIQUE, Keyed, Timestamp
from gitops_ctl.api.model import RULES_KEY, Model, rule
from gitops_ctl.core.moment import from_rfc3339

LARGEST: Final = 2**53
"""Of numbers without a limit of their own: what JSON carries exactly everywhere."""

PLAN_LIMIT: Final = 262144
"""Bytes of a frozen plan, and of the ledger."""

_CAPITALS: Final = {"Uid": "UID", "Uids": "UIDs", "Id": "ID"}


def _member_name(name: str) -> str:
    words = to_camel(name)
    parts = name.split("_")
    if len(parts) == 1:
        return words
    last = parts[-1].capitalize()
    return words.removesuffix(last) + _CAPITALS.get(last, last)


class Part(Model):
    """A part of an object whose members write UID and ID in capitals at their end."""

    model_config = Model.model_config | {"alias_generator": _member_name}


class OpenPart(Part):
    """A part that keeps members which it does not know, so that documents for a newer release stay whole."""

    model_config = Part.model_config | {"extra": "allow"}


Uid = Annotated[str, Field(min_length=1, max_length=128)]
NameText = Annotated[str, Field(min_length=1, max_length=253)]
User = Annotated[str, Field(min_length=1, max_length=253)]
"""A user name of the API server."""

ResourceVersion = Annotated[str, Field(min_length=1, max_length=128)]
Sha256 = Annotated[str, Field(min_length=64, max_length=64, pattern=patterns.SHA256_HEX)]
Hex32 = Annotated[str, Field(min_length=32, max_length=32, pattern=patterns.HEX_32)]
"""The id of one acquisition of a device lock."""

SoftwareVersion = Annotated[str, Field(max_length=128, pattern=patterns.SOFTWARE_VERSION)]
VersionText = Annotated[str, Field(max_length=128)]
"""A version as a device says it."""

ReservationId = Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.RESERVATION)]
PhysicalIdentity = Annotated[str, Field(min_length=1, max_length=128)]
SessionUuid = Annotated[str, Field(min_length=36, max_length=36, pattern=patterns.UUID_4)]
QualifiedKey = Annotated[str, Field(min_length=1, max_length=96, pattern=patterns.QUALIFIED_KEY)]
NodeName = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.NAME)]
Reason = Annotated[str, Field(max_length=128)]
ShortMessage = Annotated[str, Field(max_length=256)]
Message = Annotated[str, Field(max_length=512)]
Percent = Annotated[int, Field(ge=0, le=100)]
Limit = Annotated[int, Field(ge=1, le=100)]
"""A ceiling on targets, transfers or unavailable devices."""

TimeoutSeconds = Annotated[int, Field(ge=60, le=86400)]
Revision = Annotated[int, Field(ge=0, le=LARGEST)]
Epoch = Annotated[int, Field(ge=1, le=LARGEST)]
Bytes = Annotated[int, Field(ge=0, le=LARGEST)]
ByteRate = Annotated[int, Field(ge=1, le=1099511627776)]
"""Bytes per second."""

Outcome = Literal["DeviceRetired", "OutcomeVerifiedByHand"]
Stage = Literal[
    "Staging", "PrimaryInstall", "StandbyInstall", "StandbyActivation", "PrimaryActivation", "RollbackActivation"
]
Protocol = Literal[
    "rollout-v1", "rollout-byte-pacing-v1", "rollout-staged-activation-v1", "rollout-network-evidence-v1"
]


@dataclass(frozen=True, slots=True)
class ShortKeys:
    """A map whose keys are not empty and have at most `longest` characters."""

    longest: int

    @property
    def message(self) -> str:
        return f"keys must have 1 to {self.longest} characters"

    def _checked(self, items: Mapping[str, object]) -> Mapping[str, object]:
        if not all(0 < len(key) <= self.longest for key in items):
            raise PydanticCustomError("rule", "{message}", {"message": self.message})
        return items

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        expression = f"self.all(key, key.size() >= 1 && key.size() <= {self.longest})"
        schema[RULES_KEY] = [{"rule": expression, "message": self.message}]
        return schema


class LabelExpression(Part):
    """One condition on the labels of a CiscoDevice."""

    key: Annotated[str, Field(min_length=1, max_length=96)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[
        tuple[Annotated[str, Field(max_length=63, pattern=patterns.NONEMPTY_LABEL_VALUE)], ...],
        Field(max_length=32),
        UNIQUE,
    ] = ()
    """Needed by In and NotIn, not allowed for the others."""

    @rule(
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
        message="In and NotIn need values, Exists and DoesNotExist take none",
    )
    def _has_values_where_they_count(self) -> bool:
        return (self.operator in ("In", "NotIn")) == bool(self.values)


class DeviceSelector(Part):
    """Labels that a CiscoDevice of the same namespace needs; an empty selector chooses every one."""

    match_labels: Annotated[Mapping[str, Annotated[str, Field(max_length=63)]], Field(max_length=32), ShortKeys(96)] = (
        Field(default_factory=dict)
    )
    """Labels with exactly these values."""
    match_expressions: Annotated[tuple[LabelExpression, ...], Field(max_length=32)] = ()

    @property
    def is_empty(self) -> bool:
        """Whether every device is chosen."""
        return not self.match_labels and not self.match_expressions


def is_empty_selector(path: str) -> str:
    """CEL: whether the selector at `path`, which is there, chooses every device."""
    return (
        f"(!has({path}.matchLabels) || {path}.matchLabels.size() == 0)"
        f" && (!has({path}.matchExpressions) || {path}.matchExpressions.size() == 0)"
    )


class DomainBudget(Part):
    """Ceilings for each value of one label: a path, or a redundancy domain."""

    topology_key: QualifiedKey
    """Label of a CiscoDevice that the fleet policy budgets."""
    max_concurrent_transfers: Limit | None = None
    """Devices of one value that are in a campaign at the same time, as far as their transfers count."""
    max_unavailable: Limit | None = None
    """Devices of one value that may be unavailable at the same time."""

    @rule(
        "has(self.maxConcurrentTransfers) || has(self.maxUnavailable)",
        message="a domain needs maxConcurrentTransfers, maxUnavailable, or both",
    )
    def _limits_something(self) -> bool:
        return self.max_concurrent_transfers is not None or self.max_unavailable is not None


Domains = Annotated[tuple[DomainBudget, ...], Field(max_length=16), Keyed("topologyKey", "topology_key")]


class Window(Part):
    """When device changes may begin."""

    not_before: Timestamp | None = None
    not_after: Timestamp | None = None
    """After this no further change begins; one that has begun goes on."""

    @rule(
        "!has(self.notBefore) || !has(self.notAfter) || timestamp(self.notBefore) <= timestamp(self.notAfter)",
        message="notBefore must not be later than notAfter",
    )
    def _is_in_order(self) -> bool:
        return in_order(self.not_before, self.not_after)


def in_order(first: str | None, second: str | None, *, strictly: bool = False) -> bool:
    """Whether two RFC 3339 times follow each other; an absent one orders nothing."""
    if first is None or second is None:
        return True
    before, after = from_rfc3339(first), from_rfc3339(second)
    return before < after if strictly else before <= after


class MutationClaim(Part):
    """One device change that the worker was about to make; made at most once."""

    stage: Stage
    reservation_id: ReservationId
    policy_epoch: Epoch
    control_revision: Revision
    claimed_at: Timestamp

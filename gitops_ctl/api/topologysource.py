"""The kind TopologySource: which labels of Nodes form a hierarchy, and where an inventory of them comes from (topology-scheduling.md, 3).

What one object can state about itself is said here, for the model and the definition alike.  The whole of the rules, with those that
need configuration, is `scheduling/source_rules.py`, which `gitops-ctl check` and the controller ask.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import Conditions, Count, Generation, ObjectMeta, Timestamp, ValueRule
from gitops_ctl.api.kind import Column, CustomKind
from gitops_ctl.api.model import RULES_KEY, Model, parse, rule
from gitops_ctl.api.names import WORKER_GROUP
from gitops_ctl.core.goduration import nanoseconds
from gitops_ctl.core.jsonvalue import JsonObject

REVISION_LIMIT: Final = 1024
"""Characters of a revision that a status shows."""

_HOSTNAME: Final = "kubernetes.io/hostname"
_PROFILE: Final = "topology.gpustack.ai/profile"
_KEPT_DOMAINS: Final = (
    r"(^|\.)(kubernetes\.io|k8s\.io|topology\.gpustack\.ai|feature\.gpustack\.ai|fabric\.topograph\.run|"
    r"accelerator\.topograph\.run)/$"
)


def _never(value: str, message: str) -> ValueRule:
    return ValueRule(f"self != '{value}'", message, lambda text: text != value)


def _looks_like(pattern: str, message: str) -> ValueRule:
    return ValueRule(f"self.matches(r'{pattern}')", message, lambda text: re.search(pattern, text) is not None)


@dataclass(frozen=True, slots=True)
class _Distinct:
    """A list in the order of its author that names nothing twice; it is replaced as a whole."""

    message: str = "must not name the same key twice"

    def _checked(self, items: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(items)) != len(items):
            raise PydanticCustomError("rule", "{message}", {"message": self.message})
        return items

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        schema["x-kubernetes-list-type"] = "atomic"
        expression = "self.all(level, self.exists_one(other, other == level))"
        schema[RULES_KEY] = [{"rule": expression, "message": self.message}]
        return schema


LabelKey = Annotated[str, Field(min_length=1, max_length=317, pattern=patterns.LABEL_KEY)]
LabelValue = Annotated[str, Field(max_length=63, pattern=patterns.LABEL_VALUE)]
Level = Annotated[
    LabelKey,
    _never(_HOSTNAME, f"{_HOSTNAME} is always the last level and is not listed"),
    _never(_PROFILE, f"{_PROFILE} is made from the levels and cannot be one"),
]
WritePrefix = Annotated[
    str,
    Field(max_length=254, pattern=patterns.LABEL_PREFIX),
    ValueRule(
        f"!self.matches(r'{_KEPT_DOMAINS}')",
        "keys of this domain cannot be given to a source",
        lambda text: re.search(_KEPT_DOMAINS, text) is None,
    ),
]
Duration = Annotated[
    str,
    Field(min_length=1, max_length=64, pattern=patterns.GO_DURATION),
    _looks_like("[1-9]", "must be longer than zero"),
]
InventoryUrl = Annotated[
    str,
    Field(min_length=9, max_length=2048, pattern=patterns.NO_SPACES),
    _looks_like(r"^(?i:https)://", "must begin with https://"),
    _looks_like("^[A-Za-z]+://[^/?#:]", "must name a host"),
    _looks_like(r"^[^/]*//[^/?#@]*([/?#]|$)", "must hold no user info"),
    _looks_like("^[^#]*$", "must hold no fragment"),
]


class LabelExpression(Model):
    """One condition on the labels of a Node."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[tuple[LabelValue, ...], Field(max_length=100)] = ()
    """Needed by In and NotIn, not allowed for the others."""

    @rule(
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
        message="In and NotIn need values, Exists and DoesNotExist take none",
    )
    def _has_values_where_they_count(self) -> bool:
        return (self.operator in ("In", "NotIn")) == bool(self.values)


class LabelSelector(Model):
    """Labels that a Node needs; an empty selector chooses every Node."""

    match_labels: Annotated[Mapping[str, LabelValue], Field(max_length=100)] = Field(default_factory=dict)
    """Labels with exactly these values."""
    match_expressions: Annotated[tuple[LabelExpression, ...], Field(max_length=100)] = ()


class NodeLabelsArm(Model):
    """Labels that are on the Nodes already; its presence chooses this arm."""


class ObjectRef(Model):
    """An object of the worker namespace."""

    namespace: Annotated[str, Field(min_length=1, max_length=253)]
    """The worker namespace; that it is this one is checked by the admission policy and the controller."""
    name: Annotated[str, Field(min_length=1, max_length=253)]


class ConfigMapArm(Model):
    """A snapshot in a ConfigMap."""

    config_map_ref: ObjectRef
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.NOT_BLANK)]
    """Key inside `data`."""
    max_staleness: Duration
    """How long the last sound snapshot stays usable after reads fail."""


class WebhookArm(Model):
    """A snapshot over HTTPS."""

    url: InventoryUrl
    """Address of the inventory; a query is allowed, user info and a fragment are not."""
    poll_interval: Duration
    timeout: Duration
    """Of one whole pass; not longer than `pollInterval`."""
    max_staleness: Duration
    """How long the last sound snapshot stays usable after reads fail."""
    ca_bundle_config_map_ref: ObjectRef | None = None
    """ConfigMap with the key `ca.crt`; its certificates replace those of the system."""
    bearer_token_secret_ref: ObjectRef | None = None
    """Secret with the key `token`."""
    tls_client_certificate_secret_ref: ObjectRef | None = None
    """Secret with the keys `tls.crt` and `tls.key`."""

    @rule(
        "duration(self.timeout) <= duration(self.pollInterval)", message="timeout must not be longer than pollInterval"
    )
    def _is_over_before_the_next_poll(self) -> bool:
        try:
            return nanoseconds(self.timeout) <= nanoseconds(self.poll_interval)
        except ValueError:  # the server cannot compare what does not fit in 64 bits either
            return False

    @rule(
        "has(self.bearerTokenSecretRef) != has(self.tlsClientCertificateSecretRef)",
        message="exactly one of bearerTokenSecretRef and tlsClientCertificateSecretRef is required",
    )
    def _has_one_credential(self) -> bool:
        return (self.bearer_token_secret_ref is None) != (self.tls_client_certificate_secret_ref is None)


class TopologySourceSpec(Model):
    """Which Nodes, which levels, and where the values of the levels come from: one of `nodeLabels`, `configMap` and `webhook`."""

    node_selector: LabelSelector
    """Nodes that the source may describe; `{}` chooses every Node."""
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=16), _Distinct()]
    """Label keys, the coarsest first; `kubernetes.io/hostname` follows by itself."""
    additional_write_prefix: WritePrefix = ""
    """One more prefix of labels that snapshots may write, with its slash."""
    node_labels: NodeLabelsArm | None = None
    config_map: ConfigMapArm | None = None
    webhook: WebhookArm | None = None

    @rule(
        "(has(self.nodeLabels) ? 1 : 0) + (has(self.configMap) ? 1 : 0) + (has(self.webhook) ? 1 : 0) == 1",
        message="exactly one of nodeLabels, configMap and webhook is required",
    )
    def _has_one_arm(self) -> bool:
        return [self.node_labels, self.config_map, self.webhook].count(None) == 2

    @rule(
        "!has(self.nodeLabels) || !has(self.additionalWritePrefix) || self.additionalWritePrefix == ''",
        message="nodeLabels writes nothing: no additionalWritePrefix can be given",
    )
    def _gives_no_prefix_in_vain(self) -> bool:
        return self.node_labels is None or not self.additional_write_prefix


class TopologySourceStatus(Model):
    """What the last pass saw and did."""

    observed_generation: Generation = 0
    source_kind: Literal["", "NodeLabels", "ConfigMap", "Webhook"] = ""
    last_successful_revision: Annotated[str, Field(max_length=REVISION_LIMIT)] = ""
    """Revision of the last snapshot that was applied whole; kept through failures."""
    last_successful_refresh_time: Timestamp | None = None
    """Renewed at every success; what `maxStaleness` counts from."""
    selected_nodes: Count = 0
    """Nodes that the selector chooses."""
    mutated_nodes: Count = 0
    """NodeFeatures that the last pass created, changed or deleted."""
    conflicted_nodes: Count = 0
    """Nodes that another writing source describes too."""
    conditions: Conditions = ()


class TopologySource(Model):
    """Which labels of Nodes form a topology, and where an inventory of them comes from."""

    api_version: Literal["worker.gpustack.ai/v1alpha1", "worker.gpustack.ai/v1"]
    kind: Literal["TopologySource"]
    metadata: ObjectMeta
    spec: TopologySourceSpec
    status: TopologySourceStatus = TopologySourceStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="TopologySource",
        plural="topologysources",
        group=WORKER_GROUP,
        short_names=("toposrc",),
        columns=(
            Column("Kind", ".status.sourceKind"),
            Column("Revision", ".status.lastSuccessfulRevision"),
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        ),
        namespaced=False,
        categories=("gpustack",),
        versions=("v1alpha1", "v1"),
    )


def parse_topology_source(tree: JsonObject) -> TopologySource:
    """The TopologySource that `tree` holds, in either version.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(TopologySource, tree)

"""Two JSON Schema libraries agree, over generated schemas of Kubernetes' shape and generated objects."""

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.documents.builtin import builtin_kinds
from gitops_ctl.documents.crds import custom_schema
from gitops_ctl.documents.kindschema import validator_of
from gitops_ctl.documents.schema import SchemaCatalog

NAMES = st.sampled_from(["a", "b", "c", "name"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "yy", "1"]) | st.sampled_from([0.5, 1.5])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)

LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "pattern": st.just("^[a-z]*$")}
    ),
    st.fixed_dictionaries(
        {"type": st.just("integer")}, optional={"minimum": st.integers(-2, 2), "exclusiveMinimum": st.booleans()}
    ),
    st.just({"type": "boolean"}),
    st.just({"type": "string", "enum": ["x", "1"]}),
    st.just({"type": "string", "nullable": True}),
    st.just({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
)


def grow(inner):
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": st.integers(0, 2)}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, min_size=1, max_size=3)},
            optional={"required": st.lists(NAMES, max_size=2, unique=True)},
        ),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
    )


SCHEMAS = st.recursive(LEAVES, grow, max_leaves=6)


@pytest.mark.property
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, VALUES)
def test_both_libraries_say_the_same_about_custom_objects(schema, value):
    whole = custom_schema({"type": "object", "properties": {"spec": schema}})
    tree = {"apiVersion": "example.net/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": value}
    assert validator_of(whole).is_valid(tree) == jsonschema.Draft202012Validator(dict(whole)).is_valid(tree)


@pytest.mark.property
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(builtin_kinds().kinds)), st.dictionaries(st.sampled_from(["spec", "data", "rules"]), VALUES)
)
def test_both_libraries_say_the_same_about_kubernetes_objects(name, members):
    api_version, _, kind = name.rpartition("/")
    tree = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **members}
    found = SchemaCatalog().schema_of(GroupVersionKind.of(tree))
    assert found is not None
    assert validator_of(found.schema).is_valid(tree) == jsonschema.Draft202012Validator(dict(found.schema)).is_valid(
        tree
    )

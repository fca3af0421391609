"""What the API server refuses, or drops without a word, is refused before it gets there: one test per row of that list.

In scope: the check itself, and how the generator turns what pydantic emits into what the server keeps.
"""

from typing import Annotated, Any, ClassVar, Literal, Optional

import pytest
from pydantic import Field, computed_field

from gitops_ctl.api.crd import crd_of, inlined, kind_of, structural_schema
from gitops_ctl.api.git_source import GitRef
from gitops_ctl.api.gitops import GitSource
from gitops_ctl.api.kind import CustomKind
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.model import Model
from gitops_ctl.api.structural import NotStructural, check_structural
from gitops_ctl.api.topologysource import TopologySource

TEXT = {"type": "string"}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


ROWS = {
    "reference": ({"$ref": "#/$defs/a"}, "$ref: references"),
    "definitions": ({**TEXT, "$defs": {}}, "$defs: dropped silently"),
    "union with null": ({"anyOf": [TEXT, {"type": "null"}]}, "anyOf: branches"),
    "null as default": ({**TEXT, "default": None}, "default null is dropped silently"),
    "closed object": ({**an_object(a=TEXT), "additionalProperties": False}, "exclude each other"),
    "properties and more": ({**an_object(a=TEXT), "additionalProperties": TEXT}, "exclude each other"),
    "constant": ({**TEXT, "const": "a"}, "const: dropped silently"),
    "number as exclusive bound": ({"type": "integer", "exclusiveMinimum": 0}, "must be a boolean beside minimum"),
    "tuple": ({"type": "array", "items": TEXT, "prefixItems": [TEXT]}, "prefixItems: dropped silently"),
    "array of anything": ({"type": "array"}, "an array without items"),
    "unique items": ({"type": "array", "items": TEXT, "uniqueItems": True}, "uniqueItems: refused as quadratic"),
    "branches with types": ({"type": "object", "oneOf": [an_object(a=TEXT)]}, "oneOf: branches"),
    "discriminator": ({**an_object(a=TEXT), "discriminator": {}}, "discriminator: dropped silently"),
    "examples": ({**TEXT, "examples": ["a"]}, "examples: dropped silently"),
    "typed int-or-string": ({**TEXT, "x-kubernetes-int-or-string": True}, "int-or-string stands without a type"),
    "anything": ({"description": "any"}, "has no type"),
    "embedded resource": (
        {"type": "object", "x-kubernetes-embedded-resource": True},
        "an embedded resource needs properties",
    ),
    "duration format": ({**TEXT, "format": "duration"}, "format duration"),
    "unknown format": ({**TEXT, "format": "fqdn"}, "format fqdn"),
    "look-ahead": ({**TEXT, "pattern": "^(?!a)"}, "is not RE2"),
    "look-behind": ({**TEXT, "pattern": "(?<=a)b"}, "is not RE2"),
    "back-reference": ({**TEXT, "pattern": r"(a)\1"}, "is not RE2"),
    "title": ({**TEXT, "title": "A"}, "title: noise"),
    "default with unknown fields": ({**an_object(a=TEXT), "default": {"b": "x"}}, "default: unknown field b"),
    "default of another type": ({**TEXT, "default": 1}, "default: 1 is no string"),
    "key that may be absent": (
        {
            "type": "array",
            "items": an_object(type=TEXT),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "map key type is neither required nor defaulted",
    ),
    "unknown keyword": ({**TEXT, "if": {}}, "if: not a keyword"),
    "required and not declared": ({**an_object(a=TEXT), "required": ["b"]}, "requires b, which is not declared"),
}


@pytest.mark.parametrize(("schema", "told"), ROWS.values(), ids=ROWS)
def test_what_the_server_would_not_keep_is_refused_with_its_place(schema, told):
    with pytest.raises(NotStructural) as refused:
        check_structural(an_object(spec=an_object(member=schema)))
    assert any(problem.startswith("schema.spec.member") and told in problem for problem in refused.value.problems)


@pytest.mark.parametrize(
    "schema",
    [
        {"x-kubernetes-int-or-string": True},
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "additionalProperties": TEXT, "maxProperties": 3, "default": {"a": "b"}},
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set", "default": ["a"]},
        {**TEXT, "pattern": r"^(?:a|b)+?[^\x00]*$", "format": "date-time"},
    ],
)
def test_what_the_server_keeps_is_accepted(schema):
    check_structural(an_object(spec=an_object(member=schema)))


def test_all_problems_are_told_at_once():
    with pytest.raises(NotStructural) as refused:
        check_structural(an_object(a={}, b={"type": "array"}))
    assert len(refused.value.problems) == 2


class Part(Model):
    """A part."""

    name: Annotated[str, Field(max_length=9)] = "a"


class Emitted(Model):
    """Everything that pydantic emits and the generator turns into a structural form."""

    maybe: Annotated[str, Field(max_length=9)] | None = None
    one: Literal["a"]
    above: Annotated[int, Field(gt=0, lt=10)]
    ratio: Annotated[float, Field(gt=0, le=1)]
    port: int | str
    free: dict[str, Any]
    tags: Annotated[frozenset[str], Field(max_length=3)] = frozenset()
    part: Part = Part()
    shown: Annotated[str, Field(title="Shown", examples=["a"], max_length=1)]


def properties_of(model: type[Model]) -> dict[str, Any]:
    source = model.model_json_schema(by_alias=True)
    result: Any = inlined(source, source)["properties"]
    return result


def test_emitted_forms_become_structural_ones():
    found = properties_of(Emitted)
    assert found["maybe"] == {"type": "string", "maxLength": 9}
    assert found["one"] == {"type": "string", "enum": ["a"]}
    assert found["above"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert found["ratio"] == {"type": "number", "minimum": 0.0, "exclusiveMinimum": True, "maximum": 1.0}
    assert found["port"] == {"x-kubernetes-int-or-string": True}
    assert found["free"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert (found["tags"]["x-kubernetes-list-type"], found["tags"]["items"]) == ("set", TEXT)
    assert found["part"]["default"] == {}
    assert found["part"]["properties"]["name"]["default"] == "a"
    assert found["shown"] == {"type": "string", "maxLength": 1}
    check_structural({"type": "object", "properties": found})


class Nested(Model):
    """A part that holds itself."""

    inner: Optional["Nested"] = None


class Union(Model):
    """A member of two types."""

    value: str | Part


class Pair(Model):
    """A tuple of two types."""

    pair: tuple[str, int]


@pytest.mark.parametrize(
    ("model", "told"),
    [(Nested, "refers to itself"), (Union, "a union of several types"), (Pair, "prefixItems")],
    ids=["recursion", "union", "tuple"],
)
def test_what_has_no_structural_form_is_refused(model, told):
    with pytest.raises(NotStructural, match=told):
        check_structural({"type": "object", "properties": properties_of(model)})


class Unbounded(Model):
    """Nothing has a limit."""

    text: str
    items: tuple[Annotated[str, Field(max_length=1)], ...]
    number: int
    more: dict[str, Annotated[str, Field(max_length=1)]]


class UnboundedKind(Model):
    """A kind whose spec has no limits."""

    spec: Unbounded
    custom_kind: ClassVar[CustomKind] = CustomKind(kind="Trial", plural="trials", has_status=False)


def test_every_text_list_map_and_number_needs_a_bound():
    with pytest.raises(NotStructural) as refused:
        structural_schema(UnboundedKind)
    told = "; ".join(refused.value.problems)
    for path in ("spec.text: has no maxLength", "spec.items: has no maxItems", "spec.number: has no maximum"):
        assert path in told
    assert "spec.more: has no maxProperties" in told


class Computed(Model):
    """A member that is written and never read."""

    name: Annotated[str, Field(max_length=1)]

    @computed_field
    def shout(self) -> str:
        return self.name.upper()


class ComputedKind(Model):
    """A kind with a computed member."""

    spec: Computed
    custom_kind: ClassVar[CustomKind] = CustomKind(kind="Trial", plural="trials", has_status=False)


def test_a_member_that_is_only_written_is_refused():
    with pytest.raises(NotStructural, match="differ between reading and writing"):
        structural_schema(ComputedKind)


class WrongDefault(Model):
    """A default outside its own bounds."""

    number: Annotated[int, Field(ge=0, le=3)] = 7


class WrongDefaultKind(Model):
    """A kind with a wrong default."""

    spec: WrongDefault
    custom_kind: ClassVar[CustomKind] = CustomKind(kind="Trial", plural="trials", has_status=False)


def test_a_default_that_breaks_its_own_bound_is_refused():
    with pytest.raises(NotStructural, match=r"schema\.spec\.number: the default is not valid"):
        structural_schema(WrongDefaultKind)


def test_a_part_of_a_document_has_no_definition():
    with pytest.raises(TypeError, match="GitRef is no stored kind"):
        crd_of(GitRef)


def test_rules_stand_where_they_look():
    schema: Any = structural_schema(GitSource)
    rules = schema["properties"]["spec"]["properties"]["ref"]["x-kubernetes-validations"]
    assert rules == [{"rule": "has(self.branch) != has(self.tag)", "message": "name exactly one of branch and tag"}]


def test_the_server_adds_nothing_to_what_controllers_write():
    for model in ALL_KINDS:
        schema: Any = structural_schema(model)
        written = schema["properties"].get("status") or schema["properties"]["spec"]
        assert "'default'" not in str(written)


COLUMNS = {
    "GitSource": ["Ready", "Reason", "Revision", "Since", "Age"],
    "Sync": ["Ready", "Reason", "Revision", "Since", "Age"],
    "Inventory": ["Sync", "Shard", "Age"],
    "Proposal": ["Phase", "Number", "Reason", "Purpose", "Age"],
    "TalosCluster": ["Wanted", "Set", "Live", "Lock", "Age"],
    "TalosMachine": ["Cluster", "Role", "KubeProxy", "Ready", "Reason", "Age"],
    "TalosOperation": ["Cluster", "Kind", "Target", "Phase", "Step", "Age"],
    "TalosConfigPatch": ["Cluster", "Age"],
    "TopologySource": ["Kind", "Revision", "Ready"],
    "CiscoDevice": ["Driver", "Address", "Phase", "Node", "Topology", "Age"],
    "IOSXESoftwareRollout": ["Target", "Phase", "Planned", "Succeeded", "Failed", "Age"],
    "IOSXESoftwareUpgrade": ["Device", "Target", "Phase", "Running", "Age"],
}


@pytest.mark.parametrize("model", ALL_KINDS, ids=lambda model: model.__name__)
def test_names_and_columns_answer_what_people_ask(model):
    crd: Any = crd_of(model)
    version = crd["spec"]["versions"][0]
    columns = [column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority")]
    ours = kind_of(model).kind != "TopologySource"
    assert crd["spec"]["names"]["categories"] == (["gitops"] if ours else ["gpustack"])
    assert crd["spec"]["scope"] == ("Namespaced" if ours else "Cluster")
    assert ("status" in version.get("subresources", {})) is kind_of(model).has_status
    assert columns == COLUMNS[kind_of(model).kind]


def test_short_names_are_those_of_the_design():
    short = {kind_of(model).kind: kind_of(model).short_names for model in ALL_KINDS}
    named = {kind: names for kind, names in short.items() if names}
    assert named == {
        "GitSource": ("gsrc",),
        "Sync": ("gsync",),
        "Proposal": ("prop",),
        "TopologySource": ("toposrc",),
        "IOSXESoftwareRollout": ("xerollout",),
        "IOSXESoftwareUpgrade": ("xeupgrade",),
    }


def test_a_topology_source_is_served_in_two_versions_with_one_schema_and_stored_in_the_first():
    crd: Any = crd_of(TopologySource)
    first, second = crd["spec"]["versions"]
    assert [(item["name"], item["served"], item["storage"]) for item in (first, second)] == [
        ("v1alpha1", True, True),
        ("v1", True, False),
    ]
    for part in ("schema", "additionalPrinterColumns", "subresources"):
        assert first[part] == second[part]
    assert crd["spec"]["conversion"] == {"strategy": "None"}

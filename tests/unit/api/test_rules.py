"""The rule table against the models and against the JSON Schema: both say what the API server says (tests/cluster/test_crds.py)."""

import jsonschema_rs
import pytest

from gitops_ctl.api.crd import kind_of, structural_schema
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.model import parse
from gitops_ctl.core.errors import Refused
from tests.support.api_rules import CASES, Case
from tests.support.api_violations import full_objects, violations

MODELS = {kind_of(model).kind: model for model in ALL_KINDS}
SCHEMAS = {
    kind: jsonschema_rs.Draft202012Validator(
        structural_schema(model), validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
    )
    for kind, model in MODELS.items()
}
FULL = full_objects()
EXCLUDED = {
    "GitSource": ["tag"],
    "TopologySource": ["nodeLabels", "configMap", "tlsClientCertificateSecretRef"],
    "IOSXESoftwareRollout": ["catalystCenter"],
    "IOSXESoftwareUpgrade": ["configMapRef", "preinstalled", "deviceFile", "localPath", "localPathSHA256"],
}
EXCLUDED_STATUS = {"IOSXESoftwareUpgrade": ["revocationReason"]}
"""Members that one object cannot have beside others."""
NAMES = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_model_accepts_the_good_and_refuses_the_bad(case: Case):
    model = MODELS[case.good["kind"]]
    assert parse(model, case.good).to_tree()["kind"] == case.good["kind"]
    for bad in (case.bad, *case.extra_bad):
        with pytest.raises(Refused):
            parse(model, bad)


# A rule that only CEL can say, and the uniqueness of list keys, are outside JSON Schema.
@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.cel and "Duplicate" not in case.told], ids=lambda case: case.name
)
def test_the_schema_accepts_the_good_and_refuses_the_bad(case: Case):
    schema = SCHEMAS[case.good["kind"]]
    assert [error.message for error in schema.iter_errors(case.good)] == []
    for bad in (case.bad, *case.extra_bad):
        assert not schema.is_valid(bad), bad


def test_a_full_object_has_every_member():
    for kind, full in FULL.items():
        schema = structural_schema(MODELS[kind])
        assert list(_absent(schema["properties"]["spec"], full["spec"])) == EXCLUDED.get(kind, [])
        if "status" in schema["properties"]:
            assert list(_absent(schema["properties"]["status"], full["status"])) == EXCLUDED_STATUS.get(kind, [])


def _absent(node, value):
    for name, part in node.get("properties", {}).items():
        if name in value:
            yield from _absent(part, value[name])
        else:
            yield name
    if "items" in node:
        yield from _absent(node["items"], value[0])


@pytest.mark.parametrize("kind", FULL)
def test_every_keyword_of_the_schema_holds_in_the_model_too(kind):
    parse(MODELS[kind], FULL[kind])
    for broken in violations(structural_schema(MODELS[kind]), FULL[kind]):
        with pytest.raises(Refused):
            parse(MODELS[kind], broken.tree)
        assert not SCHEMAS[kind].is_valid(broken.tree), f"{broken.path} {broken.keyword}"


def test_every_cel_rule_has_a_case_that_breaks_it():
    said = [item["message"] for model in MODELS.values() for item in _rules(structural_schema(model))]
    assert said
    assert [message for message in said if not any(case.cel and case.told in message for case in CASES)] == []


def _rules(node):
    # What compares with the old version needs a server: tests/cluster/test_talos_kinds.py.
    yield from (rule for rule in node.get("x-kubernetes-validations", []) if "oldSelf" not in rule["rule"])
    for part in (*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])):
        yield from _rules(part)

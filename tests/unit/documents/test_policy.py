"""Admission policies evaluated before the push.

In scope: what is bound, what passes, what fails closed, redaction, the deadline.  Out of scope: the API server's own evaluation.
"""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.expressions import EvaluationError, compile_condition, compile_expression
from gitops_ctl.documents.guard import PolicyGuard
from gitops_ctl.documents.policy import Subject, compile_policies


def policy(*validations, name="no-latest", resources=("configmaps",), groups=("",), **spec):
    rules = [
        {
            "apiGroups": list(groups),
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": list(resources),
        }
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": one} if isinstance(one, str) else one for one in validations],
            **spec,
        },
    }


def binding(*actions, name="no-latest"):
    spec = {"policyName": name, "validationActions": list(actions)}
    return {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": spec}


def subject(data=None, *, before=None):
    def tree(values):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "x"}, "data": values}

    old = None if before is None else tree(before)
    return Subject(tree(data or {}), old, "", "v1", "configmaps")


def flaws(*trees, about=None):
    return compile_policies(trees).flaws(about or subject())


def test_only_the_boolean_true_passes():
    assert flaws(policy("object.kind == 'ConfigMap'")) == []
    (flaw,) = flaws(policy({"expression": "has(object.data.a)", "message": "data.a is needed"}))
    assert (flaw.code, flaw.message, flaw.severity) == (ErrorCode.RULE, "policy no-latest: data.a is needed", "error")


def test_a_failed_evaluation_is_a_failed_rule_and_shows_no_value():
    about = subject({"a": "secret-text"})
    (flaw,) = flaws(policy("object.data.missing == 'x'"), about=about)
    assert "cannot be evaluated" in flaw.message
    (flaw,) = flaws(policy("int(object.data.a) > 1"), about=about)
    assert "secret-text" not in flaw.message


def test_a_policy_that_ignores_failures_passes_what_it_cannot_evaluate():
    assert flaws(policy("object.data.missing == 'x'", failurePolicy="Ignore")) == []


def test_old_object_and_operation_follow_the_accepted_version():
    rule = policy("request.operation == 'CREATE' ? oldObject == null : object.data.a >= oldObject.data.a")
    assert flaws(rule, about=subject({"a": "1"})) == []
    assert flaws(rule, about=subject({"a": "2"}, before={"a": "1"})) == []
    assert len(flaws(rule, about=subject({"a": "1"}, before={"a": "2"}))) == 1


def test_variables_are_evaluated_in_order_and_one_that_fails_only_fails_its_users():
    rule = policy(
        "variables.second == 'xy'",
        "variables.broken == 1",
        variables=[
            {"name": "first", "expression": "object.data.a"},
            {"name": "second", "expression": "variables.first + 'y'"},
            {"name": "broken", "expression": "object.data.missing"},
        ],
    )
    (flaw,) = flaws(rule, about=subject({"a": "x"}))
    assert "validation 2" in flaw.message


@pytest.mark.parametrize(
    ("options", "matches"),
    [
        ({}, True),
        ({"resources": ("*",)}, True),
        ({"resources": ("secrets",)}, False),
        ({"groups": ("apps",)}, False),
        ({"groups": ("*",)}, True),
    ],
)
def test_a_policy_is_asked_about_the_resources_it_names(options, matches):
    assert bool(flaws(policy("false", **options))) == matches


def test_match_conditions_leave_objects_out():
    condition = [{"name": "only-b", "expression": "object.metadata.name == 'b'"}]
    assert flaws(policy("false", matchConditions=condition)) == []


def test_a_binding_that_only_warns_gives_a_warning():
    assert [flaw.severity for flaw in flaws(policy("false"), binding("Warn"))] == ["warning"]
    assert [flaw.severity for flaw in flaws(policy("false"), binding("Deny"))] == ["error"]


def test_messages_are_computed_and_redacted():
    rule = policy({"expression": "false", "messageExpression": "'password=' + object.data.a", "message": "plain"})
    (flaw,) = flaws(rule, about=subject({"a": "hunter2hunter2"}))
    assert "hunter2" not in flaw.message


@pytest.mark.parametrize(
    "spec",
    [
        {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}},
        {"matchConditions": [{"expression": "request.userInfo.username == 'x'"}]},
    ],
    ids=["parameters", "who sends it"],
)
def test_what_only_a_server_can_answer_is_listed_and_not_evaluated(spec):
    engine = compile_policies([policy("false", **spec)])
    assert engine.server_only == ("no-latest",)
    assert engine.flaws(subject()) == []


@pytest.mark.parametrize("text", ["object.", "unknown == 1", "quantity('1') == 1", "'a'", "x" * 20_000])
def test_an_expression_that_is_no_condition_is_refused_when_it_is_compiled(text):
    with pytest.raises(Refused, match="policy no-latest") as refused:
        compile_policies([policy(text)])
    assert refused.value.code is ErrorCode.RULE


def test_strings_optionals_and_mathematics_are_known():
    about = {"object": {"a": "x,y"}}
    for text in ("object.a.split(',').size() == 2", "object.?b.orValue('z') == 'z'", "math.greatest(1, 2) == 2"):
        assert compile_condition(text, variables=["object"]).is_true(about)


def test_nested_loops_run_into_the_budget():
    text = "range.all(a, range.all(b, range.all(c, a + b + c >= 0)))"
    expression = compile_condition(text, variables=["range"])
    with pytest.raises(EvaluationError):
        expression.is_true({"range": list(range(1000))})


def test_values_of_the_document_are_cut_out_of_errors_and_those_of_the_rule_stay():
    expression = compile_expression("int(object.pin) + int('17')", variables=["object"])
    with pytest.raises(EvaluationError) as failed:
        expression.value({"object": {"pin": "x4815162342x"}})
    assert "4815162342" not in str(failed.value)


def test_a_name_that_is_not_bound_is_null():
    assert compile_condition("oldObject == null", variables=["oldObject"]).is_true({})


def test_a_guarded_policy_gives_the_same_answers():
    with PolicyGuard([policy("has(object.data.a)")]) as guard:
        assert guard.flaws(subject({"a": "x"})) == []
        assert [flaw.code for flaw in guard.flaws(subject())] == [ErrorCode.RULE]


# Doubles a text of 100 characters 22 times: hundreds of megabytes, in steps that no budget counts.
ENDLESS = "object.data.a" + ".replace('x', 'xx')" * 22 + " == ''"


def test_rules_that_come_to_no_end_fail_and_the_next_object_is_judged():
    with PolicyGuard([policy(ENDLESS, "has(object.data.a)")], deadline_s=0.05) as guard:
        assert len(guard.flaws(subject({"a": ""}))) == 0
        (flaw,) = guard.flaws(subject({"a": "x" * 100}))
        assert "came to no end" in flaw.message
        assert guard.flaws(subject({"a": ""})) == []

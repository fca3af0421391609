"""Rules between documents: asked where they are about something, replaced by name, and in place of what a schema repeats."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents import setrules
from gitops_ctl.documents.loader import load
from gitops_ctl.documents.problem import Problem
from gitops_ctl.documents.setrules import SetRule, judge_set, register_set_rule, without_echoes
from tests.support.documents import config_map

CONFIG_MAP, SECRET = GroupKind("", "ConfigMap"), GroupKind("", "Secret")


@pytest.fixture
def rules(monkeypatch):
    """A registry of its own for one test."""
    found: dict[str, SetRule] = {}
    monkeypatch.setattr(setrules, "_RULES", found)
    return found


def documents(*names):
    return [document for name in names for document in load(config_map(name).encode(), file=f"{name}.yaml").documents]


def telling(text, about=CONFIG_MAP):
    return SetRule(
        about,
        lambda _: frozenset(),
        lambda found, namespace: [Problem(ErrorCode.RULE, f"{text} {len(found)} {namespace}", "a.yaml")],
    )


def test_a_rule_sees_the_whole_set_and_the_default_namespace(rules):
    register_set_rule("one", telling("saw"))
    assert [problem.message for problem in judge_set(documents("a", "b"), namespace="lab")] == ["saw 2 lab"]


def test_a_rule_is_not_asked_about_a_set_without_its_kind(rules):
    register_set_rule("one", telling("saw", about=SECRET))
    assert judge_set(documents("a")) == []


def test_a_rule_of_the_same_name_takes_the_place_of_the_first(rules):
    register_set_rule("one", telling("old"))
    register_set_rule("one", telling("new"))
    assert [problem.message for problem in judge_set(documents("a"))] == ["new 1 "]
    assert len(rules) == 1


def problem(pointer, code=ErrorCode.SCHEMA, **more):
    return Problem(code, "x", "a.yaml", 1, 1, 1, pointer=pointer, **more)


def test_what_a_schema_repeats_is_told_once():
    said = [problem("/spec/levels", ErrorCode.RULE), problem("/spec/webhook/url", ErrorCode.RULE)]
    echo = problem("/spec/levels")
    missing = problem("/spec/webhook", hint="add url")
    kept = [
        problem("/spec/other"),
        problem("/spec/webhook", hint="add timeout"),
        problem("/spec/levels", ErrorCode.REFERENCE),
    ]
    assert without_echoes([echo, missing, *kept], said) == kept
    assert without_echoes([echo], []) == [echo]


def test_another_document_of_the_file_keeps_what_its_schema_says():
    said = [problem("/spec/levels", ErrorCode.RULE)]
    other = Problem(ErrorCode.SCHEMA, "x", "a.yaml", 9, 1, 2, pointer="/spec/levels")
    assert without_echoes([other], said) == [other]

"""Annotations of the Talos kinds that would be ignored in silence are told, those of others are left alone."""

import pytest
import yaml

from gitops_ctl.cni.checks import annotation_flaws
from tests.support.api_talos import a_cluster, a_machine
from tests.support.documents import document

CONFIRM = "ichor.maesh.dev/confirm-kube-proxy-switch"
HOLD = "ichor.maesh.dev/hold"


def with_note(tree, name, value):
    tree["metadata"]["annotations"] = {name: value}
    return [(flaw.message, flaw.hint, flaw.severity) for flaw in annotation_flaws(document(yaml.safe_dump(tree)))]


@pytest.mark.parametrize(
    ("tree", "name", "value"),
    [
        (a_cluster(), CONFIRM, "replaced"),
        (a_cluster(), CONFIRM, "enabled"),
        (a_machine(), HOLD, "true"),
        (a_cluster(), "ichor.maesh.dev/rollout-window", "sunday"),
        (a_cluster(), "example.net/confirm-kube-proxy-swich", "replaced"),
    ],
)
def test_what_is_right_and_what_is_somebody_elses_is_left_alone(tree, name, value):
    assert with_note(tree, name, value) == []


def test_a_misspelt_name_is_told_with_the_right_one():
    assert with_note(a_cluster(), "ichor.maesh.dev/confirm-kube-proxy-swich", "replaced") == [
        ("there is no annotation ichor.maesh.dev/confirm-kube-proxy-swich", f"did you mean {CONFIRM}?", "warning")
    ]


def test_a_value_that_consents_to_nothing_is_told():
    assert with_note(a_cluster(), CONFIRM, "disabled") == [(f"{CONFIRM} is none of enabled, replaced", "", "warning")]


def test_an_annotation_on_the_wrong_kind_is_told():
    assert with_note(a_machine(), CONFIRM, "replaced") == [
        (f"{CONFIRM} means nothing on a TalosMachine", "it belongs on a TalosCluster", "warning")
    ]

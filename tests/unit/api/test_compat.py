"""A definition that would drop what we write is found before anything is written."""

import copy

import pytest

from gitops_ctl.api.compat import require_fields
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.gitops import GitSource
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.core.errors import Refused


def properties(crd, *path):
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in path:
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    return schema["properties"]


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.__name__)
def test_the_definitions_of_this_release_have_every_field(kind):
    require_fields(crd_of(kind), needed=crd_of(kind))


@pytest.mark.parametrize(
    ("path", "field", "shown"),
    [
        (("status",), "firstSeen", "status.firstSeen"),
        (("status", "accepted"), "keySetDigest", "status.accepted.keySetDigest"),
        (("status", "firstSeen"), "tip", "status.firstSeen[].tip"),
    ],
    ids=["member", "nested", "in a list"],
)
def test_a_definition_without_a_field_that_we_write_is_refused_with_its_path(path, field, shown):
    old = copy.deepcopy(crd_of(GitSource))
    del properties(old, *path)[field]
    with pytest.raises(Refused, match=shown.replace("[", r"\[").replace("]", r"\]")) as caught:
        require_fields(old, needed=crd_of(GitSource))
    assert caught.value.reason == "CrdOutdated"


def test_a_newer_definition_with_more_fields_is_fine():
    newer = copy.deepcopy(crd_of(GitSource))
    properties(newer, "spec")["later"] = {"type": "string"}
    require_fields(newer, needed=crd_of(GitSource))

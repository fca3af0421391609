"""Names of objects: written and read back, and the version is no part of them."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.ids import GroupKind, GroupVersionKind, NamespacedName, ObjectId

LABEL = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
KIND = LABEL.map(str.capitalize)
GROUP = st.one_of(st.just(""), st.lists(LABEL, min_size=1, max_size=3).map(".".join))
NAME = st.lists(LABEL, min_size=1, max_size=3).map(".".join)


@pytest.mark.property
@given(group=GROUP, kind=KIND, namespace=st.one_of(st.just(""), LABEL), name=NAME)
def test_an_object_id_is_read_back_from_its_text(group, kind, namespace, name):
    found = ObjectId(group, kind, namespace, name)
    assert ObjectId.parse(str(found)) == found
    assert GroupKind.parse(str(found.group_kind)) == found.group_kind


@pytest.mark.property
@given(group=GROUP, version=LABEL, kind=KIND)
def test_a_kind_is_read_back_from_its_api_version(group, version, kind):
    gvk = GroupVersionKind(group, version, kind)
    assert GroupVersionKind.of({"apiVersion": gvk.api_version, "kind": kind}) == gvk
    assert gvk.group_kind == GroupKind(group, kind)


@pytest.mark.parametrize("text", ["", "ConfigMap", "ConfigMap/", "/a", "ConfigMap//a", "ConfigMap/a/b/c"])
def test_this_text_names_no_object(text):
    with pytest.raises(ValueError, match="is not <Kind>"):
        ObjectId.parse(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ConfigMap/network/site-a", ObjectId("", "ConfigMap", "network", "site-a")),
        ("Deployment.apps/network/collector", ObjectId("apps", "Deployment", "network", "collector")),
        ("ClusterRole.rbac.authorization.k8s.io/a", ObjectId("rbac.authorization.k8s.io", "ClusterRole", "", "a")),
    ],
)
def test_texts_as_people_write_them(text, found):
    assert ObjectId.parse(text) == found
    assert str(found) == text


def test_two_versions_of_a_kind_are_one_object():
    metadata = {"namespace": "a", "name": "b"}
    old, new = ({"apiVersion": f"example.net/{v}", "kind": "Port", "metadata": metadata} for v in ("v1alpha1", "v1"))
    assert ObjectId.of(old) == ObjectId.of(new)


def test_a_namespace_that_is_given_replaces_the_one_of_the_object():
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a", "name": "b"}}
    assert ObjectId.of(tree, namespace="c").namespace == "c"
    assert ObjectId.of(tree, namespace="").namespace == ""


@pytest.mark.parametrize("tree", [{}, {"apiVersion": 1, "kind": None, "metadata": []}])
def test_a_tree_without_names_gives_empty_ones(tree):
    assert ObjectId.of(tree) == ObjectId("", "", "", "")
    assert NamespacedName.of(tree) == NamespacedName("", "")


def test_ids_sort_by_group_kind_namespace_and_name():
    ids = [
        ObjectId("b", "A", "", ""),
        ObjectId("", "B", "", "z"),
        ObjectId("", "B", "", "a"),
        ObjectId("", "A", "z", ""),
    ]
    assert [str(item) for item in sorted(ids)] == ["A/z/", "B/a", "B/z", "A.b/"]


def test_a_namespaced_name_is_written_with_a_slash():
    assert str(NamespacedName.of({"metadata": {"namespace": "team-network", "name": "lab"}})) == "team-network/lab"

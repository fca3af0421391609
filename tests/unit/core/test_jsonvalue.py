"""Readers of foreign trees: the value when it has the type, else the default, and never an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.jsonvalue import EMPTY, bool_at, int_at, list_at, object_at, objects_at, text_at

TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)
PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)
TREE = {"metadata": {"name": "a", "generation": 2, "hidden": True, "list": [{"x": 1}, "y", None], "none": None}}


@pytest.mark.property
@given(tree=st.dictionaries(st.sampled_from("abc"), TREES), path=PATHS)
def test_every_reader_answers_with_its_type_whatever_is_there(tree, path):
    assert isinstance(object_at(tree, *path), dict)
    assert isinstance(list_at(tree, *path), (list, tuple))
    assert all(isinstance(item, dict) for item in objects_at(tree, *path))
    assert isinstance(text_at(tree, *path), str)
    assert type(int_at(tree, *path)) is int
    assert isinstance(bool_at(tree, *path), bool)


def test_values_of_the_right_type_are_read():
    assert object_at(TREE, "metadata") is TREE["metadata"]
    assert object_at(TREE) is TREE
    assert text_at(TREE, "metadata", "name") == "a"
    assert int_at(TREE, "metadata", "generation") == 2
    assert bool_at(TREE, "metadata", "hidden")
    assert list_at(TREE, "metadata", "list") == [{"x": 1}, "y", None]
    assert objects_at(TREE, "metadata", "list") == [{"x": 1}]


def test_values_of_another_type_give_the_default():
    assert text_at(TREE, "metadata", "generation", default="?") == "?"
    assert text_at(TREE, "metadata", "none", default="?") == "?"
    assert int_at(TREE, "metadata", "hidden", default=7) == 7
    assert bool_at(TREE, "metadata", "generation", default=True)
    assert list_at(TREE, "metadata", "name") == ()
    assert object_at(TREE, "metadata", "name", "more") is EMPTY

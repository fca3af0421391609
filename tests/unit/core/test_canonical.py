"""Equal trees give equal bytes, and the bytes are JSON that means the same."""

import hashlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.canonical import canonical_json, digest, digest_bytes, digest_lines

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)


def shuffled(tree, source):
    """The same tree with its keys in another order and its lists as tuples."""
    if isinstance(tree, dict):
        keys = list(tree)
        source.shuffle(keys)
        return {key: shuffled(tree[key], source) for key in keys}
    if isinstance(tree, list):
        return tuple(shuffled(item, source) for item in tree)
    return tree


@pytest.mark.property
@given(tree=TREES, seed=st.integers(0, 1000))
def test_the_order_of_keys_and_the_type_of_lists_do_not_count(tree, seed):
    assert canonical_json(tree) == canonical_json(shuffled(tree, random.Random(seed)))


@pytest.mark.property
@given(tree=TREES)
def test_the_bytes_mean_the_same_tree_and_encode_to_themselves(tree):
    text = canonical_json(tree)
    assert json.loads(text) == tree
    assert canonical_json(json.loads(text)) == text
    assert b"\n" not in text


@pytest.mark.property
@given(items=st.lists(st.integers(), min_size=2, unique=True))
def test_the_order_of_a_list_counts(items):
    assert digest(items) != digest(items[::-1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (True, "true"),
        (2**53, "9007199254740992"),
        (float(2**53), "9007199254740992"),
        ({"b": 1, "a": [1, "é"]}, '{"a":[1,"é"],"b":1}'),
        ({"ab": 1, "a": 2, "B": 3}, '{"B":3,"a":2,"ab":1}'),
    ],
)
def test_this_is_the_one_encoding(value, text):
    assert canonical_json(value) == text.encode()


def test_a_boolean_is_no_number():
    assert digest(True) != digest(1)
    assert digest(False) != digest(0)


def test_text_and_number_differ():
    assert digest("1") != digest(1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_json_cannot_carry_is_refused(value):
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": [value]})


def test_a_digest_names_its_algorithm():
    assert digest_bytes(b"") == f"sha256:{hashlib.sha256(b'').hexdigest()}"
    assert digest({}) == digest_bytes(b"{}")


def test_a_digest_of_lines_is_one_over_sorted_and_ended_lines():
    assert digest_lines(["b", "a"]) == digest_lines(iter(("a", "b"))) == digest_bytes(b"a\nb\n")
    assert digest_lines(["ab"]) != digest_lines(["a", "b"])

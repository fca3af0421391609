"""Label selectors of policy and plan (rollouts.md, 3.2 and 7.1)."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.fleet.selector import Expression, Selector, selector_of
from gitops_ctl.fleet.strict import Malformed

LABELS = {"site": "a", "rack": "7", "empty": ""}


def term(operator, *values, key="site"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("tree", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"site": "a"}}, True),
        ({"matchLabels": {"site": "b"}}, False),
        ({"matchLabels": {"absent": "a"}}, False),
        ({"matchLabels": {"empty": ""}}, True),
        ({"matchLabels": {"absent": ""}}, False),
        (term("In", "b", "a"), True),
        (term("In", "b"), False),
        (term("In", "a", key="absent"), False),
        (term("NotIn", "b"), True),
        (term("NotIn", "a"), False),
        (term("NotIn", "a", key="absent"), True),
        (term("Exists", key="empty"), True),
        (term("Exists", key="absent"), False),
        (term("DoesNotExist", key="absent"), True),
        (term("DoesNotExist"), False),
        ({"matchLabels": {"site": "a"}, **term("Exists", key="absent")}, False),
        ({"matchLabels": {"site": "a"}, **term("In", "7", key="rack")}, True),
    ],
)
def test_a_selector_means_what_it_means_in_kubernetes(tree, matches):
    assert selector_of(tree).matches(LABELS) is matches


MANY = {f"k{number}": "v" for number in range(33)}

REFUSED = {
    "no object": ([], "", "must be an object"),
    "an unknown member": ({"matchNames": {}}, "/matchNames", "no member"),
    "too many labels": ({"matchLabels": MANY}, "/matchLabels", "0 to 32 members"),
    "a key that is none": ({"matchLabels": {"a b": "v"}}, "/matchLabels/a b", "no label key"),
    "a key with two slashes": ({"matchLabels": {"a/b/c": "v"}}, "/matchLabels/a~1b~1c", "no label key"),
    "an empty key": ({"matchLabels": {"": "v"}}, "/matchLabels/", "no label key"),
    "a long key": ({"matchLabels": {f"{'p' * 40}.{'p' * 40}/{'k' * 16}": "v"}}, None, "at most 96 bytes"),
    "a long value": ({"matchLabels": {"k": "v" * 64}}, "/matchLabels/k", "no label value"),
    "a value that is none": ({"matchLabels": {"k": "-v"}}, "/matchLabels/k", "no label value"),
    "a number as value": ({"matchLabels": {"k": 1}}, "/matchLabels/k", "no label value"),
    "a value with a line end": ({"matchLabels": {"k": "v\n"}}, "/matchLabels/k", "no label value"),
    "too many terms": ({"matchExpressions": [{}] * 33}, "/matchExpressions", "0 to 32 entries"),
    "a term that is no object": ({"matchExpressions": ["x"]}, "/matchExpressions/0", "must be an object"),
    "an unknown member of a term": (
        {"matchExpressions": [{"key": "k", "operator": "Exists", "value": "x"}]},
        "/matchExpressions/0/value",
        "no member",
    ),
    "an unknown operator": (term("in", "a"), "/matchExpressions/0/operator", "must be one of In, NotIn"),
    "In without values": (term("In"), "/matchExpressions/0/values", "In needs values"),
    "NotIn without values": (term("NotIn"), "/matchExpressions/0/values", "NotIn needs values"),
    "Exists with values": (term("Exists", "a"), "/matchExpressions/0/values", "Exists takes no values"),
    "DoesNotExist with values": (term("DoesNotExist", "a"), "/matchExpressions/0/values", "takes no values"),
    "a value twice": (term("In", "a", "a"), "/matchExpressions/0/values/1", "twice"),
    "too many values": (term("In", *map(str, range(33))), "/matchExpressions/0/values", "0 to 32 entries"),
    "a value of a term that is none": (term("In", "a", "b!"), "/matchExpressions/0/values/1", "no label value"),
    "a key of a term that is none": (term("In", "a", key="/k"), "/matchExpressions/0/key", "no label key"),
}


@pytest.mark.parametrize(("tree", "pointer", "why"), REFUSED.values(), ids=REFUSED)
def test_a_selector_that_breaks_a_bound_is_refused(tree, pointer, why):
    with pytest.raises(Malformed, match=why) as malformed:
        selector_of(tree)
    assert pointer is None or malformed.value.pointer == pointer


def test_empty_and_null_parts_are_no_terms():
    assert selector_of({"matchLabels": {}, "matchExpressions": None}) == Selector()
    assert Selector().is_empty
    assert not selector_of(term("Exists")).is_empty


def test_the_keys_are_those_of_all_terms():
    assert selector_of({"matchLabels": {"a": "1"}, **term("In", "x", key="b")}).keys == {"a", "b"}


def test_a_hash_leaves_out_empty_parts_and_values():
    assert Selector().canonical_tree() == {}
    found = selector_of(term("Exists")).canonical_tree()
    assert found == {"matchExpressions": [{"key": "site", "operator": "Exists"}]}


KEYS = st.sampled_from(["a", "b", "c/d", "e"])
TERMS = st.builds(
    lambda key, operator, values: Expression(key, operator, tuple(values)),
    KEYS,
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=4, unique=True),
)


@pytest.mark.property
@settings(max_examples=40)
@given(st.dictionaries(KEYS, st.sampled_from("uvw")), st.lists(TERMS, max_size=4), st.integers(0, 2**32))
def test_the_hash_depends_on_no_order_and_hashing_reorders_nothing(labels, terms, seed):
    random = Random(seed)
    selector = Selector(labels, tuple(terms))
    mixed = [Expression(t.key, t.operator, tuple(random.sample(t.values, len(t.values)))) for t in terms]
    random.shuffle(mixed)
    other = Selector(dict(random.sample(sorted(labels.items()), len(labels))), tuple(mixed))
    before = (list(selector.match_labels), selector.expressions)
    assert sha256_of(selector.canonical_tree()) == sha256_of(other.canonical_tree())
    assert (list(selector.match_labels), selector.expressions) == before

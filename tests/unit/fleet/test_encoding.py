"""The encoding of hashes (rollouts.md, 10.1), and every published vector through it (10.4)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet.encoding import compact_json, ordered, sha256_of, sha256_text, sorted_map, without_empty
from tests.support.fleet_vectors import VECTORS, published_hash, vector

OF_JSON = ("conditions-hash", "plan-hash", "policy-semantic-hash", "policy-structural-hash", "projection-hash")
OF_TEXT = ("device-identity-hash", "device-key", "reservation-id-and-child-name")


@pytest.mark.parametrize("name", [*OF_JSON, "risk-group-membership-hash"])
def test_a_published_input_gives_the_published_bytes_and_hash(name):
    published = vector(name)
    assert len(compact_json(published["input"])) == published["encoded_bytes"]
    assert sha256_of(published["input"]) == published_hash(name)
    assert published_hash(name) in published["published"]


@pytest.mark.parametrize("name", OF_TEXT)
def test_a_published_text_gives_the_published_hash_without_quotes(name):
    published = vector(name)
    assert len(published["input"].encode()) == published["encoded_bytes"]
    assert sha256_text(published["input"]) == published_hash(name)


def test_no_vector_is_left_out():
    files = {path.stem for path in VECTORS.glob("*.json")}
    assert files == {*OF_JSON, *OF_TEXT, "risk-group-membership-hash"}


def test_members_keep_their_order_and_blanks_are_left_out():
    assert (
        compact_json({"b": [1, True, None, "x"], "a": {"d": 1, "c": 2}}) == b'{"b":[1,true,null,"x"],"a":{"d":1,"c":2}}'
    )


@pytest.mark.parametrize(
    ("character", "written"),
    [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
        ('"', '\\"'),
        ("\\", "\\\\"),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
        ("\x01", "\\u0001"),
        ("\x1f", "\\u001f"),
        ("\x7f", "\x7f"),
        ("/", "/"),
        ("ü", "ü"),
        ("雪", "雪"),
        ("😀", "😀"),
    ],
    ids=lambda text: "-".join(f"{ord(character):x}" for character in text) if len(text) == 1 else None,
)
def test_a_character_is_written_as_the_encoder_of_go_writes_it(character, written):
    assert compact_json({"a" + character: character}) == f'{{"a{written}":"{written}"}}'.encode()


def test_every_other_character_is_written_as_the_encoder_of_python_writes_it():
    others = (chr(number) for number in range(0x3000) if chr(number) not in "<>&\u2028\u2029")
    text = "".join(others) + "\ufffe\uffff\U0001f600\U0010ffff"
    assert (
        compact_json([text, {text: 2**70}])
        == json.dumps([text, {text: 2**70}], ensure_ascii=False, separators=(",", ":")).encode()
    )


def test_what_looks_like_an_escape_in_a_text_stays_a_text():
    assert compact_json("\\u003c<") == b'"\\\\u003c\\u003c"'


def test_a_whole_number_is_one_value_however_it_was_read():
    assert compact_json([1.0, -0.0, 2**63 - 1, True]) == b"[1,0,9223372036854775807,true]"


@pytest.mark.parametrize("value", [0.5, float("nan"), float("inf"), "\ud800", {"\udfff": 1}], ids=repr)
def test_what_no_hash_may_rest_on_is_refused(value):
    with pytest.raises(ValueError, match=r"whole number|cannot convert|surrogates"):
        compact_json({"a": [value]})


def test_a_map_is_sorted_by_the_bytes_of_its_keys():
    assert list(sorted_map({"b": 1, "a/b": 2, "a": 3, "é": 4, "Z": 5, "a.b": 6})) == ["Z", "a", "a.b", "a/b", "b", "é"]


def test_only_empty_members_are_left_out_and_not_those_that_are_kept():
    tree = {"n": 0, "t": "", "l": [], "m": {}, "f": False, "z": None, "one": 1, "k": 0, "deep": {"n": 0}}
    assert without_empty(tree, keep=("k",)) == {"one": 1, "k": 0, "deep": {"n": 0}}


def test_members_are_put_into_the_order_of_their_names_and_missing_ones_left_out():
    assert list(ordered({"a": 1, "b": 2, "c": 3}, ("c", "x", "a"))) == ["c", "a"]


@pytest.mark.property
@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.booleans(), max_size=8))
def test_the_hash_of_a_sorted_map_does_not_depend_on_its_order(tree):
    backwards = dict(reversed(tree.items()))
    if any(0xD800 <= ord(character) < 0xE000 for text in [*tree, *map(str, tree.values())] for character in text):
        return
    assert sha256_of(sorted_map(tree)) == sha256_of(sorted_map(backwards))


@pytest.mark.property
@settings(max_examples=40)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4)))
def test_what_is_encoded_reads_back_as_the_same_value(value):
    try:
        encoded = compact_json(value)
    except ValueError:
        return
    assert json.loads(encoded) == value

"""Strict JSON of documents that a machine trusts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.fleet.strict import Malformed, Reader, decode_object, pointer_to

REFUSED = {
    "empty": ("", "", "empty"),
    "blank": (" \n", "", "empty"),
    "no JSON": ("{", "", "no JSON"),
    "a byte order mark": ('\ufeff{"a":1}', "", "no JSON"),
    "a list": ("[]", "", "must be one object"),
    "a text": ('"a"', "", "must be one object"),
    "null": ("null", "", "must be one object"),
    "a second object": ("{} {}", "", "something after the object"),
    "trailing text": ("{}x", "", "something after the object"),
    "a trailing comma": ('{"a":1,}', "", "no JSON"),
    "a comment": ('{"a":1} // why', "", "something after the object"),
    "single quotes": ("{'a':1}", "", "no JSON"),
    "a repeated member": ('{"a":1,"b":2,"a":1}', "/a", "twice"),
    "a repeated member deep inside": ('{"x":[{"y/z":{"q":1,"q":1}}]}', "/x/0/y~1z/q", "twice"),
    "a member repeated by an escape": ('{"a":1,"\\u0061":1}', "/a", "twice"),
    "NaN": ('{"a":NaN}', "/a", "NaN is no JSON number"),
    "Infinity": ('{"a":[0,Infinity]}', "/a/1", "Infinity is no JSON number"),
    "minus Infinity": ('{"a":-Infinity}', "/a", "-Infinity is no JSON number"),
    "a fraction": ('{"a":1.5}', "/a", "no whole number"),
    "a whole number with a fraction": ('{"a":1.0}', "/a", "no whole number"),
    "an exponent": ('{"a":1e2}', "/a", "no whole number"),
    "a huge exponent": ('{"a":1e999}', "/a", "no whole number"),
    "a number of twenty digits": ('{"a":10000000000000000000}', "/a", "too large"),
    "a number of a million digits": (f'{{"a":{"9" * 100_000}}}', "/a", "too large"),
    "half of a surrogate pair": ('{"a":"\\ud800"}', "/a", "surrogate"),
    "half of a pair in a name": ('{"b":{"\\udfff":1}}', "/b", "surrogate"),
    "endless depth": (f'{{"a":{"[" * 50_000}{"]" * 50_000}}}', "", "too deep"),
    "endless depth with a flaw": (f'{{"b":1.5,"a":{"[" * 900}{"]" * 900}}}', "/b", "no whole number"),
    "control characters": ('{"a":"\n"}', "", "no JSON"),
}


@pytest.mark.parametrize(("text", "pointer", "why"), REFUSED.values(), ids=REFUSED)
def test_a_text_that_two_readers_could_read_differently_is_refused(text, pointer, why):
    with pytest.raises(Malformed, match=why) as malformed:
        decode_object(text, most_bytes=1 << 20)
    assert malformed.value.pointer == pointer
    assert len(malformed.value.why) < 200


def test_the_size_is_counted_in_bytes_before_anything_is_read():
    assert decode_object('{"a":"é"}', most_bytes=10) == {"a": "é"}
    with pytest.raises(Malformed, match="10 bytes, 9 are allowed"):
        decode_object('{"a":"é"}', most_bytes=9)


def test_members_keep_their_order_and_a_full_pair_of_surrogates_is_a_character():
    tree = decode_object('{"b":1,"a":"\\ud83d\\ude00","c":-9223372036854775807}', most_bytes=100)
    assert list(tree.items()) == [("b", 1), ("a", "😀"), ("c", -(2**63) + 1)]


@pytest.mark.property
@given(st.text(max_size=60))
def test_any_text_is_an_object_or_malformed(text):
    try:
        tree = decode_object(text, most_bytes=1000)
    except Malformed:
        return
    assert isinstance(tree, dict)


def test_a_reader_takes_each_member_with_its_rule():
    reader = Reader({"t": "x", "n": 3, "f": True, "l": ["a", "b"], "m": {"k": 1}, "z": 0}, "")
    assert reader.text("t") == "x"
    assert reader.text("absent", default="d") == "d"
    assert reader.number("n", 1, 3) == 3
    assert reader.number("z", 1, 3, zero=3) == 3
    assert reader.number("absent", 1, 3, default=2) == 2
    assert reader.flag("f") is True
    assert reader.texts("l", least=1, most=2) == ("a", "b")
    assert reader.members("m", least=1, most=1) == {"k": 1}
    reader.end()


@pytest.mark.parametrize(
    ("take", "pointer", "why"),
    [
        (lambda r: r.text("absent"), "/o/absent", "absent is required"),
        (lambda r: r.text("n"), "/o/n", "n must be a string"),
        (lambda r: r.number("t", 0, 9), "/o/t", "t must be a whole number"),
        (lambda r: r.number("f", 0, 9), "/o/f", "f must be a whole number"),
        (lambda r: r.number("n", 4, 9), "/o/n", "n must be 4 to 9, not 3"),
        (lambda r: r.number("z", 1, 9), "/o/z", "z must be 1 to 9, not 0"),
        (lambda r: r.flag("n"), "/o/n", "n must be true or false"),
        (lambda r: r.entries("m", least=0, most=9), "/o/m", "m must be a list"),
        (lambda r: r.entries("l", least=0, most=1), "/o/l", "l must have 0 to 1 entries, not 3"),
        (lambda r: r.texts("l", least=0, most=9), "/o/l/2", "'a' is twice in l"),
        (lambda r: r.texts("mixed", least=0, most=9), "/o/mixed/0", "must be a string"),
        (lambda r: r.members("l", least=0, most=9), "/o/l", "l must be an object"),
        (lambda r: r.members("m", least=2, most=9), "/o/m", "m must have 2 to 9 members, not 1"),
        (lambda r: r.text("nothing"), "/o/nothing", "nothing must be a string"),
        (lambda r: r.end(), "/o/t", "'t' is no member of /o"),
    ],
)
def test_a_reader_says_where_and_why(take, pointer, why):
    tree = {"t": "x", "n": 3, "z": 0, "f": True, "l": ["a", "b", "a"], "mixed": [1], "m": {"k": 1}, "nothing": None}
    with pytest.raises(Malformed, match=why) as malformed:
        take(Reader(tree, "/o"))
    assert malformed.value.pointer == pointer


def test_a_null_is_an_absent_member_only_where_that_is_said():
    assert not Reader({"a": None}, "", nulls=True).has("a")
    assert Reader({"a": None}, "").has("a")


def test_only_an_object_has_members():
    with pytest.raises(Malformed, match="the document must be an object"):
        Reader([], "")


def test_a_pointer_escapes_what_separates_its_steps():
    assert pointer_to(pointer_to("/a", "x/y~z"), 3) == "/a/x~1y~0z/3"

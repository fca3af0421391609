"""Over generated YAML: only the wanted member changes, every other byte stays (cni-switch.md, section 13)."""

import copy
import io
import json
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from ruamel.yaml import YAML, YAMLError

from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.splice import ABSENT, Edit, Inner, SpliceRefused, splice, value_in
from gitops_ctl.documents.splicenodes import read_nodes, shape
from tests.support.splice_texts import KEYS, yaml_texts

pytestmark = pytest.mark.property

RUNS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
MAY_REFUSE = {
    "replace": {"NotAScalar", "BlockStyle"},
    "add": {"AlreadySet", "FlowMapping"},
    "remove": {"WouldBeEmpty", "ListItem", "FirstKeyOfListItem", "FlowMapping", "OtherChange"},
}


def documents_of(text: bytes) -> list[JsonValue]:
    found = []
    while (value := value_in(text, document=len(found), pointer="")) is not ABSENT:
        found.append(value)
    return found


def places(value: JsonValue, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], JsonValue]]:
    yield at, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in pairs:
        yield from places(member, (*at, step))


def follow(tree, at):
    for step in at:
        tree = tree[step]
    return tree


def without(tree: JsonValue, at: tuple[str | int, ...]) -> JsonValue:
    """The tree without a member, and without the mappings that it leaves empty."""
    tree = copy.deepcopy(tree)
    while True:
        parent = follow(tree, at[:-1])
        del parent[at[-1]]
        if parent or not at[:-1]:
            return tree
        at = at[:-1]


def text_form(value: JsonValue) -> JsonValue:
    """Scalars as text: a quoted scalar stays quoted when its value becomes a boolean."""
    if isinstance(value, dict):
        return {key: text_form(member) for key, member in value.items()}
    if isinstance(value, list):
        return [text_form(item) for item in value]
    return value if isinstance(value, str) else json.dumps(value)


def second_opinion(text: bytes) -> list[JsonValue]:
    """What PyYAML makes of the text when it takes every scalar as text."""
    return list(yaml.load_all(text.decode("utf-8-sig"), Loader=yaml.CBaseLoader))


def tried(text: bytes, edit: Edit) -> bytes | None:
    try:
        return splice(text, [edit])
    except SpliceRefused as refused:
        # A literal block at the end of a file without a last newline would get one.
        more = set() if text.endswith(b"\n") else {"OtherChange"}
        assert refused.reason in MAY_REFUSE[edit.op] | more  # noqa: PT017 - the others are failures
        return None


def lines_of(text: bytes) -> list[bytes]:
    return text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")


@RUNS
@given(yaml_texts(), st.data())
def test_a_replaced_scalar_is_the_only_difference(text, data):
    old = text.encode()
    document, at, _ = data.draw(
        st.sampled_from([(n, *one) for n, tree in enumerate(documents_of(old)) for one in places(tree)])
    )
    after = data.draw(st.sampled_from((True, "localhost", 7445, "it's", "", "a: b", "null", None, 1.5, "\N{ROCKET} #")))
    fresh = tried(old, Edit(document, pointer_of(at), "replace", after=after))
    if fresh is None:
        return
    expected = documents_of(old)
    if at:
        follow(expected[document], at[:-1])[at[-1]] = after
        assert text_form(documents_of(fresh)) == text_form(expected)
        assert without_place(second_opinion(fresh), document, at) == without_place(second_opinion(old), document, at)
    differing = [pair for pair in zip(lines_of(old), lines_of(fresh), strict=True) if pair[0] != pair[1]]
    assert len(differing) <= 1
    assert fresh.count(b"\r") == old.count(b"\r")


def without_place(trees, document, at):
    follow(trees[document], at[:-1])[at[-1]] = None
    return trees


@RUNS
@given(yaml_texts(), st.data())
def test_an_added_key_is_the_only_difference(text, data):
    old = text.encode()
    trees = documents_of(old)
    document, at = data.draw(
        st.sampled_from(
            [(n, at) for n, tree in enumerate(trees) for at, value in places(tree) if isinstance(value, dict)]
        )
    )
    name = data.draw(st.sampled_from((*KEYS, "new", "true", "with: colon")))
    after = data.draw(st.sampled_from((True, "x", {"in": {"side": "1"}}, [1, {"a": "b", "c": []}])))
    fresh = tried(old, Edit(document, pointer_of((*at, name)), "add", after=after))
    if fresh is None:
        return
    parent = follow(trees[document], at)
    if name in parent:
        assert fresh == old
        return
    parent[name] = after
    assert documents_of(fresh) == trees
    assert second_opinion(fresh) == text_form_of_plain(old, document, (*at, name), after)
    was, now = lines_of(old), lines_of(fresh)
    count = len(now) - len(was)
    assert any(now[:n] + now[n + count :] == was for n in range(len(was) + 1)), "one block of lines came"


def text_form_of_plain(old: bytes, document: int, at: tuple[str | int, ...], after: JsonValue) -> list[JsonValue]:
    trees = second_opinion(old)
    follow(trees[document], at[:-1])[at[-1]] = text_form(after)
    return trees


@RUNS
@given(yaml_texts(), st.data())
def test_a_removed_key_is_the_only_difference(text, data):
    old = text.encode()
    trees = documents_of(old)
    document, at = data.draw(
        st.sampled_from(
            [(n, at) for n, tree in enumerate(trees) for at, _ in places(tree) if at and isinstance(at[-1], str)]
        )
    )
    fresh = tried(old, Edit(document, pointer_of(at), "remove"))
    if fresh is None:
        return
    trees[document] = without(trees[document], at)
    assert documents_of(fresh) == trees
    rest = iter(lines_of(old))
    gone: list[bytes] = []
    for line in lines_of(fresh):
        for candidate in rest:
            if candidate == line:
                break
            gone.append(candidate)
        else:
            pytest.fail(f"{line!r} is new")


@RUNS
@given(yaml_texts(), st.data())
def test_text_inside_text_changes_like_text_outside(text, data):
    """The same edit on a text and on that text in a literal block gives the same lines."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n") + "\n"
    trees = documents_of(plain.encode())
    document, at = data.draw(st.sampled_from([(n, at) for n, tree in enumerate(trees) for at, _ in places(tree) if at]))
    block = (
        "around:\n  - |2\n" + "".join(f"    {line}".rstrip(" ") + "\n" for line in plain.splitlines()) + "behind: 1\n"
    )
    outcomes = []
    for old, pointer, inner in (
        (plain, pointer_of(at), ()),
        (block, "/around/0", (Inner(document, pointer_of(at)),)),
    ):
        edit = Edit(document if not inner else 0, pointer, data.draw(st.just("replace")), after="other", inner=inner)
        try:
            outcomes.append(splice(old.encode(), [edit]).decode())
        except SpliceRefused as refused:
            outcomes.append(refused.reason)
    if outcomes[0] in MAY_REFUSE["replace"]:
        assert outcomes[1] == outcomes[0]
    else:
        inside = outcomes[1].removeprefix("around:\n  - |2\n").removesuffix("behind: 1\n")
        assert [line.removeprefix("    ") for line in inside.splitlines()] == [
            line.rstrip(" ") if not line.strip() else line for line in outcomes[0].splitlines()
        ]


@RUNS
@given(yaml_texts(), st.data())
def test_a_round_trip_by_a_library_agrees_on_the_values(text, data):
    old = text.encode()
    trees = documents_of(old)
    document, at = data.draw(st.sampled_from([(n, at) for n, tree in enumerate(trees) for at, _ in places(tree) if at]))
    fresh = tried(old, Edit(document, pointer_of(at), "replace", after="localhost"))
    library = YAML()
    library.preserve_quotes = True
    try:
        loaded = list(library.load_all(text.replace("\r\n", "\n")))
    except YAMLError:
        return  # it refuses a tab before a comment, and keys that it takes for equal
    if fresh is None or isinstance(follow(trees[document], at), (dict, list)):
        return
    parent = loaded[document]
    for step in at[:-1]:
        parent = parent[key_of(parent, step)]
    parent[key_of(parent, at[-1])] = "localhost"
    written = io.StringIO()
    library.dump_all(loaded, written)
    assert documents_of(written.getvalue().encode()) == documents_of(fresh)


def key_of(parent, step):
    """`1.5` as key is a number for the library."""
    return step if isinstance(step, int) or step in parent else float(step)


@RUNS
@given(yaml_texts())
def test_the_quick_reader_sees_what_the_careful_one_sees(text):
    """Texts that are only read are read by libyaml; the editor itself trusts the pure reader's marks alone."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    careful, quick = (read_nodes(plain, quickly=quickly) for quickly in (False, True))
    seen = [
        [(node.kind, node.start, node.value, node.style) for root in roots for node in root.walk()]
        for roots in (careful, quick)
    ]
    assert seen[0] == seen[1]
    assert [shape(root) for root in careful] == [shape(root) for root in quick]


@RUNS
@given(yaml_texts(), st.data())
def test_edits_at_once_are_the_edits_one_after_the_other(text, data):
    old = text.encode()
    trees = documents_of(old)
    spots = [(n, at, value) for n, tree in enumerate(trees) for at, value in places(tree)]
    edits = []
    for number in range(data.draw(st.integers(2, 5))):
        document, at, value = data.draw(st.sampled_from(spots))
        if isinstance(value, dict):
            name = data.draw(st.sampled_from(("new", "newer", "k8sServicePort", "kubeProxyReplacement")))
            after = data.draw(st.sampled_from((number, {"in": number})))
            edits.append(Edit(document, pointer_of((*at, name)), "add", after=after))
        else:
            edits.append(Edit(document, pointer_of(at), "replace", after=f"other {number}"))
    one_by_one: bytes | str = old
    for edit in edits:
        try:
            one_by_one = splice(one_by_one, [edit])
        except SpliceRefused as refused:
            one_by_one = refused.reason
            break
    try:
        at_once: bytes | str = splice(old, edits)
    except SpliceRefused as refused:
        at_once = refused.reason
    assert isinstance(at_once, bytes) == isinstance(one_by_one, bytes)
    if isinstance(at_once, bytes):
        assert documents_of(at_once) == documents_of(one_by_one)
        assert sorted(lines_of(at_once)) == sorted(lines_of(one_by_one))

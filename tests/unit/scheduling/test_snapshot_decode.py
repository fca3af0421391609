"""The decode stage of a snapshot (topology-scheduling.md, 4.1 to 4.3; cases 21 to 25)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.scheduling.snapshot import LARGEST, ORDER, Place, decode

HEAD = "apiVersion: topology.gpustack.ai/v1alpha1\nrevision: a\n"


def rules(text):
    decoded = decode(text)
    assert (decoded.snapshot is None) == bool(decoded.problems)
    return [problem.rule for problem in decoded.problems]


def nodes(text):
    decoded = decode(text)
    assert decoded.problems == ()
    return decoded.snapshot.nodes


def test_a_block_of_yaml_with_one_node_is_read_with_its_places():
    """Case 21."""
    decoded = decode(f"{HEAD}nodes:\n  gpu-n01:\n    topology.gpustack.ai/rack: r1\n")
    assert decoded.problems == ()
    snapshot = decoded.snapshot
    assert snapshot.revision == "a"
    assert snapshot.nodes == {"gpu-n01": {"topology.gpustack.ai/rack": "r1"}}
    assert snapshot.place("nodes", "gpu-n01") == Place(4, 3)
    assert snapshot.place("nodes", "gpu-n01", "topology.gpustack.ai/rack") == Place(5, 5)
    assert snapshot.place("nodes", "gpu-n02", "x") == Place(3, 1)


def test_json_with_empty_nodes_is_read():
    """Case 22."""
    assert nodes('{"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": "a", "nodes": {}}') == {}


def test_a_revision_written_twice_is_refused():
    """Case 23."""
    decoded = decode(f"{HEAD}revision: b\nnodes: {{}}\n")
    assert [(problem.rule, problem.place) for problem in decoded.problems] == [("3", Place(3, 1))]
    assert "line 2" in decoded.problems[0].message


def test_an_unknown_field_is_refused_and_case_matters():
    """Case 24."""
    assert rules(f"{HEAD}nodes: {{}}\nextra: 1\n") == ["2"]
    assert rules(f"{HEAD}Revision: b\nnodes: {{}}\n") == ["2"]


@pytest.mark.parametrize("rest", ["---\n" + HEAD, "---\n", "...\n---\nx: [\n"])
def test_two_documents_are_refused_and_a_mark_at_the_end_begins_one(rest):
    """Case 25."""
    assert rules(f"{HEAD}nodes: {{}}\n{rest}") == ["4"]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "...\n", "   \n"])
def test_a_text_without_a_document_is_refused(text):
    assert rules(text) == ["1"]


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: b: c",
        "\ta: b",
        "a: {b: c",
        '"a',
        "a\x00b: c",
        "[]",
        "text",
        f"{HEAD}nodes: []",
        b"\xff\xfe\x00",
        "\ud800",
    ],
)
def test_what_is_no_mapping_or_no_yaml_is_refused(text):
    assert rules(text) == ["1"]


def test_garbage_behind_the_document_is_refused():
    assert rules('{"apiVersion": "a", "revision": "b", "nodes": {}} garbage') == ["5"]
    assert rules('{"nodes": {}}}') == ["5"]


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}nodes:\n  n: {{a: &x b}}\n",
        f"{HEAD}nodes:\n  n: !!map {{a: b}}\n",
        f"{HEAD}nodes:\n  n: {{a: !!str 7}}\n",
        f"{HEAD}nodes:\n  n: {{<<: {{a: b}}}}\n",
        f"{HEAD}nodes:\n  n: {{a: [b]}}\n",
        f"{HEAD}nodes:\n  n: {{a: {{b: c}}}}\n",
        f"{HEAD}nodes:\n  n: text\n",
        f"{HEAD}nodes:\n  ? [n]\n  : {{a: b}}\n",
        f"{HEAD}nodes: {'{a: ' * 40}{'}' * 40}",
    ],
)
def test_anchors_tags_merge_keys_and_other_shapes_are_refused(text):
    """D14."""
    assert set(rules(text)) == {"1"}


def test_an_alias_is_refused_with_its_anchor():
    decoded = decode(f"{HEAD}nodes:\n  n: &x {{a: b}}\n  m: *x\n")
    assert [(problem.rule, problem.place.line) for problem in decoded.problems] == [("1", 4), ("1", 5)]


def test_a_quoted_merge_key_is_an_ordinary_key():
    assert nodes(f"{HEAD}nodes:\n  n: {{'<<': b}}\n") == {"n": {"<<": "b"}}


def test_duplicates_are_found_at_every_depth():
    text = f"{HEAD}nodes:\n  n: {{a: b, a: c}}\n  n: {{}}\n"
    decoded = decode(text)
    assert [(problem.rule, problem.place.line) for problem in decoded.problems] == [("3", 4), ("3", 5)]


def test_unquoted_scalars_keep_their_text():
    text = "apiVersion: topology.gpustack.ai/v1alpha1\nrevision: 42\nnodes:\n  0x1F: {a: 07, b: yes, c: 1e3, d: 2031-04-02}\n"
    assert nodes(text) == {"0x1F": {"a": "07", "b": "yes", "c": "1e3", "d": "2031-04-02"}}
    assert decode(text).snapshot.revision == "42"


def test_null_is_an_empty_text_and_an_empty_mapping():
    assert nodes(f"{HEAD}nodes:\n  n: {{a: ~, b: null, c: 'null', d: }}\n  m:\n") == {
        "n": {"a": "", "b": "", "c": "null", "d": ""},
        "m": {},
    }


@pytest.mark.parametrize("text", [HEAD, f"{HEAD}nodes:\n", f"{HEAD}nodes: null\n"])
def test_missing_and_null_nodes_are_told_from_empty_ones(text):
    assert nodes(text) is None


def test_a_document_that_is_null_says_nothing():
    assert nodes("---\n") is None


def test_the_size_is_limited_to_the_byte():
    padding = LARGEST - len(f"{HEAD}nodes: {{}}\n#")
    text = f"{HEAD}nodes: {{}}\n#{'x' * padding}"
    assert rules(text) == []
    assert rules(f"{text}x") == ["1"]


def test_no_message_quotes_the_text():
    text = "hidden-word: [hidden-word\n"
    for broken in (text, f"{HEAD}hidden-word: 1\nhidden-word: &hidden-word 2\n", f"{HEAD}nodes: [hidden-word]\n"):
        assert "hidden-word" not in "".join(problem.message for problem in decode(broken).problems)


def test_all_problems_are_listed_and_the_first_is_chosen_by_rule():
    decoded = decode("z: 1\nrevision: a\nrevision: &x b\nnodes: []\n---\n")
    assert [problem.rule for problem in decoded.problems] == ["1", "1", "2", "3", "4"]


@pytest.mark.property
@given(st.text(alphabet=list("ab:{}[]&*!<-|>'\"~#?,% \n\t"), max_size=60) | st.binary(max_size=40))
def test_decoding_never_raises_and_orders_its_problems(text):
    decoded = decode(text)
    assert (decoded.snapshot is None) == bool(decoded.problems)
    ranks = [ORDER.index(problem.rule) for problem in decoded.problems]
    assert ranks == sorted(ranks)
    assert decode(text) == decoded

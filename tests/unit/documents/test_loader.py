"""What the strict loader accepts, refuses and reports.

In scope: single files.  Out of scope: scalars (test_scalars.py), folders and revisions (test_index.py), schemas.
"""

import sys

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.loader import LoadLimits, load
from gitops_ctl.documents.yamltree import MOST_FINDINGS, TreeLimits
from tests.support.documents import codes, config_map, document, load_text, yaml_text


def test_Y01_a_duplicate_key_is_refused_with_both_lines():
    (problem,) = load_text("""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data:
          vlan: "1"
          vlan: "2"
    """).problems
    assert (problem.code, problem.line, problem.column, problem.pointer) == (
        ErrorCode.DUPLICATE_KEY,
        6,
        3,
        "/data/vlan",
    )
    assert problem.message == 'key "vlan" appears twice, first on line 5'
    assert problem.object == ObjectId("", "ConfigMap", "", "a")


def test_Y01_lines_count_from_the_start_of_the_file_in_later_documents():
    loaded = load_text(
        config_map("a") + "---\n" + "apiVersion: v1\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
    )
    (problem,) = loaded.problems
    assert (problem.line, problem.document) == (7, 2)
    assert problem.message.endswith("first on line 6")


def test_Y02_one_broken_document_among_300_hides_none_of_the_others():
    parts = [config_map(f"c{number}") for number in range(299)]
    parts.insert(150, "apiVersion: v1\nkind: [\n")
    loaded = load("---\n".join(parts).encode(), file="all.yaml")
    assert len(loaded.documents) == 299
    (problem,) = loaded.problems
    assert (problem.file, problem.document, problem.code) == ("all.yaml", 151, ErrorCode.YAML_SYNTAX)
    assert problem.line in (150 * 5 + 2, 150 * 5 + 3)


@pytest.mark.parametrize("text", ["---\n---\n# c\n---", "", "\n# only a comment\n", "---\n...\n---\n", "\ufeff", "---"])
def test_Y03_empty_and_comment_only_documents_are_skipped(text):
    loaded = load(text.encode(), file="a.yaml")
    assert (loaded.documents, loaded.problems) == ((), ())


def test_Y03_empty_documents_between_others_do_not_count():
    loaded = load_text(f"---\n# nothing\n---\n{config_map('a')}---\n---\n{config_map('b')}")
    assert [(item.id.name, item.index) for item in loaded.documents] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object:os.system x",
        "!!binary aGk=",
        "!!set {a, b}",
        "!Ref x",
        "!!omap [a: 1]",
        "!!int no",
        "!!timestamp 2026-11-01",
    ],
)
def test_Y06_tags_are_refused_with_position(value):
    loaded = load_text(f"apiVersion: v1\nkind: Thing\nmetadata: {{name: a}}\nspec:\n  x: {value}\n")
    assert loaded.documents == ()
    problem = loaded.problems[0]
    assert (problem.code, problem.line, problem.column, problem.pointer) == (ErrorCode.TAG_REFUSED, 5, 6, "/spec/x")


def test_Y06_core_tags_that_fit_the_value_are_read():
    tree = document(
        "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nspec: {a: !!str 5, b: !!int '7', c: !!map {}}\n"
    ).tree
    assert tree["spec"] == {"a": "5", "b": 7, "c": {}}


@pytest.mark.parametrize(
    "value",
    [".nan", ".inf", "-.Inf", "9007199254740993", "-9007199254740993", "1e400", "1e20", "0x20000000000001", "9" * 5000],
)
def test_Y07_numbers_that_json_cannot_carry_are_refused(value):
    loaded = load_text(f"apiVersion: v1\nkind: Thing\nmetadata: {{name: a}}\nspec:\n  x: {value}\n")
    (problem,) = loaded.problems
    assert (problem.code, problem.line, problem.column) == (ErrorCode.NUMBER_NOT_JSON, 5, 6)
    assert loaded.documents == ()


def test_Y07_the_same_numbers_are_refused_in_json_files():
    for value in ("NaN", "Infinity", "9007199254740993", "1e400"):
        loaded = load(
            f'{{"apiVersion": "v1", "kind": "T", "metadata": {{"name": "a"}}, "x": {value}}}'.encode(), file="a.json"
        )
        assert loaded.documents == ()
        assert len(loaded.problems) == 1


@pytest.mark.parametrize("key", ["1", "true", "null", "on", "~", "0x1F", ".nan", "? [a]\n  ", "? {a: b}\n  "])
def test_Y08_keys_that_are_not_strings_are_refused(key):
    loaded = load_text(f"apiVersion: v1\nkind: Thing\nmetadata: {{name: a}}\nspec:\n  {key}: x\n")
    assert loaded.problems[0].code is ErrorCode.KEY_NOT_A_STRING
    assert loaded.problems[0].line == 5
    assert loaded.documents == ()


def test_Y08_quoted_keys_are_strings():
    assert document('apiVersion: v1\nkind: T\nmetadata: {name: a}\nspec: {"1": a, "true": b}\n').tree["spec"] == {
        "1": "a",
        "true": "b",
    }


def test_Y09_lists_in_lists_are_flattened_with_their_places():
    loaded = load_text("""
        apiVersion: v1
        kind: List
        items:
          - apiVersion: v1
            kind: ConfigMap
            metadata: {name: a}
          - apiVersion: v1
            kind: List
            items:
              - apiVersion: v1
                kind: ConfigMap
                metadata: {name: b, generateName: x}
              - apiVersion: v1
                kind: ConfigMap
                metadata: {name: c}
    """)
    assert [(item.id.name, item.base) for item in loaded.documents] == [("a", "/items/0"), ("c", "/items/1/items/1")]
    (problem,) = loaded.problems
    assert (problem.code, problem.line, problem.column) == (ErrorCode.GENERATE_NAME, 12, 29)
    assert loaded.documents[1].where("/metadata/name") == (15, 20)


def test_Y09_lists_below_the_bound_of_nesting_are_refused():
    text = config_map("a")
    for _ in range(6):
        text = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
            f"{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(text.splitlines())
        )
    loaded = load(text.encode(), file="a.yaml")
    assert codes(loaded.problems) == [ErrorCode.EXPANSION_LIMIT]


def test_Y11_a_file_of_20_MB_is_refused_unread():
    loaded = load(b"a" * (20 * 2**20), file="big.yaml")
    assert codes(loaded.problems) == [ErrorCode.DOCUMENT_TOO_LARGE]


def test_Y11_one_document_over_the_bound_does_not_hide_its_neighbours():
    big = config_map("big", data='{a: "' + "x" * 5_000 + '"}')
    loaded = load(
        f"{config_map('a')}---\n{big}---\n{config_map('b')}".encode(),
        file="a.yaml",
        limits=LoadLimits(document_bytes=4_000),
    )
    assert [item.id.name for item in loaded.documents] == ["a", "b"]
    assert [(problem.code, problem.line, problem.document) for problem in loaded.problems] == [
        (ErrorCode.DOCUMENT_TOO_LARGE, 5, 2)
    ]


def test_H21_many_small_documents_with_aliases_are_bounded_together():
    nest = "".join(f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}, *k{n - 1}]\n" for n in range(1, 8))
    text = (
        "".join(f"---\n{config_map(f'm-{n}')}k0: &k0 [a, b, c]\n{nest}" for n in range(200)) + f"---\n{config_map('z')}"
    )
    loaded = load_text(text)
    assert codes(loaded.problems) == [ErrorCode.EXPANSION_LIMIT] * (201 - len(loaded.documents))
    assert 1 < len(loaded.documents) < 20
    assert loaded.documents[-1].id.name == "z", "what has no aliases needs nothing of what they share"


def test_H21_aliases_that_expand_without_end_are_an_error_of_that_document_only():
    bomb = "apiVersion: v1\nkind: T\nmetadata: {name: bomb}\nb0: &b0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 12):
        bomb += f"b{level}: &b{level} [{', '.join([f'*b{level - 1}'] * 10)}]\n"
    loaded = load_text(f"{config_map('a')}---\n{bomb}---\n{config_map('b')}")
    assert [item.id.name for item in loaded.documents] == ["a", "b"]
    assert [(problem.code, problem.document) for problem in loaded.problems] == [(ErrorCode.EXPANSION_LIMIT, 2)]


def test_H21_a_long_text_repeated_by_aliases_counts_every_time():
    text = f"apiVersion: v1\nkind: T\nmetadata: {{name: a}}\nx: &x {'y' * 1000}\nl: [{', '.join(['*x'] * 100)}]\n"
    limits = LoadLimits(tree=TreeLimits(size=50_000))
    assert codes(load(text.encode(), file="a.yaml", limits=limits).problems) == [ErrorCode.EXPANSION_LIMIT]


@pytest.mark.parametrize("value", ["&a [*a]", "&a {x: *a}", "[" * 500 + "]" * 500, "{a: " * 200 + "}" * 200])
def test_H21_depth_is_bounded_also_for_what_contains_itself(value):
    loaded = load_text(f"apiVersion: v1\nkind: T\nmetadata: {{name: a}}\nspec: {value}\n")
    assert codes(loaded.problems) == [ErrorCode.EXPANSION_LIMIT]


def test_H21_lists_of_too_many_objects_are_refused():
    items = "".join(f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{number}}}}}\n" for number in range(20))
    loaded = load(f"apiVersion: v1\nkind: List\nitems:\n{items}".encode(), file="a.yaml", limits=LoadLimits(objects=10))
    assert (loaded.documents, codes(loaded.problems)) == ((), [ErrorCode.EXPANSION_LIMIT])


def test_aliases_and_merge_keys_within_bounds_are_read_and_own_keys_win():
    tree = document("""
        apiVersion: v1
        kind: T
        metadata: {name: a}
        base: &base {p: 1, q: 2}
        more: &more {q: 3, r: 4}
        spec:
          <<: [*base, *more]
          p: 9
        again: *base
    """).tree
    assert tree["spec"] == {"p": 9, "q": 2, "r": 4}
    assert tree["again"] == {"p": 1, "q": 2}


def test_all_findings_of_one_document_are_reported_in_one_run():
    loaded = load_text("apiVersion: v1\nkind: T\nmetadata: {name: a}\nspec: {1: a, b: .nan, c: !x y, d: 1, d: 2}\n")
    assert codes(loaded.problems) == [
        ErrorCode.KEY_NOT_A_STRING,
        ErrorCode.NUMBER_NOT_JSON,
        ErrorCode.TAG_REFUSED,
        ErrorCode.DUPLICATE_KEY,
    ]


def test_bytes_that_are_not_utf8_name_the_line():
    (problem,) = load(b"a: 1\nb: \xff\n", file="a.yaml").problems
    assert (problem.code, problem.line) == (ErrorCode.YAML_SYNTAX, 2)


def test_control_characters_name_the_place():
    (problem,) = load(b"a: 1\nb: x\x01\n", file="a.yaml").problems
    assert (problem.code, problem.line, problem.column) == (ErrorCode.YAML_SYNTAX, 2, 5)


def test_directives_and_end_marks_belong_to_their_document():
    loaded = load_text(f"%YAML 1.1\n---\n{config_map('a')}...\n---\n{config_map('b')}")
    assert [(item.id.name, item.line) for item in loaded.documents] == [("a", 3), ("b", 9)]
    assert loaded.problems == ()


def test_a_json_file_gives_the_same_document_as_yaml():
    text = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}, "n": 1.0}'
    as_json = load(text, file="a.json").documents[0]
    as_yaml = load(text, file="a.yaml").documents[0]
    assert as_json.tree == as_yaml.tree
    assert as_json.digest == as_yaml.digest
    assert isinstance(as_json.tree["n"], int)


def test_a_duplicate_key_in_json_names_both_lines():
    text = yaml_text("""
        {"apiVersion": "v1", "kind": "T", "metadata": {"name": "a"},
         "x": 1,
         "x": 2}
    """)
    (problem,) = load(text, file="a.json").problems
    assert (problem.code, problem.line) == (ErrorCode.DUPLICATE_KEY, 3)
    assert "first on line 2" in problem.message


@pytest.mark.parametrize("text", [b'{"a": 1', b'{"a": 1} {"b": 2}', b"[" * 100_000, b'{"a": "\\ud800"}', b"{'a': 1}"])
def test_broken_json_is_one_error(text):
    loaded = load(text, file="a.json")
    assert loaded.documents == ()
    assert len(loaded.problems) == 1


def test_the_place_of_a_member_is_found_only_when_asked_for():
    item = document("""
        # a comment
        apiVersion: v1
        kind: T
        metadata:
          name: a
        spec:
          ports:
            - {number: 1}
            - {number: 2}
    """)
    assert item.line == 2
    assert item.where("/spec/ports/1/number") == (9, 8)
    assert item.where("/spec/absent/deeper") == (6, 1)


def test_nulls_in_a_list_belong_to_their_own_entry():
    entries = "".join(
        f"- {{apiVersion: v1, kind: T, metadata: {{name: t{number}}}, spec: {{a{number}: null}}}}\n"
        for number in range(12)
    )
    loaded = load_text(f"apiVersion: v1\nkind: List\nitems:\n{entries}")
    assert [item.nulls for item in loaded.documents] == [(f"/spec/a{number}",) for number in range(12)]


def test_findings_of_one_document_are_capped():
    loaded = load_text("apiVersion: v1\nkind: T\nmetadata: {name: a}\nspec:\n" + "  a: 1\n" * 5_000)
    assert len(loaded.problems) == MOST_FINDINGS


def test_numbers_and_keys_never_show_the_value_that_they_stand_for():
    loaded = load_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 90071992547409931}\n")
    assert "90071992547409931" not in loaded.problems[0].render()


def calls_of(function):
    """How many functions of ours one call makes: a measure of work that no other program can disturb."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


SHAPES = {
    "documents": lambda size: "---\n".join(config_map(f"c{number}") for number in range(size)),
    "members": lambda size: config_map(data="{" + ", ".join(f"k{number}: v" for number in range(size)) + "}"),
    "entries of a List": lambda size: (
        "apiVersion: v1\nkind: List\nitems:\n"
        + "- {apiVersion: v1, kind: T, metadata: {name: t}, spec: {a: null}, status: {}}\n" * size
    ),
    "duplicates": lambda size: config_map(data="{" + "a: 1, " * size + "}"),
    "wrong labels": lambda size: "---\n".join(
        ["apiVersion: v1\nkind: T\nmetadata: {name: a, labels: {a: 1}}\n"] * size
    ),
}


@pytest.mark.property
@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_is_linear_in_the_size_of_the_file(shape):
    small, large = (SHAPES[shape](size).encode() for size in (100, 400))
    assert calls_of(lambda: load(large, file="a.yaml")) < 4.6 * calls_of(lambda: load(small, file="a.yaml")) + 1_000

"""A scalar is replaced in its place, and everything else stays byte by byte (cni-switch.md, sections 13.2, 13.3 and 13.7)."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents import splicenodes, splicevalues
from gitops_ctl.documents.splice import ABSENT, documents_in, splice, value_in
from tests.support.splice import changed_lines, edited, new, put, refusal, text

KEY = "/kubeProxyReplacement"


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("kubeProxyReplacement: false", True, "kubeProxyReplacement: true"),
        ("kubeProxyReplacement: false   # agreed", True, "kubeProxyReplacement: true   # agreed"),
        ("kubeProxyReplacement: false\t# after a tab", True, "kubeProxyReplacement: true\t# after a tab"),
        ("kubeProxyReplacement: false # with\ttab", True, "kubeProxyReplacement: true # with\ttab"),
        ("kubeProxyReplacement:   'false'", True, "kubeProxyReplacement:   'true'"),
        ('kubeProxyReplacement: "false"', True, 'kubeProxyReplacement: "true"'),
        ('"kubeProxyReplacement": false', True, '"kubeProxyReplacement": true'),
        ("kubeProxyReplacement : false", True, "kubeProxyReplacement : true"),
        ("kubeProxyReplacement: 'it''s'", "isn't", "kubeProxyReplacement: 'isn''t'"),
        ('kubeProxyReplacement: "a"', 'a "b" \\', 'kubeProxyReplacement: "a \\"b\\" \\\\"'),
        ("kubeProxyReplacement: 'a'", "two\nlines", 'kubeProxyReplacement: "two\\nlines"'),
        ("kubeProxyReplacement: strict", "true", 'kubeProxyReplacement: "true"'),
        ("kubeProxyReplacement: 'x'", None, "kubeProxyReplacement: null"),
        ("kubeProxyReplacement: strict", "disabled", "kubeProxyReplacement: disabled"),
        ("kubeProxyReplacement: a", "22:22", 'kubeProxyReplacement: "22:22"'),
        ("kubeProxyReplacement: a", "2026-11-01", 'kubeProxyReplacement: "2026-11-01"'),
        ("kubeProxyReplacement: a", "# no comment", 'kubeProxyReplacement: "# no comment"'),
        ("kubeProxyReplacement: a", "", 'kubeProxyReplacement: ""'),
        ("kubeProxyReplacement: 6443", 7445, "kubeProxyReplacement: 7445"),
        ('kubeProxyReplacement: "6443"', 7445, 'kubeProxyReplacement: "7445"'),
        ("kubeProxyReplacement:", True, "kubeProxyReplacement: true"),
        ("kubeProxyReplacement:   # nothing yet", True, "kubeProxyReplacement: true   # nothing yet"),
        ("kubeProxyReplacement: ~", True, "kubeProxyReplacement: true"),
        ("? kubeProxyReplacement\n: false", True, "? kubeProxyReplacement\n: true"),
        ("{kubeProxyReplacement: false, ipam: {mode: x}}", True, "{kubeProxyReplacement: true, ipam: {mode: x}}"),
        ('{"kubeProxyReplacement":false}', True, '{"kubeProxyReplacement":true}'),
        ('{"kubeProxyReplacement":"a"}', "b, c", '{"kubeProxyReplacement":"b, c"}'),
    ],
)
def test_only_the_characters_of_the_scalar_change(line, after, expected):
    assert edited(f"{line}\n", put(KEY, after)) == f"{expected}\n"


@pytest.mark.parametrize("written", ["true", "'true'", '"true"', "!!str true", "yes", "&here true"])
def test_a_value_that_is_right_already_is_no_edit(written):
    old = f"kubeProxyReplacement: {written}\n"
    assert edited(old, put(KEY, True)) == old


def test_a_value_that_an_alias_already_gives_is_no_edit():
    old = "on: &on true\nkubeProxyReplacement: *on\nmore: {<<: {deep: true}}\n"
    assert edited(old, put(KEY, True), put("/more/deep", True)) == old


QUIRKS = """
    # Unicode above the first plane: \N{ROCKET} \N{SATELLITE}; kubeProxyReplacement: "not here"
    shared: &common
      kubeProxyReplacement: false
    chart: {<<: *common, name: "\N{ROCKET}"}   # a flow mapping
    ports: ["01", 0x1F, 1_000, 22:22]
    vault: !vault secret
    wait: ${SECONDS:-30}
    other: '{{ not a template here }}'
    # kubeProxyReplacement: true
    prometheus:
      kubeProxyReplacement: false
    list:
    - not: indented
    - |2
        indented by hand
    kept: |+
      kubeProxyReplacement: false

    folded: >-
      a
      b
    {top}
    odd   :    spacing
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ended", [True, False])
def test_one_line_changes_between_everything_that_a_file_can_hold(newline, mark, ended):
    old = text(QUIRKS).replace("{top}", "kubeProxyReplacement: false  # the one")
    old = mark + old.removesuffix("\n" if not ended else "").replace("\n", newline)
    fresh = edited(old, put(KEY, True, before=False))
    assert fresh == old.replace("\nkubeProxyReplacement: false  # the one", "\nkubeProxyReplacement: true  # the one")
    assert [line[2:].rstrip("\r") for line in changed_lines(old, fresh)] == [
        "kubeProxyReplacement: false  # the one",
        "kubeProxyReplacement: true  # the one",
    ]


def test_a_document_is_counted_from_the_beginning_of_the_file():
    old = text(
        """
        # first comes a comment
        ---
        a: 1
        ...
        ---
        a: 2  # here
        ...
        ---
        ---
        a: 4
        """
    )
    assert changed_lines(old, edited(old, put("/a", 5, document=1))) == ["- a: 2  # here", "+ a: 5  # here"]
    assert changed_lines(old, edited(old, put("/a", 5, document=3))) == ["- a: 4", "+ a: 5"]
    assert refusal(old, put("/a", 5, document=4)).reason == "PathAbsent"


def test_a_pointer_leads_through_lists_and_odd_names():
    old = "a:\n- b: 1\n- {c/d: 2, e~f: [3, 4]}\n'': 5\n"
    edits = (put("/a/1/c~1d", 6), put("/a/1/e~0f/1", 7), put("/", 8), put("/a/0/b", 9))
    assert edited(old, *edits) == "a:\n- b: 9\n- {c/d: 6, e~f: [3, 7]}\n'': 8\n"


def test_several_edits_are_made_in_one_file_or_none_of_them():
    old = "a: 1\nb: 2\nc: {}\n"
    assert edited(old, put("/b", 3), put("/a", 4)) == "a: 4\nb: 3\nc: {}\n"
    assert refusal(old, put("/b", 3), new("/c/d", 1)).reason == "FlowMapping"


REFUSED = [
    ("Anchored", "kubeProxyReplacement: &on false\n"),
    ("Anchored", "kubeProxyReplacement: &on\n"),
    ("Aliased", "off: &off false\nkubeProxyReplacement: *off\n"),
    ("MergeKey", "base: &base {kubeProxyReplacement: false}\n<<: *base\n"),
    ("MergeKey", "<<: [{a: 1}, {kubeProxyReplacement: false}]\n"),
    ("Tagged", "kubeProxyReplacement: !vault false\n"),
    ("Tagged", "kubeProxyReplacement: !!str false\n"),
    ("Tagged", "kubeProxyReplacement: ! false\n"),
    ("Substitution", "kubeProxyReplacement: ${KPR:-false}\n"),
    ("Substitution", 'kubeProxyReplacement: "${KPR}"\n'),
    ("Templated", "kubeProxyReplacement: '{{ .Values.kpr }}'\n"),
    ("Templated", 'kubeProxyReplacement: "{% if x %}"\n'),
    ("Templated", "kubeProxyReplacement: {{ kpr }}\n"),
    ("Templated", "{{- if .Values.kpr }}\nkubeProxyReplacement: false\n{{- end }}\n"),
    ("Templated", "{% if kpr %}\nkubeProxyReplacement: false\n{% endif %}\n"),
    ("NotAScalar", "kubeProxyReplacement: {enabled: false}\n"),
    ("NotAScalar", "kubeProxyReplacement:\n- false\n"),
    ("BlockStyle", "kubeProxyReplacement: |\n  false\n"),
    ("BlockStyle", "kubeProxyReplacement: >-\n  false\n"),
    ("MultiLine", "kubeProxyReplacement: fa\n  lse\n"),
    ("MultiLine", 'kubeProxyReplacement: "fa\n  lse"\n'),
    ("DuplicateKey", "kubeProxyReplacement: false\na: 1\nkubeProxyReplacement: false\n"),
    ("DuplicateKey", "kubeProxyReplacement: false\nelsewhere: {a: 1, a: 2}\n"),
    ("DuplicateKey", "kubeProxyReplacement: false\n'kubeProxyReplacement': false\n"),
    ("NotYaml", "kubeProxyReplacement: false\n\tbad: 1\n"),
    ("NotYaml", "kubeProxyReplacement: false\nbad: [1\n"),
    ("NotYaml", "kubeProxyReplacement: \x07\n"),
    ("NotYaml", "[" * 200 + "]" * 200 + "\n"),
    ("PathAbsent", "kubeproxyreplacement: false\n"),
    ("PathAbsent", "# kubeProxyReplacement: false\n"),
    ("PathAbsent", "- kubeProxyReplacement: false\n"),
    ("PathAbsent", "just text\n"),
    ("PathAbsent", ""),
    ("MixedNewlines", "kubeProxyReplacement: false\r\nb: 1\n"),
    ("MixedNewlines", "kubeProxyReplacement: false\rb: 1\r"),
    ("UnusualLineBreak", "kubeProxyReplacement: false\u2028\n"),
]


@pytest.mark.parametrize(("reason", "old"), REFUSED)
def test_a_splice_that_could_touch_more_is_refused_with_its_reason(reason, old):
    refused = refusal(old, put(KEY, True))
    assert refused.reason == reason
    assert refused.code is ErrorCode.SPLICE_REFUSED


def test_a_place_inside_a_shared_mapping_is_refused():
    old = "common: &common\n  a: 1\n  deep: {b: 2}\none: *common\ntwo: {<<: *common, c: 3}\nlone: &lone {d: 4}\n"
    assert refusal(old, put("/common/a", 9)).reason == "Anchored"
    assert refusal(old, put("/common/deep/b", 9)).reason == "Anchored"
    assert refusal(old, put("/one/a", 9)).reason == "Aliased"
    assert refusal(old, put("/two/a", 9)).reason == "MergeKey"
    assert changed_lines(old, edited(old, put("/two/c", 9))) == [
        "- two: {<<: *common, c: 3}",
        "+ two: {<<: *common, c: 9}",
    ]
    assert edited(old, put("/lone/d", 9)) == old.replace("d: 4", "d: 9")


def test_a_value_that_somebody_changed_meanwhile_is_refused():
    assert refusal("a: strict\n", put("/a", True, before=False)).reason == "FromMismatch"
    assert edited("a: 'false'\n", put("/a", True, before=False)) == "a: 'true'\n"


def test_a_refusal_names_the_line_and_no_value():
    refused = refusal("a: 1\nb:\n  password: &anchored hunter2\n", put("/b/password", "x"))
    assert refused.line == 3
    assert refused.message == "line 3: the value has the anchor &anchored"
    assert "hunter2" not in str(refused)


def test_a_file_that_is_too_large_or_no_text_is_refused():
    assert refusal(b"a: 1\n#" + b" " * 2**20, put("/a", 2)).reason == "TooLarge"
    refused = refusal(b"a: 1\nb: \xff\n", put("/a", 2))
    assert (refused.reason, refused.line) == ("NotUtf8", 2)


def test_a_pointer_without_its_slash_and_an_edit_without_a_value_are_refused():
    assert refusal("a: 1\n", put("a", 2)).reason == "PathInvalid"
    assert refusal("a: 1\n", put("/a", ABSENT)).reason == "PathInvalid"


def test_aliases_that_multiply_are_not_followed_for_ever():
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
    old = f"a0: &a0 [1, 2, 3]\n{levels}\nb: 1\n"
    assert edited(old, put("/b", 2)) == old.removesuffix("b: 1\n") + "b: 2\n"
    assert refusal(old, put("/a8", 2)).reason == "TooLarge"


def test_more_than_can_be_edited_in_a_moment_is_refused_with_the_limit_and_can_still_be_read(monkeypatch):
    monkeypatch.setattr(splicenodes, "MOST_EDITED", 1000)
    monkeypatch.setattr(splicevalues, "_MOST_NODES", 100)
    old = "a: 1\nlist:\n" + "- x\n" * 2000
    refused = refusal(old, put("/a", 2))
    assert (refused.reason, refused.line) == ("TooLarge", 998)
    assert "more than 1000 keys and values, too many to be edited in place" in refused.message
    assert value_in(old.encode(), document=0, pointer="/list/1999") == "x"
    assert len(documents_in(old.encode())[0]["list"]) == 2000


def test_a_value_is_read_where_it_stands():
    old = b"a: &a {b: 1, 'c': yes}\n<<: {m: 0x10}\nd: *a\ne: [x, null]\n---\nf: 1e400\n"
    assert value_in(old, document=0, pointer="") == {
        "m": 16,
        "a": {"b": 1, "c": True},
        "d": {"b": 1, "c": True},
        "e": ["x", None],
    }
    assert value_in(old, document=0, pointer="/d/c") is True
    assert value_in(old, document=0, pointer="/e/1") is None
    assert value_in(old, document=0, pointer="/m") == 16
    assert value_in(old, document=1, pointer="/f") == "1e400"
    for document, pointer in ((0, "/x"), (0, "/e/2"), (0, "/e/x"), (0, "/a/b/c"), (2, "")):
        assert value_in(old, document=document, pointer=pointer) is ABSENT


def test_nothing_to_do_gives_the_same_bytes():
    for old in (b"", b"\xef\xbb\xbf# only a comment", b"a: 1\r\n\r\n"):
        assert splice(old, []) == old

"""A missing key is written next to its siblings (cni-switch.md, section 13.4)."""

import pytest

from gitops_ctl.documents.splice import splice_with_notes
from tests.support.splice import changed_lines, edited, new, put, refusal, text

WANTED = (
    put("/kubeProxyReplacement", True),
    new("/k8sServiceHost", "localhost"),
    new("/k8sServicePort", 7445),
    new("/rollOutCiliumPods", True),
)
THREE = ["+ k8sServiceHost: localhost", "+ k8sServicePort: 7445", "+ rollOutCiliumPods: true"]


def test_new_keys_follow_the_one_that_they_belong_to_in_the_order_of_the_edits():
    old = "kubeProxyReplacement: false   # agreed\nipam: {mode: kubernetes}\n"
    assert edited(old, *WANTED) == (
        "kubeProxyReplacement: true   # agreed\nk8sServiceHost: localhost\nk8sServicePort: 7445\n"
        "rollOutCiliumPods: true\nipam: {mode: kubernetes}\n"
    )


def test_edits_that_are_made_already_do_nothing():
    fresh = edited("kubeProxyReplacement: false\na: {}\n", *WANTED)
    assert edited(fresh, *WANTED) == fresh


@pytest.mark.parametrize(
    ("old", "name", "expected"),
    [
        ("a: 1\nk8sServiceHost: h\nb: 2\n", "k8sServicePort", "a: 1\nk8sServiceHost: h\nk8sServicePort: 7445\nb: 2\n"),
        ("k8sServicePort: 1\nb: 2\n", "x", "k8sServicePort: 1\nx: 7445\nb: 2\n"),
        ("a: 1\nb: 2\n", "x", "a: 1\nb: 2\nx: 7445\n"),
        ("a: 1\nb: 2", "x", "a: 1\nb: 2\nx: 7445"),
        ("a: 1\r\nb: 2\r\n", "x", "a: 1\r\nb: 2\r\nx: 7445\r\n"),
        ("\ufeffa: 1\n", "x", "\ufeffa: 1\nx: 7445\n"),
        ("---\na: 1\n...\n---\nb: 2\n", "x", "---\na: 1\nx: 7445\n...\n---\nb: 2\n"),
        ("a: 1  # trailing\n\n# above the next document\n---\nb: 2\n", "x",
         "a: 1  # trailing\nx: 7445\n\n# above the next document\n---\nb: 2\n"),
        ("a:\n  b: 1\n  # belongs to a\n# does not\n", "x", "a:\n  b: 1\n  # belongs to a\nx: 7445\n# does not\n"),
        ("a: |\n  text\n\n\n# end\n", "x", "a: |\n  text\nx: 7445\n\n\n# end\n"),
        ("a: |+\n  text\n\n", "x", "a: |+\n  text\n\nx: 7445\n"),
        ("a: |\n  text\n  # still text\n", "x", "a: |\n  text\n  # still text\nx: 7445\n"),
        ("a: >-\n  folded\n  text\n", "x", "a: >-\n  folded\n  text\nx: 7445\n"),
        ("a: |\nb:\n", "x", "a: |\nb:\nx: 7445\n"),
        ("a: 'two\n  lines'\n", "x", "a: 'two\n  lines'\nx: 7445\n"),
        ("a: [1,\n  2]  # flow\n", "x", "a: [1,\n  2]  # flow\nx: 7445\n"),
        ("a:\n- 1\n- - 2\n  - 3\n", "x", "a:\n- 1\n- - 2\n  - 3\nx: 7445\n"),
        ("a:   # empty\n", "x", "a:   # empty\nx: 7445\n"),
        ("a: &anchor {b: 1}\nc: *anchor\n", "x", "a: &anchor {b: 1}\nc: *anchor\nx: 7445\n"),
        ("<<: {a: 1}\n", "x", "<<: {a: 1}\nx: 7445\n"),
        ("a: 1\n", "odd: key", 'a: 1\n"odd: key": 7445\n'),
        ("a: 1\n", "true", 'a: 1\n"true": 7445\n'),
        ("a: 1\n", "ichor.maesh.dev/confirm", "a: 1\nichor.maesh.dev/confirm: 7445\n"),
    ],
)  # fmt: skip
def test_a_key_is_inserted_with_the_layout_of_its_siblings(old, name, expected):
    assert edited(old, new("/" + name.replace("/", "~1"), 7445)) == expected


def test_a_key_deep_in_a_document_gets_the_column_of_its_siblings():
    old = text(
        """
        kind: Application
        spec:
            source:
                helm:
                    valuesObject:
                        kubeProxyReplacement: false
                        # about the next one
                        ipam:
                            mode: kubernetes
        """
    )
    at = "/spec/source/helm/valuesObject"
    fresh = edited(old, put(f"{at}/kubeProxyReplacement", True), new(f"{at}/k8sServiceHost", "localhost"))
    assert changed_lines(old, fresh) == [
        "-                 kubeProxyReplacement: false",
        "+                 kubeProxyReplacement: true",
        "+                 k8sServiceHost: localhost",
    ]


def test_a_mapping_in_a_list_takes_a_key_too():
    old = "list:\n  -   name: a\n      value: 1\n  - {name: b}\n"
    assert (
        edited(old, new("/list/0/more", "x")) == "list:\n  -   name: a\n      value: 1\n      more: x\n  - {name: b}\n"
    )
    assert refusal(old, new("/list/1/more", "x")).reason == "FlowMapping"


def test_a_block_is_added_with_the_indentation_of_the_file():
    old = "metadata:\n    name: a\nspec:\n    x: 1\n"
    fresh = edited(
        old, new("/metadata/annotations", {"a/b": "replaced", "more": {"m": [1, {"k": "true"}], "e": {}, "l": []}})
    )
    assert fresh == text(
        """
        metadata:
            name: a
            annotations:
                a/b: replaced
                more:
                    m:
                        - 1
                        - k: "true"
                    e: {}
                    l: []
        spec:
            x: 1
        """
    )


@pytest.mark.parametrize(
    ("old", "pointer", "expected"),
    [
        ("l:\n- name: a\n  value: '1'\n- name: z\nm: 1\n", "/l/1",
         'l:\n- name: a\n  value: \'1\'\n- name: port\n  value: "7445"\n- name: z\nm: 1\n'),
        ("l:\n  -   name: a\n  # belongs to a?\nm: 1\n", "/l/-",
         'l:\n  -   name: a\n  -   name: port\n      value: "7445"\n  # belongs to a?\nm: 1\n'),
        ("- a\n- b\n", "/2", '- a\n- b\n- name: port\n  value: "7445"\n'),
        ("- a\n-\n  b: 1\n", "/2", '- a\n-\n  b: 1\n- name: port\n  value: "7445"\n'),
    ],
)  # fmt: skip
def test_an_item_is_inserted_behind_another_one(old, pointer, expected):
    edit = new(pointer, {"name": "port", "value": "7445"})
    fresh = edited(old, edit)
    assert fresh == expected
    assert edited(fresh, edit) == fresh


def test_items_are_inserted_one_behind_the_other():
    old = "l:\n  - name: a\n  - name: z\n"
    fresh = edited(old, new("/l/1", {"name": "b"}), new("/l/2", {"name": "c"}), new("/l/-", "end"))
    assert fresh == "l:\n  - name: a\n  - name: b\n  - name: c\n  - name: z\n  - end\n"


@pytest.mark.parametrize(
    ("reason", "old", "pointer"),
    [
        ("FlowMapping", "values: {}\n", "/values/x"),
        ("FlowMapping", "values: {a: 1}\n", "/values/x"),
        ("FlowMapping", "values: {\n  a: 1\n}\n", "/values/x"),
        ("PathAbsent", "values:\n", "/values/x"),
        ("PathAbsent", "a: 1\n", "/values/x"),
        ("PathAbsent", "# only a comment\n", "/x"),
        ("MergeKey", "base: &b {x: 1}\n<<: *b\n", "/x"),
        ("Aliased", "base: &b\n  a: 1\nvalues: *b\n", "/values/x"),
        ("Anchored", "base: &b\n  a: 1\nvalues: *b\n", "/base/x"),
        ("AlreadySet", "x: 1\n", "/x"),
        ("AlreadySet", "x: 1\n", ""),
        ("ExplicitKey", "? a\n: 1\n", "/x"),
        ("FlowSequence", "l: []\n", "/l/0"),
        ("FlowSequence", "l: [1]\n", "/l/1"),
        ("ListItem", "l:\n- 1\n", "/l/0"),
        ("PathAbsent", "l:\n- 1\n", "/l/5"),
        ("PathAbsent", "l:\n- 1\n", "/l/first"),
        ("Templated", "a: {{ b }}\n", "/x"),
    ],
)
def test_a_place_that_cannot_take_a_key_is_refused(reason, old, pointer):
    assert refusal(old, new(pointer, "wanted")).reason == reason


def test_a_key_that_is_only_commented_out_is_inserted_and_mentioned():
    old = "a: 1\n# x: 5\n#x : 6\n## 'x': 7\n# xy: 8\nb: 2 # x: 9\n"
    done = splice_with_notes(old.encode(), [new("/x", 10)])
    assert changed_lines(old, done.text.decode()) == ["+ x: 10"]
    assert done.notes == tuple(f'line {line} holds "x" as a comment; it stays' for line in (2, 3, 4))


def test_members_of_different_mappings_at_the_end_of_a_file_do_not_mix():
    old = "a: 1\nm:\n  b: 2\n"
    expected = "a: 1\nm:\n  b: 2\n  x: 3\nz: 4\n"
    assert edited(old, new("/z", 4), new("/m/x", 3)) == expected
    assert edited(old, new("/m/x", 3), new("/z", 4)) == expected


def test_two_scalars_of_one_line_are_replaced():
    assert edited("m: {a: 1, b: 2}\nc: 3\n", put("/m/a", 4), put("/m/b", 5), put("/c", 6)) == "m: {a: 4, b: 5}\nc: 6\n"

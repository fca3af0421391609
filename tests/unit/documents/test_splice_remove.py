"""A key goes with its lines, and with the parents that it leaves empty (cni-switch.md, sections 13.6 and 13.7)."""

import pytest

from gitops_ctl.documents.splice import splice_with_notes
from tests.support.splice import changed_lines, cut, edited, refusal, text


@pytest.mark.parametrize(
    ("old", "pointer", "expected"),
    [
        ("a: 1\nb: 2\nc: 3\n", "/a", "b: 2\nc: 3\n"),
        ("a: 1\nb: 2  # gone too\nc: 3\n", "/b", "a: 1\nc: 3\n"),
        ("a: 1\nb: 2\nc: 3\n", "/c", "a: 1\nb: 2\n"),
        ("a: 1\nb: 2", "/b", "a: 1"),
        ("a: 1\nb: 2", "/a", "b: 2"),
        ("a: 1\r\nb: 2\r\n", "/b", "a: 1\r\n"),
        ("a: 1\r\nb: 2", "/b", "a: 1"),
        ("\ufeffa: 1\nb: 2\n", "/a", "\ufeffb: 2\n"),
        ("a: {b: 1}\nc: 2\n", "/a", "c: 2\n"),
        ("a:\n  b: 1\nc: 2\n", "/a/b", "c: 2\n"),
        ("z: 0\na:\n  b:\n    c: 1\n", "/a/b/c", "z: 0\n"),
        ("a:  # emptied\n  b: 1\nc: 2\n", "/a/b", "c: 2\n"),
        ("a:\n  'b': x\n  c: 2\n", "/a/b", "a:\n  c: 2\n"),
        ("a: 'b'\nc: 2\n", "/a", "c: 2\n"),
        ('a: "two\n  lines"\nc: 2\n', "/a", "c: 2\n"),
        ("a: |\n  x\n\n  y\n\n# stays\nc: 2\n", "/a", "\n# stays\nc: 2\n"),
        ("a: |-\n  x\nc: 2\n", "/a", "c: 2\n"),
        ("a: >\n  x\n  y\nc: 2\n", "/a", "c: 2\n"),
        ("a: |2\n    x\n  y\nc: 2\n", "/a", "c: 2\n"),
        ("a: |\nc: 2\n", "/a", "c: 2\n"),
        ("a:\n  b: 1\n  c: [2,\n    3]\n\nd: 4\n", "/a", "\nd: 4\n"),
        ("a:\n- 1\n- b: 2\n  c: 3\nd: 4\n", "/a", "d: 4\n"),
        ("a:\nd: 4\n", "/a", "d: 4\n"),
        ("a: ~  # nothing\nd: 4\n", "/a", "d: 4\n"),
        ("a: 1\n\n\nd: 4\n", "/a", "\n\nd: 4\n"),
        ("z: 1\n# about a\na: 1\n# about d\nd: 4\n", "/a", "z: 1\n# about a\n# about d\nd: 4\n"),
        ("m:\n  x: 1\n  # about a\n  a: 1\n", "/m/a", "m:\n  x: 1\n  # about a\n"),
        ("z: 1\nm:\n  # inside\n\n  a: 1\n  # behind\nd: 4\n", "/m/a", "z: 1\n  # inside\n\n  # behind\nd: 4\n"),
        ("z: |\n  text\nm:\n  a: 1\nd: 4\n", "/m/a", "z: |\n  text\nd: 4\n"),
        ("- x: 1\n  a: 2\n- y\n", "/0/a", "- x: 1\n- y\n"),
        ("- x: 1\n  m:\n    a: 2\n- y\n", "/0/m/a", "- x: 1\n- y\n"),
        ("a: 1\n# a: 2\n", "/b", "a: 1\n# a: 2\n"),
        ("a: 1\n", "/b/c/d", "a: 1\n"),
        ("# a: 1\n", "/a", "# a: 1\n"),
    ],
)
def test_whole_lines_go_and_everything_else_stays(old, pointer, expected):
    assert edited(old, cut(pointer)) == expected


def test_a_spent_consent_goes_with_its_emptied_annotations():
    old = text(
        """
        kind: TalosCluster
        metadata:
          name: north
          # asked for by the network team
          annotations:   # one switch
            # remove it after the switch
            ichor.maesh.dev/confirm-kube-proxy-switch: replaced
        spec: {}
        """
    )
    pointer = "/metadata/annotations/ichor.maesh.dev~1confirm-kube-proxy-switch"
    done = splice_with_notes(old.encode(), [cut(pointer, before="replaced")])
    assert changed_lines(old, done.text.decode()) == [
        "-   annotations:   # one switch",
        "-     ichor.maesh.dev/confirm-kube-proxy-switch: replaced",
    ]
    assert done.notes == tuple(f"line {line} holds a comment above what is removed; it stays" for line in (4, 6))
    assert refusal(old, cut(pointer, before="enabled")).reason == "FromMismatch"


def test_one_of_three_documents_changes():
    old = "a: 1\nb: 1\n---\na: 1\nb: 1\n...\n---\na: 1\nb: 1\n"
    assert edited(old, cut("/b", document=1)) == "a: 1\nb: 1\n---\na: 1\n...\n---\na: 1\nb: 1\n"


def test_two_keys_of_one_mapping_take_it_with_them():
    assert edited("z: 0\nm:\n  a: 1\n  b: 2\n", cut("/m/b"), cut("/m/a")) == "z: 0\n"


@pytest.mark.parametrize(
    ("reason", "old", "pointer"),
    [
        ("WouldBeEmpty", "a: 1\n", "/a"),
        ("WouldBeEmpty", "a:\n  b:\n    c: 1\n", "/a/b/c"),
        ("WouldBeEmpty", "a: 1\n", ""),
        ("FlowMapping", "m: {a: 1, b: 2}\n", "/m/a"),
        ("FlowMapping", "z: 1\nm: {a: 1}\n", "/m/a"),
        ("FirstKeyOfListItem", "- a: 1\n  b: 2\n", "/0/a"),
        ("ListItem", "- a: 1\n- b\n", "/0/a"),
        ("ListItem", "l:\n- a\n- b\n", "/l/0"),
        ("ExplicitKey", "? a\n: 1\nb: 2\n", "/a"),
        ("DuplicateKey", "a: 1\nb: 2\na: 3\n", "/a"),
        ("Anchored", "a: &x 1\nb: 2\n", "/a"),
        ("Anchored", "a: &x 1\nb: *x\n", "/a"),
        ("Anchored", "a:\n  deep: &x 1\nb: 2\n", "/a"),
        ("Anchored", "&k a: 1\nb: 2\n", "/a"),
        ("Aliased", "a: &x 1\nb: *x\n", "/b"),
        ("Aliased", "a: &x 1\nb:\n  c: [*x]\n", "/b"),
        ("MergeKey", "z: 1\nb:\n  <<: {c: 1}\n  d: 2\n", "/b"),
        ("MergeKey", "b:\n  <<: {c: 1}\n  d: 2\n", "/b/c"),
        ("MergeKey", "b:\n  <<: {c: 1}\n  c: 2\n", "/b/c"),
        ("Anchored", "b: &b\n  c: 1\n  d: 2\ne: *b\n", "/b/c"),
        ("Templated", "b: 1\nc: '{{ x }}'\n", "/c"),
        ("Templated", "b: 1\n{% if x %}\nc: 1\n{% endif %}\n", "/c"),
        ("OtherChange", "z: |\n  text\nm:\n  # would become text\n  a: 1\nd: 4\n", "/m/a"),
        ("OtherChange", "z: 1\nm:\n  !!map\n  a: 1\nd: 4\n", "/m/a"),
    ],
)
def test_a_removal_that_could_touch_more_is_refused(reason, old, pointer):
    assert refusal(old, cut(pointer)).reason == reason

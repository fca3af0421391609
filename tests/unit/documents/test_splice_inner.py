"""Text in text, at any depth (cni-switch.md, section 13.5)."""

import pytest

from gitops_ctl.documents.splice import ABSENT, Inner, value_in
from tests.support.splice import changed_lines, cut, edited, new, put, refusal, text

APPLICATION = """
    kind: Application
    spec:
      source:
        helm:
          values: {header}
            # chart values
            kubeProxyReplacement: false   # agreed

            hubble:
              enabled: true
    {tail}
      destination: {{}}
"""
AT = "/spec/source/helm/values"
KPR = (Inner(0, "/kubeProxyReplacement"),)


@pytest.mark.parametrize("header", ["|", "|-", "|+", "|2", "|2-", "|+2", "| # comment"])
@pytest.mark.parametrize("tail", ["", "\n", "    # behind"])
def test_the_line_inside_the_block_changes(header, tail):
    old = text(APPLICATION.format(header=header, tail=tail))
    edits = (
        put(AT, True, before=False, inner=KPR),
        new(AT, "localhost", inner=(Inner(0, "/k8sServiceHost"),)),
        new(AT, "x", inner=(Inner(0, "/hubble/relay"),)),
        new(AT, {"m": 1}, inner=(Inner(0, "/last"),)),
    )
    fresh = edited(old, *edits)
    pad = " " * 8
    lines = changed_lines(old, fresh)
    assert lines[0] == f"- {pad}kubeProxyReplacement: false   # agreed"
    assert sorted(lines[1:]) == [
        f"+ {pad}  m: 1",
        f"+ {pad}  relay: x",
        f"+ {pad}k8sServiceHost: localhost",
        f"+ {pad}kubeProxyReplacement: true   # agreed",
        f"+ {pad}last:",
    ]
    assert edited(fresh, *edits) == fresh


MANIFEST = """
    # a machine's patch
    cluster:
      inlineManifests:
        - name: other
          contents: "one: line"
        - name: cni
          contents: |
            apiVersion: v1
            kind: Namespace
            ---
            kind: ConfigMap
            data:
              values.yaml: |-
                # innermost
                kubeProxyReplacement: 'false'
                ipam: {mode: kubernetes}

              other: x
      proxy: {}
"""
CONTENTS = "/cluster/inlineManifests/1/contents"
INNERMOST = (Inner(1, "/data/values.yaml"), Inner(0, "/kubeProxyReplacement"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_in_text_in_text_changes_in_one_line(newline):
    old = text(MANIFEST).replace("\n", newline)
    assert value_in(old.encode(), document=0, pointer=CONTENTS, inner=INNERMOST) == "false"
    fresh = edited(old, put(CONTENTS, True, before="false", inner=INNERMOST))
    assert [line.strip("\r") for line in changed_lines(old, fresh)] == [
        "-             kubeProxyReplacement: 'false'",
        "+             kubeProxyReplacement: 'true'",
    ]
    gone = edited(old, cut(CONTENTS, inner=INNERMOST))
    assert [line.strip("\r") for line in changed_lines(old, gone)] == ["-             kubeProxyReplacement: 'false'"]


def test_a_removal_inside_takes_emptied_parents_and_leaves_something():
    old = "a: |\n  x:\n    y: 1\n  z: 2\n\nb: 1\n"
    assert edited(old, cut("/a", inner=(Inner(0, "/x/y"),))) == "a: |\n  z: 2\n\nb: 1\n"
    assert refusal("a: |\n  x: 1\n", cut("/a", inner=(Inner(0, "/x"),))).reason == "WouldBeEmpty"


def test_several_documents_inside_are_counted():
    old = "a: |\n  x: 1\n  ---\n  x: 2\n"
    assert edited(old, put("/a", 3, inner=(Inner(1, "/x"),))) == "a: |\n  x: 1\n  ---\n  x: 3\n"


def test_blank_lines_and_odd_spaces_inside_stay():
    old = "- |\n\n  x: 1   \n \n     \n  y: 2\n   \n\n- z\n"
    assert edited(old, put("/0", 3, inner=(Inner(0, "/y"),))) == old.replace("y: 2", "y: 3")
    assert edited(old, new("/0", 3, inner=(Inner(0, "/w"),))) == old.replace("  y: 2\n", "  y: 2\n  w: 3\n")


@pytest.mark.parametrize(
    ("reason", "old", "inner"),
    [
        ("BlockStyle", "a: >\n  x: 1\n", "/x"),
        ("BlockStyle", 'a: "x: 1"\n', "/x"),
        ("BlockStyle", "a: x\n", "/x"),
        ("BlockStyle", "a: &a |\n  x: 1\n", "/x"),
        ("BlockStyle", "a: !!str |\n  x: 1\n", "/x"),
        ("NotAScalar", "a: {x: 1}\n", "/x"),
        ("NotAScalar", "b: 1\n", "/x"),
        ("Templated", "a: |\n  {{ if x }}\n  x: 1\n", "/x"),
        ("NotYaml", "a: |\n  x: [1\n", "/x"),
        ("Anchored", "a: |\n  x: &x 1\n", "/x"),
        ("DuplicateKey", "a: |\n  x: 1\n  x: 1\n", "/x"),
        ("PathAbsent", "a: |\n  y: 1\n", "/x"),
        ("PathAbsent", "a: |\n  # nothing\n", "/x"),
        ("Aliased", "b: &b |\n  x: 1\na: *b\n", "/x"),
    ],
)
def test_a_block_that_cannot_be_edited_is_refused(reason, old, inner):
    assert refusal(old, put("/a", 2, inner=(Inner(0, inner),))).reason == reason


def test_a_refusal_inside_names_the_line_of_the_file():
    refused = refusal(text(MANIFEST).replace("'false'", "&x 'false'"), put(CONTENTS, True, inner=INNERMOST))
    assert refused.line == 15
    broken = refusal("a: 1\nb: |\n  x: [\n\nc: 1\n", put("/b", 1, inner=(Inner(0, "/x"),)))
    assert (broken.reason, broken.line) == ("NotYaml", 4)


def test_nothing_inside_is_absent():
    assert value_in(b"a: 1\n", document=0, pointer="/b", inner=(Inner(0, "/x"),)) is ABSENT
    assert value_in(b"a: |\n  y: 1\n", document=0, pointer="/a", inner=(Inner(0, "/x"),)) is ABSENT

"""Snapshots kept in Git, with errors at the lines of the file (topology-scheduling.md, 4.6)."""

import json

import pytest

from gitops_ctl.documents.loader import load
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.snapshot_documents import snapshot_problems
from tests.support.scheduling_objects import SOURCE_DOCUMENT

HEAD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: hall-7, namespace: gpustack-system}
data:
"""
GOOD = """\
  snapshot.yaml: |
    apiVersion: topology.gpustack.ai/v1alpha1
    revision: r1
    nodes:
      gpu-n01: {topology.gpustack.ai/region: north, topology.gpustack.ai/zone: hall7}
"""


def problems(text, *, file="topology/hall.yaml", source=SOURCE_DOCUMENT, namespace="", options=None):
    loaded = [load(text.encode(), file=file), load(source.encode(), file="source.yaml")]
    assert [one.problems for one in loaded] == [(), ()]
    documents = [document for one in loaded for document in one.documents]
    return snapshot_problems(documents, options=options or Options(), default_namespace=namespace)


def places(text, **given):
    return [(problem.line, problem.column) for problem in problems(text, **given)]


def test_a_good_snapshot_has_no_problems():
    assert problems(HEAD + GOOD) == ()


def test_an_error_stands_at_its_line_and_column_of_the_file():
    text = f"# first\n---\nkind: Other\napiVersion: v1\nmetadata: {{name: x}}\n---\n{HEAD}{GOOD}".replace(
        "topology.gpustack.ai/region: north, ", ""
    )
    found = problems(text)
    assert [(problem.line, problem.column) for problem in found] == [(15, 17)]
    assert text.splitlines()[14][16:].startswith("topology.gpustack.ai/zone")
    assert "rule 12" in found[0].message
    assert found[0].object.name == "hall-7"
    assert found[0].pointer == "/data/snapshot.yaml"
    assert found[0].is_error


@pytest.mark.parametrize("mark", ["|", "|-", "|+", "|4  # kept", "|  # kept"])
def test_marks_blank_lines_and_deeper_blocks_keep_the_lines(mark):
    block = f"  snapshot.yaml: {mark}\n\n      apiVersion: x\n      revision: r\n      nodes: {{}}\n"
    assert places(HEAD + block) == [(7, 7)]


def test_a_decode_error_is_found_offline_too():
    assert places(HEAD + GOOD + "    ---\n") == [(10, 5)]


def test_all_problems_of_a_snapshot_are_listed():
    text = HEAD + "  snapshot.yaml: |\n    revision: ' '\n    nodes:\n      a: {x: '-'}\n"
    assert [problem.message.partition("rule ")[2].partition(":")[0] for problem in problems(text)] == [
        "6",
        "7",
        "9",
        "10",
        "11",
    ]


@pytest.mark.parametrize("value", [">\n    a\n", '"a: b"\n', "'a: b'\n", "a b\n"])
def test_another_style_than_a_literal_block_is_refused(value):
    found = problems(f"{HEAD}  snapshot.yaml: {value}")
    assert [(problem.line, problem.column) for problem in found] == [(5, 3)]
    assert "literal block scalar" in found[0].message


def test_binary_data_is_no_snapshot():
    text = HEAD.replace("\ndata:", "\nbinaryData:") + "  snapshot.yaml: YQ==\n"
    assert places(text) == [(5, 3)]


def test_an_error_in_a_json_file_names_the_string_and_the_line_inside():
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hall-7", "namespace": "gpustack-system"},
        "data": {"snapshot.yaml": "apiVersion: topology.gpustack.ai/v1alpha1\nrevision: ' '\nnodes: {}\n"},
    }
    text = json.dumps(tree, indent=1)
    found = problems(text, file="hall.json")
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "snapshot.yaml" in one)
    assert [problem.line for problem in found] == [line]
    assert "line 2 of the text" in found[0].message


def test_a_snapshot_inside_a_list_is_judged():
    body = "".join(f"    {line}\n" for line in (HEAD + GOOD.replace("r1", "' '")).splitlines())
    text = f"apiVersion: v1\nkind: List\nitems:\n  -\n{body}"
    assert places(text) == [(11, 9)]


def test_a_config_map_that_no_sound_source_names_is_none():
    broken = HEAD + "  snapshot.yaml: |\n    x\n"
    assert places(broken) != []
    assert places(broken.replace("name: hall-7", "name: hall-8")) == []
    assert places(broken, source=SOURCE_DOCUMENT.replace("maxStaleness: 1h", "maxStaleness: 0s")) == []
    assert places(broken.replace(", namespace: gpustack-system", "")) == []
    assert places(broken.replace(", namespace: gpustack-system", ""), namespace="gpustack-system") != []


def test_of_several_sources_the_snapshot_must_pass_for_each():
    second = SOURCE_DOCUMENT.replace("name: hall-7}\nspec", "name: second}\nspec").replace(
        "levels: [topology.gpustack.ai/region, topology.gpustack.ai/zone]", "levels: [topology.gpustack.ai/region]"
    )
    found = problems(HEAD + GOOD, source=f"{SOURCE_DOCUMENT}---\n{second}")
    assert ["source second" in problem.message for problem in found] == [True]


def test_missing_nodes_depend_on_the_options():
    text = HEAD + "  snapshot.yaml: |\n    apiVersion: topology.gpustack.ai/v1alpha1\n    revision: r\n"
    assert places(text) == [(6, 5)]
    assert places(text, options=Options.reference()) == []

"""What unquoted values mean.

`kubectl_scalars.json` holds what kubectl makes of each of them; the last test asks a real kubectl again.
"""

import io
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.documents.loader import load
from gitops_ctl.documents.scalars import NotJsonError, plain_value
from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.progress import LineProgress
from tests.support.documents import document

GOLDEN = json.loads((Path(__file__).parent / "kubectl_scalars.json").read_text())


@pytest.mark.parametrize("text", GOLDEN, ids=list(GOLDEN))
def test_Y05_an_unquoted_value_means_what_kubectl_says(text):
    value = plain_value(text)
    assert value == GOLDEN[text]
    assert isinstance(value, bool) == isinstance(GOLDEN[text], bool)


def test_the_golden_table_covers_every_form():
    assert len(GOLDEN) >= 42
    kinds = {type(value) for value in GOLDEN.values()}
    assert kinds == {str, int, float, bool, type(None)}


@pytest.mark.parametrize("text", ["1.0", "1e3", "1.", "09", "-0.0"])
def test_an_integral_float_is_an_integer(text):
    assert type(plain_value(text)) is int


@pytest.mark.parametrize(
    "text", [".nan", ".NaN", ".inf", "-.INF", "1e309", "9007199254740993", "1" * 100_000, "0x" + "f" * 100_000]
)
def test_Y07_what_json_cannot_carry_is_refused_at_once(text):
    with pytest.raises(NotJsonError):
        plain_value(text)


def test_quoted_values_are_strings_whatever_they_look_like():
    for text in GOLDEN:
        tree = document(f"apiVersion: v1\nkind: T\nmetadata: {{name: a}}\nspec: {{v: {json.dumps(text)}}}\n").tree
        assert tree["spec"]["v"] == text


@pytest.mark.property
@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"[-+]?[0-9xobA-Fa-f_.eE+:-]{1,12}", fullmatch=True))
def test_a_number_reads_the_same_in_every_notation_that_json_has(text):
    try:
        value = plain_value(text)
    except NotJsonError:
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert plain_value(json.dumps(value)) == value
        assert not isinstance(value, float) or not value.is_integer()


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode(errors="surrogatepass")))
def test_the_loader_never_raises_whatever_the_bytes_are(data):
    for name in ("a.yaml", "a.json"):
        loaded = load(data, file=name)
        assert all(problem.file == name and problem.line >= 0 for problem in loaded.problems)


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="&*[]{}:,-!<>|'\"%@`#?ab01 \n\t~", max_size=120))
def test_the_loader_never_raises_whatever_the_marks_are(text):
    load(f"apiVersion: v1\nkind: T\nmetadata: {{name: a}}\nspec: {text}\n".encode(), file="a.yaml")


@pytest.mark.peers
async def test_the_golden_table_is_what_kubectl_says_today(tmp_path):
    kubectl = (await find_binaries(progress=LineProgress(io.StringIO()))).kubectl
    lines = [f"  v{number}: {text}\n" for number, text in enumerate(GOLDEN)]
    file = tmp_path / "all.yaml"
    file.write_text("apiVersion: example.net/v1\nkind: Thing\nmetadata: {name: x}\nspec:\n" + "".join(lines))
    command = [str(kubectl), "label", "--local", "-o", "json", "-f", str(file), "a=b"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert [answer["spec"].get(f"v{number}") for number in range(len(GOLDEN))] == list(GOLDEN.values())

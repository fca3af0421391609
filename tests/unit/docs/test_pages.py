"""Pages lead to places that exist, name commands that exist, and the generated ones are as generated."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest
import yaml

from gitops_ctl.cli.main import cli
from tools.fault_tests import ids_in
from tools.faults import catalogue

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in (
        *DOCS.rglob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "charts").rglob("*.md"),
        *(ROOT / "examples-repo").rglob("*.md"),
    )
    if path.is_file()
)
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
FENCE = re.compile(r"^ *```([a-z]*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
INLINE = re.compile(r"`((?:gitops-ctl|kubectl gitops-ctl) [^`\n<][^`\n]*)`")
STOP = {"|", "&&", ";", ">"}


def without_fences(text: str) -> str:
    return FENCE.sub("", text)


def anchors_of(page: Path) -> set[str]:
    """Of the headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", without_fences(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@EACH_PAGE
def test_every_relative_link_leads_somewhere(page):
    for target, anchor in LINK.findall(without_fences(page.read_text())):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors_of(place), f"{target} has no heading #{anchor}"


def test_every_page_of_the_navigation_exists():
    class Loader(yaml.SafeLoader):
        pass

    def pages(node):
        values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return [node] if isinstance(node, str) else [page for value in values for page in pages(value)]

    found = pages(yaml.load(ROOT.joinpath("mkdocs.yml").read_text(), Loader=Loader)["nav"])
    assert found
    assert [page for page in found if not (DOCS / page).is_file()] == []


def test_the_generated_pages_are_as_generated():
    done = subprocess.run(
        [sys.executable, "-m", "tools.generate_reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def words_of(line: str) -> list[str]:
    """The words of a shell line up to the first pipe, without a comment."""
    words: list[str] = []
    for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", line):
        if word in STOP or word.startswith("#"):
            break
        words.append(word.strip("'\""))
    return words


def calls_in(text: str) -> list[list[str]]:
    """Arguments of every `gitops-ctl …` in blocks for a shell and between backticks."""
    lines = [
        line.strip().removeprefix("$ ")
        for language, block in FENCE.findall(text)
        if language in ("console", "sh", "bash", "shell")
        for line in re.sub(r"\\\n\s*", " ", block).splitlines()
    ]
    lines += INLINE.findall(without_fences(text))
    return [
        words_of(line)[1:]
        for line in (line.replace("kubectl gitops-ctl", "gitops-ctl") for line in lines)
        if line.startswith("gitops-ctl ")
    ]


@cache
def calls_in_hints() -> tuple[tuple[str, ...], ...]:
    found = []
    for path in (ROOT / "gitops_ctl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += [tuple(words_of(line.removeprefix("kubectl "))[1:]) for line in INLINE.findall(node.value)]
    return tuple(found)


def require_call(words: list[str]) -> None:
    """Refuse a command, an option, a value of a choice, or an argument too many, that does not exist."""
    command: click.Command = cli
    context = click.Context(cli, info_name="gitops-ctl")
    while isinstance(command, click.Group):
        if not words or (command.invoke_without_command and words[0].startswith("-")):
            break
        name, words = words[0], words[1:]
        if name in ("--help", "--version"):
            return
        found = command.get_command(context, name)
        assert found is not None, f"{context.command_path} has no command {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    if "--help" in words or not words:
        return
    values, rest, _ = command.make_parser(context).parse_args(list(words))
    assert rest == [], f"{context.command_path} takes no {rest}"
    for parameter in command.params:
        value = values.get(parameter.name)
        if isinstance(parameter.type, click.Choice) and isinstance(value, str) and value.islower():
            assert value in parameter.type.choices, f"{value} is no value of {parameter.name}"


@EACH_PAGE
def test_commands_on_a_page_exist_with_their_options(page):
    for words in calls_in(page.read_text()):
        require_call(words)


def test_commands_in_hints_exist_with_their_options():
    assert calls_in_hints()
    for words in calls_in_hints():
        require_call(list(words))


@pytest.mark.parametrize("line", ["gitops-ctl nothing", "gitops-ctl status --no-such", "gitops-ctl status -o prose"])
def test_the_check_of_commands_sees_mistakes(line):
    with pytest.raises((AssertionError, click.UsageError)):
        require_call(words_of(line)[1:])


def test_flags_between_backticks_are_flags_of_some_command():
    known = set()
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        inner = command.commands.values() if isinstance(command, click.Group) else (command,)
        known |= {option for one in inner for parameter in one.params for option in parameter.opts}
    known |= {"--only", "--quick", "--rounds", "--json"}  # of the benchmark
    foreign = {"--help", "--version", "--server-side", "--force-with-lease", "--unshallow", "--textmode", "--no-color"}
    for page in PAGES:
        for flag in re.findall(r"`(--[a-z-]+)", without_fences(page.read_text())):
            assert flag in known | foreign, f"{page.name}: no command has {flag}"


def test_the_list_of_faults_is_that_of_the_tests():
    done = tomllib.loads((ROOT / "tests" / "faults.toml").read_text())
    known = catalogue((DOCS / "what-can-go-wrong.md").read_text(), done)
    faults = [id_ for id_ in known.ids if not id_.startswith("promise")]
    families = sorted({id_[0] for id_ in faults})
    assert set(done["families"]) <= set(families)
    for family in families:
        numbers = [int(id_[1:]) for id_ in faults if id_[0] == family]
        assert numbers == list(range(1, len(numbers) + 1)), f"family {family} has gaps"
    rows = re.findall(r"^\| ([A-Z]\d\d) \|", (DOCS / "what-can-go-wrong.md").read_text(), re.MULTILINE)
    assert rows == faults, "an id stands twice"
    assert f"{len(faults)} faults" in (ROOT / "README.md").read_text()


def test_tests_name_only_faults_of_the_list():
    known = set(catalogue((DOCS / "what-can-go-wrong.md").read_text(), {"families": [], "promises": []}).ids)
    named = {
        id_
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
        for id_ in ids_in(name)
    }
    assert named
    assert named <= known


def test_decision_records_are_numbered_without_gaps_and_listed():
    records = sorted((DOCS / "adr").glob("0*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    index = (DOCS / "adr" / "README.md").read_text()
    for path in records:
        title, _, status = path.read_text().split("\n", 3)[:3]
        assert f"[{title.partition('. ')[2]}]({path.name})" in index
        assert status.startswith("Status: ")

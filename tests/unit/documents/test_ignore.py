"""Patterns of `.gitops-ctlignore`: as in `.gitignore`, without negation."""

import subprocess

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.ignore import parse_ignore

PATHS = (
    "values.yaml", "a/values.yaml", "a/b/values.yaml", "a/b/c/x.yaml", "b/x.yaml", "build/x.yaml", "a/build/x.yaml",
    "x.json", "xy.json", "a/x-1.yaml", "a/x-2.yaml", "docs/a/b.yaml", "docs/b.yaml", "[x].yaml", "a b.yaml", "#x.yaml",
)  # fmt: skip

PATTERNS = (
    "values.yaml", "/values.yaml", "a/values.yaml", "a/", "build/", "/build", "*.json", "?.json", "a/*.yaml", "a/**/x.yaml",
    "**/b", "**/b.yaml", "docs/**", "x-[12].yaml", "x-[!1].yaml", "x-[^2].yaml", "\\#x.yaml", "*", "a/*/", "**", "b", "a b.yaml",
    "*a*e*", "\\[x].yaml", "**/build/**", "a/**",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_hides_what_git_would_ignore(pattern, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")
    command = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin", "-z"]
    answer = subprocess.run(command, input="\0".join(PATHS).encode(), capture_output=True, check=False)
    expected = [path for path in answer.stdout.decode().split("\0") if path]
    rules = parse_ignore(f"{pattern}\n".encode(), folder="")
    assert [path for path in PATHS if rules.hides(path)] == expected


def test_patterns_count_from_their_own_folder():
    rules = parse_ignore(b"/values.yaml\n", folder="site")
    assert rules.hides("site/values.yaml")
    assert not rules.hides("site/a/values.yaml")


def test_comments_and_blank_lines_hide_nothing():
    assert parse_ignore(b"# all\n\n   \n", folder="").patterns == ()


@pytest.mark.parametrize("line", ["!keep.yaml", "x" * 600, "/", "a[z-a].yaml"])
def test_a_line_that_cannot_be_understood_is_an_error_with_its_line(line):
    rules = parse_ignore(f"# first\n{line}\n".encode(), folder="site")
    assert rules.patterns == ()
    assert [(one.code, one.file, one.line) for one in rules.problems] == [(ErrorCode.RULE, "site/.gitops-ctlignore", 2)]


def test_a_pattern_of_many_stars_takes_no_time():
    rules = parse_ignore(("*a" * 200 + "b\n" + "**/a/" * 90 + "x\n").encode(), folder="")
    assert not rules.hides("/".join(["a" * 200] * 60))

"""Builders for documents in tests: text in, one object or its problems out."""

import textwrap

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.loader import Document, Loaded, load
from gitops_ctl.documents.problem import Problem


def yaml_text(text: str) -> bytes:
    """A dedented literal as bytes."""
    return textwrap.dedent(text).lstrip("\n").encode()


def load_text(text: str, *, file: str = "site/a.yaml") -> Loaded:
    """What the loader makes of a literal."""
    return load(yaml_text(text), file=file)


def document(text: str, *, file: str = "site/a.yaml") -> Document:
    """The one sound document of a literal."""
    loaded = load_text(text, file=file)
    assert [problem for problem in loaded.problems if problem.is_error] == []
    (only,) = loaded.documents
    return only


def config_map(name: str = "a", *, namespace: str = "team-a", data: str = "{}") -> str:
    """Text of one ConfigMap; `data` is a flow mapping."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {data}\n"


def codes(problems: tuple[Problem, ...] | list[Problem]) -> list[ErrorCode]:
    """The codes in order."""
    return [problem.code for problem in problems]

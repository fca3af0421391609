"""Findings in the forms that people, scripts, code scanning and GitHub's annotations read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TextIO

from gitops_ctl import __version__
from gitops_ctl.cli.output import API_VERSION, clean, json_text
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.problem import Problem


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check found.

    Attributes:
        problems: in reading order; paths as they are shown.
        hidden: files that `.gitops-ctlignore` leaves out.
        server_only: admission policies that only the API server evaluates.
    """

    problems: tuple[Problem, ...]
    files: int
    documents: int
    hidden: tuple[str, ...] = ()
    server_only: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        return sum(1 for problem in self.problems if problem.is_error)

    @property
    def warnings(self) -> int:
        return len(self.problems) - self.errors

    @property
    def summary(self) -> str:
        text = f"{_count(self.errors, 'error')}, {_count(self.warnings, 'warning')} in {_count(self.documents, 'document')}"
        text += f" of {_count(self.files, 'file')}"
        if self.hidden:
            text += f"; {_count(len(self.hidden), 'file')} ignored"
        if self.server_only:
            text += f"; left to the API server: {', '.join(self.server_only)}"
        return text


def write_findings(findings: Findings, *, form: str, stream: TextIO) -> None:
    """Write them in one of `FORMS`."""
    stream.write(_WRITERS[form](findings))


def _as_text(findings: Findings) -> str:
    blocks = ["\n".join(clean(line) for line in problem.render().splitlines()) + "\n" for problem in findings.problems]
    return "\n".join([*blocks, f"{findings.summary}\n"])


def _as_json(findings: Findings) -> str:
    tree = {
        "apiVersion": API_VERSION,
        "kind": "Check",
        "files": findings.files,
        "documents": findings.documents,
        "errors": findings.errors,
        "warnings": findings.warnings,
        "hidden": list(findings.hidden),
        "serverOnly": list(findings.server_only),
        "problems": [_problem_tree(problem) for problem in findings.problems],
    }
    return json_text(tree)


def _problem_tree(problem: Problem) -> JsonObject:
    return {
        "code": problem.code.label,
        "slug": problem.code.slug,
        "severity": problem.severity,
        "message": problem.message,
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "document": problem.document,
        "pointer": problem.pointer,
        "object": "" if problem.object is None else str(problem.object),
        "hint": problem.advice,
    }


def _as_sarif(findings: Findings) -> str:
    codes = sorted({problem.code for problem in findings.problems}, key=lambda code: code.value.number)
    rules = [{"id": code.label, "name": code.slug, "help": {"text": code.fix}} for code in codes]
    driver = {"name": "gitops-ctl", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(problem) for problem in findings.problems]}
    tree = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json_text(tree)


def _sarif_result(problem: Problem) -> JsonObject:
    place: dict[str, object] = {"artifactLocation": {"uri": problem.file}}
    if problem.line:
        place["region"] = {"startLine": problem.line, "startColumn": max(1, problem.column)}
    location: dict[str, object] = {"physicalLocation": place}
    if problem.object is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": f"{problem.object}{problem.pointer}", "kind": "object"}]
    return {
        "ruleId": problem.code.label,
        "level": problem.severity,
        "message": {"text": f"{problem.message}. {problem.advice}"},
        "locations": [location],  # type: ignore[list-item]
    }


def _as_github(findings: Findings) -> str:
    return "".join(_annotation(problem) for problem in findings.problems)


def _annotation(problem: Problem) -> str:
    """One workflow command for each finding; GitHub shows it at the line."""
    parts = [f"file={_property(problem.file)}"]
    if problem.line:
        parts += [f"line={problem.line}", f"col={max(1, problem.column)}"]
    parts.append(f"title={_property(f'{problem.code.label} {problem.code.slug}')}")
    return f"::{problem.severity} {','.join(parts)}::{_data(f'{problem.message}. {problem.advice}')}\n"


def _data(text: str) -> str:
    return clean(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


_WRITERS: Final[Mapping[str, Callable[[Findings], str]]] = {
    "table": _as_text,
    "json": _as_json,
    "sarif": _as_sarif,
    "github": _as_github,
}
FORMS: Final = tuple(_WRITERS)
"""Values of `-o`, the default first."""

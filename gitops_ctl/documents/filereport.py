"""What one file gave: its findings, and the little that the check across files needs.  Small, and storable as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.problem import Problem, Severity
from gitops_ctl.documents.references import Node, Reference


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file.

    Attributes:
        digest: of the bytes.
        problems: of the loader and of the checks on single documents.
        nodes: the sound documents with what they refer to, in the order of the file; Git-only kinds are not among them.
        lines: where each of them begins.
        count: documents, Git-only ones included.
    """

    path: str
    digest: str
    problems: tuple[Problem, ...]
    nodes: tuple[Node, ...]
    lines: tuple[int, ...]
    count: int

    def to_json(self) -> list[Any]:
        """Nested lists; short, because ten thousand are read at every start."""
        return [
            self.digest,
            self.count,
            [_problem_row(problem) for problem in self.problems],
            [
                [*_parts(node.id), line, _reference_rows(node)]
                for node, line in zip(self.nodes, self.lines, strict=True)
            ],
        ]

    @classmethod
    def from_json(cls, path: str, row: Sequence[Any]) -> "FileReport":
        """The report of a row.

        Raises:
            ValueError, TypeError, KeyError, IndexError: the row was not written by `to_json`.
        """
        digest, count, problems, nodes = row
        return cls(
            path,
            str(digest),
            tuple(_problem(path, values) for values in problems),
            tuple(Node(ObjectId(*row[:4]), _references(row[5])) for row in nodes),
            tuple(row[4] for row in nodes),
            int(count),
        )


def _problem_row(problem: Problem) -> list[Any]:
    return [
        problem.code.name,
        problem.message,
        problem.line,
        problem.column,
        problem.document,
        problem.pointer,
        problem.hint,
        problem.severity,
        None if problem.object is None else list(_parts(problem.object)),
    ]


def _problem(path: str, row: Sequence[Any]) -> Problem:
    code, message, line, column, document, pointer, hint, severity, name = row
    kind: Severity = "error" if severity == "error" else "warning"
    about = None if name is None else ObjectId(*name)
    return Problem(ErrorCode[code], message, path, line, column, document, pointer, hint, kind, about)


def _reference_rows(node: Node) -> list[Any]:
    return [[*_parts(one.target), one.pointer, one.orders, one.strict] for one in node.references]


def _references(rows: Sequence[Any]) -> tuple[Reference, ...]:
    return tuple(Reference(ObjectId(*row[:4]), *row[4:]) for row in rows) if rows else ()


def _parts(name: ObjectId) -> tuple[str, str, str, str]:
    return name.group, name.kind, name.namespace, name.name

"""What is wrong with a document, where it is, and how to clear it.

A problem never holds a value of the document that could be secret: messages name places, types and keys.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    Attributes:
        file: path relative to the repository (or to the folder that is checked), with `/`.
        line, column: from 1; 0 when the whole file is meant.
        document: place among the documents of the file that are not empty, from 1; 0 for the whole file.
        pointer: JSON pointer inside the object; empty for the object itself.
        severity: an error holds its object and stops prune (gitops.md, section 5.2); a warning does neither.
        object: the object that the document declares, where that can be told.
    """

    code: ErrorCode
    message: str
    file: str
    line: int = 0
    column: int = 0
    document: int = 0
    pointer: str = ""
    hint: str = ""
    severity: Severity = "error"
    object: ObjectId | None = None

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    @property
    def advice(self) -> str:
        """The hint, or the general fix of the code."""
        return self.hint or self.code.fix

    def render(self) -> str:
        """Four parts in the order code, cause, place, hint."""
        where = [self.place]
        if self.document:
            where.append(f"document {self.document}")
        if self.pointer:
            where.append(self.pointer)
        return "\n".join(
            (
                f"{self.severity} {self.code.label} {self.code.slug}",
                f"  {self.message}",
                f"  place: {', '.join(where)}",
                f"  hint:  {self.advice}",
            )
        )


def in_reading_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """By file, line, column and code; equal ones once."""
    ordered = sorted(
        problems, key=lambda problem: (problem.file, problem.line, problem.column, problem.code.value.number)
    )
    return tuple(dict.fromkeys(ordered))

"""Rules between documents of one set: what one document says about another (gitops.md, section 5.1).

A domain registers its own.  The same rules judge the files of `gitops-ctl check` and those below the path of a Sync.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Problem

SetJudge: TypeAlias = Callable[[Sequence[Document], str], Iterable[Problem]]
"""From the documents, and the namespace of those that name none, to what is wrong."""


@dataclass(frozen=True, slots=True)
class SetRule:
    """One rule.

    Attributes:
        about: the kind that it begins with; a set without one is not asked.
        others: the further objects that it looks at, from the documents of that kind.
        judge: may get more documents than it needs.
    """

    about: GroupKind
    others: Callable[[Sequence[Document]], frozenset[ObjectId]]
    judge: SetJudge


_RULES: Final[dict[str, SetRule]] = {}


def register_set_rule(name: str, rule: SetRule) -> None:
    """Add a rule; it takes the place of one with the same name, whose options were others."""
    _RULES[name] = rule


def set_rules() -> tuple[SetRule, ...]:
    """Every registered rule."""
    return tuple(_RULES.values())


def judge_set(documents: Sequence[Document], *, namespace: str = "") -> list[Problem]:
    """What all rules say; `namespace` is that of documents that name none."""
    kinds = {document.id.group_kind for document in documents}
    return [problem for rule in _RULES.values() if rule.about in kinds for problem in rule.judge(documents, namespace)]


def without_echoes(found: Iterable[Problem], said: Sequence[Problem]) -> list[Problem]:
    """`found` without what a schema says about a place of which a rule in `said` speaks in its own words."""
    places = {(problem.file, problem.document, problem.object, problem.pointer) for problem in said}

    def is_echo(problem: Problem) -> bool:
        missing = problem.hint.removeprefix("add ") if problem.hint.startswith("add ") else ""
        pointers = (problem.pointer, f"{problem.pointer}/{missing}")
        schema = problem.code in (ErrorCode.SCHEMA, ErrorCode.NOT_A_STRING)
        return schema and any((problem.file, problem.document, problem.object, item) in places for item in pointers)

    return [problem for problem in found if not is_echo(problem)]

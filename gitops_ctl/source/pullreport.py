"""What a check of somebody's pull request is asked, and what it says: values that cross from one process to another as JSON.

The process that answers has read what a stranger wrote, so the answer is data and nothing else, and bounded (forges.md, section 11.3).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from gitops_ctl.core.conditions import cut
from gitops_ctl.core.errors import GitopsError, InternalError
from gitops_ctl.documents.problem import Problem
from gitops_ctl.source.pullplans import PullPlan

MOST_FINDINGS: Final = 50
MOST_TOUCHED: Final = 50
MOST_REFUSED: Final = 20
MOST_PATHS: Final = 5
_MESSAGE: Final = 500
_PLACE: Final = 300


@dataclass(frozen=True, slots=True)
class Order:
    """What to check.

    Attributes:
        repository: bare repository with both commits; what the check writes goes there.
        base: the accepted commit; policy, schemas and rules are read from it.
        head: the commit of the pull request.
        url, ref: of the source, for messages.
        root, root_digest: the pinned start.
        source: namespace and name of the GitSource.
        first_seen: (tip, moment) of the accepted history, oldest first.
        is_fork: the head lies in another repository.
    """

    repository: str
    base: str
    head: str
    url: str
    ref: str
    root: str
    root_digest: str
    policy_path: str
    source: tuple[str, str]
    first_seen: tuple[tuple[str, datetime], ...]
    now: datetime
    entries: int
    depth: int
    is_fork: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in the head and not in the base; `object` is held because of it."""

    severity: str
    code: str
    message: str
    place: str = ""
    hint: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A verb that the merge needs.

    Attributes:
        rule: the rule of the accepted policy that decides; empty when none does: then nobody may.
        persons: who holds a role of the rule.
        threshold: how many of them.
        distinct: whoever introduced what it authorises does not count.
        paths: the first ones; `more` counts the others.
        judged: persons whose signed commits in the head the rule accepts.
    """

    verb: str
    rule: str
    persons: tuple[str, ...]
    threshold: int
    distinct: bool
    paths: tuple[str, ...]
    more: int = 0
    judged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unaccepted:
    """A commit of the head that would be refused as it is."""

    commit: str
    reason: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Touched:
    """An object that the change adds, changes or removes."""

    action: str
    object: str


@dataclass(frozen=True, slots=True)
class PullReport:
    """What is said about one head.

    Attributes:
        findings: the first ones, errors before warnings; `errors` and `warnings` count all.
        conflicts: paths that cannot be merged without a person; the head is looked at as it is then.
        commits: that a merge would bring in; `proposed` of them are signed by a proposer's key.
        refused: the first ones of `refused_count`.
        trusted: the head lies in the same repository, and people of the policy signed all of it.
        by_forge: the policy takes merges that a forge signs.
        touched, devices, plans: empty unless `trusted`; the counts are of all.
        unready: why there is no report yet, by no fault of the head.
    """

    findings: tuple[Finding, ...] = ()
    errors: int = 0
    warnings: int = 0
    conflicts: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    commits: int = 0
    proposed: int = 0
    refused: tuple[Unaccepted, ...] = ()
    refused_count: int = 0
    trusted: bool = False
    by_forge: bool = False
    touched: tuple[Touched, ...] = ()
    touched_count: int = 0
    devices: tuple[str, ...] = ()
    device_count: int = 0
    plans: tuple[PullPlan, ...] = ()
    plan_count: int = 0
    unready: str = ""


def findings_of(problems: Iterable[Problem]) -> tuple[tuple[Finding, ...], int, int]:
    """The first findings, and how many errors and warnings there are."""
    ordered = sorted(problems, key=lambda problem: not problem.is_error)
    errors = sum(problem.is_error for problem in ordered)
    shown = tuple(_finding(problem) for problem in ordered[:MOST_FINDINGS])
    return shown, errors, len(ordered) - errors


def _finding(problem: Problem) -> Finding:
    return Finding(
        severity=problem.severity,
        code=f"{problem.code.label} {problem.code.slug}",
        message=cut(problem.message, limit=_MESSAGE),
        place=cut(f"{problem.place} {problem.pointer}".strip(), limit=_PLACE),
        hint=cut(problem.advice, limit=_PLACE),
        object="" if problem.object is None else cut(str(problem.object), limit=_PLACE),
    )


def report_of_error(error: GitopsError) -> PullReport:
    """The report on a head that could not be checked to the end."""
    finding = Finding(
        severity="error",
        code=f"{error.code.label} {error.code.slug}",
        message=cut(error.message, limit=_MESSAGE),
        place=cut(error.subject, limit=_PLACE),
        hint=cut(error.hint or error.code.fix, limit=_PLACE),
    )
    return PullReport(findings=(finding,), errors=1)


def order_to_bytes(order: Order) -> bytes:
    """For the process that checks."""
    return msgspec.json.encode(order)


def order_from_bytes(data: bytes) -> Order:
    """The order, in that process."""
    return msgspec.json.decode(data, type=Order)


def report_to_bytes(report: PullReport) -> bytes:
    """The answer."""
    return msgspec.json.encode(report)


def report_from_bytes(data: bytes) -> PullReport:
    """The answer, strictly.

    Raises:
        InternalError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=PullReport)
    except msgspec.DecodeError as error:
        raise InternalError(
            "the process that checks a pull request answered with something that cannot be read"
        ) from error

"""Checks a checkout: finds the files, takes over what is known, checks the rest, and then what lies between the files.

Only what is needed to find out that nothing changed is imported at the start; parser, schemas and policies come with the
first file that has to be read.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.charts import in_charts
from gitops_ctl.documents.checkcache import CheckCache, StoredRun, digest_of, program_key
from gitops_ctl.documents.filereport import FileReport
from gitops_ctl.documents.ignore import parse_ignore
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.references import check_references
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.documents.tree import is_ignore_file, select
from gitops_ctl.documents.worktree import WorkFile, control_files, scan

if TYPE_CHECKING:
    from gitops_ctl.documents.loader import Document

_CRD_MARK: Final = b"CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The version that policies see as `oldObject`: its id, and its objects when they are asked for."""

    tree: str
    load: Callable[[], Mapping[ObjectId, JsonObject]]


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check.

    Attributes:
        root: of the repository; paths in findings are relative to it.
        folders: below the root, `/`-separated; the empty string is the root itself.
        policies: files with admission policies.
        params: parameter objects that are known without a server, by the name of their policy.
        processes: how many at most; None for one per core.
        prepare: called before the first file is checked; registers the rules of higher rooms.
        about: kinds that rules between documents begin with; files without them are not read for such rules.
    """

    root: Path
    folders: tuple[str, ...] = ("",)
    policies: tuple[Path, ...] = ()
    params: Mapping[str, JsonObject] = field(default_factory=dict)
    accepted: Accepted | None = None
    processes: int | None = None
    prepare: Callable[[], None] | None = None
    about: frozenset[GroupKind] = frozenset()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found.  `checked` counts the files that had to be read by the parser; the rest was known."""

    problems: tuple[Problem, ...]
    files: int
    documents: int
    checked: int
    hidden: tuple[str, ...] = ()
    server_only: tuple[str, ...] = ()


@dataclass(slots=True)
class _Files:
    """The files of a run.  `hidden` ones are read for the objects they declare, their findings do not count."""

    shown: list[WorkFile] = field(default_factory=list)
    hidden: list[WorkFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def all(self) -> list[WorkFile]:
        return [*self.shown, *self.hidden]


def check_repository(request: CheckRequest, *, cache: CheckCache | None = None) -> CheckReport:
    """Check everything below the folders of the request.

    Raises:
        OSError: a file or folder cannot be read.
        Refused: a policy cannot be read or compiled.
    """
    scanned_ns = cache.now_ns() if cache is not None else 0
    stored = cache.load() if cache is not None else StoredRun()
    files = _find(request)
    digests, crds = _digests(request.root, files.all(), stored)
    stamps = {file.path: file.stamp for file in files.all()}
    key = _key(request, [f"{path} {digests[path]}" for path in sorted(crds)])
    known = {path: stored.report_of(path, digest, key=key) for path, digest in digests.items()}
    missing = [path for path, report in known.items() if report is None]
    reports = {path: report for path, report in known.items() if report is not None}
    fresh: list[FileReport] = []
    if missing:
        fresh = _check(request, missing, crds=sorted(crds))
        reports |= {report.path: report for report in fresh}
    if cache is not None and (missing or {path: row[0] for path, row in stored.rows.items()} != stamps):
        made = {report.path: report.to_json() for report in fresh}
        rows = {path: (stamp, made.get(path) or stored.rows[path][1]) for path, stamp in stamps.items()}
        cache.save(StoredRun(key, rows, frozenset(crds), scanned_ns))
    shown = [reports[file.path] for file in files.shown]
    hidden = [reports[file.path] for file in files.hidden]
    problems = [*files.problems, *(problem for report in shown for problem in report.problems)]
    problems.extend(_between(request.root, shown, hidden))
    problems = _with_set(request, shown, problems)
    return CheckReport(
        problems=in_reading_order(in_charts(problems)),
        files=len(shown),
        documents=sum(report.count for report in shown),
        checked=len(missing),
        hidden=tuple(file.path for file in files.hidden),
        server_only=_server_only(request),
    )


def _find(request: CheckRequest) -> _Files:
    found = _Files()
    seen: set[str] = set()
    for folder in request.folders:
        entries = {entry.path: entry for entry in scan(request.root, path=folder)}
        ignores = [
            parse_ignore((request.root / path).read_bytes(), folder=path.rpartition("/")[0])
            for path, entry in entries.items()
            if is_ignore_file(entry)
        ]
        chosen = select(entries.values(), path=folder, ignores=ignores)
        found.shown.extend(one for one in chosen.files if one.path not in seen)
        found.hidden.extend(one for one in chosen.hidden if one.path not in seen)
        found.problems.extend(chosen.problems)
        seen.update(entries)
    if "" in request.folders:
        found.shown.extend(control_files(request.root))
    return found


def _digests(root: Path, files: Iterable[WorkFile], stored: StoredRun) -> tuple[dict[str, str], set[str]]:
    """Digest of every file, and which of them hold CustomResourceDefinitions."""
    digests: dict[str, str] = {}
    crds: set[str] = set()
    for file in files:
        digest = stored.digest_of(file.path, file.stamp)
        if digest:
            holds_crds = file.path in stored.crds
        else:
            data = (root / file.path).read_bytes()
            digest, holds_crds = digest_of(data), _CRD_MARK in data
        digests[file.path] = digest
        if holds_crds:
            crds.add(file.path)
    return digests, crds


def _key(request: CheckRequest, crds: Sequence[str]) -> str:
    policies = [digest_of(path.read_bytes()) for path in request.policies]
    accepted = request.accepted.tree if request.accepted is not None else ""
    params = [json.dumps(request.params, sort_keys=True)] if policies else []
    parts = [program_key(), *crds, "policies", *policies, *params, "accepted", accepted]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _check(request: CheckRequest, paths: Sequence[str], *, crds: Sequence[str]) -> list[FileReport]:
    # Parser, schemas and CEL take longer to import than a run takes that finds everything known.
    from gitops_ctl.documents.filecheck import CheckInputs, check_files, crds_in, policies_in  # noqa: PLC0415

    if request.prepare is not None:
        request.prepare()
    inputs = CheckInputs(
        root=request.root,
        crds=crds_in(request.root, crds),
        policies=policies_in(request.policies),
        params=request.params,
        accepted=dict(request.accepted.load()) if request.accepted is not None else None,
    )
    return check_files(paths, inputs, processes=request.processes)


def _server_only(request: CheckRequest) -> tuple[str, ...]:
    if not request.policies:
        return ()
    from gitops_ctl.documents.filecheck import policies_in  # noqa: PLC0415
    from gitops_ctl.documents.policy import compile_policies  # noqa: PLC0415

    return compile_policies(policies_in(request.policies), params=request.params).server_only


def _between(root: Path, shown: Sequence[FileReport], hidden: Sequence[FileReport]) -> list[Problem]:
    """Objects that are declared twice, references and circles."""
    first: dict[ObjectId, tuple[FileReport, int]] = {}
    flaws: list[tuple[FileReport, ObjectId, int, Flaw]] = []
    for report in shown:
        for node, line in zip(report.nodes, report.lines, strict=True):
            known = first.setdefault(node.id, (report, line))
            if known != (report, line):
                message = f"{node.id} is declared twice, first in {known[0].path}:{known[1]}"
                flaws.append((report, node.id, line, Flaw(ErrorCode.DUPLICATE_IDENTITY, message)))
    broken = {problem.object for report in shown for problem in report.problems if problem.object is not None}
    declared = frozenset(first) | broken | {node.id for report in hidden for node in report.nodes}
    nodes = [node for report in shown for node in report.nodes if first[node.id][0] is report]
    for name, flaw in check_references(nodes, declared=declared):
        flaws.append((*_with_line(first[name], name), flaw))
    loaded: dict[str, dict[tuple[ObjectId, int], Document]] = {}
    for report, _, _, _ in flaws:
        if report.path not in loaded:
            loaded[report.path] = _documents_by_place(root, report)
    return [
        _placed(report, name, line=line, flaw=flaw, document=loaded[report.path].get((name, line)))
        for report, name, line, flaw in flaws
    ]


def _with_set(request: CheckRequest, shown: Sequence[FileReport], found: list[Problem]) -> list[Problem]:
    """With what the rules between documents say; the files that they look at are read once more, whatever is known of them."""
    first = [report for report in shown if any(node.id.group_kind in request.about for node in report.nodes)]
    if not first:
        return found
    if request.prepare is not None:
        request.prepare()
    from gitops_ctl.documents.setrules import judge_set, set_rules, without_echoes  # noqa: PLC0415

    documents = _documents(request.root, first)
    wanted = frozenset(name for rule in set_rules() for name in rule.others(documents))
    others = [report for report in shown if report not in first and any(node.id in wanted for node in report.nodes)]
    said = judge_set([*documents, *_documents(request.root, others)])
    return [*without_echoes(found, said), *said]


def _documents(root: Path, reports: Iterable[FileReport]) -> list["Document"]:
    from gitops_ctl.documents.loader import load  # noqa: PLC0415

    return [
        document
        for report in reports
        for document in load((root / report.path).read_bytes(), file=report.path).documents
    ]


def _with_line(place: tuple[FileReport, int], name: ObjectId) -> tuple[FileReport, ObjectId, int]:
    return place[0], name, place[1]


def _documents_by_place(root: Path, report: FileReport) -> dict[tuple[ObjectId, int], "Document"]:
    """Read the file once more: places are only needed for what is wrong."""
    from gitops_ctl.documents.loader import load  # noqa: PLC0415

    loaded = load((root / report.path).read_bytes(), file=report.path)
    return {(document.id, document.line): document for document in loaded.documents}


def _placed(report: FileReport, name: ObjectId, *, line: int, flaw: Flaw, document: "Document | None") -> Problem:
    if document is not None:
        return document.problem(flaw)
    return Problem(flaw.code, flaw.message, report.path, line, 1, pointer=flaw.pointer, hint=flaw.hint, object=name)

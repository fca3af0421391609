"""Checks files into reports, in as many processes as there are cores when there is enough to do.

Reading YAML holds the interpreter's lock, so threads would not help.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.batch import without_cycle_search
from gitops_ctl.documents.check import Checker, PolicyJudge
from gitops_ctl.documents.checkcache import digest_of
from gitops_ctl.documents.filereport import FileReport
from gitops_ctl.documents.loader import Document, load
from gitops_ctl.documents.references import Node, references_of
from gitops_ctl.documents.schema import SchemaCatalog
from gitops_ctl.documents.shape import GIT_ONLY_KINDS, POLICY_KINDS

_WORTH_A_POOL: Final = 400
_CHUNKS_PER_PROCESS: Final = 4


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """Everything besides the files; goes to other processes.

    Attributes:
        crds: documents of all CustomResourceDefinitions.
        policies: admission policies and their bindings.
        params: parameter objects that are known without a server, by the name of their policy.
        accepted: the accepted version of objects, by id.
    """

    root: Path
    crds: tuple[Document, ...] = ()
    policies: tuple[JsonObject, ...] = ()
    params: Mapping[str, JsonObject] = field(default_factory=dict)
    accepted: dict[ObjectId, JsonObject] | None = None


def check_files(paths: Sequence[str], inputs: CheckInputs, *, processes: int | None = None) -> list[FileReport]:
    """One report for each path, in the same order.

    Raises:
        OSError: a file cannot be read.
        Refused: RULE; a policy cannot be compiled.
    """
    count = processes if processes is not None else len(os.sched_getaffinity(0))
    if count < 2 or len(paths) < _WORTH_A_POOL:
        return _check_chunk(paths, inputs)
    size = -(-len(paths) // (count * _CHUNKS_PER_PROCESS))
    chunks = [paths[start : start + size] for start in range(0, len(paths), size)]
    # Most runs check a few files, and these modules take as long to import as checking ten of them.
    import multiprocessing  # noqa: PLC0415
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    # Forked children have the modules and the schemas already; the command line has no threads at this point.
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) as pool:
        futures = [pool.submit(_check_chunk, chunk, inputs) for chunk in chunks]
        return [report for future in futures for report in future.result()]


def _check_chunk(paths: Sequence[str], inputs: CheckInputs) -> list[FileReport]:
    with without_cycle_search(), _judge(inputs) as judge:
        checker = Checker(SchemaCatalog(crds=inputs.crds), judge)
        return [_check_file(path, checker, inputs) for path in paths]


def _judge(inputs: CheckInputs) -> AbstractContextManager[PolicyJudge | None]:
    if not inputs.policies:
        return nullcontext()
    # CEL is only needed where there are policies.
    from gitops_ctl.documents.guard import PolicyGuard  # noqa: PLC0415

    return PolicyGuard(inputs.policies, params=inputs.params)


def _check_file(path: str, checker: Checker, inputs: CheckInputs) -> FileReport:
    data = (inputs.root / path).read_bytes()
    loaded = load(data, file=path)
    accepted = inputs.accepted or {}
    found = list(loaded.problems)
    for document in loaded.documents:
        found.extend(checker.check(document, before=accepted.get(document.id)))
    applied = [document for document in loaded.documents if document.id.group_kind not in GIT_ONLY_KINDS]
    return FileReport(
        path=path,
        digest=digest_of(data),
        problems=tuple(found),
        nodes=tuple(Node(document.id, references_of(document.tree)) for document in applied),
        lines=tuple(document.line for document in applied),
        count=len(loaded.documents),
    )


def crds_in(root: Path, paths: Iterable[str]) -> tuple[Document, ...]:
    """The CustomResourceDefinitions in these files."""
    found = [load((root / path).read_bytes(), file=path) for path in paths]
    return tuple(
        document for loaded in found for document in loaded.documents if document.id.kind == "CustomResourceDefinition"
    )


def policies_in(paths: Iterable[Path]) -> tuple[JsonObject, ...]:
    """The admission policies and bindings in these files.

    Raises:
        OSError: a file cannot be read.
        Refused: a file cannot be read as documents.
    """
    trees: list[JsonObject] = []
    for path in paths:
        loaded = load(path.read_bytes(), file=path.name)
        for problem in loaded.problems:
            if problem.is_error:
                raise Refused(problem.message, code=problem.code, subject=f"{path}:{problem.line}", hint=problem.advice)
        trees.extend(document.tree for document in loaded.documents if document.id.group_kind in POLICY_KINDS)
    return tuple(trees)

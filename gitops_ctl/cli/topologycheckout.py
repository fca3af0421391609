"""The documents of a checkout that a forecast is made from: sources, snapshots, queues, and workloads that require a level."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.collection import DocumentSet, load_directory
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.documents.worktree import repository_root
from gitops_ctl.scheduling.forecast import Proposed
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue_documents import is_managed_queue, queue_flaws
from gitops_ctl.scheduling.required_documents import required_level_flaws, requirements_of
from gitops_ctl.scheduling.snapshot_documents import CONFIG_MAP, SOURCE, snapshot_problems
from gitops_ctl.scheduling.source_rules import source_problems

_LOCAL_QUEUE = GroupKind("kueue.x-k8s.io", "LocalQueue")
_CHECK = "`gitops-ctl check` shows all of them"


@dataclass(frozen=True, slots=True)
class CheckoutDocuments:
    """What a checkout declares.

    Attributes:
        requiring: documents that require a topology level.
    """

    proposed: Proposed
    local_queues: tuple[JsonObject, ...]
    requiring: tuple[Document, ...]


def checkout_documents(folder: Path, *, options: Options, default_namespace: str = "") -> CheckoutDocuments:
    """Read the documents below a folder.

    Raises:
        Refused: a document that matters has an error; it would be held, so nothing can be said about it.
    """
    root = repository_root(folder)
    whole = folder.resolve()
    found = load_directory(root, path="" if whole == root else whole.relative_to(root).as_posix())
    _require_sound(_problems(found, options, default_namespace))
    documents = found.documents
    return CheckoutDocuments(
        Proposed(
            sources=tuple(one.tree for one in documents if one.id.group_kind == SOURCE),
            config_maps={
                (one.id.namespace or default_namespace, one.id.name): one.tree
                for one in documents
                if one.id.group_kind == CONFIG_MAP
            },
            queues=tuple(one.tree for one in documents if is_managed_queue(one.tree)),
        ),
        tuple(one.tree for one in documents if one.id.group_kind == _LOCAL_QUEUE),
        tuple(one for one in documents if any(requirements_of(one.tree))),
    )


def _problems(found: DocumentSet, options: Options, default_namespace: str) -> Iterable[Problem]:
    """Everything that would hold a document of ours; a file that cannot be read may hold one."""
    yield from (problem for problem in found.problems if problem.is_error)
    for document in found.documents:
        if document.id.group_kind == SOURCE:
            for wrong in source_problems(document.tree, options=options):
                yield document.problem(Flaw(ErrorCode.RULE, str(wrong)))
        yield from map(document.problem, queue_flaws(document.tree, None) if is_managed_queue(document.tree) else ())
        yield from map(document.problem, required_level_flaws(document))
    yield from snapshot_problems(found.documents, options=options, default_namespace=default_namespace)


def _require_sound(problems: Iterable[Problem]) -> None:
    found = in_reading_order(problems)
    if not found:
        return
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    message = f"{first.message}{more}: the document would be held, so its effect is unknown"
    subject = f"{first.file}:{first.line}" if first.line else first.file
    raise Refused(message, code=first.code, subject=subject, hint=f"{first.advice}; {_CHECK}")

"""Checks documents, all findings in one run, in this order: YAML, kind, schema, rules of the contracts, policies, references.

The loader has done the first step.  What concerns one document is in `check_document` and may be kept as long as the document,
the schemas and the policies are the same; what lies between documents is in `check_between`.  gitops.md, section 5.1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from gitops_ctl.api.names import GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.holds import HoldQuestion, hold_of
from gitops_ctl.documents.identity import fill_identity, has_identity, uncommitted
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.ours import check_ours
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.references import Node, check_references, references_of
from gitops_ctl.documents.rules import check_rules
from gitops_ctl.documents.schema import SchemaCatalog
from gitops_ctl.documents.setrules import judge_set, without_echoes
from gitops_ctl.documents.shape import GIT_ONLY_KINDS, Flaw

_SOURCE = GroupKind(GROUP, "GitSource")


class PolicyJudge(Protocol):
    """What evaluates admission policies: a `PolicyGuard`, which most runs do not need."""

    def judge(self, document: Document, *, resource: str, before: JsonObject | None) -> list[Flaw]:
        """What the policies say against a document; `resource` is the plural of its kind."""
        ...


@dataclass(frozen=True, slots=True)
class Checker:
    """What single documents are checked with."""

    catalog: SchemaCatalog
    policies: PolicyJudge | None = None

    def check(self, document: Document, *, before: JsonObject | None = None) -> list[Problem]:
        """Everything that is wrong in one document; `before` is its accepted version."""
        document = _with_names(document, before=before)
        found = self.catalog.check(document)
        if not any(problem.is_error for problem in found):
            found.extend(document.problem(flaw) for flaw in check_ours(document))
        found.extend(check_rules(document))
        hold = hold_of(HoldQuestion(document.tree, before)) if before is not None else None
        if hold is not None:
            # It refuses no commit: what is missing may come in another one.
            found.append(document.problem(replace(hold, severity="warning")))
        if self.policies is not None and document.id.group_kind not in GIT_ONLY_KINDS:
            resource = self.catalog.plural_of(document.gvk)
            flaws = self.policies.judge(document, resource=resource, before=before)
            found.extend(document.problem(flaw) for flaw in flaws)
        return found


def _with_names(document: Document, *, before: JsonObject | None) -> Document:
    """The document as a Sync completes it: with names of people that Git leaves out."""
    if not has_identity(document.id.group_kind):
        return document
    filled = fill_identity(document.tree, provenance=uncommitted(), live=before)
    return document if isinstance(filled, Flaw) else replace(document, tree=filled)


def check_set(
    document_set: DocumentSet,
    *,
    catalog: SchemaCatalog,
    policies: PolicyJudge | None = None,
    before: DocumentSet | None = None,
    own_source: NamespacedName | None = None,
) -> tuple[Problem, ...]:
    """Every finding in a set, those of the loader included, in reading order.

    Args:
        document_set: what Git declares.
        catalog: schemas; CustomResourceDefinitions of the set have to be in it.
        policies: admission policies.
        before: the accepted version, for `oldObject`.
        own_source: the GitSource that the set comes from, where that is known.
    """
    checker = Checker(catalog, policies)
    accepted = before.by_id if before is not None else {}
    found = [*document_set.problems, *document_set.warnings]
    for document in (*document_set.documents, *document_set.git_only):
        old = accepted.get(document.id)
        found.extend(checker.check(document, before=None if old is None else old.tree))
    if own_source is not None:
        found.extend(check_own_source(document_set, own=own_source))
    found.extend(_between(document_set))
    said = judge_set(document_set.documents)
    return in_reading_order([*without_echoes(found, said), *said])


def check_between(
    nodes: Iterable[Node], *, declared: frozenset[ObjectId], documents: Mapping[ObjectId, Document]
) -> list[Problem]:
    """References and circles; `documents` gives the places of those that have one."""
    return [
        documents[name].problem(flaw) for name, flaw in check_references(nodes, declared=declared) if name in documents
    ]


def _between(document_set: DocumentSet) -> list[Problem]:
    nodes = [Node(document.id, references_of(document.tree)) for document in document_set.documents]
    declared = document_set.declared | document_set.hidden_ids
    return check_between(nodes, declared=declared, documents=document_set.by_id)


def check_own_source(document_set: DocumentSet, *, own: NamespacedName) -> list[Problem]:
    """A repository must not change where it is read from (gitops.md, section 23.1)."""
    document = document_set.by_id.get(ObjectId(_SOURCE.group, _SOURCE.kind, own.namespace, own.name))
    if document is None:
        return []
    message = f"the documents come from the GitSource {own}, so they may not declare it"
    return [document.problem(Flaw(ErrorCode.OWN_SOURCE, message))]

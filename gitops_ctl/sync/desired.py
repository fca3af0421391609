"""From the documents of one revision to the objects that a unit asks for (gitops.md, sections 4.7, 5.2 and 7.2).

Pure.  A document error holds its object and stops prune; what cannot be read holds the objects that came from its file.
Consent is never read from the annotation alone: it counts when provenance knows the person who introduced it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import (
    ANNOTATION_APPLY,
    ANNOTATION_DEPENDS_ON,
    ANNOTATION_INTRODUCED_BY,
    ANNOTATION_INTRODUCED_COMMIT,
    CONSENT_ANNOTATIONS,
    GROUP,
)
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.holds import has_rules
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.problem import Problem
from gitops_ctl.sync.model import Consented, Desired, DesiredState, Held, Mode, OwnerId, Standing, short_digest
from gitops_ctl.sync.order import CRD, in_waves, stage_of
from gitops_ctl.sync.transform import transformed
from gitops_ctl.trust.provenance import Introduced, Provenance

GIT_ONLY: Final = frozenset({GroupKind(GROUP, "TrustPolicy"), GroupKind(GROUP, "Consent")})
"""Kinds that are checked wherever they are and never applied."""

NOBODY: Final = Standing()
_EDIT: Final = "edit"
_CONSENT: Final = "consent"

Scope = Callable[[GroupVersionKind], bool | None]
"""Whether a kind is namespaced; None when neither the cluster nor the unit knows it."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another Sync of the same source, as far as it may make other objects of the same documents."""

    sync: str
    path: str
    namespace: str
    is_other_cluster: bool

    def reads(self, file: str) -> bool:
        """Whether a file of the repository is below its folder."""
        folder = self.path.strip("/")
        return folder in ("", ".") or file.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class UnitSpec:
    """What desired objects depend on beside the documents."""

    owner: OwnerId
    target_namespace: str = ""
    hold_unit: bool = False
    elsewhere: tuple[Elsewhere, ...] = ()


def desired_state(
    documents: DocumentSet,
    *,
    unit: UnitSpec,
    provenance: Provenance,
    is_namespaced: Scope,
    known: Mapping[ObjectId, Desired] | None = None,
) -> DesiredState:
    """The objects of a unit, those that a document error holds, and what else Git says about identities.

    `known` are objects of an earlier revision of the same unit; those whose document is the same are taken over.
    """
    definitions = [document for document in documents.documents if document.id.group_kind == CRD]
    scope = _with_definitions(definitions, is_namespaced)
    builder = _Builder(unit, provenance, scope, known or {})
    errors = [problem for problem in documents.problems if problem.is_error]
    builder.hold_problems(errors)
    for document in documents.documents:
        builder.add(document)
    builder.hold_cycles()
    complete = not errors and not builder.faulty
    return DesiredState(
        objects=builder.objects,
        held=tuple(builder.held.values()),
        hidden=frozenset(builder.located(item) for item in documents.hidden_ids),
        hidden_files=documents.hidden_broken,
        broken_files={name: _unreadable(problem) for name, problem in documents.unreadable.items()},
        complete=complete,
        unit_held=unit.hold_unit and not complete,
        unsettled=any(scope(found.gvk) is None for found in builder.objects.values()),
        definitions={_defined_kind(document.tree): document.id for document in definitions},
    )


def _unreadable(problem: Problem) -> Held:
    """A file that cannot be read, for the time that it is not known which objects it held."""
    return Held(ObjectId("", "File", "", problem.file), problem.code, problem.message, problem.file, problem.line)


def _defined_kind(tree: JsonObject) -> GroupKind:
    return GroupKind(text_at(tree, "spec", "group"), text_at(tree, "spec", "names", "kind"))


def _with_definitions(definitions: Iterable[Document], is_namespaced: Scope) -> Scope:
    """`is_namespaced`, with the definitions of the unit itself for kinds that the cluster does not serve yet."""
    own = {_defined_kind(document.tree): text_at(document.tree, "spec", "scope") for document in definitions}
    known: dict[GroupVersionKind, bool | None] = {}

    def scope(gvk: GroupVersionKind) -> bool | None:
        if gvk not in known:
            found = is_namespaced(gvk)
            defined = own.get(gvk.group_kind)
            known[gvk] = defined == "Namespaced" if found is None and defined else found
        return known[gvk]

    return scope


class _Builder:
    """Collects objects and held ones of one revision; lives for one call."""

    def __init__(self, unit: UnitSpec, provenance: Provenance, scope: Scope, known: Mapping[ObjectId, Desired]) -> None:
        self.unit = unit
        self.provenance = provenance
        self.scope = scope
        self.known = known
        self.objects: dict[ObjectId, Desired] = {}
        self.held: dict[ObjectId, Held] = {}
        self.faulty = False

    def located(self, identity: ObjectId, *, version: str = "") -> ObjectId:
        """The identity with the target namespace where the document names none and its kind has one."""
        if identity.namespace or not self.unit.target_namespace:
            return identity
        if self.scope(GroupVersionKind(identity.group, version, identity.kind)) is False:
            return identity
        return ObjectId(identity.group, identity.kind, self.unit.target_namespace, identity.name)

    def hold_problems(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if problem.object is not None:
                identity = self.located(problem.object)
                held = Held(identity, problem.code, problem.message, problem.file, problem.line)
                self.held.setdefault(identity, held)

    def add(self, document: Document) -> None:
        if document.id.group_kind in GIT_ONLY:
            return
        identity = self.located(document.id, version=document.gvk.version)
        if identity in self.held:
            return
        fault = self._fault(identity, document)
        if fault is not None:
            self.held[identity] = Held(identity, *fault, document.file, document.line)
            self.faulty = True
            return
        before = self.known.get(identity)
        if before is not None and self._is_the_same(before, document):
            self.objects[identity] = before
            return
        annotations = object_at(document.tree, "metadata", "annotations")
        try:
            depends_on, mode = _dependencies(annotations), Mode(text_at(annotations, ANNOTATION_APPLY))
        except ValueError as error:
            self.held[identity] = Held(identity, ErrorCode.ANNOTATION_INVALID, str(error), document.file, document.line)
            self.faulty = True
            return
        by = self.provenance.about(document.id)
        introduced = _introduced(by)
        self.objects[identity] = Desired(
            id=identity,
            gvk=document.gvk,
            tree=transformed(document.tree, kind=identity.group_kind),
            digest=self._digest(document, identity, introduced),
            file=document.file,
            line=document.line,
            stage=stage_of(identity.group_kind),
            owner=self.unit.owner,
            introduced=introduced,
            depends_on=depends_on,
            mode=mode,
            consents=_consents(by, annotations),
            standing=self._standing(document, identity, by) if has_rules(identity.group_kind) else NOBODY,
        )

    def _standing(self, document: Document, identity: ObjectId, by: Mapping[str, Introduced]) -> Standing:
        """Who stands behind the fields; a consent that would count for the object of another Sync too counts for neither."""
        void = self.provenance.void_of(document.id)
        twin = next((one for one in self.unit.elsewhere if _is_twin(one, document, identity)), None)
        if twin is None:
            return Standing(by, void)
        shared = {pointer for pointer, item in by.items() if item.verb == _CONSENT}
        why = (
            f"Sync {twin.sync} makes another object of this document, and one consent speaks for one object: "
            "give each its own document, with its namespace"
        )
        left = {pointer: item for pointer, item in by.items() if pointer not in shared}
        return Standing(left, {**void, **dict.fromkeys(shared, why)})

    def _is_the_same(self, before: Desired, document: Document) -> bool:
        """Whether an object was made from this very document; what somebody stands behind is always looked at again."""
        return (
            before.tree is document.tree
            and (before.file, before.line) == (document.file, document.line)
            and before.owner == self.unit.owner
            and CONSENT_ANNOTATIONS.isdisjoint(object_at(document.tree, "metadata", "annotations"))
            and not has_rules(document.id.group_kind)
            and not before.introduced
            and not self.provenance.about(document.id)
        )

    def hold_cycles(self) -> None:
        for held in in_waves({item: found for item, found in self.objects.items() if found.depends_on}).cycles:
            self.held[held.id] = held
            del self.objects[held.id]
            self.faulty = True

    def _fault(self, identity: ObjectId, document: Document) -> tuple[ErrorCode, str] | None:
        owner = self.unit.owner
        if (identity.group, identity.kind) == (GROUP, "GitSource") and (identity.namespace, identity.name) == (
            owner.namespace,
            owner.source,
        ):
            return ErrorCode.OWN_SOURCE, "the document would change the GitSource that it comes from"
        if not identity.namespace and self.scope(document.gvk):
            return ErrorCode.RULE, "the document names no namespace, and spec.targetNamespace of the Sync is not set"
        return None

    def _digest(self, document: Document, identity: ObjectId, introduced: Mapping[str, str]) -> str:
        marks = "".join(f"\n{name}={value}" for name, value in sorted(introduced.items()))
        return short_digest(f"{document.digest}\n{identity.namespace}\n{self.unit.owner.label}{marks}".encode())


def _is_twin(one: Elsewhere, document: Document, identity: ObjectId) -> bool:
    """Whether another Sync makes an object of the document that is not this one."""
    if not one.reads(document.file):
        return False
    moves = bool(one.namespace and identity.namespace and not document.id.namespace)
    return one.is_other_cluster or (moves and one.namespace != identity.namespace)


def _dependencies(annotations: JsonObject) -> tuple[ObjectId, ...]:
    text = text_at(annotations, ANNOTATION_DEPENDS_ON)
    return tuple(ObjectId.parse(part.strip()) for part in text.split(",") if part.strip()) if text else ()


def _consents(by: Mapping[str, Introduced], annotations: JsonObject) -> dict[str, Consented]:
    """The consent annotations that a person introduced, by name."""
    found = {
        name: by.get(pointer_of(("metadata", "annotations", name))) for name in CONSENT_ANNOTATIONS & set(annotations)
    }
    return {
        name: Consented(text_at(annotations, name), item.commit) for name, item in found.items() if item is not None
    }


def _introduced(fields: Mapping[str, Introduced]) -> dict[str, str]:
    """The two annotations, newest introducer per verb; none when nothing authorising was introduced."""
    newest: dict[str, Introduced] = {}
    for item in fields.values():
        if item.verb == _EDIT:
            continue  # what a consent speaks about, not an authorising field itself
        if item.verb not in newest or item.at > newest[item.verb].at:
            newest[item.verb] = item
    if not newest:
        return {}
    verbs = sorted(newest)
    return {
        ANNOTATION_INTRODUCED_BY: ",".join(f"{verb}={newest[verb].person}" for verb in verbs),
        ANNOTATION_INTRODUCED_COMMIT: ",".join(f"{verb}={newest[verb].commit}" for verb in verbs),
    }


def is_consented(desired: Desired | None, annotation: str, value: str) -> bool:
    """Whether a person consented to exactly this value of an annotation, by a signed commit."""
    found = desired.consents.get(annotation) if desired is not None else None
    return found is not None and found.value == value


NOTHING: Final = DesiredState(objects={}, complete=False)
"""What a unit asks for while nothing could be loaded; never a reason to prune."""

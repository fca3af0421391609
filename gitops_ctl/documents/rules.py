"""Rules of the contracts about single documents: the same functions that the planners use, by kind.

A domain registers its own; this module holds those that belong to no domain.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from gitops_ctl.api.names import GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.documents.annotations import check_annotations
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Problem
from gitops_ctl.documents.shape import Flaw

Check: TypeAlias = Callable[[Document], Iterable[Flaw]]

CONSENT_FOLDER: Final = ".gitops-ctl/consents"
_CHECKS: Final[dict[GroupKind, list[Check]]] = {}
_GENERAL: Final[list[Check]] = []


def register_check(group_kind: GroupKind, check: Check) -> None:
    """Add a rule for a kind; rules run in the order in which they were registered."""
    _CHECKS.setdefault(group_kind, []).append(check)


def register_general_check(check: Check) -> None:
    """Add a rule for every kind; it must be quick for documents that it has nothing to say about."""
    if check not in _GENERAL:
        _GENERAL.append(check)


def check_rules(document: Document) -> list[Problem]:
    """What the rules of its kind, and those for every kind, say about a document."""
    flaws = list(check_annotations(document.tree))
    for check in (*_CHECKS.get(document.id.group_kind, ()), *_GENERAL):
        flaws.extend(check(document))
    return [document.problem(flaw) for flaw in flaws]


def _secret(document: Document) -> Iterator[Flaw]:
    """Applied like any other, but its values are readable for everybody who can read the repository (section 23.7)."""
    if object_at(document.tree, "data") or object_at(document.tree, "stringData"):
        yield Flaw(ErrorCode.PLAIN_SECRET, "the Secret has its values in Git", severity="warning")


def _consent(document: Document) -> Iterator[Flaw]:
    """One per file, in the folder for consents (section 4.4)."""
    if not document.file.startswith(f"{CONSENT_FOLDER}/"):
        hint = f"move it to a file of its own in {CONSENT_FOLDER}/"
        yield Flaw(ErrorCode.MISPLACED, f"a Consent belongs into {CONSENT_FOLDER}", hint=hint)
    if document.index > 1 or document.base:
        yield Flaw(ErrorCode.MISPLACED, "a Consent needs a file of its own", hint="one Consent for each file")


def _sync(document: Document) -> Iterator[Flaw]:
    """A Sync that waits for itself never starts."""
    name = document.id.name
    others = object_at(document.tree, "spec").get("dependsOn")
    entries = others if isinstance(others, list) else []
    for place, entry in enumerate(entries):
        if entry == name or (isinstance(entry, dict) and text_at(entry, "name") == name):
            yield Flaw(ErrorCode.DEPENDENCY_CYCLE, f"the Sync {name} depends on itself", f"/spec/dependsOn/{place}")


register_check(GroupKind("", "Secret"), _secret)
register_check(GroupKind(GROUP, "Consent"), _consent)
register_check(GroupKind(GROUP, "Sync"), _sync)

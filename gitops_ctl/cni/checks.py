"""What `gitops-ctl check` and a Sync say about annotations of the Talos kinds: a misspelt one would be ignored in silence.

Names of the group that are nothing like ours belong to somebody else and are left alone (cni-switch.md, sections 3.1 and 3.2).
"""

import difflib
from collections.abc import Iterator
from typing import Final

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ANNOTATION_HOLD, ICHOR_GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import object_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.rules import register_check
from gitops_ctl.documents.shape import Flaw

_VALUES: Final = {ANNOTATION_CONFIRM_SWITCH: ("enabled", "replaced"), ANNOTATION_HOLD: ("true", "false")}
_ON: Final = {ANNOTATION_CONFIRM_SWITCH: "TalosCluster", ANNOTATION_HOLD: "TalosMachine"}
_ALIKE: Final = 0.85


def annotation_flaws(document: Document) -> Iterator[Flaw]:
    """Warnings about names and values; none of them holds the object, which needs no annotation to be what it is."""
    for name, value in object_at(document.tree, "metadata", "annotations").items():
        if name.startswith(f"{ICHOR_GROUP}/"):
            yield from _about(document, name, value)


def _about(document: Document, name: str, value: object) -> Iterator[Flaw]:
    pointer = pointer_of(("metadata", "annotations", name))
    if name not in _VALUES:
        for near in difflib.get_close_matches(name, list(_VALUES), n=1, cutoff=_ALIKE):
            yield _warning(f"there is no annotation {name}", pointer, hint=f"did you mean {near}?")
    elif document.id.kind != _ON[name]:
        yield _warning(f"{name} means nothing on a {document.id.kind}", pointer, hint=f"it belongs on a {_ON[name]}")
    elif value not in _VALUES[name]:
        yield _warning(f"{name} is none of {', '.join(_VALUES[name])}", pointer)


def _warning(message: str, pointer: str, *, hint: str = "") -> Flaw:
    return Flaw(ErrorCode.ANNOTATION_INVALID, message, pointer, hint, severity="warning")


for _kind in ("TalosCluster", "TalosMachine"):
    register_check(GroupKind(ICHOR_GROUP, _kind), annotation_flaws)

"""The annotations that people write for us in Git, and what their values may be (gitops.md, section 22.4).

A misspelt name would be ignored in silence, and an ignored `prune: disabled` deletes something: names of our group that
nobody registered are errors.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from gitops_ctl.api import names
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw

ValueCheck: TypeAlias = Callable[[str, ObjectId], str]
"""From the value and the object it sits on to what is wrong with it; empty when nothing is."""

_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SYNC: Final = GroupKind(names.GROUP, "Sync")
_PREFIX: Final = f"{names.GROUP}/"


def depends_on(tree: JsonObject) -> tuple[ObjectId, ...]:
    """The objects that an object waits for, in the order in which they are written.

    Raises:
        ValueError: an entry is no `<Kind>.<group>/<namespace>/<name>`.
    """
    value = text_at(tree, "metadata", "annotations", names.ANNOTATION_DEPENDS_ON)
    return tuple(ObjectId.parse(entry.strip()) for entry in value.split(",")) if value.strip() else ()


def check_annotations(tree: JsonObject) -> Iterator[Flaw]:
    """Names and values of our annotations on one object."""
    for name, value in object_at(tree, "metadata", "annotations").items():
        if not name.startswith(_PREFIX) or not isinstance(value, str) or name in names.WRITTEN_BY_CONTROLLER:
            continue
        pointer = pointer_of(("metadata", "annotations", name))
        check = _CHECKS.get(name)
        if check is None:
            near = difflib.get_close_matches(name, list(_CHECKS), n=1)
            hint = f"did you mean {near[0]}?" if near else "remove it"
            yield Flaw(ErrorCode.ANNOTATION_INVALID, f"there is no annotation {name}", pointer, hint)
            continue
        wrong = check(value, ObjectId.of(tree))
        if wrong:
            yield Flaw(ErrorCode.ANNOTATION_INVALID, f"{name} {wrong}", pointer)


def register_annotation(name: str, check: ValueCheck) -> None:
    """Make one more annotation of our group known; a domain does this for its own.

    Raises:
        ValueError: it is registered already.
    """
    if name in _CHECKS:
        raise ValueError(f"{name} is registered twice")
    _CHECKS[name] = check


def one_of(*allowed: str) -> ValueCheck:
    """A check for a fixed set of values."""

    def check(value: str, _: ObjectId) -> str:
        return "" if value in allowed else f"is none of {', '.join(allowed)}"

    return check


def _references(value: str, owner: ObjectId) -> str:
    for entry in value.split(","):
        try:
            target = ObjectId.parse(entry.strip())
        except ValueError:
            return "needs a comma list of <Kind>.<group>/<namespace>/<name>"
        if target == owner:
            return "names the object itself"
    return ""


def _uid(value: str, _: ObjectId) -> str:
    return "" if _UID.fullmatch(value) else "needs the UID of the live object"


def _prune_set(value: str, owner: ObjectId) -> str:
    if owner.group_kind != _SYNC:
        return "belongs on a Sync"
    return "" if _DIGEST.fullmatch(value) else "needs the digest of the set, sha256: and 64 hex digits"


def _anything(_: str, __: ObjectId) -> str:
    return ""


_CHECKS: Final[dict[str, ValueCheck]] = {
    names.ANNOTATION_APPLY: one_of(*names.APPLY_MODES),
    names.ANNOTATION_DEPENDS_ON: _references,
    names.ANNOTATION_PRUNE: one_of(names.PRUNE_DISABLED),
    names.ANNOTATION_PROPAGATION: one_of(*names.PROPAGATION_POLICIES),
    names.ANNOTATION_RECREATE: _uid,
    names.ANNOTATION_ALLOW_PRUNE: _prune_set,
    names.ANNOTATION_REQUESTED_AT: _anything,
}


def known_annotations() -> Mapping[str, ValueCheck]:
    """Every registered name."""
    return dict(_CHECKS)

"""Documents whose live values stand in place of Git's for a while (rollouts.md, section 2.6, "Emergency stop").

A domain registers the one function that decides it for objects of its kind.  The same function answers a Sync before it applies
and before it looks for drift, and a comparison: what it keeps is neither put back nor told as a difference.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject

Keep: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject]
"""From the document and the live object to the document as it is applied now; pure."""

_KEEPS: Final[dict[GroupKind, Keep]] = {}


def register_living(group_kind: GroupKind, keep: Keep) -> None:
    """Say what of a live object stands in place of Git's.

    Raises:
        RuntimeError: it was said already.
    """
    if group_kind in _KEEPS:
        raise RuntimeError(f"what stays of a live {group_kind} is registered twice")
    _KEEPS[group_kind] = keep


def with_living(tree: JsonObject, *, live: JsonObject | None) -> JsonObject:
    """The document with what stands in place of Git's; as it is where there is no live object, or nothing stays."""
    keep = _KEEPS.get(GroupVersionKind.of(tree).group_kind)
    return tree if keep is None or live is None else keep(tree, live)

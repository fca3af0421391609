"""What is done to a document before it is compared or sent, by kind; used by sync and diff alike (gitops.md, section 7.2)."""

import base64
from collections.abc import Callable
from typing import Final

from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at

Transform = Callable[[JsonObject], JsonObject]

_TRANSFORMS: Final[dict[GroupKind, Transform]] = {}


def register_transform(kind: GroupKind, transform: Transform) -> None:
    """Give a kind its pure transform.

    Raises:
        ValueError: the kind has one.
    """
    if kind in _TRANSFORMS:
        raise ValueError(f"{kind} has a transform")
    _TRANSFORMS[kind] = transform


def transformed(tree: JsonObject, *, kind: GroupKind) -> JsonObject:
    """The document as it is applied."""
    transform = _TRANSFORMS.get(kind)
    return transform(tree) if transform is not None else tree


def _secret(tree: JsonObject) -> JsonObject:
    """`stringData` as `data`: the server stores it there, and only what is applied there is owned and compared."""
    texts = object_at(tree, "stringData")
    if not texts:
        return tree
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in texts.items()}
    rest = {key: value for key, value in tree.items() if key != "stringData"}
    return {**rest, "data": {**object_at(tree, "data"), **encoded}}


register_transform(GroupKind("", "Secret"), _secret)

"""What is kept of a live object: one digest and a few facts (gitops.md, section 11).

The digest covers the live values of exactly the fields that our manager's entry in `managedFields` lists, and so the entry
itself.  It is taken from the server's answer to our apply and, by the same function, from every object that an informer
decodes.  Equal digests mean: nobody changed what we declared.  Defaults, normalised values, order of sets and fields of
other managers cannot make a difference (S06, S12, S14, S15); losing a field to another manager can.
"""

import json
from typing import Final

import msgspec

from gitops_ctl.api.names import (
    ANNOTATION_OWNER_ID,
    ANNOTATION_PROPAGATION,
    ANNOTATION_PRUNE,
    FIELD_MANAGER,
    PRUNE_DISABLED,
)
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, list_at, object_at, objects_at, text_at
from gitops_ctl.sync.health import health_of
from gitops_ctl.sync.model import View, short_digest
from gitops_ctl.sync.order import RBAC_GROUP

_ABSENT: Final = "\x00absent"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def our_fields(tree: JsonObject) -> JsonObject:
    """The `fieldsV1` tree of what we applied; empty when no apply of ours stands on the object."""
    for entry in list_at(tree, "metadata", "managedFields"):
        if (
            isinstance(entry, dict)
            and entry.get("manager") == FIELD_MANAGER
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            return object_at(entry, "fieldsV1")
    return EMPTY


def live_values(value: JsonValue, fields: JsonObject) -> JsonValue:
    """The part of a value that a `fieldsV1` tree names, in the shape of that tree.

    List elements are found by their key or value, never by their place, unless the tree names a place.
    """
    if not fields:
        return value
    return {key: _member(value, key, below) for key, below in fields.items()}


# Objects come from the JSON decoder, so their trees are dicts and lists: the exact test is many times faster than that of
# the abstract classes, and this runs for every object that is decoded.
def _member(value: JsonValue, key: str, below: JsonValue) -> JsonValue:
    deeper = below if isinstance(below, dict) else EMPTY
    name = key[2:]
    match key[:2]:
        case "f:" if isinstance(value, dict):
            return live_values(value[name], deeper) if name in value else _ABSENT
        case "k:":
            found = _element(value, json.loads(name))
            return _ABSENT if found is None else live_values(found, deeper)
        case "v:":
            return isinstance(value, list) and json.loads(name) in value
        case "i:" if isinstance(value, list) and int(name) < len(value):
            return live_values(value[int(name)], deeper)
        case _:
            return key == "." or _ABSENT


def _element(value: JsonValue, keys: JsonObject) -> JsonObject | None:
    if not isinstance(value, list):
        return None
    for item in value:
        if isinstance(item, dict) and all(item.get(name) == wanted for name, wanted in keys.items()):
            return item
    return None


def digest_of(tree: JsonObject, fields: JsonObject) -> str:
    """The observed digest of a live object over the fields that we applied; empty when there are none."""
    return short_digest(_ENCODER.encode(live_values(tree, fields))) if fields else ""


def view_of(tree: JsonObject) -> View:
    """What an informer keeps of an object, and what an apply keeps of the server's answer."""
    metadata = object_at(tree, "metadata")
    annotations = object_at(metadata, "annotations")
    fields = our_fields(tree)
    ours = object_at(fields, "f:metadata", "f:annotations")
    binds, role = _binding(tree) if "roleRef" in tree else ((), None)
    return View(
        uid=text_at(metadata, "uid"),
        version=text_at(metadata, "resourceVersion"),
        digest=digest_of(tree, fields),
        owner=text_at(annotations, ANNOTATION_OWNER_ID),
        health=health_of(tree),
        terminating="deletionTimestamp" in metadata,
        prune_disabled=_ours(annotations, ours, ANNOTATION_PRUNE) == PRUNE_DISABLED,
        propagation=_ours(annotations, ours, ANNOTATION_PROPAGATION),
        binds=binds,
        role=role,
    )


def _ours(annotations: JsonObject, fields: JsonObject, name: str) -> str:
    return text_at(annotations, name) if f"f:{name}" in fields else ""


def _binding(tree: JsonObject) -> tuple[tuple[str, ...], ObjectId | None]:
    if RBAC_GROUP not in text_at(tree, "apiVersion"):
        return (), None
    accounts = tuple(
        f"{text_at(subject, 'namespace')}/{text_at(subject, 'name')}"
        for subject in objects_at(tree, "subjects")
        if text_at(subject, "kind") == "ServiceAccount"
    )
    kind = text_at(tree, "roleRef", "kind")
    namespace = text_at(tree, "metadata", "namespace") if kind == "Role" else ""
    return accounts, ObjectId(RBAC_GROUP, kind, namespace, text_at(tree, "roleRef", "name"))

"""Edits of `managedFields`: the entries of client-side tools become ours, dropped versions are renamed (S03, S04, S11).

Pure.  Both give JSON patches that begin with a test of the resourceVersion.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, object_at, objects_at, text_at

CLIENT_SIDE: Final = frozenset(
    {"kubectl-client-side-apply", "kubectl-create", "kubectl-replace", "kubectl", "before-first-apply"}
)
"""Managers of tools that write whole objects from a file; `kubectl edit` and its like are people, not tools."""


def _is_client_side(entry: JsonObject) -> bool:
    return (
        text_at(entry, "operation") == "Update"
        and text_at(entry, "manager") in CLIENT_SIDE
        and not text_at(entry, "subresource")
    )


def needs_takeover(tree: JsonObject) -> bool:
    """Whether a client-side tool owns fields of an object."""
    return any(_is_client_side(entry) for entry in objects_at(tree, "metadata", "managedFields"))


def owned_by_documents(tree: JsonObject) -> tuple[JsonObject, JsonObject]:
    """The fields that documents own: those of our own applies, and those that a take-over would give to us."""
    ours, theirs = EMPTY, EMPTY
    for entry in objects_at(tree, "metadata", "managedFields"):
        if _is_client_side(entry):
            theirs = _union(theirs, object_at(entry, "fieldsV1"))
        elif is_applied_by(entry, FIELD_MANAGER):
            ours = object_at(entry, "fieldsV1")
    return ours, theirs


def is_applied_by(entry: JsonObject, manager: str) -> bool:
    """Whether an entry is that of a manager's applies to the object itself."""
    found = (text_at(entry, "manager"), text_at(entry, "operation"), text_at(entry, "subresource"))
    return found == (manager, "Apply", "")


def takeover_patch(tree: JsonObject) -> list[JsonObject]:
    """Give the fields of client-side tools to our manager, so that an apply removes those that Git does not declare."""
    entries = objects_at(tree, "metadata", "managedFields")
    ours: JsonObject = EMPTY
    rest: list[JsonValue] = []
    fields: JsonObject = EMPTY
    for entry in entries:
        if is_applied_by(entry, FIELD_MANAGER):
            ours = entry
        elif not _is_client_side(entry):
            rest.append(entry)
            continue
        fields = _union(fields, object_at(entry, "fieldsV1"))
    merged: dict[str, JsonValue] = {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "apiVersion": text_at(ours, "apiVersion") or text_at(tree, "apiVersion"),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return _replace_managers(tree, [merged, *rest])


def _union(one: JsonObject, other: JsonObject) -> dict[str, JsonValue]:
    merged: dict[str, JsonValue] = dict(one)
    for key, value in other.items():
        below = merged.get(key)
        merged[key] = (
            _union(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else below or value
        )
    return merged


def migration_patch(tree: JsonObject, *, served: Sequence[str]) -> list[JsonObject]:
    """Rename versions in `managedFields` that are not served any more to that of the object; empty when there are none.

    Args:
        tree: the live object, read at a version that is served.
        served: every `apiVersion` of its kind that the server knows.
    """
    entries = objects_at(tree, "metadata", "managedFields")
    renamed: list[JsonValue] = [
        entry if text_at(entry, "apiVersion") in served else {**entry, "apiVersion": text_at(tree, "apiVersion")}
        for entry in entries
    ]
    return _replace_managers(tree, renamed) if renamed != list(entries) else []


def _replace_managers(tree: JsonObject, entries: list[JsonValue]) -> list[JsonObject]:
    version = text_at(tree, "metadata", "resourceVersion")
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
    ]

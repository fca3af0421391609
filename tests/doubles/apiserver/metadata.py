"""Rules of `metadata` that hold for every kind."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.doubles.apiserver.answers import (
    ApiError,
    Cause,
    Named,
    Tree,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    modified,
    required,
)
from tests.doubles.apiserver.request import Target
from tests.doubles.apiserver.resources import Resource

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
MAX_ANNOTATIONS = 262_144
LABEL_KINDS = frozenset({"Namespace", "Service"})
FREE_KINDS = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
KEPT = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{VALUE}')"
)


def problems(resource: Resource, metadata: Mapping[str, Any]) -> Iterator[Cause]:
    """What is wrong with name, labels and annotations."""
    yield from _name(resource, metadata.get("name", ""))
    for value in (metadata.get("labels") or {}).values():
        if len(value) > 63:
            yield invalid_value("metadata.labels", f'"{value}"', "must be no more than 63 bytes")
        if re.fullmatch(VALUE, value) is None:
            yield invalid_value("metadata.labels", f'"{value}"', _VALUE_TEXT)
    annotations = metadata.get("annotations") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        yield Cause("FieldValueTooLong", text, "metadata.annotations")


def _name(resource: Resource, name: str) -> Iterator[Cause]:
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif resource.kind in FREE_KINDS and not resource.custom:
        if "/" in name or "%" in name or name in (".", ".."):
            yield invalid_value("metadata.name", f'"{name}"', "may not contain '/'")
    elif resource.kind in LABEL_KINDS and not resource.custom:
        if re.fullmatch(LABEL, name) is None or len(name) > 63:
            yield invalid_value("metadata.name", f'"{name}"', _LABEL_TEXT)
    elif re.fullmatch(SUBDOMAIN, name) is None:
        yield invalid_value("metadata.name", f'"{name}"', _SUBDOMAIN_TEXT)
    elif len(name) > 253:
        yield invalid_value("metadata.name", f'"{name}"', "must be no more than 253 bytes")


def match_path(tree: Mapping[str, Any], target: Target) -> None:
    """The body must name the object that the path names.

    Raises:
        ApiError: 400.
    """
    metadata = tree.get("metadata", {})
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    if target.name and name and name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if target.namespace and namespace and namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def carry_over(new: Tree, live: Tree, *, subject: Named) -> None:
    """Give `new` what nobody may change, and refuse what somebody tries to change.

    Raises:
        ApiError: 422 for another uid, for a finalizer on an object that is being deleted.
    """
    metadata, before = new["metadata"], live["metadata"]
    uid = metadata.get("uid", before["uid"])
    if uid != before["uid"]:
        cause = invalid_value("metadata.uid", f'"{uid}"', "field is immutable")
        raise invalid(subject, [cause, cause])
    for name in KEPT:
        metadata.pop(name, None)
        if name in before:
            metadata[name] = before[name]
    if "deletionTimestamp" in before:
        had = before.get("finalizers", ())
        extra = [item for item in metadata.get("finalizers", ()) if item not in had]
        if extra:
            shown = ", ".join(f'"{item}"' for item in extra)
            text = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{shown}}}"
            )
            cause = forbidden_field("metadata.finalizers", text)
            raise invalid(subject, [cause, cause])


def check_version(new: Tree, live: Tree, *, subject: Named) -> None:
    """Refuse a compare-and-swap that was lost.

    Raises:
        ApiError: 409.
    """
    wanted = new["metadata"].pop("resourceVersion", "")
    if wanted and wanted != live["metadata"]["resourceVersion"]:
        raise modified(subject)


__all__ = ["ApiError", "carry_over", "check_version", "match_path", "problems"]

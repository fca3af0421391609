"""What every document must be before anything looks into it: one named object, without what only a server writes.

Rules of gitops.md, sections 5.1 and 22.4: `generateName` is refused (fault S21), `status` is left out with a warning
(fault S13), labels and annotations are strings (fault Y05), and the marks of the controller come from nobody else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from gitops_ctl.api import patterns
from gitops_ctl.api.names import API_VERSION, GROUP, WRITTEN_BY_CONTROLLER
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.problem import Severity

GIT_ONLY_KINDS: Final = frozenset({GroupKind(GROUP, "TrustPolicy"), GroupKind(GROUP, "Consent")})
"""Checked wherever they are, never applied."""

POLICY_KINDS: Final = frozenset(
    GroupKind("admissionregistration.k8s.io", kind)
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
)

_SERVER_FIELDS: Final = (
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_KUSTOMIZE_GROUP: Final = "kustomize.config.k8s.io"


@dataclass(frozen=True, slots=True)
class Flaw:
    """A finding inside one object."""

    code: ErrorCode
    message: str
    pointer: str = ""
    hint: str = ""
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Shaped:
    """An object as it will be applied; `tree` is None when it is none."""

    tree: JsonObject | None
    flaws: tuple[Flaw, ...]


def shape(value: JsonValue, *, nulls: tuple[str, ...] = ()) -> Shaped:
    """Check and trim one object.  `nulls`: members of it that were written without a value."""
    if not isinstance(value, Mapping):
        kind = "a list" if isinstance(value, list) else "a single value"
        return Shaped(None, (Flaw(ErrorCode.NOT_AN_OBJECT, f"the document is {kind}, not an object"),))
    if is_encrypted(value):
        return Shaped(None, (Flaw(ErrorCode.ENCRYPTED, "the document is encrypted with SOPS"),))
    flaws = list(_identity_flaws(value))
    if any(flaw.severity == "error" for flaw in flaws):
        return Shaped(None, tuple(flaws))
    flaws.extend(_metadata_flaws(value, nulls=nulls))
    tree, trimmed = _without_server_fields(value)
    return Shaped(tree, (*flaws, *trimmed))


def is_encrypted(value: Mapping[str, JsonValue]) -> bool:
    """SOPS leaves a member `sops` with its own bookkeeping beside the encrypted values."""
    sops = value.get("sops")
    return isinstance(sops, Mapping) and ("mac" in sops or "lastmodified" in sops)


def is_list(value: JsonValue) -> bool:
    """`kind: List`, or a typed list such as RoleList; a named object whose kind merely ends so is none."""
    if not isinstance(value, Mapping) or not isinstance(value.get("items"), list):
        return False
    return text_at(value, "kind").endswith("List") and not text_at(value, "metadata", "name") and "spec" not in value


def _identity_flaws(tree: JsonObject) -> Iterator[Flaw]:
    missing = [name for name in ("apiVersion", "kind") if tree.get(name) in (None, "")]
    if missing:
        yield Flaw(ErrorCode.NOT_AN_OBJECT, f"the document has no {' and no '.join(missing)}")
    for name in ("apiVersion", "kind"):
        if name not in missing and not isinstance(tree.get(name), str):
            yield _not_a_string(name, tree[name], pointer=f"/{name}")
    gvk = GroupVersionKind.of(tree)
    if gvk.group == _KUSTOMIZE_GROUP:
        yield Flaw(ErrorCode.NOT_RESOLVED, f"{gvk.kind} is input of Kustomize, not a resolved object")
        return
    if gvk.group_kind in GIT_ONLY_KINDS or missing:
        return
    yield from _form_flaws(gvk)
    yield from _name_flaws(tree)


@lru_cache(maxsize=1024)
def _form_flaws(gvk: GroupVersionKind) -> tuple[Flaw, ...]:
    """A kind that no server can have: it could be recorded nowhere, and its path would lead to something else."""
    flaws: list[Flaw] = []
    if not (_has_form(gvk.group, patterns.OPTIONAL_NAME, 253) and _has_form(gvk.version, patterns.LABEL, 63)):
        flaws.append(Flaw(ErrorCode.SCHEMA, "apiVersion is not <group>/<version>, or v1", pointer="/apiVersion"))
    if not _has_form(gvk.kind, patterns.KIND, 63):
        flaws.append(Flaw(ErrorCode.SCHEMA, f"kind {patterns.MEANING[patterns.KIND]}", pointer="/kind"))
    return tuple(flaws)


def _has_form(text: str, pattern: str, limit: int) -> bool:
    return len(text) <= limit and _form(pattern).fullmatch(text) is not None


@cache
def _form(pattern: str) -> re.Pattern[str]:
    """Compiled once: this is asked several times for each document."""
    return re.compile(pattern.removesuffix("$"))


def _is_path_segment(name: str) -> bool:
    """What the API server takes for a name of any kind, less what cannot be shown."""
    return len(name) <= 253 and name.isprintable() and name not in (".", "..") and not set(name) & set("/%")


def _name_flaws(tree: JsonObject) -> Iterator[Flaw]:
    metadata = tree.get("metadata")
    if not isinstance(metadata, Mapping):
        yield Flaw(ErrorCode.NOT_AN_OBJECT, "the document has no metadata.name")
        return
    if "generateName" in metadata:
        message = "metadata.generateName would make a new object at every apply"
        yield Flaw(ErrorCode.GENERATE_NAME, message, pointer="/metadata/generateName")
    elif metadata.get("name") in (None, ""):
        yield Flaw(ErrorCode.NOT_AN_OBJECT, "the document has no metadata.name", pointer="/metadata")
    for name in ("name", "namespace"):
        if name in metadata and not isinstance(metadata[name], str):
            yield _not_a_string(f"metadata.{name}", metadata[name], pointer=f"/metadata/{name}")
    if not _is_path_segment(text_at(metadata, "name")):
        message = "metadata.name is no name: at most 253 printable characters, without / and %, and neither . nor .."
        yield Flaw(ErrorCode.SCHEMA, message, pointer="/metadata/name")
    if not _has_form(text_at(metadata, "namespace"), patterns.OPTIONAL_LABEL, 63):
        message = f"metadata.namespace {patterns.MEANING[patterns.LABEL]}, at most 63"
        yield Flaw(ErrorCode.SCHEMA, message, pointer="/metadata/namespace")


def _metadata_flaws(tree: JsonObject, *, nulls: tuple[str, ...]) -> Iterator[Flaw]:
    metadata = object_at(tree, "metadata")
    for block in ("labels", "annotations"):
        members = metadata.get(block, {})
        if not isinstance(members, Mapping):
            yield Flaw(ErrorCode.SCHEMA, f"metadata.{block} is not a mapping", pointer=f"/metadata/{block}")
            continue
        for name, value in members.items():
            if isinstance(value, str) and name not in WRITTEN_BY_CONTROLLER:
                continue
            pointer = pointer_of(("metadata", block, name))
            if not isinstance(value, str):
                yield _not_a_string(f"{block[:-1]} {name}", value, pointer=pointer)
            if name in WRITTEN_BY_CONTROLLER:
                yield Flaw(ErrorCode.RESERVED_METADATA, f"{block[:-1]} {name} is set in Git", pointer=pointer)
    for pointer in nulls:
        if pointer.startswith(("/metadata/labels/", "/metadata/annotations/")):
            name = pointer.rpartition("/")[2]
            yield Flaw(
                ErrorCode.NOT_A_STRING, f"{name} has no value", pointer=pointer, hint='write "" for an empty string'
            )


def _without_server_fields(tree: JsonObject) -> tuple[JsonObject, tuple[Flaw, ...]]:
    """Left out with a warning: what the server writes would only be refused, or fought over."""
    flaws: list[Flaw] = []
    kept = dict(tree)
    # `status` of Git-only kinds is unknown there and an error of their own check.
    if "status" in kept and not (
        kept.get("apiVersion") == API_VERSION and GroupVersionKind.of(tree).group_kind in GIT_ONLY_KINDS
    ):
        del kept["status"]
        flaws.append(
            Flaw(ErrorCode.STATUS_IGNORED, "status is never applied from Git", pointer="/status", severity="warning")
        )
    metadata = kept.get("metadata")
    if isinstance(metadata, Mapping):
        written = [name for name in _SERVER_FIELDS if name in metadata]
        for name in written:
            message = f"metadata.{name} is written by the API server and left out"
            flaws.append(
                Flaw(
                    ErrorCode.RESERVED_METADATA,
                    message,
                    pointer=f"/metadata/{name}",
                    hint="remove the line",
                    severity="warning",
                )
            )
        if written:
            kept["metadata"] = {name: value for name, value in metadata.items() if name not in written}
    return kept, tuple(flaws)


def _not_a_string(what: str, value: JsonValue, *, pointer: str) -> Flaw:
    return Flaw(ErrorCode.NOT_A_STRING, f"{what} is {type_name(value)}, a string is due", pointer=pointer)


def type_name(value: JsonValue) -> str:
    """How a JSON type is called in messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"

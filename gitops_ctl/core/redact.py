"""Keeps secret values out of everything that people or other programs read (promise P9, fault H22).

First structure, then text: `redact_object` blanks the values of a Secret and of members whose name says what they hold;
`redact_text` is the net below it, for foreign error texts.  Lengths are not kept: they tell too much.
"""

import re
from collections.abc import Mapping
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at

REDACTED: Final = "[redacted]"

_SECRET_MEMBER = re.compile(
    r"(?i)(password|passwd|passphrase|token|secret|credential|private[-_]?key|api[-_]?key|authorization|community)$"
)
_NAMES_ONLY = re.compile(r"(?i)(name|ref|refs|path)$")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_TEXT_RULES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        REDACTED,
    ),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@"), r"\1"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (
        re.compile(
            r"(?i)\b([\w.-]*(?:password|passwd|passphrase|token|secret|api[-_]?key|private[-_]?key)[\w.-]*)"
            r"(\"?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;}\]]+)"
        ),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]_|glpat-|github_pat_)[A-Za-z0-9_-]{16,}"), REDACTED),
)


def redact_text(text: str, *, known: tuple[str, ...] = ()) -> str:
    """`text` without what looks like a credential, and without each of the `known` secret values."""
    for value in sorted(known, key=len, reverse=True):
        if value:
            text = text.replace(value, REDACTED)
    for pattern, replacement in _TEXT_RULES:
        text = pattern.sub(replacement, text)
    return text


def redact_object(tree: JsonObject) -> JsonObject:
    """A copy in which a Secret shows its keys only and sensitive members show a mark."""
    if text_at(tree, "kind") == "Secret" and text_at(tree, "apiVersion") == "v1":
        return {
            key: _blank(value) if key in ("data", "stringData") else _walk(key, value) for key, value in tree.items()
        }
    return {key: _walk(key, value) for key, value in tree.items()}


def _walk(name: str, value: JsonValue) -> JsonValue:
    if name == _LAST_APPLIED:
        return REDACTED
    if isinstance(value, Mapping):
        return {key: _walk(key, member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walk("", member) if isinstance(member, Mapping) else _walk(name, member) for member in value]
    if isinstance(value, str):
        return REDACTED if _is_secret_member(name) else redact_text(value)
    return value


def _is_secret_member(name: str) -> bool:
    return bool(_SECRET_MEMBER.search(name)) and not _NAMES_ONLY.search(name)


def _blank(value: JsonValue) -> JsonValue:
    return dict.fromkeys(value, REDACTED) if isinstance(value, Mapping) else REDACTED

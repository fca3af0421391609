"""Keeps secret values out of everything that people or other programs read (promise P9, fault H22).

First structure, then text: `redact_object` blanks the values of a Secret and of members whose name says what they hold;
`redact_text` is the net below it, for foreign error texts.  Lengths are not kept: they tell too much.  In doubt a text loses
a word too many; names of Secrets, commit ids, digests and plain prose stay.
"""

import base64
import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final
from urllib.parse import quote

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.core.secretnames import is_secret_name
from gitops_ctl.core.secrettext import MARK, without_credentials

REDACTED: Final = MARK

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET_KINDS = ("Secret", "SecretList")
_SECRET_TYPES = ("Opaque", "kubernetes.io/", "bootstrap.kubernetes.io/")
"""Types of Secrets, for a fragment that has lost its kind."""

_CARRIERS = ("value", "data", "inline", "literal", "plaintext", "content")
"""Members that hold the value itself when the member above them is named like a secret."""


def redact_text(text: str, *, known: tuple[str, ...] = ()) -> str:
    """`text` without what looks like a credential, and without each of the `known` secret values, also encoded ones."""
    forms = {form for value in known if value for form in _forms(value)}
    if forms:
        longest_first = sorted(forms, key=len, reverse=True)
        text = re.sub("|".join(map(re.escape, longest_first)), REDACTED, text)
    return without_credentials(text)


def redact_object(tree: JsonObject) -> JsonObject:
    """A copy in which a Secret shows its keys only and sensitive members show a mark."""
    return _object("", tree, of_secret=False)


def _forms(value: str) -> tuple[str, ...]:
    encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    return value, quote(value, safe="", errors="replace"), json.dumps(value)[1:-1], encoded


def _object(name: str, tree: JsonObject, *, of_secret: bool) -> dict[str, JsonValue]:
    """`name` is the member that holds `tree`; `of_secret` says that it is an item of a list of Secrets."""
    of_secret = of_secret or text_at(tree, "kind") in _SECRET_KINDS or text_at(tree, "type").startswith(_SECRET_TYPES)
    beside = text_at(tree, "name") or text_at(tree, "key")
    shown: dict[str, JsonValue] = {}
    for key, value in tree.items():
        carries = key in _CARRIERS and (is_secret_name(name) or (key == "value" and is_secret_name(beside)))
        hidden = carries or key == "stringData" or (of_secret and key == "data")
        shown[key] = _blank(value) if hidden else _member(key, value, of_secret=of_secret and key == "items")
    return shown


def _member(name: str, value: JsonValue, *, of_secret: bool) -> JsonValue:
    if name == _LAST_APPLIED:
        return REDACTED
    if isinstance(value, Mapping):
        return _object(name, value, of_secret=of_secret)
    if isinstance(value, (list, tuple)):
        return [
            REDACTED if isinstance(item, str) and _is_secret_flag(before) else _member(name, item, of_secret=of_secret)
            for before, item in pairwise((None, *value))
        ]
    if value is None or isinstance(value, bool):
        return value
    if is_secret_name(name):
        return REDACTED
    return redact_text(value) if isinstance(value, str) else value


def _is_secret_flag(value: JsonValue) -> bool:
    """Whether the next argument of a command line is a secret."""
    return isinstance(value, str) and value.startswith("-") and is_secret_name(value)


def _blank(value: JsonValue) -> JsonValue:
    return dict.fromkeys(value, REDACTED) if isinstance(value, Mapping) else REDACTED

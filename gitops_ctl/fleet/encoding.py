"""The JSON encoding that every hash of a rollout is taken over (rollouts.md, section 10.1).

Members keep the order in which they stand: who builds a value decides it.  The bytes are those of the encoder of Go, because plans, policies
and ledgers are exchanged with programs written in it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue

V = TypeVar("V")

_ESCAPES: Final = {
    written.encode(): f"\\u{ord(written):04x}".encode() for written in ("<", ">", "&", "\u2028", "\u2029")
}
"""What Go escapes and our encoder does not.  None of them occurs in JSON outside of strings, so the whole text is translated."""

_encode: Final = msgspec.json.Encoder().encode

_AS_THEY_ARE: Final = frozenset({str, int, bool, type(None)})


def compact_json(value: JsonValue) -> bytes:
    """The bytes of `value`: no blanks, members in their order, non-ASCII characters raw.

    Raises:
        ValueError: a fraction, a NaN, an infinity or half of a surrogate pair: nothing that is hashed holds one.
    """
    return encoded(_plain(value))


def encoded(value: JsonValue) -> bytes:
    """As `compact_json`, for a value that is known to hold only dicts, lists, texts and integers: no look at each of its members."""
    text = _encode(value)
    for character, written in _ESCAPES.items():
        if character in text:
            text = text.replace(character, written)
    return text


def _plain(value: JsonValue) -> JsonValue:
    """Dicts and lists for the encoder, integers for integral floats (the API server has one number type)."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"{value} is no whole number")
        return int(value)
    # The test of each member's type saves a call for most of them: plans and ledgers have tens of thousands.
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _AS_THEY_ARE else _plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: item if type(item) in _AS_THEY_ARE else _plain(item) for name, item in value.items()}
    return value


def sorted_map(mapping: Mapping[str, V]) -> dict[str, V]:
    """The members in the byte order of their names, as Go writes a map."""
    return {key: mapping[key] for key in sorted(mapping)}


def ordered(tree: Mapping[str, V], members: Iterable[str]) -> dict[str, V]:
    """The members that are named and there, in the order in which they are named."""
    return {name: tree[name] for name in members if name in tree}


def without_empty(tree: JsonObject, *, keep: Iterable[str] = ()) -> dict[str, JsonValue]:
    """Without zero numbers, empty texts, lists and objects, false and null, except the members in `keep`; one level deep."""
    kept = frozenset(keep)
    return {name: member for name, member in tree.items() if name in kept or not _is_empty(member)}


def _is_empty(value: JsonValue) -> bool:
    return value is None or (isinstance(value, (str, int, float, list, tuple, Mapping)) and not value)


def sha256_of(value: JsonValue) -> str:
    """`sha256:` and the hex SHA-256 of the encoded value.

    Raises:
        ValueError: as `compact_json`.
    """
    return digest_bytes(compact_json(value))


def sha256_text(text: str) -> str:
    """`sha256:` and the hex SHA-256 of the text itself, without quotes."""
    return digest_bytes(text.encode())


def sha256_hex(text: str) -> str:
    """The 64 hex characters of the SHA-256 of the text, for identifiers that are cut from them."""
    return hashlib.sha256(text.encode()).hexdigest()

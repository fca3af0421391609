"""Canonical JSON and the digests over it.

Equal trees give equal bytes: keys sorted by code point, no white space, UTF-8, an integral float written as an integer
(the API server has one number type, so `1.0` and `1` are the same value).  List order counts.
"""

import hashlib
import json
from collections.abc import Iterable

from gitops_ctl.core.jsonvalue import JsonValue

MAX_SAFE_INTEGER = 2**53
"""Largest integer that every JSON reader keeps exactly."""


def canonical_json(value: JsonValue) -> bytes:
    """The one encoding of `value`.

    Raises:
        ValueError: the tree holds NaN or an infinity, which JSON cannot carry.
    """
    return json.dumps(
        _with_integral_floats_as_ints(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def _with_integral_floats_as_ints(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _with_integral_floats_as_ints(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_integral_floats_as_ints(member) for member in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    return value


def digest(value: JsonValue) -> str:
    """`sha256:` and the hex SHA-256 of the canonical encoding."""
    return digest_bytes(canonical_json(value))


def digest_bytes(data: bytes) -> str:
    """`sha256:` and the hex SHA-256 of the bytes as they are."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_lines(lines: Iterable[str]) -> str:
    """`sha256:` and the SHA-256 over the sorted lines, each ended by a newline (gitops.md, section 9)."""
    return digest_bytes("".join(f"{line}\n" for line in sorted(lines)).encode())

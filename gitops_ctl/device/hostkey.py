"""Host keys of devices, pinned by a known_hosts text (devices.md, sections 2 and 6; rollouts.md, section 5.1).

Nothing is ever taken on trust: a text without a key for the address is an error, and so is one that cannot be read, because a
line that is skipped may be the one that pins.  Entries for `[address]:port` win over entries for the bare address.  Keys are
compared as a whole, never by a short fingerprint.

Keys of other types and `@cert-authority` lines pin nothing; when nothing else is about the address, the error names them.  A key
under `@revoked` is not accepted even where another line lists it.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError

_ALGORITHMS: Final = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
"""Signature algorithms that a key of each type may be proven with; never SHA-1."""

_REVOKED: Final = "@revoked"
_AUTHORITY: Final = "@cert-authority"
_LARGEST: Final = 256 * 1024
_DEFAULT_PORT: Final = 22


@dataclass(frozen=True, slots=True)
class HostKey:
    """One public key: its type and the whole of it as it goes over the wire."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, for people; decisions compare `blob`."""
        digest = hashlib.sha256(self.blob).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def pinned_keys(known_hosts: str, *, host: str, port: int) -> tuple[HostKey, ...]:
    """The keys that a server at this address may have, at least one, in the order of the text.

    Raises:
        TerminalError: HOST_KEYS_INVALID for a line that cannot be read (named by its number), or when no line is about the address.
    """
    if len(known_hosts) > _LARGEST:
        raise _invalid(f"the known_hosts text is longer than {_LARGEST} characters", host)
    bare, bracketed = host.lower(), f"[{host.lower()}]:{port}"
    found: dict[str, list[HostKey]] = {bare: [], bracketed: []}
    revoked: set[HostKey] = set()
    unusable: list[str] = []
    for number, line in enumerate(known_hosts.splitlines(), start=1):
        entry = _entry(line, number=number, host=host)
        if entry is None:
            continue
        about = [name for name in found if entry.is_about(name)]
        if entry.key is None:
            unusable += [entry.kind] if about else []
        elif entry.marker == _REVOKED:
            revoked.add(entry.key)
        else:
            for name in about:
                found[name] += [entry.key] if entry.key not in found[name] else []
    chosen = found[bracketed] or found[bare]
    pinned = tuple(key for key in chosen if key not in revoked)
    if not pinned:
        wanted = bare if port == _DEFAULT_PORT else bracketed
        why = "lists only revoked keys" if chosen else "has no entry"
        if unusable and not chosen:
            why = f"has only {', '.join(sorted(set(unusable)))}, which cannot be pinned,"
        raise _invalid(f"the known_hosts text {why} for {wanted}", host)
    return pinned


def negotiated(keys: tuple[HostKey, ...]) -> tuple[str, ...]:
    """The host key algorithms to offer, so that the server shows a key that can be compared with these."""
    return tuple(dict.fromkeys(name for key in keys for name in _ALGORITHMS[key.type]))


def known_hosts_line(key: HostKey, *, host: str, port: int) -> str:
    """The line that pins `key` for this address."""
    name = host if port == _DEFAULT_PORT else f"[{host}]:{port}"
    return f"{name} {key.type} {base64.b64encode(key.blob).decode()}"


@dataclass(frozen=True, slots=True)
class _Entry:
    names: tuple[str, ...]
    kind: str
    key: HostKey | None
    marker: str

    def is_about(self, name: str) -> bool:
        return not any(_matches(pattern[1:], name) for pattern in self.names if pattern.startswith("!")) and any(
            _matches(pattern, name) for pattern in self.names
        )


def _entry(line: str, *, number: int, host: str) -> _Entry | None:
    fields = line.split()
    if not fields or fields[0].startswith("#"):
        return None
    marker = fields.pop(0) if fields[0].startswith("@") else ""
    if marker not in ("", _REVOKED, _AUTHORITY):
        raise _invalid(f"line {number} of the known_hosts text: {marker} is not supported", host)
    if len(fields) < 3:
        raise _invalid(f"line {number} of the known_hosts text is not `names type key`", host)
    names, kind, encoded = fields[:3]
    usable = kind in _ALGORITHMS and marker != _AUTHORITY
    key = _key(kind, encoded, number=number, host=host) if usable else None
    return _Entry(tuple(names.split(",")), _AUTHORITY if marker == _AUTHORITY else kind[:40], key, marker)


def _key(kind: str, encoded: str, *, number: int, host: str) -> HostKey:
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid(f"line {number} of the known_hosts text: the key is not base64", host) from error
    if next(_strings(blob), None) != kind.encode():
        raise _invalid(f"line {number} of the known_hosts text: the key is not of type {kind}", host)
    return HostKey(kind, blob)


def _strings(blob: bytes) -> Iterator[bytes]:
    """The length-prefixed parts of a key; ends early where the blob is cut."""
    while len(blob) >= 4:
        size = int.from_bytes(blob[:4], "big")
        if size > len(blob) - 4:
            return
        yield blob[4 : 4 + size]
        blob = blob[4 + size :]


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _hash_matches(pattern, name)
    # Square brackets of an address and port are literal in known_hosts, only `*` and `?` are patterns.
    return fnmatchcase(name, pattern.lower().replace("[", "[[]"))


def _hash_matches(pattern: str, name: str) -> bool:
    salt, _, digest = pattern[3:].partition("|")
    try:
        expected = base64.b64decode(digest, validate=True)
        found = hmac.digest(base64.b64decode(salt, validate=True), name.encode(), "sha1")
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(expected, found)


def _invalid(message: str, host: str) -> TerminalError:
    return TerminalError(message, code=ErrorCode.HOST_KEYS_INVALID, subject=host)

"""What every signature format has in common: the outcome of a check, the protocol, and the shape of an armored block.

Rules (gitops.md, sections 3.4, 3.5 and 4.1 A9): the block holds exactly one signature and nothing before or after it; the
presence of a header proves nothing; keys that the policy does not list are never used.
"""

import base64
import binascii
import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.trust.keys import KeyRing, TrustedKey

FUTURE_TOLERANCE = timedelta(minutes=10)
"""How far a signer's clock may be ahead of ours (fault H16)."""


class SignatureFormat(enum.Enum):
    """Formats that a Git object can carry, by the first line of the block."""

    OPENPGP = "-----BEGIN PGP SIGNATURE-----"
    SSH = "-----BEGIN SSH SIGNATURE-----"
    X509 = "-----BEGIN SIGNED MESSAGE-----"
    OPENPGP_MESSAGE = "-----BEGIN PGP MESSAGE-----"


@dataclass(frozen=True, slots=True)
class Signer:
    """A signature that verifies, by a key that the policy lists.

    Attributes:
        key: the entry of the policy that the key matched.
        key_type: `ssh-ed25519`, `openpgp`, … for messages.
        fingerprint: what people compare: `SHA256:…` of the signing key, or the OpenPGP primary key in 40 hex digits.
        fingerprints: everything that a revocation may name: the key, its primary key, its certificate authority.
    """

    key: TrustedKey
    key_type: str
    fingerprint: str
    fingerprints: tuple[str, ...]


class SignatureRefused(Refused):
    """A verdict about one signature.  `key_seen` names the key, when one could be read."""

    code = ErrorCode.BAD_SIGNATURE

    def __init__(self, message: str, *, code: ErrorCode | None = None, key_seen: str = "", hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint)
        self.key_seen = key_seen


class Verifier(Protocol):
    """Checks one signature format.  Pure: no files, no clock, no network."""

    def verify(self, payload: bytes, *, signature: bytes, keys: KeyRing, at: datetime, now: datetime) -> Signer:
        """Who signed.

        Args:
            payload: exactly the bytes that were signed.
            signature: the armored block.
            keys: what the policy trusts; nothing else is consulted.
            at: moment of first sight; validity is judged here, never at a date that the signer chose.
            now: our own clock, only for signatures from the future.

        Raises:
            SignatureRefused: the code is the verdict.
        """
        ...


def format_of(signature: bytes) -> SignatureFormat:
    """The format that the first line announces.

    Raises:
        SignatureRefused: `BadSignature`, the block is none at all (fault X09).
    """
    first = signature.split(b"\n", 1)[0].rstrip(b"\r").decode("ascii", "replace")
    for known in SignatureFormat:
        if first == known.value:
            return known
    raise SignatureRefused("the signature header holds no signature block")


_ARMOR_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*: .*")


def dearmor(signature: bytes, *, kind: str) -> bytes:
    """The bytes inside the one block; a checksum line, where there is one, is checked.

    Raises:
        SignatureRefused: `MalformedObject` for anything before or after the block, or a second one; `BadSignature` for
            characters that are no base64.
    """
    lines = signature.rstrip(b"\n").split(b"\n")  # some forges end the header with an empty line
    begin, end = f"-----BEGIN {kind}-----".encode(), f"-----END {kind}-----".encode()
    if lines[0] != begin or lines[-1] != end or any(line.startswith(b"-----") for line in lines[1:-1]):
        raise SignatureRefused(
            "the signature header must hold exactly one signature block and nothing else",
            code=ErrorCode.MALFORMED_OBJECT,
            hint="sign the commit again, with one key",
        )
    body = lines[1:-1]
    if b"" in body:  # armor headers end with an empty line
        blank = body.index(b"")
        if not all(_ARMOR_HEADER.fullmatch(line) for line in body[:blank]):
            raise SignatureRefused("the signature block has an unreadable armor header")
        body = body[blank + 1 :]
    checksum = body.pop() if body and body[-1].startswith(b"=") else None
    data = _strict_base64(b"".join(body))
    if checksum is not None and _strict_base64(checksum[1:]) != _crc24(data):
        raise SignatureRefused("the checksum of the signature block is wrong")
    return data


def _strict_base64(text: bytes) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SignatureRefused("the signature block is no base64") from error
    if base64.b64encode(data) != text:  # bits that no byte holds: two texts for one signature
        raise SignatureRefused("the signature block is no canonical base64")
    return data


def _crc24(data: bytes) -> bytes:
    crc = 0xB704CE
    for byte in data:
        crc = (crc << 8 & 0xFFFFFF) ^ _CRC_TABLE[crc >> 16 ^ byte]
    return crc.to_bytes(3, "big")


def _crc_of(byte: int) -> int:
    crc = byte << 16
    for _ in range(8):
        crc = crc << 1 ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc & 0xFFFFFF


_CRC_TABLE = tuple(_crc_of(byte) for byte in range(256))


SIGN_AGAIN: Final = (
    "a commit keeps the moment at which it was first seen, also when that clock was wrong; with a key that is valid now, "
    "sign it again (git commit --amend -S): it is a new commit, and first seen anew"
)


def require_valid_at(key: TrustedKey, *, at: datetime, seen: str) -> None:
    """Refuse a key outside the limits that the policy sets for it.

    Raises:
        SignatureRefused: `UnknownSigner`; the message names owner and limit.
    """
    if key.valid_from is not None and at < key.valid_from:
        limit = f"is valid only from {to_rfc3339(key.valid_from)}"
    elif key.valid_until is not None and at >= key.valid_until:
        limit = f"was valid only until {to_rfc3339(key.valid_until)}"
    else:
        return
    raise SignatureRefused(
        f"key {seen} of {key.owner} {limit}; the commit was first seen at {to_rfc3339(at)}",
        code=ErrorCode.UNKNOWN_SIGNER,
        key_seen=seen,
        hint=SIGN_AGAIN,
    )


def verify_signature(
    payload: bytes,
    *,
    signature: bytes,
    keys: KeyRing,
    at: datetime,
    now: datetime,
    verifiers: Mapping[SignatureFormat, Verifier],
) -> Signer:
    """Who signed, by the verifier of the block's format.  Whatever goes wrong is a verdict on this one object (fault X04).

    Raises:
        SignatureRefused: the code is the verdict.
    """
    found = format_of(signature)
    verifier = verifiers.get(found)
    if verifier is None:
        raise SignatureRefused(
            f"signatures of the form {found.value.strip('-').removeprefix('BEGIN ')} are not supported",
            code=ErrorCode.UNSUPPORTED_FORMAT,
        )
    try:
        return verifier.verify(payload, signature=signature, keys=keys, at=at, now=now)
    except SignatureRefused:
        raise
    except Exception as error:
        raise SignatureRefused(f"the signature cannot be read ({type(error).__name__})") from error
    except BaseException as error:
        # A panic of a Rust library is no Exception; an interrupt is none either and must go on.
        if type(error).__name__ != "PanicException":
            raise
        raise SignatureRefused("the signature cannot be read (panic in the library)") from error

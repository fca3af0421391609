"""OpenSSH public keys and raw signatures by them (gitops.md, section 3.5).

ed25519, ECDSA on P-256, P-384 and P-521, RSA of 3072 bits and more with SHA-2, and the two security-key types.  Everything
is read from the wire form with nothing left over, so that one key has one blob and one fingerprint.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

MIN_RSA_BITS = 3072
MAX_RSA_BITS = 16384
"""OpenSSH's own limit; a larger modulus is only slow."""

USER_PRESENT = 0x01
USER_VERIFIED = 0x04

_Public: TypeAlias = ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey

_CURVES: dict[bytes, tuple[ec.EllipticCurve, hashes.HashAlgorithm]] = {
    b"nistp256": (ec.SECP256R1(), hashes.SHA256()),
    b"nistp384": (ec.SECP384R1(), hashes.SHA384()),
    b"nistp521": (ec.SECP521R1(), hashes.SHA512()),
}
_RSA_HASHES: dict[bytes, hashes.HashAlgorithm] = {b"rsa-sha2-256": hashes.SHA256(), b"rsa-sha2-512": hashes.SHA512()}


class SshFormatError(ValueError):
    """Bytes that are not what the SSH formats say."""


class SshUnsupported(ValueError):
    """A key type or algorithm that is not accepted."""


class SshSignatureWrong(ValueError):
    """The signature does not belong to these bytes and this key."""


class Wire:
    """Reads the SSH wire form from the front; every reader raises SshFormatError when the bytes run out."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def position(self) -> int:
        return self._at

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise SshFormatError("it ends too early")
        piece, self._at = self._data[self._at : end], end
        return piece

    def uint32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def uint64(self) -> int:
        return int.from_bytes(self.take(8), "big")

    def string(self) -> bytes:
        return self.take(self.uint32())

    def mpint(self) -> int:
        """A positive integer in its one shortest form."""
        data = self.string()
        if not data or data[0] & 0x80 or (data[0] == 0 and (len(data) == 1 or not data[1] & 0x80)):
            raise SshFormatError("it holds a number that is not positive or not in shortest form")
        return int.from_bytes(data, "big")

    def at_end(self) -> bool:
        return self._at == len(self._data)

    def require_end(self) -> None:
        if not self.at_end():
            raise SshFormatError("it has bytes after its end")


@dataclass(frozen=True, slots=True)
class SshKey:
    """One public key; equal keys have equal blobs."""

    type: str
    blob: bytes
    public: _Public
    application: bytes = b""

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.blob)

    @property
    def is_security_key(self) -> bool:
        return self.type.startswith("sk-")


def fingerprint_of(blob: bytes) -> str:
    """`SHA256:` and 43 characters, as `ssh-keygen -l` prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).rstrip(b"=").decode()


def parse_key_line(text: str) -> SshKey:
    """From `<type> <base64>`; a comment or options are refused.

    Raises:
        SshFormatError: not one key and nothing else.
        SshUnsupported: a type or size that is not accepted.
    """
    parts = text.split(" ")
    if len(parts) != 2:
        raise SshFormatError("it is not <type> <base64>, without options and comment")
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except binascii.Error as error:
        raise SshFormatError("its second part is no base64") from error
    key = parse_key(blob)
    if key.type != parts[0]:
        raise SshFormatError(f"it says {parts[0]} and holds a key of type {key.type}")
    return key


def parse_key(blob: bytes) -> SshKey:
    """From the wire form.

    Raises:
        SshFormatError: the bytes are no key.
        SshUnsupported: a type or size that is not accepted.
    """
    wire = Wire(blob)
    name = wire.string()
    public, application = read_public(wire, name=name)
    wire.require_end()
    return SshKey(name.decode(), blob, public, application)


def read_public(wire: Wire, *, name: bytes) -> tuple[_Public, bytes]:
    """Key material and, for a security key, its application.

    Raises:
        SshFormatError, SshUnsupported: as `parse_key`.
    """
    try:
        public = _read_material(wire, name=name)
    except (SshFormatError, SshUnsupported):
        raise
    except ValueError as error:
        raise SshFormatError("its key material is invalid") from error
    return public, wire.string() if name.startswith(b"sk-") else b""


def _read_material(wire: Wire, *, name: bytes) -> _Public:
    match name:
        case b"ssh-ed25519" | b"sk-ssh-ed25519@openssh.com":
            return ed25519.Ed25519PublicKey.from_public_bytes(wire.string())
        case b"ecdsa-sha2-nistp256" | b"ecdsa-sha2-nistp384" | b"ecdsa-sha2-nistp521":
            return _read_ecdsa(wire, curve=name.removeprefix(b"ecdsa-sha2-"))
        case b"sk-ecdsa-sha2-nistp256@openssh.com":
            return _read_ecdsa(wire, curve=b"nistp256")
        case b"ssh-rsa":
            return _read_rsa(wire)
        case _:
            raise SshUnsupported(f"keys of type {name.decode('ascii', 'replace')[:64]!r} are not accepted")


def _read_ecdsa(wire: Wire, *, curve: bytes) -> ec.EllipticCurvePublicKey:
    if wire.string() != curve:
        raise SshFormatError("its curve is not the one of its type")
    point = wire.string()
    if not point.startswith(b"\x04"):
        raise SshFormatError("its point is not in uncompressed form")
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[curve][0], point)


def _read_rsa(wire: Wire) -> rsa.RSAPublicKey:
    exponent, modulus = wire.mpint(), wire.mpint()
    if not MIN_RSA_BITS <= modulus.bit_length() <= MAX_RSA_BITS:
        raise SshUnsupported(f"an RSA key needs at least {MIN_RSA_BITS} bits, this one has {modulus.bit_length()}")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def verify_raw(key: SshKey, *, signature: bytes, data: bytes) -> int:
    """Check one signature in wire form; the flags of a security key, 0 for other keys.

    Raises:
        SshFormatError: the signature is not in its form.
        SshUnsupported: an algorithm that is not accepted, such as `ssh-rsa` with SHA-1.
        SshSignatureWrong: it does not verify.
    """
    wire = Wire(signature)
    algorithm, body = wire.string(), wire.string()
    flags = 0
    if key.is_security_key:
        flags, counter = wire.take(1)[0], wire.take(4)
        data = hashlib.sha256(key.application).digest() + bytes([flags]) + counter + hashlib.sha256(data).digest()
    wire.require_end()
    _require_algorithm(key, algorithm=algorithm)
    try:
        _verify_body(key.public, algorithm=algorithm, body=body, data=data)
    except InvalidSignature as error:
        raise SshSignatureWrong("the signature does not belong to this content and key") from error
    return flags


def _require_algorithm(key: SshKey, *, algorithm: bytes) -> None:
    allowed = tuple(_RSA_HASHES) if key.type == "ssh-rsa" else (key.type.encode(),)
    if algorithm not in allowed:
        shown = algorithm.decode("ascii", "replace")[:64]
        raise SshUnsupported(f"signature algorithm {shown!r} is not accepted with a key of type {key.type}")


def _verify_body(public: _Public, *, algorithm: bytes, body: bytes, data: bytes) -> None:
    if isinstance(public, ed25519.Ed25519PublicKey):
        public.verify(body, data)
    elif isinstance(public, rsa.RSAPublicKey):
        public.verify(body, data, padding.PKCS1v15(), _RSA_HASHES[algorithm])
    else:
        wire = Wire(body)
        encoded = encode_dss_signature(wire.mpint(), wire.mpint())
        wire.require_end()
        digest = _CURVES[f"nistp{public.key_size}".encode()][1]
        public.verify(encoded, data, ec.ECDSA(digest))

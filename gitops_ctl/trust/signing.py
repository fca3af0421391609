"""Signs the controller's own commits: the other half of `sshsig` and `openpgp` (forges.md, section 13).

Rules:
  * The key comes from one Secret: `identity` (or `ssh-privatekey`) holds an SSH private key, `openpgp` an armored OpenPGP secret key;
    `password` opens either.  Exactly one of them.
  * A signature that our own verifier would not accept for the key never leaves: every one is verified before it is given out.
  * With ed25519 and RSA over SSH the same payload gives the same signature; OpenPGP signatures hold their time, and ecdsa draws a number.
  * No representation and no error shows a byte of the key.
"""

import base64
import re
import warnings
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias

import pysequoia
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, InternalError
from gitops_ctl.trust.keys import KeyRing, Owner, OwnerKind, TrustedKey
from gitops_ctl.trust.openpgp import CertificateRefused, OpenPgpVerifier, load_certificate, lookup_names
from gitops_ctl.trust.signature import SignatureRefused, Verifier
from gitops_ctl.trust.sshkey import SshFormatError, SshKey, SshUnsupported, parse_key_line
from gitops_ctl.trust.sshsig import SshSignature, SshVerifier, signed_data

SSH_KEYS: Final = ("identity", "ssh-privatekey")
OPENPGP_KEY: Final = "openpgp"
PASSWORD_KEY: Final = "password"  # noqa: S105  the name of a member

_OWNER: Final = TrustedKey(Owner(OwnerKind.PROPOSER, "self"))
_LINE: Final = 70
_Private: TypeAlias = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_CURVE_HASHES: Final[Mapping[int, hashes.HashAlgorithm]] = {
    256: hashes.SHA256(),
    384: hashes.SHA384(),
    521: hashes.SHA512(),
}


class CommitSigner(Protocol):
    """One private key.

    Attributes:
        fingerprint: what the trust policy and people call the key.
        public: what goes into `TrustPolicy.proposers[].keys`: `<type> <base64>`, or an armored certificate.
        repeats: the same payload gives the same signature.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def public(self) -> str: ...

    @property
    def repeats(self) -> bool: ...

    def made(self, payload: bytes, signature: bytes) -> bool:
        """Whether that armored signature over `payload` is one of this key."""
        ...

    def sign(self, payload: bytes) -> bytes:
        """The armored signature over `payload`, verified.

        Raises:
            BlockedError: SIGNING_KEY_INVALID, our own verifier refuses it: the key is expired, weak or not for signing.
        """
        ...


def load_signer(secret: Mapping[str, bytes], *, subject: str = "", clock: Clock | None = None) -> CommitSigner:
    """The key of a Secret.

    Args:
        secret: its data, see the module's rules.
        subject: names the Secret in errors.
        clock: says whether a key is still valid.

    Raises:
        BlockedError: SIGNING_KEY_INVALID: none, several, unreadable, locked, or of a kind that no policy may list.
    """
    named = [key for key in (*SSH_KEYS, OPENPGP_KEY) if secret.get(key, b"").strip()]
    if len(named) != 1:
        found = " and ".join(named) or "none"
        wanted = f"one of {', '.join(SSH_KEYS)} and {OPENPGP_KEY}"
        raise _invalid(f"the Secret must hold exactly {wanted}; it holds {found}", subject)
    password = secret.get(PASSWORD_KEY, b"").rstrip(b"\r\n")
    moments = clock or SystemClock()
    if named[0] == OPENPGP_KEY:
        return _OpenPgpSigner(secret[OPENPGP_KEY], password=password, subject=subject, clock=moments)
    return _SshSigner(secret[named[0]], password=password, subject=subject, clock=moments)


class _SshSigner:
    """SSHSIG with namespace `git`."""

    def __init__(self, data: bytes, *, password: bytes, subject: str, clock: Clock) -> None:
        self._private = _ssh_private(data, password=password or None, subject=subject)
        line = self._private.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        try:
            self._key: SshKey = parse_key_line(line.decode())
        except (SshFormatError, SshUnsupported) as error:
            raise _invalid(f"the key is refused: {error}", subject) from None
        self._keys = KeyRing(ssh={self._key.blob: (self._key, _OWNER)})
        self._subject, self._clock = subject, clock

    def __repr__(self) -> str:
        return f"<signer {self.fingerprint}>"

    @property
    def fingerprint(self) -> str:
        return self._key.fingerprint

    @property
    def public(self) -> str:
        return f"{self._key.type} {base64.b64encode(self._key.blob).decode()}"

    @property
    def repeats(self) -> bool:
        return not isinstance(self._private, ec.EllipticCurvePrivateKey)

    def made(self, payload: bytes, signature: bytes) -> bool:
        return _is_accepted(SshVerifier(), payload, signature, keys=self._keys, now=self._clock.wall())

    def sign(self, payload: bytes) -> bytes:
        parts = SshSignature(self._key.blob, b"git", b"", b"sha512", b"")
        raw = _ssh_raw(self._private, key_type=self._key.type, data=signed_data(parts, payload=payload))
        fields = (self._key.blob, parts.namespace, parts.reserved, parts.hash_name, raw)
        blob = b"SSHSIG" + (1).to_bytes(4, "big") + b"".join(map(_string, fields))
        text = base64.b64encode(blob).decode()
        lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
        armored = "\n".join(("-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", "")).encode()
        now = self._clock.wall()
        _require_accepted(SshVerifier(), payload, armored, keys=self._keys, now=now, subject=self._subject)
        return armored


def _ssh_private(data: bytes, *, password: bytes | None, subject: str) -> _Private:
    text = data.replace(b"\r\n", b"\n").strip() + b"\n"
    opened = (
        serialization.load_ssh_private_key if b"OPENSSH PRIVATE KEY" in text else serialization.load_pem_private_key
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a kind that is going away is refused below anyway
            key = opened(text, password)
    except UnsupportedAlgorithm:
        why = "its type or cipher cannot be read; store it as PKCS#8 (ssh-keygen -p -m PKCS8), or without a passphrase"
        raise _invalid(f"the SSH private key is refused: {why}", subject) from None
    except (ValueError, TypeError):
        # The library's own words could quote the key.
        why = "it cannot be opened with the password" if password else "it cannot be read, or needs a password"
        raise _invalid(f"the SSH private key is refused: {why}", subject) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise _invalid("the SSH private key is refused: only ed25519, ecdsa and rsa can sign", subject)
    return key


def _ssh_raw(private: _Private, *, key_type: str, data: bytes) -> bytes:
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return _string(key_type.encode()) + _string(private.sign(data))
    if isinstance(private, rsa.RSAPrivateKey):
        return _string(b"rsa-sha2-512") + _string(private.sign(data, padding.PKCS1v15(), hashes.SHA512()))
    numbers = decode_dss_signature(private.sign(data, ec.ECDSA(_CURVE_HASHES[private.key_size])))
    return _string(key_type.encode()) + _string(b"".join(_string(_mpint(number)) for number in numbers))


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _mpint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


class _OpenPgpSigner:
    """Detached, armored signatures of version 4."""

    def __init__(self, data: bytes, *, password: bytes, subject: str, clock: Clock) -> None:
        try:
            secret: Any = pysequoia.Tsk.from_bytes(data)
            certificate = secret.extract_certificate()
            self._signer = secret.signer(password.decode()) if password else secret.signer()
            self._public, fingerprint = str(certificate), str(certificate.fingerprint)
        except Exception:  # noqa: BLE001  the library raises one type for everything, and its words could quote the key
            raise _invalid("the OpenPGP secret key cannot be read, or is not opened by the password", subject) from None
        try:
            own = load_certificate(self._public, fingerprint=fingerprint, trusted=_OWNER)
        except CertificateRefused as error:
            raise _invalid(f"the OpenPGP key is refused: {error}", subject) from None
        self._keys = KeyRing(openpgp=dict.fromkeys(lookup_names(own), (own,)))
        self._fingerprint, self._subject, self._clock = fingerprint.upper(), subject, clock

    def __repr__(self) -> str:
        return f"<signer {self._fingerprint}>"

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def public(self) -> str:
        return self._public

    @property
    def repeats(self) -> bool:
        return False

    def made(self, payload: bytes, signature: bytes) -> bool:
        return _is_accepted(OpenPgpVerifier(), payload, signature, keys=self._keys, now=self._clock.wall())

    def sign(self, payload: bytes) -> bytes:
        made = bytes(pysequoia.sign(self._signer, payload, mode=pysequoia.SignatureMode.DETACHED))
        armored = re.sub(rb"-----(BEGIN|END) PGP MESSAGE-----", rb"-----\1 PGP SIGNATURE-----", made)
        now = self._clock.wall()
        _require_accepted(OpenPgpVerifier(), payload, armored, keys=self._keys, now=now, subject=self._subject)
        return armored


def _require_accepted(
    verifier: Verifier, payload: bytes, signature: bytes, *, keys: KeyRing, now: datetime, subject: str
) -> None:
    try:
        verifier.verify(payload, signature=signature, keys=keys, at=now, now=now)
    except SignatureRefused as error:
        if error.code is ErrorCode.UNKNOWN_SIGNER:
            raise InternalError("the signature is not by the key that was asked for", subject=subject) from error
        raise _invalid(f"its signature would not be accepted: {error.message}", subject) from error


def _is_accepted(verifier: Verifier, payload: bytes, signature: bytes, *, keys: KeyRing, now: datetime) -> bool:
    try:
        verifier.verify(payload, signature=signature, keys=keys, at=now, now=now)
    except SignatureRefused:
        return False
    return True


def _invalid(what: str, subject: str) -> BlockedError:
    return BlockedError(f"the signing key: {what}", code=ErrorCode.SIGNING_KEY_INVALID, subject=subject)

"""SSH signatures of Git objects, the SSHSIG format (gitops.md, section 3.5).

Magic, version 1, public key or certificate, namespace, reserved field, hash name, signature, and nothing after it.  What
was signed is magic, namespace, reserved field, hash name and the digest of the object.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.trust.keys import KeyRing, TrustedKey
from gitops_ctl.trust.signature import SIGN_AGAIN, SignatureRefused, Signer, dearmor, require_valid_at
from gitops_ctl.trust.sshcert import SshCertificate, is_certificate, parse_certificate
from gitops_ctl.trust.sshkey import (
    USER_PRESENT,
    USER_VERIFIED,
    SshFormatError,
    SshKey,
    SshSignatureWrong,
    SshUnsupported,
    Wire,
    fingerprint_of,
    verify_raw,
)

_MAGIC = b"SSHSIG"
_GIT = "git"
_MAX_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class SshSignature:
    """The parts of one signature blob; nothing is verified yet."""

    key_blob: bytes
    namespace: bytes
    reserved: bytes
    hash_name: bytes
    signature: bytes


def parse_blob(data: bytes) -> SshSignature:
    """The parts of the blob inside the armor.

    Raises:
        SshFormatError: not this format, or bytes after its end.
        SshUnsupported: another version.
    """
    if len(data) > _MAX_BYTES:
        raise SshFormatError("it is too long")
    wire = Wire(data)
    if wire.take(len(_MAGIC)) != _MAGIC:
        raise SshFormatError("it does not start with SSHSIG")
    if (version := wire.uint32()) != 1:
        raise SshUnsupported(f"SSHSIG version {version} is not known")
    parts = SshSignature(wire.string(), wire.string(), wire.string(), wire.string(), wire.string())
    wire.require_end()
    return parts


def signed_data(parts: SshSignature, *, payload: bytes) -> bytes:
    """The bytes that the key signed.

    Raises:
        SshUnsupported: a digest other than SHA-256 and SHA-512.
    """
    if parts.hash_name == b"sha512":
        digest = hashlib.sha512(payload).digest()
    elif parts.hash_name == b"sha256":
        digest = hashlib.sha256(payload).digest()
    else:
        raise SshUnsupported(f"digest {parts.hash_name.decode('ascii', 'replace')[:32]!r} is not accepted")
    fields = (parts.namespace, parts.reserved, parts.hash_name, digest)
    return _MAGIC + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


class SshVerifier:
    """Checks SSH signatures against the keys and certificate authorities of a policy."""

    def verify(self, payload: bytes, *, signature: bytes, keys: KeyRing, at: datetime, now: datetime) -> Signer:
        """Who signed; see `signature.Verifier`.  An SSH signature has no time, so `now` is not used."""
        try:
            return self._verify(payload, signature=signature, keys=keys, at=at)
        except SshUnsupported as error:
            raise SignatureRefused(str(error), code=ErrorCode.UNSUPPORTED_FORMAT) from error
        except SshSignatureWrong as error:
            raise SignatureRefused(str(error)) from error
        except SshFormatError as error:
            raise SignatureRefused(f"the SSH signature cannot be read: {error}") from error

    def _verify(self, payload: bytes, *, signature: bytes, keys: KeyRing, at: datetime) -> Signer:
        parts = parse_blob(dearmor(signature, kind="SSH SIGNATURE"))
        certificate: SshCertificate | None = None
        if is_certificate(parts.key_blob):
            certificate = parse_certificate(parts.key_blob)
            key, trusted = certificate.key, _entry_for_certificate(certificate, keys=keys, at=at)
        else:
            key, trusted = _entry_for_key(parts.key_blob, keys=keys)
        seen = f"{key.type} {key.fingerprint}"
        require_valid_at(trusted, at=at, seen=seen)
        namespace = parts.namespace.decode("utf-8", "replace")
        if namespace != _GIT or namespace not in trusted.namespaces:
            raise SignatureRefused(
                f"the signature was made for the namespace {namespace[:64]!r}, not for {_GIT!r}", key_seen=seen
            )
        flags = verify_raw(key, signature=parts.signature, data=signed_data(parts, payload=payload))
        _require_flags(key, flags=flags, trusted=trusted, certificate=certificate)
        authority = (certificate.authority.fingerprint,) if certificate else ()
        return Signer(trusted, key.type, key.fingerprint, (key.fingerprint, *authority))


def _entry_for_key(blob: bytes, *, keys: KeyRing) -> tuple[SshKey, TrustedKey]:
    entry = keys.ssh.get(blob)
    if entry is None:
        kind = Wire(blob).string().decode("ascii", "replace")[:64]
        seen = f"{kind} {fingerprint_of(blob)}"
        raise SignatureRefused(
            f"key {seen} is listed for nobody in the trust policy", code=ErrorCode.UNKNOWN_SIGNER, key_seen=seen
        )
    return entry


def _entry_for_certificate(certificate: SshCertificate, *, keys: KeyRing, at: datetime) -> TrustedKey:
    seen = f"{certificate.key.type} {certificate.key.fingerprint} (certificate {certificate.key_id!r})"

    def refused(text: str, code: ErrorCode = ErrorCode.UNKNOWN_SIGNER, *, hint: str = "") -> SignatureRefused:
        return SignatureRefused(f"{text}; key {seen}", code=code, key_seen=seen, hint=hint)

    entries = keys.authorities.get(certificate.authority.blob, ())
    if not entries:
        raise refused(f"certificate authority {certificate.authority.fingerprint} is not listed in the trust policy")
    if not certificate.is_user:
        raise refused("the certificate is not a user certificate")
    for option in certificate.unknown_options:
        raise refused(f"the certificate has the critical option {option!r}, which is unknown here")
    if certificate.valid_after is not None and at < certificate.valid_after:
        raise refused(f"the certificate is valid only from {to_rfc3339(certificate.valid_after)}", hint=SIGN_AGAIN)
    if certificate.valid_before is not None and at >= certificate.valid_before:
        raise refused(f"the certificate was valid only until {to_rfc3339(certificate.valid_before)}", hint=SIGN_AGAIN)
    found = [entry for entry in entries if set(entry.principals) & set(certificate.principals)]
    if len({entry.owner for entry in found}) != 1:
        named = ", ".join(certificate.principals[:5]) or "none"
        raise refused(f"the principals of the certificate ({named}) are those of {len(found)} persons, not of one")
    return found[0]


def _require_flags(key: SshKey, *, flags: int, trusted: TrustedKey, certificate: SshCertificate | None) -> None:
    must_verify = trusted.require_user_verification or (certificate is not None and certificate.verify_required)
    if key.is_security_key and not flags & USER_PRESENT:
        raise SignatureRefused("the security key was used without a touch of its user", key_seen=key.fingerprint)
    if must_verify and not (key.is_security_key and flags & USER_VERIFIED):
        raise SignatureRefused(
            f"key {key.fingerprint} of {trusted.owner} must sign with user verification (PIN or fingerprint)",
            key_seen=key.fingerprint,
            hint="sign again and let the token verify you",
        )

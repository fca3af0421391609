"""OpenPGP signatures and certificates, by the library `pysequoia` (gitops.md, sections 3.3 and 3.5).

The library checks a signature at the time that the signature itself claims, and it tells neither key sizes nor the expiry of
sub-keys.  So this module reads the packets too, and judges expiry and revocation at the moment of first sight.  Version 6
keys and signatures are refused.  A soft revocation counts like any other.  Texts of the library are never shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pysequoia
from pysequoia.packet import PacketPile, SignatureType, Tag

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.trust.keys import KeyRing, OpenPgpKey, TrustedKey
from gitops_ctl.trust.signature import FUTURE_TOLERANCE, SIGN_AGAIN, SignatureRefused, Signer, dearmor, require_valid_at
from gitops_ctl.trust.sshkey import MIN_RSA_BITS

_RSA = (1, 3)
_ECDSA, _EDDSA, _ED25519 = 19, 22, 27
_SIGNING_ALGORITHMS = (*_RSA, _ECDSA, _EDDSA, _ED25519)
_HASHES = (8, 9, 10)
"""SHA-256, SHA-384, SHA-512."""
_EDDSA_CURVE = bytes.fromhex("2b06010401da470f01")
_ECDSA_CURVES = tuple(bytes.fromhex(oid) for oid in ("2a8648ce3d030107", "2b81040022", "2b81040023"))
_SIGNATURE_PACKET = 2
_BINARY = 0


class CertificateRefused(ValueError):
    """A certificate that a policy may not list; the text says why."""


@dataclass(frozen=True, slots=True)
class _KeyPacket:
    """A primary key or sub-key with the signatures that follow it."""

    packet: Any
    signatures: Sequence[Any]

    @property
    def fingerprint(self) -> str:
        return str(self.packet.fingerprint)

    @property
    def newest_binding(self) -> Any:
        kinds = (SignatureType.SubkeyBinding,)
        found = [packet for packet in self.signatures if packet.signature_type in kinds and packet.signature_created]
        return max(found, key=lambda packet: packet.signature_created, default=None)

    @property
    def may_sign(self) -> bool:
        binding = self.newest_binding
        flags = binding.key_flags if binding is not None else None
        return flags is None or bool(flags.signing)

    @property
    def expires(self) -> datetime | None:
        binding = self.newest_binding
        period = binding.key_validity_period if binding is not None else None
        return self.packet.key_created + period if period else None

    @property
    def revoked(self) -> bool:
        kinds = (SignatureType.KeyRevocation, SignatureType.SubkeyRevocation)
        return any(packet.signature_type in kinds for packet in self.signatures)


def load_certificate(armored: str, *, fingerprint: str, trusted: TrustedKey) -> OpenPgpKey:
    """The one certificate in the text.

    Raises:
        CertificateRefused: not exactly one public certificate, of another fingerprint, of version 6, without a valid
            self-signature, with packets that are not known, or with a key that is too weak or of an algorithm that is not
            accepted.
    """
    try:
        certificates = pysequoia.Cert.split_bytes(armored.encode())
        packets = list(PacketPile.from_bytes(armored.encode()))
    except Exception as error:
        raise CertificateRefused("it is no armored OpenPGP certificate") from error
    if len(certificates) != 1:
        raise CertificateRefused(f"it holds {len(certificates)} certificates, not one")
    try:
        return _loaded(certificates[0], packets, fingerprint=fingerprint, trusted=trusted)
    except CertificateRefused:
        raise
    except Exception as error:
        # The library reads on demand, and raises then: a policy from a stranger's branch must not end the pass.
        raise CertificateRefused("it has no valid self-signature, or holds packets that are not known") from error


def _loaded(certificate: Any, packets: Sequence[Any], *, fingerprint: str, trusted: TrustedKey) -> OpenPgpKey:
    if any(packet.tag in (Tag.SecretKey, Tag.SecretSubkey) for packet in packets):
        raise CertificateRefused("it holds a secret key; export the public certificate")
    if certificate.fingerprint.lower() != fingerprint.lower():
        raise CertificateRefused(f"its fingerprint is {certificate.fingerprint.upper()}")
    keys = _key_packets(packets)
    signing = [keys[0], *(key for key in keys[1:] if key.may_sign)]
    for key in signing:
        _require_strong(key)
    return OpenPgpKey(
        trusted=trusted,
        certificate=certificate,
        fingerprint=certificate.fingerprint.lower(),
        expires=certificate.expiration,
        revoked=bool(certificate.is_revoked) or keys[0].revoked,
        subkeys={key.fingerprint: (key.expires, key.revoked) for key in signing[1:]},
    )


def lookup_names(key: OpenPgpKey) -> tuple[str, ...]:
    """Fingerprints and 16-digit key ids under which a signature may look for this certificate."""
    full = (key.fingerprint, *key.subkeys)
    return (*full, *(name[-16:] for name in full))


def _key_packets(packets: Sequence[Any]) -> list[_KeyPacket]:
    found: list[tuple[Any, list[Any]]] = []
    in_user_id = False
    for packet in packets:
        if packet.tag in (Tag.PublicKey, Tag.PublicSubkey):
            found.append((packet, []))
            in_user_id = False
        elif packet.tag in (Tag.UserID, Tag.UserAttribute):
            in_user_id = True
        elif packet.tag == Tag.Signature and found and not in_user_id:
            found[-1][1].append(packet)
    return [_KeyPacket(packet, tuple(signatures)) for packet, signatures in found]


def _require_strong(key: _KeyPacket) -> None:
    """Read version, algorithm and size from the key packet's body, which the library does not tell."""
    body = bytes(key.packet.body)
    name = key.fingerprint.upper()
    if body[0] != 4:
        raise CertificateRefused(f"key {name} is of version {body[0]}; only version 4 is supported")
    algorithm = body[5]
    if algorithm not in _SIGNING_ALGORITHMS:
        raise CertificateRefused(f"key {name} has an algorithm that is not accepted; use ed25519, ECDSA or RSA")
    if algorithm in _RSA and (bits := int.from_bytes(body[6:8], "big")) < MIN_RSA_BITS:
        raise CertificateRefused(f"RSA key {name} has {bits} bits; at least {MIN_RSA_BITS} are needed")
    if algorithm in (_ECDSA, _EDDSA):
        curve = body[7 : 7 + body[6]]
        if curve not in ((_EDDSA_CURVE,) if algorithm == _EDDSA else _ECDSA_CURVES):
            raise CertificateRefused(f"key {name} is on a curve that is not accepted; use ed25519 or P-256/384/521")


class OpenPgpVerifier:
    """Checks OpenPGP signatures against the certificates of a policy."""

    def verify(self, payload: bytes, *, signature: bytes, keys: KeyRing, at: datetime, now: datetime) -> Signer:
        """Who signed; see `signature.Verifier`."""
        data = dearmor(signature, kind="PGP SIGNATURE")
        _require_one_acceptable_packet(data)
        try:
            parsed = pysequoia.Sig.from_bytes(data)
        except Exception as error:
            raise SignatureRefused("the OpenPGP signature cannot be read") from error
        issuer = (parsed.issuer_fingerprint or parsed.issuer_key_id or "").lower()
        seen = f"openpgp {issuer.upper() or 'without issuer'}"
        candidates = keys.openpgp.get(issuer) or keys.openpgp.get(issuer[-16:], ())
        if not candidates:
            raise SignatureRefused(
                f"key {seen} is listed for nobody in the trust policy", code=ErrorCode.UNKNOWN_SIGNER, key_seen=seen
            )
        _require_time(parsed, now=now, seen=seen)
        key, used = _verified(payload, parsed, candidates=candidates, seen=seen)
        require_valid_at(key.trusted, at=at, seen=seen)
        _require_alive(key, used=used, at=at)
        return Signer(key.trusted, "openpgp", key.fingerprint.upper(), (key.fingerprint, used))


def _require_one_acceptable_packet(data: bytes) -> None:
    """Walk the packet headers ourselves: one signature of version 4, by an accepted algorithm and digest."""
    tag, body, rest = _next_packet(data)
    if tag != _SIGNATURE_PACKET:
        raise SignatureRefused("the OpenPGP block holds no signature")
    if rest:
        raise SignatureRefused(
            "the OpenPGP block holds more than one packet; exactly one signature is accepted",
            code=ErrorCode.MALFORMED_OBJECT,
            hint="sign the commit again, with one key",
        )
    if len(body) < 6 or body[0] != 4:
        version = body[0] if body else 0
        raise SignatureRefused(
            f"OpenPGP signatures of version {version} are not supported", code=ErrorCode.UNSUPPORTED_FORMAT
        )
    kind, algorithm, digest = body[1], body[2], body[3]
    if algorithm not in _SIGNING_ALGORITHMS:
        raise SignatureRefused(
            f"OpenPGP signature algorithm {algorithm} is not accepted; use ed25519, ECDSA or RSA",
            code=ErrorCode.UNSUPPORTED_FORMAT,
        )
    if digest not in _HASHES:
        raise SignatureRefused(
            f"OpenPGP digest {digest} is not accepted; use SHA-256, SHA-384 or SHA-512",
            code=ErrorCode.UNSUPPORTED_FORMAT,
        )
    if kind != _BINARY:
        raise SignatureRefused(f"an OpenPGP signature of type {kind} is no signature over a document")


def _next_packet(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, body and what follows; lengths in pieces or without end are refused."""
    if len(data) < 2 or not data[0] & 0x80:
        raise SignatureRefused("the OpenPGP block is no packet")
    if data[0] & 0x40:
        tag, first = data[0] & 0x3F, data[1]
        if first < 192:
            start, length = 2, first
        elif first < 224:
            start, length = 3, ((first - 192) << 8) + int.from_bytes(data[2:3], "big") + 192
        elif first == 255:
            start, length = 6, int.from_bytes(data[2:6], "big")
        else:
            raise SignatureRefused("the OpenPGP packet comes in pieces")
    else:
        tag, form = (data[0] >> 2) & 0x0F, data[0] & 0x03
        if form == 3:
            raise SignatureRefused("the OpenPGP packet has no length")
        size = 1 << form
        start, length = 1 + size, int.from_bytes(data[1 : 1 + size], "big")
    if start + length > len(data):
        raise SignatureRefused("the OpenPGP packet ends too early")
    return tag, data[start : start + length], data[start + length :]


def _require_time(parsed: Any, *, now: datetime, seen: str) -> None:
    if parsed.created is None:
        raise SignatureRefused("the OpenPGP signature has no time", key_seen=seen)
    # Before the library's own check, whose answer would not tell this from a wrong signature.
    if parsed.created > now + FUTURE_TOLERANCE:
        raise SignatureRefused(
            f"the signature is dated {to_rfc3339(parsed.created)}, more than 10 minutes ahead of our clock",
            code=ErrorCode.SIGNATURE_IN_FUTURE,
            key_seen=seen,
        )
    if parsed.expiration is not None and parsed.expiration <= now:
        raise SignatureRefused(
            f"the signature itself expired at {to_rfc3339(parsed.expiration.astimezone(UTC))}", key_seen=seen
        )


def _verified(payload: bytes, parsed: Any, *, candidates: Sequence[OpenPgpKey], seen: str) -> tuple[OpenPgpKey, str]:
    """The certificate and the key of it that made the signature."""
    certificates = [key.certificate for key in candidates]
    try:
        valid = pysequoia.verify(payload, store=lambda _ids: certificates, signature=parsed).valid_sigs
    except Exception:  # noqa: BLE001 - the library knows one error, and its text holds a foreign traceback
        valid = []
    for one in valid:
        for key in candidates:
            if one.certificate.lower() == key.fingerprint:
                return key, str(one.signing_key).lower()
    raise SignatureRefused(
        "the signature does not belong to this content and key",
        code=ErrorCode.REVOKED_SIGNER if all(key.revoked for key in candidates) else None,
        key_seen=seen,
    )


def _require_alive(key: OpenPgpKey, *, used: str, at: datetime) -> None:
    expires, revoked = key.subkeys.get(used, (None, False))
    seen = f"openpgp {key.fingerprint.upper()}"
    if key.revoked or revoked:
        what = "certificate" if key.revoked else f"sub-key {used.upper()}"
        raise SignatureRefused(
            f"the {what} of {key.trusted.owner} is revoked by its own certificate",
            code=ErrorCode.REVOKED_SIGNER,
            key_seen=seen,
        )
    for what, end in (("certificate", key.expires), (f"sub-key {used.upper()}", expires)):
        if end is not None and at >= end:
            raise SignatureRefused(
                f"the {what} of {key.trusted.owner} expired at {to_rfc3339(end)}; "
                f"the commit was first seen at {to_rfc3339(at)}",
                code=ErrorCode.UNKNOWN_SIGNER,
                key_seen=seen,
                hint=SIGN_AGAIN,
            )


def fingerprint_in(armored: str) -> str:
    """Fingerprint of the one certificate in the text, 40 lower-case hex digits.

    Raises:
        CertificateRefused: not exactly one certificate.
    """
    try:
        found = pysequoia.Cert.split_bytes(armored.encode())
    except Exception as error:
        raise CertificateRefused("it is no armored OpenPGP certificate") from error
    if len(found) != 1:
        raise CertificateRefused(f"it holds {len(found)} certificates, not one")
    return str(found[0].fingerprint).lower()

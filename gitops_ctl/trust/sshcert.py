"""OpenSSH user certificates (gitops.md, section 4.4, member `sshCertificateAuthority`).

A certificate counts for a person when it is of type user, its authority is listed, one of its principals is one of that
person's, the moment of first sight lies in its validity, and it carries no critical option that is unknown here.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from gitops_ctl.trust.sshkey import SshFormatError, SshKey, Wire, parse_key, read_public, verify_raw

CERTIFICATE_SUFFIX = b"-cert-v01@openssh.com"
VERIFY_REQUIRED = "verify-required"
"""The one critical option that has a meaning for signatures: the token must have verified its user."""

_USER = 1
_FOREVER = 2**64 - 1
_MAX_PRINCIPALS = 256


@dataclass(frozen=True, slots=True)
class SshCertificate:
    """What a certificate says; its own signature was checked.

    Attributes:
        key: the certified key.
        authority: the key that signed the certificate.
        valid_after, valid_before: None for no limit; valid from the first on, up to but not at the second.
        unknown_options: critical options that are not understood; any of them makes the certificate useless.
    """

    key: SshKey
    authority: SshKey
    key_id: str
    is_user: bool
    principals: tuple[str, ...]
    valid_after: datetime | None
    valid_before: datetime | None
    verify_required: bool
    unknown_options: tuple[str, ...]


def is_certificate(blob: bytes) -> bool:
    """Whether the blob announces a certificate."""
    return Wire(blob).string().endswith(CERTIFICATE_SUFFIX)


def parse_certificate(blob: bytes) -> SshCertificate:
    """Read a certificate and check the signature of its authority.

    Raises:
        SshFormatError, SshUnsupported: the bytes are no certificate, or of an algorithm that is not accepted.
        SshSignatureWrong: the authority did not sign it.
    """
    wire = Wire(blob)
    name = wire.string().removesuffix(CERTIFICATE_SUFFIX)
    plain = name + (b"@openssh.com" if name.startswith(b"sk-") else b"")
    wire.string()  # nonce
    start = wire.position
    public, application = read_public(wire, name=plain)
    key = SshKey(plain.decode(), _string(plain) + blob[start : wire.position], public, application)
    wire.uint64()  # serial
    kind, key_id = wire.uint32(), wire.string()
    principals = _strings(wire.string())
    after, before = wire.uint64(), wire.uint64()
    options = _options(wire.string())
    _options(wire.string())  # extensions never restrict
    wire.string()  # reserved
    authority = parse_key(wire.string())
    signed = blob[: wire.position]
    signature = wire.string()
    wire.require_end()
    verify_raw(authority, signature=signature, data=signed)
    return SshCertificate(
        key=key,
        authority=authority,
        key_id=key_id.decode("utf-8", "replace"),
        is_user=kind == _USER,
        principals=tuple(principal.decode("utf-8", "replace") for principal in principals),
        valid_after=_moment(after) if after else None,
        valid_before=None if before == _FOREVER else _moment(before),
        verify_required=VERIFY_REQUIRED in options,
        unknown_options=tuple(option for option in options if option != VERIFY_REQUIRED),
    )


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _strings(data: bytes) -> list[bytes]:
    wire, found = Wire(data), []
    while not wire.at_end():
        found.append(wire.string())
        if len(found) > _MAX_PRINCIPALS:
            raise SshFormatError("it names too many principals")
    return found


def _options(data: bytes) -> tuple[str, ...]:
    """Names in their order, which must be strictly rising."""
    wire, names = Wire(data), list[bytes]()
    while not wire.at_end():
        name = wire.string()
        wire.string()
        if names and name <= names[-1]:
            raise SshFormatError("its options are repeated or out of order")
        names.append(name)
    return tuple(name.decode("ascii", "replace") for name in names)


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise SshFormatError("its validity is no moment in time") from error

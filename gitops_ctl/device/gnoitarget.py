"""Where the gNOI service of a device is, and what shows who is who there (rollouts.md, section 5.1; devices.md, section 14).

Transport and port follow from the spec alone and are never found out by trying.  Username and password go over TLS only.  Certificates
are those that the library of gRPC can use: RSA or elliptic, PEM.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.device.login import Login

Transport: TypeAlias = Literal["tls", "plaintext"]

TLS_PORT: Final = 9339
PLAINTEXT_PORT: Final = 50052
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")

_CARRIED = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """PEM texts of the gNOI Secret.  `certificate` and `key` are both there or both empty."""

    ca: bytes
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)

    @property
    def expires_at(self) -> datetime | None:
        """The end of our own certificate; None without one."""
        return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc if self.certificate else None


@dataclass(frozen=True, slots=True)
class GnoiTarget:
    """One device.

    Attributes:
        address: a name or an IP address.
        server_name: what its certificate must say; empty: `address`.
        tls: None is plaintext, which carries no login.
    """

    address: str
    port: int
    server_name: str = ""
    tls: TlsMaterial | None = None
    login: Login | None = None

    def __post_init__(self) -> None:
        # gRPC reads `unix:…` and other schemes out of an address.
        if not _HOST.fullmatch(self.address) and ":" not in _ip(self.address):
            raise Refused(f"{self.address!r} is no address of a device", code=ErrorCode.GNOI_MATERIAL_INVALID)
        # The library would refuse these in an error that quotes them.
        if any(not _CARRIED.fullmatch(value) for _, value in self.metadata):
            raise _invalid("username or password has blanks around it or characters that no gRPC metadata can carry")

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    @property
    def name(self) -> str:
        """What the certificate of the device must say."""
        return self.server_name or self.address

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never stand in a text."""
        login = self.login.secrets if self.login is not None else ()
        return (*login, self.tls.key.decode(errors="replace")) if self.tls is not None and self.tls.key else login

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of every call; empty in plaintext, and for who logs in by key only."""
        if self.tls is None or self.login is None or not self.login.password:
            return ()
        return (("username", self.login.username), ("password", self.login.password))


def transport_of(security: str, *, has_tls_member: bool, has_credentials: bool) -> Transport:
    """`spec.gnoi.transportSecurity` resolved: plaintext only when it is written, or when `auto` finds nothing to protect."""
    if security in ("tls", "plaintext"):
        return "tls" if security == "tls" else "plaintext"
    return "tls" if has_tls_member or has_credentials else "plaintext"


def port_of(port: int, *, transport: Transport) -> int:
    """`spec.gnoi.port`, 0 when it is omitted."""
    return port or (TLS_PORT if transport == "tls" else PLAINTEXT_PORT)


def tls_material(data: Mapping[str, bytes]) -> TlsMaterial:
    """What a gNOI Secret holds.

    Raises:
        Refused: GNOI_MATERIAL_INVALID: a text is missing or cannot be read, or certificate and key do not belong together.
    """
    ca, certificate, key = (data.get(name, b"") for name in ("ca.crt", "tls.crt", "tls.key"))
    if not _certificates(ca, "ca.crt"):
        raise _invalid("ca.crt holds no certificate")
    if bool(certificate) != bool(key):
        raise _invalid("tls.crt and tls.key are there together or not at all")
    if certificate:
        _require_pair(certificate, key)
    return TlsMaterial(ca, certificate, key)


def _require_pair(certificate: bytes, key: bytes) -> None:
    shown = _certificates(certificate, "tls.crt")
    if not shown:
        raise _invalid("tls.crt holds no certificate")
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _invalid("tls.key is no private key in PEM without a passphrase") from None
    if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise _invalid("tls.key is neither an RSA nor an elliptic key")
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != shown[0].public_key().public_bytes(*form):
        raise _invalid("tls.key does not belong to tls.crt")


def _certificates(text: bytes, name: str) -> list[x509.Certificate]:
    if not text:
        return []
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError:
        raise _invalid(f"{name} cannot be read as PEM certificates") from None


def _ip(text: str) -> str:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return ""


def _invalid(why: str) -> Refused:
    return Refused(f"the gNOI connection cannot be made: {why}", code=ErrorCode.GNOI_MATERIAL_INVALID)

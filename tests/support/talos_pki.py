"""Authorities and certificates of Talos clusters, as Talos makes them: Ed25519, and keys under a PEM label of its own."""

import base64
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

Key = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey

CLIENT_ONLY = (ExtendedKeyUsageOID.CLIENT_AUTH,)


class TalosPki:
    """One authority.

    Args:
        folder: where server certificates are written.
        elliptic: P-256 instead of Ed25519.
    """

    def __init__(self, folder: Path, *, elliptic: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._elliptic = elliptic
        self._key = self._new_key()
        self._certificate = self._signed(self._key, ("talos",), authority=True)
        self.ca_path = folder / "ca.crt"
        self.ca_path.write_bytes(_pem(self._certificate))

    @property
    def ca(self) -> bytes:
        return _pem(self._certificate)

    def server(self, name: str) -> tuple[Path, Path]:
        """Certificate and key files of a machine on 127.0.0.1."""
        key = self._new_key()
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName(name)])
        certificate = self._signed(key, (name,), usages=(ExtendedKeyUsageOID.SERVER_AUTH,), names=alternative)
        paths = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        paths[0].write_bytes(_pem(certificate))
        paths[1].write_bytes(_key_pem(key))
        return paths

    def talosconfig(
        self,
        *,
        roles: tuple[str, ...] = ("os:admin",),
        usages: tuple[ObjectIdentifier, ...] = CLIENT_ONLY,
        expired: bool = False,
        trusting: "TalosPki | None" = None,
    ) -> bytes:
        """A talosconfig with a fresh client certificate; `trusting` is the authority that it names, when another one than this."""
        key = self._new_key()
        certificate = self._signed(key, roles, usages=usages, expired=expired)
        members = {
            "endpoints": ["127.0.0.1"],
            "ca": _base64((trusting or self).ca),
            "crt": _base64(_pem(certificate)),
            "key": _base64(
                _key_pem(key).replace(b"PRIVATE KEY", b"ED25519 PRIVATE KEY" if not self._elliptic else b"PRIVATE KEY")
            ),
        }
        return yaml.safe_dump({"context": "north", "contexts": {"north": members}}).encode()

    def _new_key(self) -> Key:
        return ec.generate_private_key(ec.SECP256R1()) if self._elliptic else ed25519.Ed25519PrivateKey.generate()

    def _signed(
        self,
        key: Key,
        organisations: tuple[str, ...],
        *,
        usages: tuple[ObjectIdentifier, ...] = (),
        names: x509.SubjectAlternativeName | None = None,
        expired: bool = False,
        authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, item) for item in organisations])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if authority else self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now - timedelta(days=1) if expired else now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256() if self._elliptic else None)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

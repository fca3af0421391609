"""An authority of devices, and certificates of switches and of their callers."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gitops_ctl.device.gnoitarget import TlsMaterial
from tools.peers.gnoi.front import Shown


class GnoiPki:
    """One authority.

    Args:
        folder: for the files that a switch reads.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(self._key, "devices", authority=True)
        self.ca = _pem(self._certificate)
        self.ca_path = folder / "ca.crt"
        self.ca_path.write_bytes(self.ca)

    def pair(self, name: str, *, alternatives: tuple[str, ...] = (), expired: bool = False) -> tuple[bytes, bytes]:
        """A certificate and its key; the alternatives are names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        found = self._signed(key, name, alternatives=alternatives, expired=expired)
        return _pem(found), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def shown(self, name: str = "switch", *, names: tuple[str, ...] = ("127.0.0.1",), expired: bool = False) -> Shown:
        """What a switch shows; callers must have a certificate of this authority."""
        certificate, key = self.pair(name, alternatives=names, expired=expired)
        paths = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        paths[0].write_bytes(certificate)
        paths[1].write_bytes(key)
        return Shown(paths[0], paths[1], self.ca_path)

    def material(self, *, expired: bool = False, with_certificate: bool = True) -> TlsMaterial:
        """What a caller has."""
        if not with_certificate:
            return TlsMaterial(self.ca)
        certificate, key = self.pair("gitops-ctl", expired=expired)
        return TlsMaterial(self.ca, certificate, key)

    def _signed(
        self,
        key: ec.EllipticCurvePrivateKey,
        name: str,
        *,
        alternatives: tuple[str, ...] = (),
        expired: bool = False,
        authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
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
        if alternatives:
            names = x509.SubjectAlternativeName([_alternative(each) for each in alternatives])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

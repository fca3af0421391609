"""Keys and certificates of one local control plane.

Two certificate authorities, because a certificate for the API server must not open etcd: with one, each user of the cluster
could read and write its store past every rule.  The authorities and the key of service account tokens are kept; certificates
are issued anew at each start, so none can expire while it is needed.
"""

import os
from base64 import b64encode
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gitops_ctl.core.clock import Clock

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 365
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESSES = ("127.0.0.1", "10.0.0.1", "127.96.0.1")
"""The last two are the first addresses of the ranges for Services that systems of ours use."""


class Authority:
    """One certificate authority in a folder: `NAME.crt` and `NAME.key`, made when they are not there."""

    def __init__(self, directory: Path, name: str, *, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self.certificate_path = directory / f"{name}.crt"
        key_path = directory / f"{name}.key"
        if not self.certificate_path.exists() or not key_path.exists():
            self._create(name, key_path)
        self._key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
        self._certificate = x509.load_pem_x509_certificate(self.certificate_path.read_bytes())

    def server(self, name: str) -> tuple[Path, Path]:
        """Certificate and key files for a server on the loopback address that also connects to its peers."""
        names = [x509.DNSName(host) for host in _SERVER_NAMES]
        addresses = [x509.IPAddress(ip_address(address)) for address in _SERVER_ADDRESSES]
        return self._issue(name, _subject(name, ()), extra=x509.SubjectAlternativeName([*names, *addresses]))

    def client(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Certificate and key files of a Kubernetes user (the common name) in groups (the organisations)."""
        return self._issue(name, _subject(user, groups), extra=None)

    def _create(self, name: str, key_path: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(f"gitops-ctl local {name}", ())
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _builder(subject, subject, key.public_key(), self._clock.wall(), days=_AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(key_path, _pem(key))
        write_private(self.certificate_path, certificate.public_bytes(serialization.Encoding.PEM))

    def _issue(self, name: str, subject: x509.Name, *, extra: x509.SubjectAlternativeName | None) -> tuple[Path, Path]:
        assert isinstance(self._key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(subject, self._certificate.subject, key.public_key(), self._clock.wall(), days=_LEAF_DAYS)
        if extra is not None:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(extra, critical=False)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        paths = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        write_private(paths[0], certificate.public_bytes(serialization.Encoding.PEM))
        write_private(paths[1], _pem(key))
        return paths


def service_account_key(directory: Path) -> tuple[Path, Path]:
    """Private and public key files for service account tokens, made when they are not there."""
    private, public = directory / "service-account.key", directory / "service-account.pub"
    if not private.exists() or not public.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        write_private(private, _pem(key))
        write_private(
            public,
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        )
    return private, public


def write_kubeconfig(path: Path, *, server: str, authority: Path, certificate: Path, key: Path) -> None:
    """A kubeconfig that holds everything it needs, readable by its owner only."""
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "local", "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
        ],
        "users": [
            {
                "name": path.stem,
                "user": {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)},
            }
        ],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": path.stem}}],
        "current-context": "local",
    }
    write_private(path, yaml.safe_dump(tree, sort_keys=False).encode())


def write_private(path: Path, data: bytes) -> None:
    """Replace a file in one step; only its owner can read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    fresh.replace(path)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, *, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
    )


def _subject(name: str, groups: tuple[str, ...]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()

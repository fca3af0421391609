"""An inventory service on loopback, over TLS, with certificates of its own; it answers as the test says and remembers what it was asked."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Authority:
    """A certificate authority and what it signed."""

    def __init__(self, name: str) -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._built(self._name, self._key.public_key(), is_ca=True)

    @property
    def pem(self) -> str:
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, name: str, *, address: str = "127.0.0.1") -> tuple[str, str]:
        """Certificate and key, both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._built(subject, key.public_key(), is_ca=False, address=address)
        return certificate.public_bytes(serialization.Encoding.PEM).decode(), key_pem(key)

    def _built(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_ca: bool, address: str = ""
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if address:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def key_pem(key: ec.EllipticCurvePrivateKey, password: bytes = b"") -> str:
    """A key as PEM, encrypted when there is a password."""
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


def server_context(folder: Path, pair: tuple[str, str], *, clients: Authority | None = None) -> ssl.SSLContext:
    """How a server shows itself; with `clients` it wants a certificate of that authority."""
    file = folder / "server.pem"
    file.write_text("\n".join(pair))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.pem)
    return context


def answer(body: bytes | str, *, status: str = "200 OK", headers: str = "") -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n{headers}\r\n".encode() + data


@dataclass
class Inventory:
    """The service.

    Attributes:
        next: what it answers from now on: bytes, or something that writes them.
        requests: head of each request, as it came.
    """

    next: Answer = b""
    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/inventory?hall=7"

    def header(self, name: str) -> str:
        """The value of a header of the last request; empty when it had none."""
        pairs = (line.partition(":") for line in self.requests[-1].split("\r\n")[1:])
        return {key.lower(): value.strip() for key, _, value in pairs}.get(name.lower(), "")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
            if isinstance(self.next, bytes):
                writer.write(self.next)
                await writer.drain()
            else:
                await self.next(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def inventory_service(context: ssl.SSLContext) -> AsyncIterator[Inventory]:
    """Serve until the end of the block."""
    service = Inventory()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=context)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()

"""The TLS side of the machine: client certificates, roles, and connections that can be cut.

TLS ends here and not in gRPC, whose TLS accepts no Ed25519 certificates.  Behind it each connection has a port of its own on the loopback
address; by that port a call finds the certificate that it came with.
"""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CHUNK = 64 * 1024


class Front:
    """Accepts connections for the gRPC server on `inner_port`."""

    def __init__(self, *, ca: Path, certificate: Path, key: Path, inner_port: int) -> None:
        self._files = ca, certificate, key
        self._inner_port = inner_port
        self._with_alpn = True
        self._listening = True
        self._roles: dict[int, tuple[str, ...]] = {}
        self._connections: set[asyncio.Transport] = set()
        self._servers: list[asyncio.Server] = []
        self._address: tuple[str, int] = ("", 0)

    async def start(self, host: str, port: int) -> None:
        """Listen."""
        self._address = host, port
        await self._listen()

    async def set_alpn(self, offered: bool) -> None:
        """Whether HTTP/2 is agreed on within TLS; for connections from now on."""
        self._with_alpn = offered
        await self._relisten()

    async def set_listening(self, listening: bool) -> None:
        """Listen, or refuse connections."""
        self._listening = listening
        await self._relisten()

    def roles(self, peer: str) -> tuple[str, ...]:
        """Roles of the certificate of a connection, given as gRPC names it: `ipv4:127.0.0.1:PORT`."""
        return self._roles.get(int(peer.rpartition(":")[2]), ())

    def cut(self) -> None:
        """End every connection without a word."""
        for transport in tuple(self._connections):
            transport.abort()

    async def _relisten(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()
        self.cut()
        if self._listening:
            await self._listen()

    async def _listen(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca, certificate, key = self._files
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
        if self._with_alpn:
            context.set_alpn_protocols(["h2"])
        host, port = self._address
        self._servers.append(await asyncio.start_server(self._accepted, host, port, ssl=context, reuse_address=True))

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        roles = _roles_of(writer)
        if roles is None:
            writer.transport.abort()
            return
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._inner_port)
        port = inner_writer.get_extra_info("sockname")[1]
        self._roles[port] = roles
        transports = {writer.transport, inner_writer.transport}
        self._connections |= transports
        try:
            pumps = [asyncio.create_task(_pump(reader, inner_writer)), asyncio.create_task(_pump(inner_reader, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            self._roles.pop(port, None)
            self._connections -= transports
            for transport in transports:
                transport.abort()


def _roles_of(writer: asyncio.StreamWriter) -> tuple[str, ...] | None:
    """The organisations of the client certificate; None when it is not for clients alone."""
    tls: Any = writer.get_extra_info("ssl_object")
    certificate = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True))
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return None
    if list(usage) != [ExtendedKeyUsageOID.CLIENT_AUTH]:
        return None
    return tuple(str(item.value) for item in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()

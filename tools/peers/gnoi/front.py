"""The TLS side of a switch: client certificates, and connections that can be refused and cut.

TLS ends here and not in gRPC, so that a test can take ALPN away, show another certificate, and cut a connection without a word.
"""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 64 * 1024


@dataclass
class Shown:
    """What this side shows and asks for.  `certificate` None: plain text."""

    certificate: Path | None
    key: Path | None
    clients: Path | None
    """Authority of the callers; None asks for no certificate."""
    alpn: bool = True


class Front:
    """Carries connections to the gRPC server on `inner_port`."""

    def __init__(self, shown: Shown, *, inner_port: int, host: str, port: int) -> None:
        self.shown = shown
        self._inner_port = inner_port
        self._address = host, port
        self._connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None
        self.accepted = 0
        """TLS handshakes that ended well for both sides."""

    async def listen(self, on: bool) -> None:
        """Accept connections from now on, as `shown` says; or refuse them and cut those that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self.cut()
        if on:
            host, port = self._address
            self._server = await asyncio.start_server(
                self._accepted, host, port, ssl=self._context(), reuse_address=True
            )

    @property
    def is_listening(self) -> bool:
        return self._server is not None

    def cut(self) -> None:
        """End every connection without a word."""
        for transport in tuple(self._connections):
            transport.abort()

    def _context(self) -> ssl.SSLContext | None:
        shown = self.shown
        if shown.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown.certificate, shown.key)
        if shown.clients is not None:
            context.load_verify_locations(shown.clients)
            context.verify_mode = ssl.CERT_REQUIRED
        if shown.alpn:
            context.set_alpn_protocols(["h2"])
        return context

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._inner_port)
        transports = {writer.transport, inner_writer.transport}
        self._connections |= transports
        pumps = [asyncio.create_task(_pump(reader, inner_writer)), asyncio.create_task(_pump(inner_reader, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._connections -= transports
            for transport in transports:
                transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()

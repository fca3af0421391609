"""The encrypted connection to one machine, below gRPC.

The TLS inside gRPC does not accept Ed25519 certificates, and Talos issues no others by default; it also reports a refused
certificate like a machine that is down.  So TLS is done here: gRPC speaks plain text to a socket in a private folder, and each of its
connections is carried on to the machine with mutual TLS and ALPN `h2`.  Why a connection failed is kept exactly.
"""

import asyncio
import os
import socket
import ssl
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gitops_ctl.core.clock import Clock, to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import InternalError, Unavailable
from gitops_ctl.core.redact import redact_text
from gitops_ctl.talos.talosconfig import TalosConfig

DEFAULT_PORT = 50000
_CONNECT_S = 10.0
_FIRST_WORD_S = 2.0
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no connection.  `sent` says that bytes of a call may have reached the machine."""

    kind: Literal["tls", "down"]
    message: str
    sent: bool


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address; the port of Talos when none is named.

    Raises:
        ValueError: the port is no port, or there is no host.
    """
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        port = rest.removeprefix(":")
    elif address.count(":") > 1:
        host, port = address, ""
    else:
        host, _, port = address.partition(":")
    number = int(port) if port else DEFAULT_PORT
    if not host or not 0 < number < 65536:
        raise ValueError(f"{address!r} is no address of a machine")
    return host, number


class Tunnel:
    """Carries connections to one machine.  `async with`; `target` is where gRPC connects to."""

    def __init__(self, address: str, *, talosconfig: TalosConfig, clock: Clock) -> None:
        self.failure: Failure | None = None
        self.pinned = False
        """While set, no new connection is made: what is called now goes to the machine that was identified."""
        self._host, self._port = split_address(address)
        self._talosconfig = talosconfig
        self._clock = clock
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Tunnel":
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="gitops-ctl-talos-")
            self._server = await asyncio.start_unix_server(self._accepted, path=self._socket)
        except OSError as error:
            if self._folder is not None:
                self._folder.cleanup()
            why = error.strerror or str(error)
            raise Unavailable(
                f"the worker's own temporary folder cannot be used: {why}", code=ErrorCode.UNAVAILABLE
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def target(self) -> str:
        return f"unix:{self._socket}"

    @property
    def _socket(self) -> str:
        if self._folder is None:
            raise InternalError("the tunnel is not open")
        return str(Path(self._folder.name) / "socket")

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            # Raised out of a connection's own task it would be logged as a failure of the server.
            pass
        finally:
            self._carrying.discard(task)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.pinned:
            self.failure = Failure("down", "the connection on which the machine was identified is lost", sent=True)
            return
        try:
            outer = await self._connect()
        except (OSError, ValueError, TimeoutError) as error:
            self.failure = _failure(error, sent=False)
            return
        self.failure = None
        far, near = outer
        if near.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            self.failure = Failure(
                "tls", "the server does not speak HTTP/2 over TLS (no ALPN): it is not the Talos API", sent=False
            )
            near.close()
            return
        heard = asyncio.Event()
        answered = asyncio.create_task(_pump(far, writer, heard))
        pumps = [answered]
        try:
            # TLS 1.3: the client's certificate is judged after the handshake has ended for the client.  Whoever speaks into a
            # connection that is refused gets a reset, which may overtake the alert that says why.  An HTTP/2 server speaks first.
            with suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_WORD_S):
                    await heard.wait()
            if not answered.done():
                pumps.append(asyncio.create_task(_pump(reader, near)))
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            self._note_end(done, answered=answered)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            near.transport.abort()

    def _note_end(self, done: set[asyncio.Task[int]], *, answered: asyncio.Task[int]) -> None:
        """Remember why a connection ended, unless gRPC itself closed it."""
        if answered not in done:
            return
        error = answered.exception()
        if error is not None:
            self.failure = _failure(error, sent=True)
        elif answered.result() == 0:
            self.failure = Failure(
                "tls", "the machine closed the connection when it saw the client certificate", sent=False
            )
        else:
            self.failure = Failure("down", "the machine closed the connection", sent=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._clock.wall() >= self._talosconfig.not_after:
            expired = to_rfc3339(self._talosconfig.not_after)
            raise ssl.SSLError(1, f"the client certificate of the talosconfig expired at {expired}")
        async with asyncio.timeout(_CONNECT_S):
            return await asyncio.open_connection(
                self._host, self._port, ssl=self._context(), server_hostname=self._host
            )

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(cadata=self._talosconfig.ca.decode("ascii", "replace"))
        context.set_alpn_protocols(["h2"])
        # The library reads keys from files only: this one lies in memory and has no name.
        descriptor = os.memfd_create("talosconfig", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, self._talosconfig.certificate + b"\n" + self._talosconfig.key)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return context


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: asyncio.Event | None = None) -> int:
    """Carry bytes one way until the end; gives how many there were.  `heard` is set at the first of them and at the end."""
    carried = 0
    try:
        while chunk := await reader.read(_CHUNK):
            carried += len(chunk)
            writer.write(chunk)
            if heard is not None:
                heard.set()
            with suppress(ConnectionError):
                await writer.drain()
    finally:
        if heard is not None:
            heard.set()
    return carried


def _failure(error: BaseException, *, sent: bool) -> Failure:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure("tls", f"the certificate of the machine is not accepted: {error.verify_message}", sent=False)
    if isinstance(error, ssl.SSLError):
        # The library sets the reason; an error that was made here has only its text.
        reason = redact_text(str(getattr(error, "reason", None) or error.strerror or error)).replace("_", " ").lower()
        side = "the machine does not accept the client certificate: " if "alert" in reason else ""
        return Failure("tls", f"{side}{reason}", sent=False)
    if isinstance(error, TimeoutError):
        return Failure("down", f"no connection within {_CONNECT_S:g} s", sent=sent)
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
        return Failure("down", os.strerror(error.errno), sent=sent)
    return Failure("down", redact_text(str(error)) or type(error).__name__, sent=sent)

"""Why there is no connection to a device (devices.md, section 14.1).

gRPC reports a refused certificate as it reports a device that is down.  So when a connection fails, one handshake is made beside it, which
ends before any call and sends no credential; it tells the reasons of TLS apart, and TLS apart from no connection at all.
"""

import asyncio
import enum
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.clock import Clock, to_rfc3339
from gitops_ctl.core.redact import redact_text
from gitops_ctl.device.gnoitarget import GnoiTarget, TlsMaterial

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""How HTTP/2 begins, with an empty SETTINGS frame: the server answers with its own, and nothing has been asked for yet."""

_DATES: Final = (9, 10)
_NAMES: Final = (62, 64)


class TlsReason(enum.Enum):
    """Reasons that people can act on."""

    NO_CLIENT_CERTIFICATE = "NoClientCertificate"
    CLIENT_CERTIFICATE_REFUSED = "ClientCertificateRefused"
    WRONG_AUTHORITY = "WrongAuthority"
    EXPIRED = "Expired"
    WRONG_NAME = "WrongName"
    NO_ALPN = "NoAlpn"
    OTHER = "TlsFailed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What the handshake showed.

    Attributes:
        reason: None: it is not TLS.
        message: for people; empty when nothing is wrong.
    """

    reason: TlsReason | None
    message: str


async def probe(target: GnoiTarget, *, clock: Clock, limit_s: float) -> Finding:
    """Make one connection and end it.  Never raises for what the other side does."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(limit_s):
            context = None if target.tls is None else _context(target.tls)
            name = None if context is None else target.name
            reader, writer = await asyncio.open_connection(
                target.address, target.port, ssl=context, server_hostname=name
            )
            return Finding(None, "") if context is None else await _judged(target, reader, writer, clock=clock)
    except (OSError, ValueError, TimeoutError) as error:
        return _failure(error, target=target, clock=clock, limit_s=limit_s)
    finally:
        if writer is not None:
            writer.transport.abort()


async def _judged(
    target: GnoiTarget, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, clock: Clock
) -> Finding:
    if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
        return Finding(
            TlsReason.NO_ALPN, "the device does not offer HTTP/2 within TLS (no ALPN): it is no gNOI service"
        )
    # In TLS 1.3 our certificate is judged after the handshake has ended for us.
    writer.write(_PREFACE)
    with suppress(ConnectionError):
        if await reader.read(1):
            return Finding(None, "")
    return _client_finding(target, "the device closed the connection", clock=clock)


def _failure(error: BaseException, *, target: GnoiTarget, clock: Clock, limit_s: float) -> Finding:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _server_finding(error, target)
    if isinstance(error, ssl.SSLError):
        return _tls_finding(error, target, clock=clock)
    if isinstance(error, TimeoutError):
        return Finding(None, f"no connection within {limit_s:g} s")
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
        return Finding(None, os.strerror(error.errno))
    return Finding(None, redact_text(str(error)) or type(error).__name__)


def _tls_finding(error: ssl.SSLError, target: GnoiTarget, *, clock: Clock) -> Finding:
    said = redact_text(str(error.reason or error.strerror or error)).replace("_", " ").lower()
    if "application protocol" in said:
        return Finding(TlsReason.NO_ALPN, f"the device does not offer HTTP/2 within TLS (no ALPN): {said}")
    if "alert" in said:
        return _client_finding(target, said, clock=clock)
    return Finding(TlsReason.OTHER, f"there is no TLS at this port: {said}")


def _server_finding(error: ssl.SSLCertVerificationError, target: GnoiTarget) -> Finding:
    if error.verify_code in _DATES:
        return Finding(TlsReason.EXPIRED, f"the certificate of the device is not valid now: {error.verify_message}")
    if error.verify_code in _NAMES:
        return Finding(TlsReason.WRONG_NAME, f"the certificate of the device is not for {target.name}")
    why = f"the certificate of the device is not from the authority in ca.crt: {error.verify_message}"
    return Finding(TlsReason.WRONG_AUTHORITY, why)


def _client_finding(target: GnoiTarget, said: str, *, clock: Clock) -> Finding:
    assert target.tls is not None
    expires_at = target.tls.expires_at
    if expires_at is None:
        why = f"the device wants a client certificate, and the Secret has none: {said}"
        return Finding(TlsReason.NO_CLIENT_CERTIFICATE, why)
    if clock.wall() >= expires_at:
        return Finding(TlsReason.EXPIRED, f"our client certificate expired at {to_rfc3339(expires_at)}")
    return Finding(TlsReason.CLIENT_CERTIFICATE_REFUSED, f"the device does not accept our client certificate: {said}")


def _context(material: TlsMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=material.ca.decode("ascii", "replace"))
    context.set_alpn_protocols(["h2"])
    if material.certificate:
        with _file_of(material.certificate + b"\n" + material.key) as path:
            context.load_cert_chain(path)
    return context


@contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    """The library reads keys from files only: this one lies in memory and has no name."""
    with os.fdopen(os.memfd_create("gnoi", os.MFD_CLOEXEC), "wb") as memory:
        memory.write(data)
        memory.flush()
        yield f"/proc/self/fd/{memory.fileno()}"

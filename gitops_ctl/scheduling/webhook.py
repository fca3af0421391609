"""One question to an inventory service: one GET over HTTPS, on httpx2 (topology-scheduling.md, 10).

Rules: 200 is the only answer; no redirect is followed, nothing is repeated, no proxy and no credential of the environment is used; TLS 1.2
or newer, and a given CA stands in place of the roots of the system; the decoded answer is counted while it is read.  The caller holds the
one deadline.  No text of this module carries a token, a key or a word of the answer.
"""

import os
import ssl
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import httpx2

from gitops_ctl import __version__
from gitops_ctl.core.errors import caused_by
from gitops_ctl.scheduling.snapshot import LARGEST
from gitops_ctl.scheduling.source_status import Failed

_NO_LIMIT: Final = httpx2.Timeout(None)
_ANY_DEFLATED: Final = zlib.MAX_WBITS | 32
"""gzip or zlib, as the data itself says."""
_DECODED: Final = {"": False, "identity": False, "gzip": True, "x-gzip": True, "deflate": True}
"""Encodings, and whether they are unpacked."""


class ClientCertificate(NamedTuple):
    """A certificate chain and its key, both PEM."""

    chain: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One request.

    Attributes:
        token: for `Authorization: Bearer`; empty when a client certificate is shown.
        ca: PEM of the authorities that replace those of the system; None keeps the system's.
    """

    url: str
    token: str = field(default="", repr=False)
    certificate: ClientCertificate | None = field(default=None, repr=False)
    ca: bytes | None = None


class _FailedError(Exception):
    """Carries the detail of a failure out of the exchange; never its cause, which may quote."""


async def get(inquiry: Inquiry) -> bytes | Failed:
    """The decoded answer, at most 1 MiB, or why there is none."""
    try:
        return await _exchange(inquiry)
    except _FailedError as error:
        return Failed("WebhookReadFailed", str(error))


async def _exchange(inquiry: Inquiry) -> bytes:
    request, context = _request(inquiry), _context(inquiry)
    with _mapped():
        async with httpx2.AsyncClient(
            verify=context, timeout=_NO_LIMIT, follow_redirects=False, trust_env=False
        ) as client:
            response = await client.send(request, stream=True)
            try:
                if response.status_code != 200:
                    raise _FailedError(f"the server answered with the status {response.status_code}")
                return await _body(response)
            finally:
                await response.aclose()


def _request(inquiry: Inquiry) -> httpx2.Request:
    headers = {"User-Agent": f"gitops-ctl/{__version__}", "Accept-Encoding": "identity"}
    if inquiry.token:
        headers["Authorization"] = f"Bearer {inquiry.token}"
    try:
        return httpx2.Request("GET", inquiry.url, headers=headers)
    except httpx2.InvalidURL:
        raise _FailedError("the address cannot be read") from None
    except UnicodeEncodeError:
        raise _FailedError("the token cannot be sent: it has characters that no header may have") from None


async def _body(response: httpx2.Response) -> bytes:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in _DECODED:
        raise _FailedError("the answer is encoded, which was not asked for")
    inflating = zlib.decompressobj(_ANY_DEFLATED) if _DECODED[encoding] else None
    body = bytearray()
    async for piece in response.aiter_raw():
        try:
            # One byte more than may be, so that the limit shows; never zero, which would mean no limit.
            body += piece if inflating is None else inflating.decompress(piece, LARGEST + 1 - len(body))
        except zlib.error:
            raise _FailedError("the answer cannot be unpacked") from None
        if len(body) > LARGEST:
            raise _FailedError(f"the answer is longer than {LARGEST} bytes")
    if inflating is not None and (not inflating.eof or inflating.unused_data):
        raise _FailedError("the answer is not one whole compressed text")
    return bytes(body)


def _context(inquiry: Inquiry) -> ssl.SSLContext:
    """Not `create_default_context`: that writes session keys to a file when the environment says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if inquiry.ca is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=inquiry.ca.decode("ascii"))
        except (ssl.SSLError, ValueError):
            raise _FailedError("the CA bundle holds no certificate that can be read") from None
    if inquiry.certificate is not None:
        _show(context, inquiry.certificate)
    return context


def _show(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Let the context show a certificate; the library wants a file, so the key gets one that lies on no disk."""
    with _file_of(b"\n".join(certificate)) as path:
        try:
            # A password: without one an encrypted key would be asked for at the terminal.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError):
            message = "the client certificate and its key are no usable pair"
            raise _FailedError(message) from None


@contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb") as memory:
            memory.write(data)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.name


@contextmanager
def _mapped() -> Iterator[None]:
    """Turn errors of the library into ours; their texts can hold a header or bytes of the answer."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ProxyError) as error:
        is_untrusted = caused_by(error, ssl.SSLCertVerificationError)
        message = "the certificate of the server is not trusted" if is_untrusted else "no connection to the server"
        raise _FailedError(message) from None
    except httpx2.LocalProtocolError:
        raise _FailedError("the token cannot be sent: it has characters that no header may have") from None
    except (httpx2.TransportError, OSError) as error:
        raise _FailedError(f"no whole answer ({type(error).__name__})") from None

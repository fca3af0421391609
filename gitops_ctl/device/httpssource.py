"""An image from an https server, on aiohttp (rollouts.md, section 13.8).

One GET, with verified TLS and without a credential.  Redirects are not followed, no proxy and no cookie is used, nothing is unpacked.  The
connection goes to an address that was checked, and the name is only for the certificate.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gitops_ctl import __version__
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device.addresses import ImageEndpoint
from gitops_ctl.device.imagedownload import CONNECT_S, SILENCE_S, Download, refused, require_size, unreachable

_CHUNK = 256 * 1024


class _Checked(AbstractResolver):
    """Knows the addresses that were checked, and no others."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        flags = socket.AI_NUMERICHOST
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=flags,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """There is nothing to close."""


@asynccontextmanager
async def https_download(
    endpoint: ImageEndpoint, *, addresses: Sequence[str], most_bytes: int, authorities: bytes | None
) -> AsyncIterator[Download]:
    """One attempt.

    Args:
        endpoint: of the URL.
        addresses: checked ones, at least one.
        most_bytes: that the image may have.
        authorities: PEM that replaces the roots of the system; None keeps them.

    Raises:
        Unavailable: no connection, no answer, or the server cannot now.
        BlockedError: the server does not deliver the image.
    """
    connector = aiohttp.TCPConnector(
        resolver=_Checked(addresses), ssl=_context(authorities), use_dns_cache=False, force_close=True
    )
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
    headers = {"Accept-Encoding": "identity", "User-Agent": f"gitops-ctl/{__version__}"}
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.get(URL(f"{endpoint}{endpoint.path}", encoded=True), allow_redirects=False) as response,
        ):
            size = _judged(response, endpoint)
            if size is not None:
                require_size(size, most_bytes=most_bytes, endpoint=endpoint)
            yield Download(size, _chunks(response, endpoint, most_bytes=most_bytes))
    except GitopsError:
        raise
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise refused(endpoint, f"is not trusted: {_tls_words(error)}") from None
    except (aiohttp.ClientError, TimeoutError) as error:
        raise unreachable(endpoint, _words(error)) from None


def _judged(response: aiohttp.ClientResponse, endpoint: ImageEndpoint) -> int | None:
    """The size that the server names, when it delivers the image."""
    status = response.status
    if status in (408, 429) or status >= 500:
        raise unreachable(endpoint, f"it answers with the status {status}")
    if 300 <= status < 400:
        raise refused(endpoint, f"answers with the redirect {status}, and redirects are not followed")
    if status != 200:
        raise refused(endpoint, f"answers with the status {status}")
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding != "identity":
        raise refused(endpoint, "sends the image encoded, which was not asked for")
    return response.content_length


async def _chunks(
    response: aiohttp.ClientResponse, endpoint: ImageEndpoint, *, most_bytes: int
) -> AsyncIterator[bytes]:
    total = 0
    async for chunk in response.content.iter_chunked(_CHUNK):
        total += len(chunk)
        require_size(total, most_bytes=most_bytes, endpoint=endpoint)
        yield chunk


def _context(authorities: bytes | None) -> ssl.SSLContext:
    """Not `create_default_context`: that writes session keys to a file when the environment says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authorities is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    return context


def _tls_words(error: aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError) -> str:
    cause = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error.os_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    return str(getattr(cause, "reason", None) or type(cause).__name__).replace("_", " ").lower()


def _words(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.strerror:
        return error.os_error.strerror
    if isinstance(error, asyncio.TimeoutError):
        return f"nothing came for {SILENCE_S:g} s, or no connection within {CONNECT_S:g} s"
    return f"the answer ended early ({type(error).__name__})"

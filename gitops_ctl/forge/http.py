"""Plain HTTP to forges, on httpx2 (forges.md, sections 2 and 14).

Rules: no proxy and no credentials from the environment; every wait has a limit, and the exchange as a whole has one; the answer is read
as a stream up to a limit, never unpacked; a redirect is followed for reading only, and only within scheme, host and port; only what may be
repeated is repeated; no error text holds a header, a query or user info.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

import httpx2

from gitops_ctl import __version__
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import (
    BlockedError,
    GitopsError,
    RateLimited,
    Refused,
    ReplyLost,
    Unavailable,
    caused_by,
)
from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, Terms
from gitops_ctl.forge.errors import AnswerRefused, AnswerTooLong, RedirectRefused
from gitops_ctl.forge.pauses import Pauses, pause_asked, retry_after

USER_AGENT: Final = f"gitops-ctl/{__version__}"

_TIMEOUTS: Final = httpx2.Timeout(connect=5.0, read=30.0, write=30.0, pool=5.0)
_RETRIES: Final = 3
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 5.0
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MOST_REDIRECTS: Final = 3
_MOST_AUTHORITIES: Final = 32
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_READS: Final = ("GET", "HEAD")


@dataclass(slots=True)
class _Trusting:
    """Connections under one set of authorities."""

    client: httpx2.AsyncClient
    busy: int = 0


class HttpxClient:
    """`core.http.HttpClient`; use it as an asynchronous context manager, or close it.

    Args:
        clock: for waits.
        draw: a random number in [0, 1), for jitter.
        transport: in place of sockets, for tests.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        draw: Callable[[], float] = random.SystemRandom().random,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._clock = clock
        self._draw = draw
        self._transport = transport
        self._pauses = Pauses(clock)
        self._clients: dict[bytes | None, _Trusting] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        clients, self._clients = self._clients, {}
        for trusting in clients.values():
            await trusting.client.aclose()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        idempotent: bool | None = None,
        terms: Terms = USUAL_TERMS,
    ) -> HttpAnswer:
        """As `core.http.HttpClient.request` says."""
        request = _built(method, url, headers=headers, body=body)
        call = _call(request)
        if waits := self._pauses.remaining(request.url.netloc.decode(), headers):
            raise _limited(call, waits)
        if terms.gap_s:
            await self._pauses.turn(request.url.netloc.decode(), gap_s=terms.gap_s)
        repeatable = method in _READS if idempotent is None else idempotent
        try:
            async with asyncio.timeout(terms.deadline_s):
                return await self._tries(request, terms=terms, repeatable=repeatable)
        except TimeoutError as error:
            raise _without_answer(call, f"no answer within {terms.deadline_s:g} s", sent=not repeatable) from error

    async def _tries(self, request: httpx2.Request, *, terms: Terms, repeatable: bool) -> HttpAnswer:
        """The exchange, repeated while that is allowed and may help."""
        wait_s = _FIRST_WAIT_S
        for tries_left in range(_RETRIES if repeatable else 0, -1, -1):
            try:
                answer = await self._exchange(request, terms=terms, repeatable=repeatable)
                self._judge(request, answer, repeatable=repeatable)
                return answer
            except (Unavailable, ReplyLost) as error:
                asked_s = error.retry_after_s or 0.0
                if not tries_left or asked_s > _LONGEST_WAIT_S:
                    raise
                await self._clock.sleep(max(asked_s, wait_s * (0.5 + self._draw())))
                wait_s = min(_LONGEST_WAIT_S, wait_s * 2)
        raise AssertionError("the last try returns or raises")

    def _judge(self, request: httpx2.Request, answer: HttpAnswer, *, repeatable: bool) -> None:
        """Raise for an answer that is none: a rate limit, or a failure of the server."""
        call, now = _call(request), self._clock.wall()
        asked_s = pause_asked(answer, now=now)
        if asked_s is not None:
            self._pauses.begin(request.url.netloc.decode(), request.headers, seconds=asked_s)
            raise _limited(call, asked_s)
        if answer.status >= 500:
            raise _without_answer(
                call,
                f"answered with the status {answer.status}",
                sent=not repeatable,
                retry_after_s=retry_after(answer.headers, now=now),
            )

    async def _exchange(self, request: httpx2.Request, *, terms: Terms, repeatable: bool) -> HttpAnswer:
        """One exchange, redirects within the place included."""
        trusting = await self._trusting(terms.ca, request)
        trusting.busy += 1
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                with _mapped(_call(request), sent=not repeatable):
                    answer = await _sent(trusting.client, request, most=terms.most_bytes)
                if answer.status not in _REDIRECTS:
                    return answer
                request = _redirected(request, answer)
            raise RedirectRefused(f"{_call(request)}: more than {_MOST_REDIRECTS} redirects, one after the other")
        finally:
            trusting.busy -= 1

    async def _trusting(self, ca: bytes | None, request: httpx2.Request) -> _Trusting:
        found = self._clients.get(ca)
        if found is None:
            await self._drop_idle()
            client = httpx2.AsyncClient(
                verify=_context(ca, request),
                timeout=_TIMEOUTS,
                follow_redirects=False,
                trust_env=False,
                transport=self._transport,
            )
            found = self._clients[ca] = _Trusting(client)
        return found

    async def _drop_idle(self) -> None:
        """Authorities come from ConfigMaps that others write: their number has a limit."""
        idle = [ca for ca, trusting in self._clients.items() if not trusting.busy]
        for ca in idle[: max(0, len(self._clients) - _MOST_AUTHORITIES + 1)]:
            await self._clients.pop(ca).client.aclose()


def _built(method: str, url: str, *, headers: Mapping[str, str], body: bytes) -> httpx2.Request:
    """The request.  Compressed answers are not asked for: what they unpack to has no limit.

    Raises:
        Refused: URL_REFUSED: no http or https address, or one with user info.
    """
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise Refused("the address of the forge cannot be read", code=ErrorCode.URL_REFUSED) from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise Refused("the address of a forge is https://host/path, without user info", code=ErrorCode.URL_REFUSED)
    own = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    try:
        return httpx2.Request(method, parsed, headers={**own, **headers}, content=body)
    except (UnicodeEncodeError, TypeError):
        raise Refused(f"{method} {_place(parsed)}: a header cannot be written", code=ErrorCode.TOKEN_REJECTED) from None


async def _sent(client: httpx2.AsyncClient, request: httpx2.Request, *, most: int) -> HttpAnswer:
    """Send and read at most `most` bytes."""
    response = await client.send(request, stream=True)
    try:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise AnswerRefused(f"{_call(request)}: a compressed answer, which was not asked for")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > most:
                raise AnswerTooLong(f"{_call(request)}: the answer is longer than {most} bytes")
    finally:
        await response.aclose()
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(response.status_code, headers, bytes(body))


def _redirected(request: httpx2.Request, answer: HttpAnswer) -> httpx2.Request:
    """The same reading request at the place that the answer names.

    Raises:
        RedirectRefused: another scheme, host or port, or not a reading request.
    """
    try:
        target = request.url.join(answer.headers.get("location", ""))
    except (httpx2.InvalidURL, ValueError):
        raise RedirectRefused(f"{_call(request)}: a redirect whose address cannot be read") from None
    here, there = _origin(request.url), _origin(target)
    if here != there or request.method not in _READS:
        message = f"{_call(request)} is redirected to {_place(target)}"
        raise RedirectRefused(message if here != there else f"{message}, and only reading follows")
    return httpx2.Request(request.method, target.copy_with(userinfo=b""), headers=_without_host(request.headers))


def _without_host(headers: httpx2.Headers) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() != "host"]


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host.lower(), url.port or (443 if url.scheme == "https" else 80)


def _place(url: httpx2.URL) -> str:
    """An address for messages: scheme, host, port and path, cut."""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}{url.path}"[:300]


def _call(request: httpx2.Request) -> str:
    return f"{request.method} {_place(request.url)}"


def _context(ca: bytes | None, request: httpx2.Request) -> ssl.SSLContext:
    """Not `create_default_context`: that writes session keys to a file when the environment says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, ValueError):
        message = f"{_call(request)}: the CA bundle holds no certificate that can be read"
        raise BlockedError(message, code=ErrorCode.CERTIFICATE_REFUSED) from None
    return context


@contextmanager
def _mapped(call: str, *, sent: bool) -> Iterator[None]:
    """Turn errors of the library into ours."""
    try:
        yield
    except _NEVER_SENT as error:
        if caused_by(error, ssl.SSLCertVerificationError):
            message = f"{call}: the certificate of the server is not trusted"
            raise BlockedError(message, code=ErrorCode.CERTIFICATE_REFUSED) from error
        raise _without_answer(call, "no connection", sent=False) from error
    except httpx2.LocalProtocolError:
        # Its text holds the header that cannot be written, which may be the token.
        raise Refused(f"{call}: a header cannot be written", code=ErrorCode.TOKEN_REJECTED) from None
    except httpx2.TransportError as error:
        raise _without_answer(call, f"no whole answer ({type(error).__name__})", sent=sent) from error


def _without_answer(call: str, what: str, *, sent: bool, retry_after_s: float | None = None) -> GitopsError:
    if sent:
        message = f"{call}: {what}; whether it was carried out is looked up"
        return ReplyLost(message, code=ErrorCode.FORGE_UNAVAILABLE, retry_after_s=retry_after_s)
    return Unavailable(f"{call}: {what}", code=ErrorCode.FORGE_UNAVAILABLE, retry_after_s=retry_after_s)


def _limited(call: str, seconds: float) -> RateLimited:
    message = f"{call}: the forge asks for a pause of {seconds:.0f} s"
    return RateLimited(message, code=ErrorCode.FORGE_RATE_LIMITED, retry_after_s=seconds)

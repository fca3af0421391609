"""One request and its answer: sessions, deadlines, credentials, retries and the mapping of library errors.

Two rules carry the rest of the product.  "Never sent" and "no answer" are different errors: after the second, the request
may have been carried out.  And a call is repeated here only when its verb is safe to repeat; everything else is planned
again from what the cluster shows (S22).
"""

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

import gitops_ctl
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError, InternalError, RateLimited, ReplyLost, TransientError, Unavailable
from gitops_ctl.kube.answers import Gone, Unauthenticated, classify
from gitops_ctl.kube.config import ClusterConfig

CONNECT_S: Final = 5.0
REQUEST_S: Final = 30.0
BODY_LIMIT_BYTES: Final = 4 * 1024 * 1024
ATTEMPTS: Final = 5
FIRST_DELAY_S: Final = 0.5
DELAY_CAP_S: Final = 10.0
JSON: Final = "application/json"

_ACCOUNT = re.compile(r"system:serviceaccount:[a-z0-9.-]+:[a-z0-9.-]+")


@dataclass(slots=True)
class Call:
    """What is sent.  `safe` says that repeating it changes nothing; `verb` and `resource` are for accounting."""

    verb: str
    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    media: str = JSON
    accept: str = JSON
    account: str | None = None
    safe: bool = True
    timeout_s: float | None = None
    limit_bytes: int = BODY_LIMIT_BYTES

    @property
    def subject(self) -> str:
        """For people: verb and path; never the body."""
        return f"{self.verb} {self.path}"


@dataclass(frozen=True, slots=True)
class Limits:
    """How patient one client is: `attempts` inside one call, `timeout_s` for one attempt, requests in flight."""

    attempts: int = ATTEMPTS
    timeout_s: float = REQUEST_S
    connect_s: float = CONNECT_S
    concurrency: int = 32


def retry_delay(attempt: int, *, retry_after_s: float | None, draw: float) -> float:
    """Seconds before the next attempt; `attempt` counts from 1, `draw` is uniform in [0, 1).

    What the server asks for is the least wait; a tenth of jitter on top keeps clients apart.  Else full jitter below a
    limit that doubles from 0.5 s to 10 s (H11).
    """
    if retry_after_s is not None:
        return retry_after_s * (1.0 + 0.1 * draw)
    return draw * min(DELAY_CAP_S, FIRST_DELAY_S * 2.0 ** (attempt - 1))


def require_account(call: Call) -> None:
    """Nobody but ServiceAccounts is impersonated (gitops.md, section 4.7).

    Raises:
        InternalError: the account is empty, so that the call would be made with our own rights, or names somebody else.
    """
    if call.account is not None and not _ACCOUNT.fullmatch(call.account):
        raise InternalError(f"{call.account!r} is no ServiceAccount", subject=call.subject)


def resource_of(path: str) -> str:
    """The resource that a path names, with its subresource (`pods/status`); the path itself when it names none."""
    parts = path.split("/")
    rest = parts[3:] if parts[1] == "api" else parts[4:] if parts[1] == "apis" else []
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    if not rest:
        return path
    return f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]


class Exchange:
    """The HTTP side of one client.  An async context manager; its sessions live that long."""

    def __init__(
        self, config: ClusterConfig, *, component: str, clock: Clock, draw: Callable[[], float], limits: Limits
    ) -> None:
        self.config = config
        self.clock = clock
        self.draw = draw
        self.limits = limits
        self.calls: Counter[tuple[str, str]] = Counter()
        self._agent = f"gitops-ctl/{gitops_ctl.__version__} ({component})"
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._requests = self._session(total_s=self.limits.timeout_s)
        # Apart: HTTP/1.1 holds one connection per watch, and requests must never wait for one.
        self._watches = self._session(total_s=None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()

    def _session(self, *, total_s: float | None) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,  # `_slots` counts instead, so that waiting for a turn is no part of a request's deadline
            ssl=self.config.tls or True,
            keepalive_timeout=60.0,
            socket_factory=_keepalive_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=total_s, sock_connect=self.limits.connect_s),
            headers={"User-Agent": self._agent, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    async def perform(self, call: Call) -> bytes:
        """The body of a 2xx answer, after as many attempts as the verb and the limits allow.

        Raises:
            GitopsError: what `classify` says, ReplyLost when an answer is missing, Unavailable when nothing was sent.
        """
        require_account(call)
        attempt, renewed = 1, False
        while True:
            used = await self.authorization()
            try:
                return await self._once(call, used)
            except Unauthenticated:
                if renewed or not await self._renewed(used):
                    raise
                renewed = True
                continue
            except TransientError as error:
                if not call.safe or isinstance(error, Gone) or attempt >= self.limits.attempts:
                    raise
                delay = retry_delay(attempt, retry_after_s=error.retry_after_s, draw=self.draw())
            attempt += 1
            await self.clock.sleep(delay)

    async def authorization(self) -> str:
        """The present `Authorization` header, read again when its time has come."""
        credentials = self.config.credentials
        if credentials.due_s <= (now := self.clock.boot_s()):
            await credentials.renew(now_s=now, seen=credentials.authorization)
        return credentials.authorization

    async def _renewed(self, used: str) -> bool:
        return await self.config.credentials.renew(now_s=self.clock.boot_s(), seen=used)

    async def _once(self, call: Call, authorization: str) -> bytes:
        async with self._slots:
            self.calls[call.verb, resource_of(call.path)] += 1
            try:
                async with self._open(self._requests, call, authorization) as response:
                    data = await read_capped(response, limit_bytes=call.limit_bytes)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise translated(error, call) from error
        if response.status < 300:
            return data
        raise answer_error(response, data, call)

    async def open_watch(self, call: Call) -> aiohttp.ClientResponse:
        """The response of a watch that the server accepted; the caller closes it.  401 is tried once more."""
        require_account(call)
        used = await self.authorization()
        try:
            return await self._open_watch_once(call, used)
        except Unauthenticated:
            if not await self._renewed(used):
                raise
        return await self._open_watch_once(call, await self.authorization())

    async def _open_watch_once(self, call: Call, authorization: str) -> aiohttp.ClientResponse:
        self.calls[call.verb, resource_of(call.path)] += 1
        try:
            async with asyncio.timeout(call.timeout_s or self.limits.timeout_s):
                response = await self._open(self._watches, call, authorization)
                if response.status < 300:
                    return response
                try:
                    data = await read_capped(response, limit_bytes=call.limit_bytes)
                finally:
                    response.release()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise translated(error, call) from error
        raise answer_error(response, data, call)

    def _open(
        self, session: aiohttp.ClientSession | None, call: Call, authorization: str
    ) -> "aiohttp.client._RequestContextManager":
        if session is None:
            raise RuntimeError("the client is used outside of its context")
        headers = {"Accept": call.accept}
        if call.body is not None:
            headers["Content-Type"] = call.media
        if authorization:
            headers["Authorization"] = authorization
        if call.account is not None:
            headers["Impersonate-User"] = call.account
        timeout = session.timeout
        if call.timeout_s is not None:
            timeout = aiohttp.ClientTimeout(total=call.timeout_s, sock_connect=self.limits.connect_s)
        return session.request(
            call.method,
            URL(f"{self.config.host}{call.path}{call.query}", encoded=True),
            data=call.body,
            headers=headers,
            allow_redirects=False,
            server_hostname=self.config.server_name,
            proxy=self.config.proxy,
            timeout=timeout,
        )


def _keepalive_socket(address: "aiohttp.abc.AddrInfoType") -> socket.socket:  # type: ignore[name-defined]
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


async def read_capped(response: aiohttp.ClientResponse, *, limit_bytes: int) -> bytes:
    """The whole body.

    Raises:
        Unavailable: it is longer than the limit; nothing of it is kept.
    """
    length = response.content_length
    if length is not None and length <= limit_bytes:
        return await response.read()
    parts: list[bytes] = []
    held = length or 0
    while held <= limit_bytes:
        chunk = await response.content.readany()
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
        held += len(chunk)
    response.close()
    raise Unavailable(f"the answer is longer than {limit_bytes} bytes")


def answer_error(response: aiohttp.ClientResponse, data: bytes, call: Call) -> GitopsError:
    """The error of an answer other than 2xx; 5xx to a call that may not be repeated is a lost reply."""
    wait = response.headers.get("Retry-After", "")
    error = classify(
        response.status, data, subject=call.subject, retry_after_s=float(wait) if wait.isdecimal() else None
    )
    if call.safe or not isinstance(error, TransientError) or isinstance(error, (RateLimited, Gone)):
        return error
    return ReplyLost(error.message, subject=call.subject, retry_after_s=error.retry_after_s)


def translated(error: Exception, call: Call) -> TransientError:
    """Ours for an error of the HTTP library.  The library's text is dropped: it may quote addresses and headers."""
    text = f"no answer ({type(error).__name__})"
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return Unavailable(f"not reachable ({type(error).__name__})", subject=call.subject)
    if call.verb in ("get", "list", "watch"):
        return Unavailable(text, subject=call.subject)
    return ReplyLost(text, subject=call.subject)

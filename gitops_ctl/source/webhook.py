"""Push webhooks of GitHub, GitLab, Gitea and Forgejo: a signed hint that shortens the wait for the next poll.

The payload is never data (gitops.md, sections 2.1 and 18.3 row 10; fault H20).  A delivery is read under a byte and a time
limit, its signature is compared in constant time, and then one thing happens: the source is polled now.  Which sources
exist is not told: an unknown source and a wrong signature get the same answer.
"""

import asyncio
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.ids import NamespacedName

BODY_LIMIT_BYTES: Final = 1024 * 1024
READ_TIMEOUT_S: Final = 10.0
MIN_INTERVAL_S: Final = 1.0
"""Least time between two polls that deliveries ask for, per source: a replay storm costs one poll a second."""

MAX_TRACKED_SOURCES: Final = 10_000

SECRET_KEPT_S: Final = 5.0
"""For so long a secret is not read again: a flood of unsigned deliveries costs the API server next to nothing."""

SecretOf = Callable[[NamespacedName], Awaitable[bytes | None]]
"""The webhook secret of a source; None when the source is unknown or has no webhook."""

Trigger = Callable[[NamespacedName], None]


def is_signed(headers: Mapping[str, str], *, body: bytes, secret: bytes) -> bool:
    """Whether one of the vendors' signatures over `body` was made with `secret`.

    GitHub, Gitea and Forgejo send an HMAC-SHA256 of the body; GitLab sends the secret itself.  Every comparison takes the
    same time wherever the values differ.
    """
    if not secret:
        return False
    expected = hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
    github = _bytes(headers.get("X-Hub-Signature-256", "").removeprefix("sha256="))
    gitea = _bytes(headers.get("X-Gitea-Signature") or headers.get("X-Forgejo-Signature") or "")
    gitlab = _bytes(headers.get("X-Gitlab-Token", ""))
    matches = [
        hmac.compare_digest(github, expected),
        hmac.compare_digest(gitea, expected),
        hmac.compare_digest(gitlab, secret),
    ]
    return any(matches)


def _bytes(header: str) -> bytes:
    """As it was sent: bytes that are no text come as surrogates."""
    return header.encode(errors="surrogateescape")


def is_push(headers: Mapping[str, str]) -> bool:
    """Whether the vendor calls the delivery a push; everything else is acknowledged and left alone."""
    event = (
        headers.get("X-GitHub-Event")
        or headers.get("X-Gitea-Event")
        or headers.get("X-Forgejo-Event")
        or headers.get("X-Gitlab-Event")
        or ""
    )
    return event.lower() in ("push", "create", "push hook", "tag push hook")


@dataclass(slots=True)
class DeliveryPace:
    """Remembers when each source was last triggered; bounded, the oldest goes first."""

    min_interval_s: float = MIN_INTERVAL_S
    _last: OrderedDict[NamespacedName, float] = field(default_factory=OrderedDict)

    def rest_s(self, source: NamespacedName, *, now_s: float) -> float:
        """Seconds until the next delivery of this source is admitted."""
        return max(0.0, self._last.get(source, now_s - self.min_interval_s) + self.min_interval_s - now_s)

    def admits(self, source: NamespacedName, *, now_s: float) -> bool:
        last = self._last.get(source)
        if last is not None and now_s - last < self.min_interval_s:
            return False
        self._last[source] = now_s
        self._last.move_to_end(source)
        if len(self._last) > MAX_TRACKED_SOURCES:
            self._last.popitem(last=False)
        return True


class KeptSecrets:
    """Reads the secret of a source once in a while, however many deliveries ask for it at the same time."""

    def __init__(self, secret_of: SecretOf, *, clock: Clock) -> None:
        self._secret_of = secret_of
        self._clock = clock
        self._kept: OrderedDict[NamespacedName, tuple[float, asyncio.Future[bytes | None]]] = OrderedDict()

    async def __call__(self, source: NamespacedName) -> bytes | None:
        now_s = self._clock.boot_s()
        kept = self._kept.get(source)
        if kept is None or now_s - kept[0] >= SECRET_KEPT_S:
            kept = self._kept[source] = (now_s, asyncio.ensure_future(self._secret_of(source)))
            self._kept.move_to_end(source)
            if len(self._kept) > MAX_TRACKED_SOURCES:
                self._kept.popitem(last=False)
        # Shielded: one sender that hangs up must not end the reading that others wait for.
        return await asyncio.shield(kept[1])


class PacedTrigger:
    """Triggers now, or when the pace admits it: a push that follows another one closely may be the last for long."""

    def __init__(self, trigger: Trigger, *, clock: Clock) -> None:
        self._trigger = trigger
        self._clock = clock
        self._pace = DeliveryPace()
        self._later: dict[NamespacedName, asyncio.TimerHandle] = {}

    def __call__(self, source: NamespacedName) -> None:
        now_s = self._clock.boot_s()
        if self._pace.admits(source, now_s=now_s):
            if (waiting := self._later.pop(source, None)) is not None:
                waiting.cancel()
            self._trigger(source)
        elif source not in self._later:
            delay_s = self._pace.rest_s(source, now_s=now_s)
            self._later[source] = asyncio.get_running_loop().call_later(delay_s, self._again, source)

    def _again(self, source: NamespacedName) -> None:
        del self._later[source]
        self(source)


async def read_limited(request: web.Request, *, limit_bytes: int) -> bytes | None:
    """The body, or None as soon as it is longer than the limit: no more is read than that."""
    declared = request.content_length
    if declared is not None and declared > limit_bytes:
        return None
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > limit_bytes:
            return None
    return bytes(body)


def webhook_app(*, secret_of: SecretOf, trigger: Trigger, clock: Clock) -> web.Application:
    """The endpoint `POST /hooks/<namespace>/<name>`.

    Answers: 202 the source is polled now (or when a second has passed since its last poll), 200 an event that is no push, 401 no valid
    signature or no such source, 408 the body did not come in time, 413 the body is too long.
    """
    poll = PacedTrigger(trigger, clock=clock)
    kept_secret_of = KeptSecrets(secret_of, clock=clock)

    async def deliver(request: web.Request) -> web.Response:
        source = NamespacedName(request.match_info["namespace"], request.match_info["name"])
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                body = await read_limited(request, limit_bytes=BODY_LIMIT_BYTES)
        except TimeoutError:
            return _answer(408, "the body did not arrive in time")
        if body is None:
            return _answer(413, f"the body is longer than {BODY_LIMIT_BYTES} bytes")
        secret = await kept_secret_of(source)
        if not is_signed(request.headers, body=body, secret=secret or b"") or secret is None:
            return _answer(401, "no valid signature")
        if not is_push(request.headers):
            return _answer(200, "not a push; nothing to do")
        poll(source)
        return _answer(202, "polled")

    app = web.Application(client_max_size=BODY_LIMIT_BYTES)
    app.router.add_post("/hooks/{namespace}/{name}", deliver)
    return app


def _answer(status: int, text: str) -> web.Response:
    response = web.Response(status=status, text=f"{text}\n")
    if status in (408, 413):
        # What is left of the body is not read: the connection cannot carry another request.
        response.force_close()
    return response

"""Kubernetes Events: one per change of state, never more than the server can bear, never able to fail a reconcile.

`emit` only decides and remembers; `run` sends, without a retry.  Repeats of one (object, reason, action, note) within a minute are
counted and become a series of the first Event; another note, with another commit or signer, is another Event.  A token bucket bounds
the rest (gitops.md, section 12.3).  Notes pass the redaction (H22).
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import structlog

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.errors import GitopsError, NotFound
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.kube.lease import micro_time
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import TokenBucket

CONTROLLER: Final = "gitops-ctl.dev/manager"
NOTE_LIMIT: Final = 1000
REASON_LIMIT: Final = 128
REPEAT_S: Final = 60.0
SERIES_S: Final = 360.0
MEMORY: Final = 1000
RATE: Final = 5.0
BURST: Final = 20.0

EventKind = Literal["Normal", "Warning"]
Emit = Callable[[JsonObject, EventKind, str, str], None]
"""Says that something happened: the object, the type, the reason and the note of an Event."""
_Key = tuple[str, str, str, str]

log = structlog.get_logger(__name__)


def silent(_tree: JsonObject, _kind: EventKind, _reason: str, _note: str) -> None:
    """An `Emit` that nobody hears."""
    return


@dataclass(frozen=True, slots=True)
class _Repeat:
    """What is known about one thing that was said: where its Event is and how often it was said."""

    path: str
    sent_s: float
    seen_s: float
    count: int


@dataclass(frozen=True, slots=True)
class _Create:
    path: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class _Count:
    path: str
    series: JsonObject


class EventRecorder:
    """One per process.  `counts` has emitted, repeated, dropped and failed."""

    def __init__(
        self,
        client: KubeClient,
        *,
        instance: str,
        controller: str = CONTROLLER,
        require: Callable[[], None] = lambda: None,
    ) -> None:
        """`instance` names this process, for example its pod; `require` raises when it may not write any more (H13)."""
        self.counts: Counter[str] = Counter()
        self._client = client
        self._clock: Clock = client.clock
        self._controller = controller
        self._instance = instance
        self._require = require
        self._suffix = digest_bytes(instance.encode())[7:13]
        self._number = 0
        self._bucket = TokenBucket(rate=RATE, burst=BURST)
        self._known: OrderedDict[_Key, _Repeat] = OrderedDict()
        self._waiting: deque[_Create | _Count] = deque()
        self._ready = asyncio.Event()

    def emit(
        self,
        regarding: JsonObject,
        *,
        type: EventKind,
        reason: str,
        action: str,
        note: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Say that something happened to the object `regarding`; returns at once and never raises for the cluster's sake.

        Args:
            regarding: the object, or at least its apiVersion, kind and metadata.
            reason: CamelCase, from the registry of codes.
            action: what was done, CamelCase.
            note: for people; cut at 1,000 characters.
        """
        now_s = self._clock.boot_s()
        said = digest_bytes(note.encode())
        key = (text_at(regarding, "metadata", "uid") or _place(regarding), reason, action, said)
        if (before := self._known.get(key)) is not None and now_s - before.seen_s < SERIES_S:
            self._repeat(key, before, now_s)
            return
        if not self._bucket.take(now_s=now_s) or len(self._waiting) >= MEMORY:
            self.counts["dropped"] += 1
            return
        body = self._event(regarding, (type, reason, action, note), dict(annotations or {}))
        namespace, name = text_at(body, "metadata", "namespace"), text_at(body, "metadata", "name")
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self._remember(key, _Repeat(f"{path}/{name}", now_s, now_s, 1))
        self.counts["emitted"] += 1
        self._send(_Create(path, body))

    @property
    def remembered(self) -> int:
        """How many things said are known for counting repeats."""
        return len(self._known)

    async def run(self) -> None:
        """Send what was emitted, until cancelled."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            await self.flush()

    async def flush(self) -> None:
        """Send what waits now; called once more at the end of a process, under its deadline."""
        while self._waiting:
            item = self._waiting.popleft()
            try:
                self._require()
                if isinstance(item, _Create):
                    await self._client.create(item.path, item.body)
                else:
                    await self._client.patch_merge(item.path, {"series": item.series})
            except NotFound:
                self.counts["failed"] += 1  # expired: its story is over
            except GitopsError as error:
                self.counts["failed"] += 1
                log.warning("event not written", code=error.code.name)

    def _repeat(self, key: _Key, before: _Repeat, now_s: float) -> None:
        self.counts["repeated"] += 1
        count = before.count + 1
        due = now_s - before.sent_s >= REPEAT_S and len(self._waiting) < MEMORY
        self._remember(key, _Repeat(before.path, now_s if due else before.sent_s, now_s, count))
        if due:
            self._send(_Count(before.path, {"count": count, "lastObservedTime": micro_time(self._clock.wall())}))

    def _remember(self, key: _Key, repeat: _Repeat) -> None:
        self._known[key] = repeat
        self._known.move_to_end(key)
        while len(self._known) > MEMORY:
            self._known.popitem(last=False)

    def _send(self, item: _Create | _Count) -> None:
        self._waiting.append(item)
        self._ready.set()

    def _event(
        self, regarding: JsonObject, words: tuple[EventKind, str, str, str], annotations: dict[str, str]
    ) -> JsonObject:
        kind, reason, action, note = words
        now = self._clock.wall()
        self._number += 1
        suffix = f"{int(now.timestamp() * 1_000_000):x}{self._suffix}{self._number:x}"
        name = f"{text_at(regarding, 'metadata', 'name')[: 252 - len(suffix)]}.{suffix}"
        namespace = text_at(regarding, "metadata", "namespace")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace or "default", "annotations": annotations},
            "eventTime": micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": cut(self._instance, limit=128),
            "type": kind,
            "reason": cut(reason, limit=REASON_LIMIT),
            "action": cut(action, limit=REASON_LIMIT),
            "note": cut(redact_text(note), limit=NOTE_LIMIT),
            "regarding": {
                "apiVersion": text_at(regarding, "apiVersion"),
                "kind": text_at(regarding, "kind"),
                "namespace": namespace,
                "name": text_at(regarding, "metadata", "name"),
                "uid": text_at(regarding, "metadata", "uid"),
                "resourceVersion": text_at(regarding, "metadata", "resourceVersion"),
            },
        }


def _place(regarding: JsonObject) -> str:
    return "/".join(
        (
            text_at(regarding, "kind"),
            text_at(regarding, "metadata", "namespace"),
            text_at(regarding, "metadata", "name"),
        )
    )

"""Decides which key runs next.  Pure: the caller passes the time, nothing here waits.

Rules:
  * A key is in at most one of ready and in flight; a key that is added while in flight runs again afterwards.  So one object
    is never reconciled twice at once and no change is lost.
  * Now beats later, and of two later times the earlier one counts.
  * Fresh changes run before retries, retries before resyncs; inside a lane tenants take turns, and no tenant holds more than
    half of the workers (rounded up), so a failing or busy one never delays the others (H04).
  * Failures wait longer each time, and all of them together pass one token bucket; fresh changes pass none.
"""

import enum
import heapq
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

RETRY_S: Final = 0.5
RETRY_CAP_S: Final = 300.0
JITTER: Final = 0.2
BUCKET_RATE: Final = 10.0
BUCKET_BURST: Final = 100


class Lane(enum.IntEnum):
    """Why a key is to run; lower ones first."""

    FRESH = 0
    RETRY = 1
    RESYNC = 2


class TokenBucket:
    """Refills at `rate` per second up to `burst`; reservations may go into debt and then tell how long to wait."""

    def __init__(self, *, rate: float = BUCKET_RATE, burst: float = BUCKET_BURST) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at_s: float | None = None

    def reserve(self, *, now_s: float) -> float:
        """Take one token; seconds until it is there, 0 when it is there now."""
        self._refill(now_s)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def take(self, *, now_s: float) -> bool:
        """Take one token if there is one."""
        self._refill(now_s)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, now_s: float) -> None:
        if self._at_s is not None:
            self._tokens = min(self._burst, self._tokens + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s


class WorkQueue(Generic[K]):
    """See the module."""

    def __init__(
        self,
        *,
        workers: int,
        tenant_of: Callable[[K], str] | None = None,
        draw: Callable[[], float] = lambda: 0.0,
        bucket: TokenBucket | None = None,
    ) -> None:
        """`tenant_of` names the group that a key takes turns in; without it there are no shares."""
        self._share = workers if tenant_of is None else (workers + 1) // 2
        self._tenant_of = tenant_of or (lambda _: "")
        self._draw = draw
        self._bucket = bucket or TokenBucket()
        # Per lane: tenants in the order of their turns, each with its keys in the order in which they came.
        self._ready: dict[Lane, dict[str, dict[K, float]]] = {lane: {} for lane in Lane}
        self._lane_of: dict[K, Lane] = {}
        self._in_flight: set[K] = set()
        self._held: dict[str, int] = {}
        self._dirty: dict[K, Lane] = {}
        self._due: dict[K, tuple[float, int]] = {}
        self._due_lane: dict[K, Lane] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0
        self._failures: dict[K, int] = {}
        self._closed = False
        self.waited_s = 0.0

    def add(self, key: K, *, now_s: float, lane: Lane = Lane.FRESH) -> None:
        """Run `key` as soon as a worker is free."""
        if self._closed:
            return
        self._forget_due(key)
        if key in self._in_flight:
            self._dirty[key] = min(lane, self._dirty.get(key, lane))
            return
        present = self._lane_of.get(key)
        since_s = now_s
        if present is not None:
            if present <= lane:
                return
            since_s = self._remove_ready(key, present)
        self._lane_of[key] = lane
        self._ready[lane].setdefault(self._tenant_of(key), {})[key] = since_s

    def add_after(self, key: K, delay_s: float, *, now_s: float, lane: Lane = Lane.RESYNC) -> None:
        """Run `key` after `delay_s`, unless it is to run earlier anyway."""
        if delay_s <= 0.0:
            self.add(key, now_s=now_s, lane=lane)
            return
        if self._closed or key in self._lane_of or key in self._dirty:
            return
        due_s = now_s + delay_s
        if key in self._due and self._due[key][0] <= due_s:
            return
        self._order += 1
        self._due[key] = (due_s, self._order)
        self._due_lane[key] = lane
        heapq.heappush(self._heap, (due_s, self._order, key))
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(at_s, order, known) for known, (at_s, order) in self._due.items()]
            heapq.heapify(self._heap)

    def fail(self, key: K, *, now_s: float, at_least_s: float = 0.0) -> float:
        """Run `key` again after its back-off; the seconds until then.  `at_least_s` is what the other side asked for."""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        computed_s = min(RETRY_CAP_S, RETRY_S * 2.0 ** min(count - 1, 30)) * (1.0 + JITTER * self._draw())
        delay_s = max(computed_s, at_least_s, self._bucket.reserve(now_s=now_s))
        self.add_after(key, delay_s, now_s=now_s, lane=Lane.RETRY)
        return delay_s

    def forget(self, key: K) -> None:
        """Begin the back-off of `key` anew; called after a success."""
        self._failures.pop(key, None)

    def drop(self, key: K) -> None:
        """Nothing is to run for `key` any more: its object is gone.  A pass that runs now is not stopped."""
        self.forget(key)
        self._forget_due(key)
        self._dirty.pop(key, None)
        if (lane := self._lane_of.get(key)) is not None:
            self._remove_ready(key, lane)

    def take(self, *, now_s: float) -> K | None:
        """The next key, which is in flight from now on; None when none may run.  `waited_s` says how long it was ready."""
        self._promote(now_s)
        if self._closed:
            return None
        for lane in Lane:
            tenants = self._ready[lane]
            for tenant in tenants:
                if self._held.get(tenant, 0) >= self._share:
                    continue
                key = next(iter(tenants[tenant]))
                self.waited_s = now_s - self._remove_ready(key, lane)
                if tenant in tenants:  # its next turn is after the others'
                    tenants[tenant] = tenants.pop(tenant)
                self._in_flight.add(key)
                self._held[tenant] = self._held.get(tenant, 0) + 1
                return key
        return None

    def done(self, key: K, *, now_s: float) -> None:
        """The worker is ready with `key`; it runs again when it was added meanwhile.

        Raises:
            KeyError: it was not in flight.
        """
        self._in_flight.remove(key)
        tenant = self._tenant_of(key)
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        if (lane := self._dirty.pop(key, None)) is not None:
            self.add(key, now_s=now_s, lane=lane)

    def close(self) -> None:
        """Hand out nothing more; delayed keys are dropped, because the state is in the cluster and not here."""
        self._closed = True
        for members in (self._lane_of, self._dirty, self._due, self._due_lane):
            members.clear()
        self._heap.clear()
        for tenants in self._ready.values():
            tenants.clear()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def in_flight(self) -> frozenset[K]:
        return frozenset(self._in_flight)

    @property
    def next_due_s(self) -> float | None:
        """When the earliest delayed key is due, on the caller's clock; None when none is delayed."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def depth(self, lane: Lane) -> int:
        """Keys of that lane that could run now."""
        return sum(len(keys) for keys in self._ready[lane].values())

    def __len__(self) -> int:
        """Keys that are ready, delayed, or to run again."""
        return len(self._lane_of) + len(self._due) + len(self._dirty)

    def failures(self, key: K) -> int:
        """Failures of `key` in a row."""
        return self._failures.get(key, 0)

    def _promote(self, now_s: float) -> None:
        while (due_s := self.next_due_s) is not None and due_s <= now_s:
            key = heapq.heappop(self._heap)[2]
            self.add(key, now_s=now_s, lane=self._due_lane[key])

    def _remove_ready(self, key: K, lane: Lane) -> float:
        del self._lane_of[key]
        tenants, tenant = self._ready[lane], self._tenant_of(key)
        since_s = tenants[tenant].pop(key)
        if not tenants[tenant]:
            del tenants[tenant]
        return since_s

    def _forget_due(self, key: K) -> None:
        self._due.pop(key, None)
        self._due_lane.pop(key, None)

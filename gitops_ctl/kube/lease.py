"""Leadership by a Lease, on the boot clock (gitops.md, section 13; H12, H13, H14, H15).

Rules:
  * Expiry is observed, not read: a lease is free when its record has not changed for its duration by our own clock.  Times in
    the record come from another machine and are only displayed.
  * Leadership is counted from the moment at which the last successful renewal was sent.  When none succeeded for the renew
    deadline, it is lost, whatever a late answer says.
  * `require` is called before each batch of writes: it also covers a process that was stopped and wakes up later.
  * A process that lost the lease never takes it again; it drains and exits.
  * The renewal has its own connection, so that no long page and no full pool can starve it.
"""

import asyncio
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, text_at
from gitops_ctl.kube.exchange import Limits
from gitops_ctl.kube.transport import KubeClient

MICRO_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"

log = structlog.get_logger(__name__)


class LeadershipLost(BlockedError):
    """Another replica may lead now: write nothing more."""

    code = ErrorCode.LEADERSHIP_LOST


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds.  A call must end before the renew deadline, and that before the lease can be taken by another.

    Raises:
        ValueError: another order.
    """

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0
    call_s: float = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s < self.renew_deadline_s or not self.call_s < self.renew_deadline_s < self.duration_s:
            raise ValueError("the order must be: call and retry < renew deadline < lease duration")

    @property
    def written_s(self) -> int:
        """What stands in the record: whole seconds, rounded up, so that nobody takes the lease too early."""
        return math.ceil(self.duration_s)


class LeaseStep(enum.Enum):
    """What to do with the lease now."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """One record as we saw it; `first_seen_s` is our boot clock when exactly this record was first read."""

    holder: str
    duration_s: float
    renewed: str
    version: str
    first_seen_s: float

    def same_as(self, other: "SeenRecord") -> bool:
        """Whether the holder has shown no sign of life between the two."""
        return (self.holder, self.renewed, self.version) == (other.holder, other.renewed, other.version)


def lease_step(*, me: str, seen: SeenRecord | None, now_s: float) -> LeaseStep:
    """What to do now.  Uses only our own clock."""
    if seen is None or not seen.holder:
        return LeaseStep.ACQUIRE
    if seen.holder == me:
        return LeaseStep.RENEW
    expired = now_s - seen.first_seen_s >= seen.duration_s
    return LeaseStep.ACQUIRE if expired else LeaseStep.WAIT


def observe(before: SeenRecord | None, *, lease: JsonObject, now_s: float) -> SeenRecord:
    """The record of `lease`; it keeps the time of `before` when nothing in it changed."""
    spec = object_at(lease, "spec")
    seen = SeenRecord(
        holder=text_at(spec, "holderIdentity"),
        duration_s=float(int_at(spec, "leaseDurationSeconds")),
        renewed=text_at(spec, "renewTime"),
        version=text_at(lease, "metadata", "resourceVersion"),
        first_seen_s=now_s,
    )
    return before if before is not None and before.same_as(seen) else seen


class Leader:
    """One candidate for one Lease.  `run` does the work; `release` is called after the last write has ended.

    Attributes:
        leading: set while this process may write.
        lost: set once, when leadership has ended; nothing sets it back.
    """

    def __init__(
        self, client: KubeClient, *, namespace: str, name: str, identity: str, timing: LeaseTiming | None = None
    ) -> None:
        """`identity` holds pod name, pod uid and a nonce of this process: a restarted container is another holder."""
        self.timing = timing or LeaseTiming()
        self.identity = identity
        self.leading = asyncio.Event()
        self.lost = asyncio.Event()
        self._clock = client.clock
        self._draw = client.draw
        self._client = client.dedicated(
            component="lease",
            limits=Limits(attempts=1, timeout_s=self.timing.call_s, connect_s=self.timing.call_s, concurrency=1),
        )
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name, self._namespace = name, namespace
        self._lease: JsonObject | None = None
        self._seen: SeenRecord | None = None
        self._sent_s: float | None = None
        self._running = False

    def require(self) -> None:
        """Before a batch of writes.

        Raises:
            LeadershipLost: this process does not lead, or its last renewal is too long ago.
        """
        self._check_deadline()
        if not self.leading.is_set():
            raise LeadershipLost(f"the lease {self._namespace}/{self._name} is not held by this process")

    async def run(self) -> None:
        """Wait for the lease, then keep it; returns when it is lost.

        Raises:
            RuntimeError: it was lost before: a process leads once.
        """
        if self.lost.is_set():
            raise RuntimeError("a process that lost the lease does not take it again")
        self._running = True
        try:
            async with self._client, asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch_deadline())
                while not self.lost.is_set():
                    await self._round()
                    if not self.lost.is_set():
                        await self._clock.sleep(self.timing.retry_s * (1.0 + 0.2 * self._draw()))
                watching.cancel()
        finally:
            self._running = False

    async def release(self) -> None:
        """Let another replica begin at once.  Writes nothing when this process does not lead.

        Order at the end of a process: drain the workers while `run` goes on renewing, cancel `run`, then release.

        Raises:
            RuntimeError: `run` still works.
        """
        if self._running:
            raise RuntimeError("release comes after run")
        if not self.leading.is_set() or self._lease is None or self._remaining_s() <= 0.0:
            return
        self._lose("released")
        spec = {**object_at(self._lease, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with self._client:
                await self._put(spec)
        except GitopsError as error:
            log.warning("lease not released", lease=self._name, code=error.code.name)

    async def _round(self) -> None:
        """Look when the lease is not ours, then write what the record asks for."""
        try:
            if self._step() is not LeaseStep.RENEW:
                await self._read()
            try:
                await self._write()
            except Conflict:
                # Somebody wrote, perhaps we did and the reply was lost.  What is there now decides, and without a pause:
                # the time since the last renewal that is known to have succeeded goes on.
                await self._read()
                await self._write()
        except GitopsError as error:
            log.warning("lease call failed", lease=self._name, code=error.code.name, error=error.message)

    def _step(self) -> LeaseStep:
        return lease_step(me=self.identity, seen=self._seen, now_s=self._clock.boot_s())

    async def _write(self) -> None:
        self._check_deadline()
        step = self._step()
        if self.lost.is_set() or step is LeaseStep.WAIT:
            return
        sent_s = self._clock.boot_s()
        if self._lease is None:
            written = await self._create()
        elif step is LeaseStep.ACQUIRE:
            transitions = int_at(self._lease, "spec", "leaseTransitions") + 1
            written = await self._put(self._spec(transitions=transitions))
        else:
            written = await self._put({**object_at(self._lease, "spec"), "renewTime": micro_time(self._clock.wall())})
        self._take(written, sent_s=sent_s)

    async def _create(self) -> JsonObject:
        body: JsonObject = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(transitions=0),
        }
        return await self._client.create(self._collection, body)

    async def _read(self) -> None:
        lease = await self._client.find(f"{self._collection}/{self._name}")
        self._lease = lease
        self._seen = None if lease is None else observe(self._seen, lease=lease, now_s=self._clock.boot_s())
        if self.leading.is_set() and (self._seen is None or self._seen.holder != self.identity):
            self._lose(f"held by {self._seen.holder}" if self._seen else "the Lease was deleted")

    async def _put(self, spec: Mapping[str, JsonValue]) -> JsonObject:
        body = {**(self._lease or {}), "spec": spec}
        return await self._client.replace(f"{self._collection}/{self._name}", body)

    def _spec(self, *, transitions: int) -> dict[str, JsonValue]:
        now = micro_time(self._clock.wall())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.timing.written_s,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _take(self, lease: JsonObject, *, sent_s: float) -> None:
        now_s = self._clock.boot_s()
        self._lease = lease
        self._seen = observe(self._seen, lease=lease, now_s=now_s)
        self._check_deadline()
        if self.lost.is_set():
            return  # the answer came after the deadline: it changes nothing
        self._sent_s = sent_s
        if self._remaining_s() > 0.0:
            self.leading.set()

    def _remaining_s(self) -> float:
        if self._sent_s is None:
            return 0.0
        return self._sent_s + self.timing.renew_deadline_s - self._clock.boot_s()

    async def _watch_deadline(self) -> None:
        await self.leading.wait()
        while (remaining_s := self._remaining_s()) > 0.0:
            await self._clock.sleep(remaining_s)
        self._check_deadline()

    def _check_deadline(self) -> None:
        if self.leading.is_set() and self._remaining_s() <= 0.0:
            self._lose("no renewal succeeded in time")

    def _lose(self, why: str) -> None:
        log.warning("leadership ended", lease=self._name, why=why)
        self.leading.clear()
        self.lost.set()


def micro_time(moment: datetime) -> str:
    """A UTC moment with the six digits that the API insists on."""
    return moment.strftime(MICRO_TIME)

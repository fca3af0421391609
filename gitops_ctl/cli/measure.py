"""What the manager measures about itself: queues, Syncs and objects from its caches, and how long Git servers take."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gitops_ctl.api.sync import Counts
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.forge.desk import Git
from gitops_ctl.git.pushing import Pushed, PushRequest
from gitops_ctl.git.transport import Fetched, FetchRequest, RemoteTip
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.rollout.controller import RolloutController
from gitops_ctl.scheduling.room import SchedulingRoom
from gitops_ctl.sync.world import Syncs
from gitops_ctl.telemetry.metrics import Metrics

AnswerT = TypeVar("AnswerT")
_STATES = tuple(Counts.model_fields)


@dataclass(frozen=True, slots=True)
class MeasuredGit:
    """A transport around another one; `result` is `done`, or the slug of the error's code."""

    inner: Git
    metrics: Metrics
    clock: Clock

    async def resolve(self, request: FetchRequest) -> RemoteTip:
        """As the inner transport."""
        return await self._timed("resolve", self.inner.resolve(request))

    async def fetch(self, request: FetchRequest) -> Fetched:
        """As the inner transport."""
        return await self._timed("fetch", self.inner.fetch(request))

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], into: Path) -> None:
        """As the inner transport."""
        await self._timed("collect", self.inner.collect(request, keep=keep, into=into))

    async def push(self, request: PushRequest) -> Pushed:
        """As the inner transport."""
        return await self._timed("push", self.inner.push(request))

    async def _timed(self, step: str, answer: Awaitable[AnswerT]) -> AnswerT:
        began_s, result = self.clock.boot_s(), "cancelled"
        try:
            found = await answer
            result = "done"
        except GitopsError as error:
            result = error.code.slug
            raise
        else:
            return found
        finally:
            self.metrics.fetch_seconds.labels(step, result).observe(self.clock.boot_s() - began_s)


def refresher(
    metrics: Metrics,
    *,
    queues: Mapping[str, AsyncQueue[NamespacedName]],
    syncs: Syncs,
    drains: Callable[[], Mapping[str, float | None]] = dict,
) -> Callable[[], None]:
    """Sets every gauge from what the manager holds in memory; `drains` gives the age in seconds of each drain."""

    def refresh() -> None:
        for name, queue in queues.items():
            gauges = queue.gauges()
            depth = sum(value for key, value in gauges.items() if key.startswith("depth_"))
            metrics.queue_depth.labels(name).set(depth)
            metrics.queue_unfinished_seconds.labels(name).set(gauges["unfinished_work_seconds"])
            metrics.queue_longest_seconds.labels(name).set(gauges["longest_running_processor_seconds"])
        _count_syncs(metrics, syncs)
        ages = drains()
        metrics.drains.set(len(ages))
        metrics.oldest_drain_seconds.set(max((age for age in ages.values() if age is not None), default=0.0))

    return refresh


def _count_syncs(metrics: Metrics, syncs: Syncs) -> None:
    ready: Counter[str] = Counter({"True": 0, "False": 0, "Unknown": 0})
    objects: Counter[str] = Counter()
    for sync in syncs.all():
        condition = next((item for item in sync.status.conditions if item.type == "Ready"), None)
        ready[condition.status if condition is not None else "Unknown"] += 1
        for state in _STATES:
            objects[state] += getattr(sync.status.counts, state)
    for status, count in ready.items():
        metrics.syncs.labels(status).set(count)
    for state in _STATES:
        metrics.objects.labels(state).set(objects[state])


def measure_scheduling(metrics: Metrics, room: SchedulingRoom) -> None:
    """From now on the metrics tell whether the room can plan for the Kueue that is there."""
    metrics.kueue_unsupported.set_function(lambda: float(room.is_kueue_unsupported))


def measure_rollouts(metrics: Metrics, controller: RolloutController) -> None:
    """From now on the metrics tell what the controller of software rollouts counts."""
    counts = controller.counts
    metrics.rollout_passes.read = lambda: counts.passes
    metrics.target_transitions.read = lambda: counts.transitions
    metrics.admission_waits.read = lambda: counts.waits
    metrics.ledger_reservations.set_function(lambda: controller.ledger_size.reservations)
    metrics.ledger_bytes.set_function(lambda: controller.ledger_size.size)

"""Carries out a plan for the NodeFeatures of one source (topology-scheduling.md, 5.2 and 12: B18).

Deletes name the object that was read, creates fail on a name that is taken, updates carry the resourceVersion: whoever planned from
something old loses.  With a write rate the removals come last and one write follows the other; without one a few run side by side.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.scheduling.nodefeature import FeaturePlan
from gitops_ctl.scheduling.queue import FIELD_MANAGER
from gitops_ctl.scheduling.sourceports import NODE_FEATURE, SourcePorts

SIDE_BY_SIDE: Final = 8
PROGRESS_S: Final = 10.0
"""How often a paced pass says how far it is."""

Write = Callable[[], Awaitable[object]]


async def write_features(plan: FeaturePlan, *, ports: SourcePorts, progress: Callable[[int], Awaitable[None]]) -> None:
    """Write everything of the plan.

    Args:
        plan: what one pass does.
        ports: the way to the cluster.
        progress: told how many writes are done, from time to time, when they are paced.

    Raises:
        Conflict: something else is there than was read: plan again.
        BlockedError: an object of somebody else stands where one of ours belongs; all others were written.
        GitopsError: a write failed; what was written stays.
    """
    phases = _phases(plan, ports)
    if ports.options.write_rate > 0:
        await _paced([write for phase in phases for write in phase], ports, progress)
    else:
        for phase in phases:
            await _side_by_side(phase)
    if plan.foreign:
        raise BlockedError(
            f"these NodeFeatures stand where ours belong and have another owner: {listed(plan.foreign)}",
            hint="delete them, or take the Nodes out of the snapshot",
        )


def _phases(plan: FeaturePlan, ports: SourcePorts) -> list[list[Write]]:
    """Groups of writes that may run in any order; one group after the other."""
    new = {_name(feature) for feature in plan.creates}
    replaced = [_delete(one, ports) for one in plan.deletes if _name(one) in new]
    others = [_delete(one, ports) for one in plan.deletes if _name(one) not in new]
    written = [*(_create(one, ports) for one in plan.creates), *(_update(one, ports) for one in plan.updates)]
    if ports.options.write_rate > 0:
        return [replaced, written, others]
    return [[*replaced, *others], written]


async def _side_by_side(writes: Sequence[Write]) -> None:
    for batch in _batches(writes):
        done = await asyncio.gather(*(write() for write in batch), return_exceptions=True)
        failed = [item for item in done if isinstance(item, BaseException)]
        if failed:
            raise failed[0]


def _batches(writes: Sequence[Write]) -> Iterator[Sequence[Write]]:
    return (writes[place : place + SIDE_BY_SIDE] for place in range(0, len(writes), SIDE_BY_SIDE))


async def _paced(writes: Sequence[Write], ports: SourcePorts, progress: Callable[[int], Awaitable[None]]) -> None:
    gap_s = 1.0 / ports.options.write_rate
    said_s = ports.clock.boot_s()
    for number, write in enumerate(writes, start=1):
        await write()
        if ports.clock.boot_s() - said_s >= PROGRESS_S and number < len(writes):
            await progress(number)
            said_s = ports.clock.boot_s()
        await ports.clock.sleep(gap_s)


def _delete(feature: JsonObject, ports: SourcePorts) -> Write:
    uid, version = (text_at(feature, "metadata", name) for name in ("uid", "resourceVersion"))

    async def write() -> object:
        ports.require()
        return await ports.client.delete(_path(feature), uid=uid, resource_version=version)

    return write


def _create(feature: JsonObject, ports: SourcePorts) -> Write:
    async def write() -> object:
        ports.require()
        place = NODE_FEATURE.path(text_at(feature, "metadata", "namespace"))
        return await ports.client.create(place, feature, manager=FIELD_MANAGER)

    return write


def _update(feature: JsonObject, ports: SourcePorts) -> Write:
    async def write() -> object:
        ports.require()
        return await ports.client.replace(_path(feature), feature, manager=FIELD_MANAGER)

    return write


def _path(feature: JsonObject) -> str:
    return NODE_FEATURE.path(text_at(feature, "metadata", "namespace"), _name(feature))


def _name(feature: JsonObject) -> str:
    return text_at(feature, "metadata", "name")

"""The kinds that a device worker watches in its namespace, and the tasks of what it finds there.

A task ends when its object goes; what one task raises is a bug and is told by its duty, so no task ends another.
"""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Final, Generic, TypeVar

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.fleet import names
from gitops_ctl.kube.mapper import Resource

K = TypeVar("K")

DEVICE: Final = Resource(GroupVersionKind(names.GROUP, "v1alpha1", names.DEVICE_KIND), "ciscodevices", namespaced=True)
ROLLOUT: Final = Resource(
    GroupVersionKind(names.OPERATIONS_GROUP, "v1alpha1", names.ROLLOUT_KIND), "iosxesoftwarerollouts", namespaced=True
)
LEAF: Final = Resource(
    GroupVersionKind(names.OPERATIONS_GROUP, "v1alpha1", names.LEAF_KIND), "iosxesoftwareupgrades", namespaced=True
)


class Tasks(Generic[K]):
    """One task for each key."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[None]] = {}

    @property
    def keys(self) -> Collection[K]:
        """What has a task."""
        return self._tasks.keys()

    def start(self, key: K, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Begin the task of a key that has none."""
        self._tasks[key] = asyncio.create_task(work, name=name)

    async def end(self, key: K) -> None:
        """Cancel the task of a key, and wait until it is over."""
        task = self._tasks.pop(key)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def wait(self, *, seconds: float) -> None:
        """Return when every task is over, or after that time."""
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=seconds)

    async def end_all(self) -> None:
        """Cancel every task, and wait until all are over."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

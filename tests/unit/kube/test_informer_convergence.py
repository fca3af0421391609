"""Whatever the store and the network do, the cache ends up equal to the store, and the handlers were told each step.

A small store stands in for the transport: it keeps an event log with a window, so that old versions expire, and a script of
faults decides how each list and each stream ends.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.answers import Forbidden, Gone, KindNotServed
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.informer import Informer
from gitops_ctl.kube.transport import KubeClient, Listed, StreamSilent, WatchEvent
from tests.support.kube_clock import JumpingClock
from tests.support.kube_informer import CONFIG_MAPS, an_object

NAMES = ("a", "b", "c", "d")
Step = tuple[str, str]

steps = st.lists(st.tuples(st.sampled_from(["put", "delete", "remake", "compact", "bookmark"]), st.sampled_from(NAMES)))
faults = st.lists(
    st.sampled_from(["none", "gone", "silent", "cut", "replay", "absent", "forbidden", "list-error", "early-end"]),
    max_size=12,
)


@dataclass
class Store:
    """Objects, and the events that a watch can still be given."""

    script: list[str]
    steps: list[Step]
    clock: JumpingClock = field(default_factory=JumpingClock)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    version: int = 1
    oldest: int = 0
    made: int = 0
    quiet: asyncio.Event = field(default_factory=asyncio.Event)

    def draw(self) -> float:
        return 0.5

    def _fault(self) -> str:
        return self.script.pop(0) if self.script else "none"

    def _step(self) -> bool:
        if not self.steps:
            return False
        action, name = self.steps.pop(0)
        self.version += 3
        if action == "compact":
            self.log, self.oldest = [], self.version
        elif action == "bookmark":
            self.log.append((self.version, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))
        else:
            self._write(action, name)
        return True

    def _write(self, action: str, name: str) -> None:
        old = self.objects.get(name)
        if old is not None and action in ("delete", "remake"):
            gone = an_object(name, uid=text_at(old, "metadata", "uid"), version=str(self.version))
            self.log.append((self.version, "DELETED", gone))
            del self.objects[name]
            old = None
            self.version += 1
        if action in ("put", "remake"):
            self.made += old is None
            uid = text_at(old, "metadata", "uid") if old else f"uid-{self.made}"
            self.objects[name] = an_object(name, uid=uid, version=str(self.version), value=str(self.version))
            self.log.append((self.version, "MODIFIED" if old else "ADDED", self.objects[name]))

    async def collect(self, _: str, *, keep: Callable[[JsonObject], Any], **__: Any) -> Listed[Any]:
        await asyncio.sleep(0)
        match self._fault():
            case "list-error":
                raise Unavailable("listing failed")
            case "absent":
                raise KindNotServed("no such kind")
            case "forbidden":
                raise Forbidden("may not list")
            case "gone":
                raise Gone("snapshot lost")
        listed = Listed([keep(tree) for tree in self.objects.values()], str(self.version))
        self._step()  # the store goes on before the watch begins
        return listed

    async def watch(self, _: str, *, resource_version: str, **__: Any) -> AsyncGenerator[WatchEvent, None]:
        await asyncio.sleep(0)
        fault, at = self._fault(), int(resource_version)
        if fault == "replay":
            at = max(self.oldest, at - 7)
        if at < self.oldest or fault == "gone":
            raise Gone("too old")
        if fault == "silent":
            self._step()
            raise StreamSilent("nothing")
        if fault == "early-end":
            return
        given = 0
        while True:
            for version, kind, tree in [entry for entry in self.log if entry[0] > at]:
                yield WatchEvent(cast("Any", kind), tree)
                at, given = version, given + 1
                if fault == "cut" and given == 2:
                    self._step()
                    raise Unavailable("broken")
            if not self._step():
                if self.script:
                    self.clock.now_s += 40
                    return
                self.quiet.set()
                await asyncio.Event().wait()
            if at < self.oldest:
                raise Gone("too old")


@pytest.mark.property
@settings(max_examples=300, deadline=None)
@given(steps, faults)
def test_H09_the_cache_becomes_the_store_whatever_happens_on_the_way(script: list[Step], trouble: list[str]) -> None:
    asyncio.run(_converges(Store(script=list(trouble), steps=list(script))))


async def _converges(store: Store) -> None:
    informer = Informer(cast("KubeClient", store), CONFIG_MAPS, trim=lambda tree: text_at(tree, "data", "value"))
    told: dict[str, str] = {}
    informer.cache.add_index("value", lambda _, value: [value])

    def note(change: Change[str]) -> None:
        match change.kind:
            case "added":
                assert change.key.name not in told
            case "modified" | "deleted":
                assert change.key.name in told
        if change.new is None:
            del told[change.key.name]
        else:
            told[change.key.name] = change.new.uid

    informer.add_handler(note)
    task = asyncio.create_task(informer.run())
    async with asyncio.timeout(20):
        waiting = asyncio.create_task(store.quiet.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    expected = {name: text_at(tree, "metadata", "uid") for name, tree in store.objects.items()}
    assert told == expected
    assert {key.name: entry.uid for key, entry in informer.cache.entries().items()} == expected
    assert {key.name: entry.version for key, entry in informer.cache.entries().items()} == {
        name: text_at(tree, "metadata", "resourceVersion") for name, tree in store.objects.items()
    }
    for name, tree in store.objects.items():
        assert informer.cache.by_index("value", text_at(tree, "data", "value")) == (NamespacedName("default", name),)

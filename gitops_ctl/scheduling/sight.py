"""Which informers of the room run, and when something can be judged that could not be before (topology-scheduling.md, 7 and D17).

While there is nothing to schedule by, sources are watched, Kueue's objects where Kueue is served, and nothing else: a cluster that does not
use this part pays nothing for it.  What has once been needed is watched until the process ends.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from gitops_ctl.core.clock import Clock
from gitops_ctl.kube.informer import Informer
from gitops_ctl.scheduling.caches import Caches
from gitops_ctl.scheduling.presence import UNKNOWN, Peer

EAGER_S: Final = 1.0
"""Seconds between two looks while something is on its way."""
CALM_S: Final = 10.0
ASK_S: Final = 30.0
"""Seconds between two questions for a project that is needed and not there."""
IDLE_ASK_S: Final = 300.0
"""The same, while nothing needs it."""


class Sight:
    """Runs the informers; `wake` gets the names of what can be judged from now on, `say` hears that a project came or went."""

    def __init__(
        self, clock: Clock, caches: Caches, *, wake: Callable[[set[str]], None], say: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._caches = caches
        self._wake = wake
        self._say = say
        self._running: dict[Informer[Any], asyncio.Task[None]] = {}
        self._asked_s: dict[Peer, float] = {}
        self._stirred = asyncio.Event()
        for informer in (caches.sources, caches.queues):
            informer.add_handler(lambda _change: self._stirred.set())

    async def run(self) -> None:
        """Look until cancelled."""
        seen, told = self._seen(), self._states()
        try:
            while True:
                self._stirred.clear()
                await self._start_what_is_needed()
                now = self._seen()
                if self._states() != told:
                    told = self._states()
                    self._say()
                # What was out of sight between two looks left passes undone.
                if gained := now - seen | now & self._caches.missed:
                    self._caches.missed -= gained
                    self._wake(gained)
                seen = now
                await self._pause(EAGER_S if self._is_on_its_way() else CALM_S)
        finally:
            await self._stop(self._running)

    def _states(self) -> tuple[str, str]:
        return self._caches.kueue.state, self._caches.nfd.state

    def _seen(self) -> set[str]:
        return {name for name, sees in self._caches.sight().items() if sees}

    def _is_on_its_way(self) -> bool:
        """Whether an informer that runs has not seen everything yet."""
        return any(not informer.usable for informer in self._running)

    async def _start_what_is_needed(self) -> None:
        caches = self._caches
        self._start((caches.sources,))
        await self._tend(caches.kueue)
        if caches.is_needed:
            self._start(caches.inventory)
            await self._tend(caches.nfd)

    async def _tend(self, peer: Peer) -> None:
        """Watch what is served; stop to watch what is not served any more, and ask for it now and then."""
        if peer.informers[0] in self._running:
            if peer.is_gone():
                await self._stop(peer.informers)
                peer.state = UNKNOWN
                self._asked_s.pop(peer, None)
            else:
                peer.look()
                return
        now_s = self._clock.boot_s()
        every_s = ASK_S if self._caches.is_needed else IDLE_ASK_S
        if now_s < self._asked_s.get(peer, -every_s) + every_s:
            return
        self._asked_s[peer] = now_s
        if await peer.ask():
            self._start(peer.informers)

    def _start(self, informers: Iterable[Informer[Any]]) -> None:
        for informer in informers:
            if informer not in self._running:
                name = f"informer {informer.resource.plural}"
                self._running[informer] = asyncio.create_task(informer.run(), name=name)

    async def _stop(self, informers: Iterable[Informer[Any]]) -> None:
        tasks = [self._running.pop(informer) for informer in list(informers) if informer in self._running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until a source or a queue changes."""
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        stirring = asyncio.ensure_future(self._stirred.wait())
        try:
            await asyncio.wait({sleeping, stirring}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stirring.cancel()

"""A worker that dies once, after any one thing that outlives it, and is started again (rollouts.md, sections 13.2, 13.4 and 13.9).

What outlives a worker are writes to the API server, records of the journal, and requests that change a device.  Between two of them a death
leaves the same behind wherever it comes, so one death after each of them, and none, are all there are.

walk = Walk(world, die_at=7)
await walk.to_the_end()
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.kube_crash import Crash
from tests.support.leaf_world import LeafWorld

Hears = Callable[[LeafWorld, str], Awaitable[None]]
"""Hears of each request that changed a device, after it."""
CHANGING = ("Install", "Activate")
UNPROVEN = ("InstallOutcomeUnknown", "ActivationOutcomeUnknown", "CommitNotObserved")
"""Reasons of a leaf whose last claim may or may not have reached the device: a person looks at it."""


class Walk:
    """One run of one upgrade.

    Attributes:
        points: how many things outlived the worker until now.
        begins: the point at which the first claim of the stage `since` was intended; 0 before.
    """

    def __init__(self, world: LeafWorld, *, since: str, die_at: int, hears: Hears | None = None) -> None:
        self.world, self.die_at, self.points, self.begins = world, die_at, 0, 0
        self._since = since
        self._hears = hears
        real: Any = world.netconf
        world.netconf = _Heard(real, self._changed)  # type: ignore[assignment]
        world.lifecycle = world._lifecycle()
        self._listen()

    async def to_the_end(self) -> None:
        """Run until nothing is left to do, through one death."""
        try:
            await self._run()
        except Crash:
            self.world.restart()
            self._listen()
            await self._run()

    async def _run(self) -> None:
        """Some hours, or until the worker has let go, or has said that nobody can prove what became of it."""
        for _ in range(16):
            await self.world.run(hours=0.5)
            is_settled = self.world.condition("DeviceMutationSettled") is not None and not self.world.maintenance.held
            if is_settled or self.world.status.get("failureReason") in UNPROVEN:
                return

    def _listen(self) -> None:
        world, journal = self.world, self.world.journal
        world.worker_faults.after = lambda _number: self._point()
        for name in ("intend", "claim", "settle"):
            setattr(journal, name, self._recorded(getattr(journal, name)))

        async def hear(method: str, when: str) -> None:
            if when == "after" and method in CHANGING:
                await self._changed(method)

        world.on_call = hear

    def _recorded(self, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def record(what: Any) -> Any:
            done = real(what)
            if getattr(what, "key", what).stage == self._since and not self.begins:
                self.begins = self.points + 1
            self._point()
            return done

        return record

    async def _changed(self, method: str) -> None:
        if self._hears is not None:
            await self._hears(self.world, method)
        self._point()

    def _point(self) -> None:
        self.points += 1
        if self.points == self.die_at:
            self.world.worker_faults.dead = True
            raise Crash


class _Heard:
    """NETCONF sessions whose changing call is heard of."""

    def __init__(self, sessions: Any, told: Callable[[str], Awaitable[None]]) -> None:
        self._sessions, self._told = sessions, told
        self.away = sessions.away

    @asynccontextmanager
    async def session(self, endpoint: Any) -> AsyncIterator[Any]:
        async with self._sessions.session(endpoint) as session:
            yield _HeardSession(session, self._told)


class _HeardSession:
    def __init__(self, session: Any, told: Callable[[str], Awaitable[None]]) -> None:
        self._session, self._told = session, told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def call(self, operation: Any, *, timeout_s: float | None = None) -> Any:
        reply = await self._session.call(operation, timeout_s=timeout_s)
        await self._told("Commit")
        return reply

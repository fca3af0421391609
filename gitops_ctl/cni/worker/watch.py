"""One machine under observation: looks at it in turns, and lets an effect have the machine for itself.

Each machine has its own task, so that one that hangs delays no other.  Looks and effects of one machine never overlap.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from gitops_ctl.cni.worker.credentials import Credentials
from gitops_ctl.cni.worker.machine import Connect, Look, MachineLink, MachineSpec, look_at, problem_of
from gitops_ctl.cni.worker.rounds import Rounds
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject


class MachineWatch:
    """One TalosMachine.

    Attributes:
        tree: the TalosMachine as it is known now.
        latest: the newest look, None before the first one is over.
        turn: held while somebody talks to the machine.
        rounds: run it to look again and again.
    """

    def __init__(
        self,
        tree: JsonObject,
        *,
        cluster: Callable[[], JsonObject],
        credentials: Credentials,
        connect: Connect,
        clock: Clock,
        looked: Callable[[], None],
    ) -> None:
        """`cluster` gives the TalosCluster; `looked` is called after each look."""
        self.tree = tree
        self.latest: Look | None = None
        self.turn = asyncio.Lock()
        self._cluster = cluster
        self._credentials = credentials
        self._connect = connect
        self._clock = clock
        self._looked = looked
        self.rounds = Rounds(self._round, clock=clock)

    @property
    def spec(self) -> MachineSpec:
        return MachineSpec.of(self.tree)

    def base(self) -> bytes | None:
        """The configuration that somebody supplied for this machine.

        Raises:
            CredentialNotMounted: it is named and not there.
        """
        return self._credentials.base(self.tree)

    def link(self) -> AbstractAsyncContextManager[MachineLink]:
        """A new connection; enter it while `turn` is held.

        Raises:
            GitopsError: there is no credential for it.
        """
        spec = self.spec
        return self._connect(spec.address, self._credentials.talosconfig(self._cluster()), spec.expected)

    async def _round(self) -> None:
        self.latest = await self.look()
        self._looked()

    async def look(self) -> Look:
        """One look; a failure is part of the answer."""
        async with self.turn:
            began_s = self._clock.boot_s()
            spec = self.spec
            try:
                base, link = self.base(), self.link()
            except GitopsError as error:
                return Look(spec, began_s, problem=problem_of(error))
            return await look_at(spec, link, base=base, began_s=began_s)

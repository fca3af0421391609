"""Tells in the leaf how far a transfer is, beside the transfer (rollouts.md, sections 4.3 and 13.4).

That every byte went out is written as soon as it is so: it is the first half of the proof of an install whose answer is lost.
"""

import asyncio
from typing import Final

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.device.installstream import Progress
from gitops_ctl.device.worker.leafwriting import LeafDesk
from gitops_ctl.fleet.leaf import Leaf

EVERY_S: Final = 5.0
"""Between two writes; the last byte does not wait."""


class ProgressTeller:
    """Of one transfer: `tell` hears of every chunk, `run` writes until it is cancelled."""

    def __init__(self, desk: LeafDesk, leaf: Leaf, *, total: int, clock: Clock) -> None:
        self._desk, self._leaf, self._total, self._clock = desk, leaf, total, clock
        self._sent = 0
        self._news = asyncio.Event()
        self._told_s = clock.boot_s()

    def tell(self, progress: Progress) -> None:
        """Called by the stream."""
        self._sent = max(self._sent, progress.sent_bytes)
        is_due = self._clock.boot_s() - self._told_s >= EVERY_S
        if self._sent and (is_due or self._sent == self._total):
            self._news.set()

    async def run(self) -> None:
        """Write what is new; a write that fails is made good by the next one."""
        while True:
            await self._news.wait()
            self._news.clear()
            self._told_s = self._clock.boot_s()
            try:
                await self._desk.tell(self._leaf, self._members())
            except GitopsError:
                continue

    def _members(self) -> JsonObject:
        percent = min(100, self._sent * 100 // self._total) if self._total else 0
        return {
            "transferProgress": {"bytesTransferred": self._sent, "totalBytes": self._total, "percent": percent},
        }

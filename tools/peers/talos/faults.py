"""Faults that the tests order: what happens to the next calls of a method, or to all calls for a while."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

KINDS = ("delay", "drop-before", "drop-after", "error", "unavailable")


@dataclass
class Fault:
    """One order.  `method` empty: every method.  `times`: how often; 0 without end.  `seconds`: of a delay, or for how long."""

    kind: str
    method: str = ""
    times: int = 1
    seconds: float = 0.0
    code: str = "UNAVAILABLE"
    message: str = ""
    since: float = 0.0


class Faults:
    """The orders that stand.  `cut` ends every connection of the machine."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self._orders: list[Fault] = []
        self._cut = cut

    def add(self, fault: Fault) -> None:
        if fault.kind not in KINDS:
            raise ValueError(f"no fault is called {fault.kind}")
        fault.since = time.monotonic()
        self._orders.append(fault)

    def clear(self) -> None:
        self._orders.clear()

    async def before(self, method: str, context: grpc.aio.ServicerContext) -> None:
        """Call it before anything is done."""
        for fault in self._due(method):
            if fault.kind == "unavailable":
                if time.monotonic() < fault.since + fault.seconds:
                    await context.abort(grpc.StatusCode.UNAVAILABLE, fault.message or "the machine is not available")
                self._orders.remove(fault)
                continue
            if fault.kind == "drop-after":
                continue
            self._spend(fault)
            if fault.kind == "delay":
                await asyncio.sleep(fault.seconds)
            elif fault.kind == "error":
                await context.abort(grpc.StatusCode[fault.code], fault.message or "an ordered error")
            else:
                await self._drop()

    async def after(self, method: str) -> None:
        """Call it when everything is done and nothing is answered yet."""
        for fault in self._due(method):
            if fault.kind == "drop-after":
                self._spend(fault)
                await self._drop()

    def _due(self, method: str) -> list[Fault]:
        return [fault for fault in self._orders if fault.method in ("", method)]

    def _spend(self, fault: Fault) -> None:
        fault.times -= 1
        if fault.times == 0:
            self._orders.remove(fault)

    async def _drop(self) -> None:
        self._cut()
        # The call ends when gRPC sees that its connection is gone.
        await asyncio.Event().wait()

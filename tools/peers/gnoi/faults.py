"""Faults that the tests order; they stand in the device file, in the list that both sides share (`"for": "gnoi"`).

`on` is a method (`Verify`), or a place in one: `Install:asked` (the request was read), `Install:content` (with `at`, the bytes before it),
`Install:end` (everything was read), `Install:stored` (the package is there and the verdict is not sent), `Activate:done`,
`CancelReboot:done`.  `kind`: drop (the connection is cut), delay (`seconds`), hang (no reply ever), error (`code`, `message`), and in an install
answer (`type`, `detail`, then perhaps `code`), validated (`version`), stall (`seconds`), progress (`mode`: duplicate, backwards),
silent-end (the stream ends without a verdict), store (the package is stored although the stream tears).
"""

import asyncio
from typing import Any

import grpc

from tools.peers.gnoi.front import Front
from tools.peers.gnoi.guard import Guard
from tools.peers.iosxe.state import DeviceFile


class Faults:
    """The orders that stand for this side."""

    def __init__(self, file: DeviceFile, guard: Guard) -> None:
        self._file = file
        self._guard = guard
        self.front: Front | None = None

    def take(self, place: str) -> dict[str, Any] | None:
        """The fault for this place, when there is one; it is spent."""
        return self._file.take_fault("gnoi", place)

    async def at(self, place: str, context: Any) -> dict[str, Any] | None:
        """Let happen what is ordered for this place; gives back what only the place itself can do."""
        fault = self.take(place)
        if fault is None:
            return None
        if fault["kind"] in ("drop", "hang"):
            self._guard.replied(context)
        match fault["kind"]:
            case "drop":
                await self.drop()
            case "hang":
                await asyncio.Event().wait()
            case "delay":
                await asyncio.sleep(fault["seconds"])
            case "error":
                await context.abort(grpc.StatusCode[fault["code"]], fault.get("message", "an ordered error"))
            case _:
                return fault
        return None

    async def drop(self) -> None:
        """Cut every connection; the call ends when gRPC sees that."""
        assert self.front is not None
        self.front.cut()
        await asyncio.Event().wait()

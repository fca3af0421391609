"""Listens for an application under two bounds: how many connections there are, and how long one of them lasts (fault H20).

Somebody who opens connections and says nothing, or says it byte by byte, would otherwise use up the file descriptors that the
manager needs for the API server and for Git.  Requests of ours are short, so no connection has to last.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

Factory = Callable[[], asyncio.Protocol]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one address.

    Attributes:
        connections: at the same time; further ones are closed at once.
        seconds: longest life of one.  Whoever keeps it open between its requests makes a new one, as after any idle time-out.
    """

    connections: int = 100
    seconds: float = 60.0


class Gate:
    """Admits connections to an application, within bounds; `factory` makes the protocol that serves one."""

    def __init__(self, factory: Factory, *, bounds: Bounds) -> None:
        self._factory = factory
        self._open = 0
        self.bounds = bounds

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self)

    def enter(self) -> asyncio.Protocol | None:
        """Who serves a new connection; None while there are too many."""
        if self._open >= self.bounds.connections:
            return None
        self._open += 1
        return self._factory()

    def leave(self) -> None:
        self._open -= 1


class _Connection(asyncio.Protocol):
    """Hands everything on to the one who serves, and ends in time."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._served: asyncio.Protocol | None = None
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._served = self._gate.enter()
        if self._served is None:
            transport.abort()
            return
        self._end = asyncio.get_running_loop().call_later(self._gate.bounds.seconds, transport.abort)
        self._served.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._served is None or self._end is None:
            return
        self._end.cancel()
        self._gate.leave()
        self._served.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._served is not None:
            self._served.data_received(data)

    def eof_received(self) -> bool | None:
        return self._served.eof_received() if self._served is not None else None

    def pause_writing(self) -> None:
        if self._served is not None:
            self._served.pause_writing()

    def resume_writing(self) -> None:
        if self._served is not None:
            self._served.resume_writing()


async def listen(factory: Factory, *, host: str, port: int, bounds: Bounds) -> tuple[asyncio.Server, tuple[str, int]]:
    """Serve connections to the address; the server, and host and port in use (port 0 takes a free one).

    Raises:
        OSError: the address cannot be used.
    """
    server = await asyncio.get_running_loop().create_server(Gate(factory, bounds=bounds), host, port)
    found = server.sockets[0].getsockname()
    return server, (str(found[0]), int(found[1]))

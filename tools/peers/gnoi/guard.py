"""What stands before every call: is the switch provisioned, does it have the call, and may the caller make it."""

import time
from typing import Any

import grpc

from tools.peers.iosxe.state import DeviceFile

_ON_ITS_WAY_S = 0.1
"""Between the end of a call in the library and the last byte of its reply on the connection."""


class Guard:
    """`login` is the username and password that every call must carry; None: none is asked for."""

    def __init__(self, file: DeviceFile, *, login: tuple[str, str] | None) -> None:
        self._file = file
        self._login = login
        self.calls: dict[str, int] = {}
        self.metadata: set[str] = set()
        """Names of the metadata that came, of all calls."""
        self._replying: set[int] = set()
        self._replied_s = -_ON_ITS_WAY_S

    def replies(self, context: Any) -> None:
        """This call has a reply that gets out before the switch goes down."""
        self._replying.add(id(context))
        context.add_done_callback(lambda _: self.replied(context))

    def replied(self, context: Any) -> None:
        """It is out, or it will never be."""
        if id(context) in self._replying:
            self._replying.discard(id(context))
            self._replied_s = time.monotonic()

    @property
    def is_replying(self) -> bool:
        return bool(self._replying) or time.monotonic() < self._replied_s + _ON_ITS_WAY_S

    async def enter(self, method: str, context: Any) -> None:
        self.calls[method] = self.calls.get(method, 0) + 1
        metadata = dict(context.invocation_metadata())
        self.metadata |= set(metadata)
        if not self._file.read()["provisioned"]:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "gNOI is not provisioned, only the certificate service answers"
            )
        if self._login is not None and (metadata.get("username"), metadata.get("password")) != self._login:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication failed")

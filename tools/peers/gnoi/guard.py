"""What stands before every call: is the switch provisioned, does it have the call, and may the caller make it."""

from typing import Any

import grpc

from tools.peers.iosxe.state import DeviceFile


class Guard:
    """`login` is the username and password that every call must carry; None: none is asked for."""

    def __init__(self, file: DeviceFile, *, login: tuple[str, str] | None) -> None:
        self._file = file
        self._login = login
        self.calls: dict[str, int] = {}
        self.metadata: set[str] = set()
        """Names of the metadata that came, of all calls."""

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

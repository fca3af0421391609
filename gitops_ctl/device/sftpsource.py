"""An image from an sftp server, on paramiko (rollouts.md, section 13.8).

The host key is compared as a whole before anything about the user leaves.  The library blocks, so each download has one thread of its own that
owns the connection.  Content is asked for in windows: many requests are under way at once, and memory stays flat whatever the reader does.
"""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar

import paramiko

from gitops_ctl.device.addresses import ImageEndpoint
from gitops_ctl.device.hostkey import negotiated
from gitops_ctl.device.imagedownload import CONNECT_S, SILENCE_S, Download, refused, require_size, unreachable
from gitops_ctl.device.login import Endpoint, key_of

T = TypeVar("T")

_REQUEST: Final = 32 * 1024
_WINDOW: Final = 32 * _REQUEST


@asynccontextmanager
async def sftp_download(
    endpoint: ImageEndpoint, login: Endpoint, *, addresses: Sequence[str], most_bytes: int
) -> AsyncIterator[Download]:
    """One attempt.

    Args:
        endpoint: of the URL.
        login: who logs in, and the host keys that the server may have.
        addresses: checked ones, at least one.
        most_bytes: that the image may have.

    Raises:
        Unavailable: no connection, or it broke.
        BlockedError: another host key, a login that is refused, or no such file.
    """
    connection = _Connection(endpoint, login)
    try:
        size = await connection.owned(partial(connection.open, addresses))
        require_size(size, most_bytes=most_bytes, endpoint=endpoint)
        yield Download(size, _chunks(connection, size))
    finally:
        connection.hang_up()


async def _chunks(connection: "_Connection", size: int) -> AsyncIterator[bytes]:
    for offset in range(0, size, _WINDOW):
        yield await connection.owned(partial(connection.window, offset, min(_WINDOW, size - offset)))


class _Connection:
    """The blocking half."""

    def __init__(self, endpoint: ImageEndpoint, login: Endpoint) -> None:
        self._endpoint = endpoint
        self._login = login
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sftp")
        self._is_over = False
        self._socket: socket.socket | None = None
        self._transport: paramiko.Transport | None = None
        self._file: paramiko.SFTPFile | None = None

    async def owned(self, call: Callable[[], T]) -> T:
        """What the call gives, in the thread of this connection."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def open(self, addresses: Sequence[str]) -> int:
        """Connect, compare the host key, log in and open the file; gives its size."""
        try:
            self._socket = self._connected(addresses)
            transport = self._transport = paramiko.Transport(self._socket)
            if self._is_over:
                # The caller went away meanwhile and hung up too early.
                self.hang_up()
            transport.get_security_options().key_types = negotiated(self._login.host_keys)
            transport.banner_timeout = transport.auth_timeout = CONNECT_S
            transport.start_client(timeout=CONNECT_S)
            self._require_host_key(transport)
            self._log_in(transport)
            return self._opened(transport)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise unreachable(self._endpoint, _words(error)) from None

    def window(self, offset: int, size: int) -> bytes:
        """Exactly these bytes of the file."""
        assert self._file is not None
        parts = [(at, min(_REQUEST, offset + size - at)) for at in range(offset, offset + size, _REQUEST)]
        try:
            found = b"".join(self._file.readv(parts))
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise unreachable(self._endpoint, _words(error)) from None
        if len(found) != size:
            raise unreachable(self._endpoint, "the file ended early")
        return found

    def hang_up(self) -> None:
        """End everything, from any thread, without waiting for the server; never raises."""
        self._is_over = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):
            if self._transport is not None:
                self._transport.close()
        with suppress(OSError):
            if self._socket is not None:
                self._socket.close()

    def _connected(self, addresses: Sequence[str]) -> socket.socket:
        last: OSError = OSError("no address")
        for address in addresses:
            try:
                return socket.create_connection((address, self._endpoint.port), timeout=CONNECT_S)
            except OSError as error:
                last = error
        raise last

    def _require_host_key(self, transport: paramiko.Transport) -> None:
        shown = transport.get_remote_server_key().asbytes()
        if all(key.blob != shown for key in self._login.host_keys):
            raise refused(self._endpoint, "shows another host key than knownHosts in its Secret")

    def _log_in(self, transport: paramiko.Transport) -> None:
        login = self._login.login
        try:
            if login.private_key:
                transport.auth_publickey(login.username, key_of(login, name=self._login.name))
            else:
                transport.auth_password(login.username, login.password, fallback=False)
        except paramiko.AuthenticationException:
            raise refused(self._endpoint, "does not accept the login of its Secret") from None
        if not transport.is_authenticated():
            raise refused(self._endpoint, "asks for more than the login of its Secret")

    def _opened(self, transport: paramiko.Transport) -> int:
        client = paramiko.SFTPClient.from_transport(transport)
        assert client is not None
        channel = client.get_channel()
        if channel is not None:
            channel.settimeout(SILENCE_S)
        try:
            self._file = client.open(self._endpoint.file, "rb")
            seen = self._file.stat()
        except FileNotFoundError:
            raise refused(self._endpoint, "has no file of this name") from None
        except PermissionError:
            raise refused(self._endpoint, "does not let this login read the file") from None
        if seen.st_mode is None or not stat.S_ISREG(seen.st_mode) or seen.st_size is None:
            raise refused(self._endpoint, "has no regular file of this name")
        return seen.st_size


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "nothing came in time"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__

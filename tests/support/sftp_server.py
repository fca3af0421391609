"""An sftp server in this process that takes passwords and remembers who tried to log in; files come from a mapping."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import paramiko
from paramiko.sftp_handle import SFTPHandle

KEY = paramiko.ECDSAKey.generate()


class _Login(paramiko.ServerInterface):
    def __init__(self, owner: "SftpServer") -> None:
        self._owner = owner

    def get_allowed_auths(self, username: str) -> str:
        return "password,keyboard-interactive"

    def check_auth_password(self, username: str, password: str) -> int:
        self._owner.attempts.append((username, password))
        if password != self._owner.password:
            return int(paramiko.common.AUTH_FAILED)
        return int(
            paramiko.common.AUTH_PARTIALLY_SUCCESSFUL if self._owner.wants_more else paramiko.common.AUTH_SUCCESSFUL
        )

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.common.OPEN_SUCCEEDED)


class _Files(paramiko.SFTPServerInterface):
    def __init__(self, server: paramiko.ServerInterface, owner: "SftpServer") -> None:
        super().__init__(server)
        self._owner = owner

    def open(self, path: str, flags: int, attr: object) -> object:
        if path not in self._owner.files:
            return paramiko.SFTP_NO_SUCH_FILE
        return _File(self._owner.files[path], self._owner)


class _File(SFTPHandle):
    def __init__(self, content: bytes, owner: "SftpServer") -> None:
        super().__init__()
        self._content = content
        self._owner = owner

    def stat(self) -> paramiko.SFTPAttributes:
        attributes = paramiko.SFTPAttributes()
        attributes.st_mode, attributes.st_size = 0o100644, len(self._content)
        return attributes

    def read(self, offset: int, length: int) -> bytes | int:
        if self._owner.ends_at is not None and offset >= self._owner.ends_at:
            return int(paramiko.SFTP_EOF)
        return self._content[offset : offset + length] or int(paramiko.SFTP_EOF)


class SftpServer:
    """The server; `port` is its port on the loopback address."""

    def __init__(self, files: Mapping[str, bytes], *, password: str) -> None:
        self.files = files
        self.password = password
        self.wants_more = False
        self.ends_at: int | None = None
        self.attempts: list[tuple[str, str]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._transports: list[paramiko.Transport] = []

    @property
    def known_hosts(self) -> bytes:
        return f"[127.0.0.1]:{self.port} {KEY.get_name()} {KEY.get_base64()}\n".encode()

    def serve(self) -> None:
        """Until the listener is closed."""
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                transport = paramiko.Transport(connection)
                transport.add_server_key(KEY)
                transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Files, self)
                self._transports.append(transport)
                with suppress(paramiko.SSHException, EOFError):
                    transport.start_server(server=_Login(self))

    def close(self) -> None:
        # A thread that waits in accept is woken by this, not by close alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for transport in self._transports:
            transport.close()


@contextmanager
def sftp_server(files: Mapping[str, bytes], *, password: str = "hunter-2") -> Iterator[SftpServer]:
    """Serve until the end of the block."""
    server = SftpServer(files, password=password)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(30)

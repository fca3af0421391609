"""A small SSH server in this process that lets a user in by password, for the ways of logging in that sshd has only with PAM.

with PasswordServer(device_file, password="…", method="password") as server:
    server.endpoint(password="…"), server.attempts
"""

import socket
import threading
from types import TracebackType
from typing import Self

import paramiko

from gitops_ctl.device.netconf import Endpoint, endpoint_of
from tools.peers.iosxe.framing import Wire
from tools.peers.iosxe.netconf import Session
from tools.peers.iosxe.state import DeviceFile


class PasswordServer(paramiko.ServerInterface):
    """`method` is password, keyboard-interactive, or publickey (which nobody passes)."""

    def __init__(
        self,
        file: DeviceFile,
        *,
        password: str,
        method: str = "password",
        opens: bool = True,
        key: paramiko.RSAKey | None = None,
    ) -> None:
        """Without `opens` the request for the subsystem is never answered; without `key` the server makes its own."""
        self._file = file
        self._password = password
        self._method = method
        self._key = key or paramiko.RSAKey.generate(2048)
        self._opens = opens
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._transports: list[paramiko.Transport] = []
        self._threads: list[threading.Thread] = []
        self.attempts: list[str] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for transport in self._transports:
            transport.close()
        for thread in self._threads:
            thread.join(20)

    def endpoint(self, *, password: str) -> Endpoint:
        port = self._listener.getsockname()[1]
        data = {
            "username": b"automation",
            "password": password.encode(),
            "known_hosts": f"[127.0.0.1]:{port} ssh-rsa {self._key.get_base64()}\n".encode(),
        }
        return endpoint_of(data, name="switch-17", address="127.0.0.1", port=port)

    def get_allowed_auths(self, username: str) -> str:
        return self._method

    def check_auth_password(self, username: str, password: str) -> int:
        self.attempts.append(f"password of {username}")
        right = self._method == "password" and password == self._password
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_auth_interactive(self, username: str, submethods: str) -> int | paramiko.InteractiveQuery:
        self.attempts.append(f"questions to {username}")
        return paramiko.InteractiveQuery("", "", ("Password: ", False))

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        return paramiko.AUTH_SUCCESSFUL if responses == [self._password] else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_UNKNOWN_CHANNEL_TYPE

    def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
        if not self._opens:
            self._over.wait(60)
            return False
        self._start(lambda: self._serve(channel))
        return name == "netconf"

    def _start(self, work: object) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self._key)
            self._transports.append(transport)
            transport.start_server(event=threading.Event(), server=self)

    def _serve(self, channel: paramiko.Channel) -> None:
        stream = channel.makefile("rwb", 0)
        Session(self._file, Wire(stream, stream)).serve()
        channel.close()

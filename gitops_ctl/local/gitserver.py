"""A Git server on loopback for the demo and for `up`: Git's own `http-backend` behind TLS and basic authentication.

It serves the bare repositories of one folder and accepts pushes, so that a person works against it as against any forge:
clone, commit, sign, push.  One thread a request; the backend ends with its request.
"""

import hmac
import os
import shutil
import ssl
import subprocess
import threading
from base64 import b64decode
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, cast

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError

BODY_LIMIT_BYTES: Final = 512 * 1024 * 1024
REQUEST_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Login:
    """The one user of the server."""

    user: str
    password: str = field(repr=False)


def git_binary() -> str:
    """The `git` on PATH.

    Raises:
        TerminalError: there is none; the hint names the command that installs it.
    """
    found = shutil.which("git")
    if found is None:
        raise TerminalError(
            "git is not installed", code=ErrorCode.TOOL_MISSING, hint="apt-get install git, or dnf install git"
        )
    return found


def git_environment(home: Path) -> dict[str, str]:
    """An environment in which git reads no configuration but that of the repository."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *, root: Path, login: Login, context: ssl.SSLContext, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.root = root
        self.login = login
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            self.close_connection = True
            self.send_error(413)
            return
        self._serve(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a request line may hold what nobody should read."""

    @property
    def _state(self) -> _Server:
        return cast("_Server", self.server)

    def _body(self) -> bytes | None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._chunked_body()
        length = int(self.headers.get("Content-Length") or 0)
        return self.rfile.read(length) if length <= BODY_LIMIT_BYTES else None

    def _chunked_body(self) -> bytes | None:
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
            if len(body) > BODY_LIMIT_BYTES:
                return None
        self.rfile.readline()
        return bytes(body)

    def _is_authorised(self) -> bool:
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        try:
            given = b64decode(encoded, validate=True) if scheme.lower() == "basic" else b""
        except ValueError:
            return False
        login = self._state.login
        return hmac.compare_digest(given, f"{login.user}:{login.password}".encode())

    def _serve(self, body: bytes) -> None:
        if not self._is_authorised():
            self._answer(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        path, _, query = self.path.partition("?")
        environment = git_environment(self._state.root) | {
            "GIT_PROJECT_ROOT": str(self._state.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": self._state.login.user,
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            [git_binary(), "http-backend"], input=body, env=environment, capture_output=True, check=False,
            timeout=REQUEST_TIMEOUT_S,
        )  # fmt: skip
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [
            (name.strip(), value.strip())
            for name, _, value in (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
            if value
        ]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        self._answer(status, [pair for pair in headers if pair[0] != "Status"], content)

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@dataclass(slots=True)
class GitServer:
    """A running server; `stop` ends it.  Repositories are made with `create`."""

    root: Path
    login: Login
    port: int
    _server: _Server
    _thread: threading.Thread

    @classmethod
    def start(cls, root: Path, *, certificate: tuple[Path, Path], login: Login, port: int = 0) -> "GitServer":
        """Serve the repositories below `root` on a free port of 127.0.0.1.

        Args:
            root: folder of bare repositories; made when it is missing.
            certificate: files of certificate and key for 127.0.0.1.
            login: who may read and push.
            port: 0 takes a free one.
        """
        root.mkdir(parents=True, exist_ok=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*certificate)
        server = _Server(root=root, login=login, context=context, port=port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        return cls(root, login, server.server_address[1], server, thread)

    def create(self, name: str) -> str:
        """Make the bare repository `name.git` with the default branch `main`; gives its URL without user info."""
        path = self.root / f"{name}.git"
        environment = git_environment(self.root)
        run = [git_binary(), "init", "--quiet", "--bare", "--initial-branch=main", "--", str(path)]
        subprocess.run(run, env=environment, check=True)
        config = [git_binary(), "-C", str(path), "config", "http.receivepack", "true"]
        subprocess.run(config, env=environment, check=True)
        return self.url(name)

    def url(self, name: str) -> str:
        return f"https://127.0.0.1:{self.port}/{name}.git"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

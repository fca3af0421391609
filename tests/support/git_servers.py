"""Real Git servers on loopback: `git http-backend` behind TLS, and openssh's sshd.

`HttpsGitServer` can misbehave on request (`script`); `SshGitServer` can run another command in place of git.  Both end with
their `with` block, and with them every process that they started.
"""

import base64
import getpass
import http.server
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import IO

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.git_keys import SshKey

START_TIMEOUT_S = 20.0
HTTP_BACKEND = ("git", "http-backend")


class Authority:
    """A private CA that issues server certificates."""

    def __init__(self, name: str = "test CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = _certificate(
            self._name, self._name, self._key.public_key(), now - timedelta(days=1), now + timedelta(days=30)
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(usage, critical=True).add_extension(identifier, critical=False)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, directory: Path, *, host: str = "localhost", expired: bool = False) -> Path:
        """A file with key and certificate of a server called `host`, or at that address."""
        directory.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        until = now - timedelta(hours=1) if expired else now + timedelta(days=10)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        builder = _certificate(subject, self._name, key.public_key(), now - timedelta(days=1), until)
        place = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        builder = builder.add_extension(x509.SubjectAlternativeName([place]), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        path = directory / f"{host}-{'expired' if expired else 'valid'}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        return path


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)


@dataclass(slots=True)
class Fault:
    """One way to misbehave.

    Attributes:
        on: part of the path that a request must hold, `info/refs` or `git-upload-pack`; empty for any.
        status, headers: answer at once with these, with an empty body.
        hang: read the request and never answer.
        after_bytes: pass on so much of the body, then close (`then="close"`) or send one byte per second (`then="crawl"`).
        times: how often, -1 for ever.
        skip: so many requests that it fits pass first.
    """

    on: str = ""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    after_bytes: int = -1
    then: str = "close"
    times: int = 1
    skip: int = 0


class HttpsGitServer:
    """Serves the repositories below `root` at `https://localhost:<port>/<name>`."""

    def __init__(
        self,
        root: Path,
        certificate: Path,
        *,
        users: dict[str, str] | None = None,
        bearer: str = "",
        host: str = "localhost",
    ) -> None:
        self.root = root
        self.users = users or {}
        self.bearer = bearer
        self.host = host
        self.requests: list[str] = []
        self.hanging = 0
        self.faults: list[Fault] = []
        self.stopped = threading.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server = _Threads(("127.0.0.1", 0), _handler_for(self))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, name: str) -> str:
        return f"https://{self.host}:{self.port}/{name}"

    def script(self, *faults: Fault) -> None:
        """Faults for the next requests that they fit, in this order."""
        self.faults.extend(faults)

    def count(self, part: str) -> int:
        """Requests so far whose line holds `part`."""
        return sum(part in line for line in self.requests)

    def take_fault(self, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.on in path and fault.times:
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def __enter__(self) -> "HttpsGitServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(START_TIMEOUT_S)


class _Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Broken connections are what many tests are about."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: HttpsGitServer

    def log_message(self, format: str, *args: object) -> None:
        """The list of requests is the log."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, body: bytes) -> None:
        self.owner.requests.append(f"{self.command} {self.path}")
        fault = self.owner.take_fault(self.path)
        if fault and fault.hang:
            self.owner.hanging += 1
            self.owner.stopped.wait()
        elif fault and fault.status:
            self._short(fault.status, fault.headers)
        elif not self._is_known():
            self._short(401, {"WWW-Authenticate": 'Basic realm="git"'})
        else:
            self._run_backend(body, fault)

    def _is_known(self) -> bool:
        if not self.owner.users and not self.owner.bearer:
            return True
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind == "Bearer":
            return bool(self.owner.bearer) and value == self.owner.bearer
        allowed = {base64.b64encode(f"{name}:{word}".encode()).decode() for name, word in self.owner.users.items()}
        return kind == "Basic" and value in allowed

    def _short(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _run_backend(self, body: bytes, fault: Fault | None) -> None:
        process = subprocess.Popen(
            HTTP_BACKEND,
            env=self._environment(len(body)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        writer = threading.Thread(target=_feed, args=(process.stdin, body), daemon=True)
        writer.start()
        try:
            self._relay(process.stdout, fault)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            writer.join(START_TIMEOUT_S)

    def _environment(self, length: int) -> dict[str, str]:
        path, _, query = self.path.partition("?")
        return {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": str(self.owner.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }

    def _relay(self, output: IO[bytes], fault: Fault | None) -> None:
        status, headers = 200, []
        while line := output.readline().strip():
            name, _, value = line.decode().partition(": ")
            if name == "Status":
                status = int(value.split()[0])
            else:
                headers.append((name, value))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in _limited(output, fault):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if fault and fault.after_bytes >= 0:
                self.wfile.flush()
        if fault and fault.after_bytes >= 0:
            if fault.then == "crawl":
                self._crawl()
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _crawl(self) -> None:
        while not self.owner.stopped.wait(1.0):
            self.wfile.write(b"1\r\n\0\r\n")
            self.wfile.flush()


def _handler_for(server: HttpsGitServer) -> type[_Handler]:
    return type("Handler", (_Handler,), {"owner": server})


def _feed(pipe: IO[bytes], body: bytes) -> None:
    with suppress(BrokenPipeError, OSError):
        pipe.write(body)
    with suppress(BrokenPipeError, OSError):
        pipe.close()


def _limited(output: IO[bytes], fault: Fault | None) -> Iterator[bytes]:
    left = fault.after_bytes if fault and fault.after_bytes >= 0 else -1
    while left and (part := output.read1(16384) if left < 0 else output.read(min(left, 16384))):  # type: ignore[attr-defined]
        left -= len(part) if left > 0 else 0
        yield part


class SshGitServer:
    """An sshd for the present user; repositories are reached by their absolute path."""

    def __init__(
        self, directory: Path, *, host_key: SshKey, allowed: tuple[SshKey, ...], command: str = "", options: str = ""
    ) -> None:
        self.directory = directory
        self._options = options
        self.host_key = host_key
        self.user = getpass.getuser()
        self.port = _free_port()
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.allow(*allowed)

    def allow(self, *keys: SshKey) -> None:
        """Let exactly these keys in, from now on."""
        self._authorized.write_text("".join(f"{key.public}\n" for key in keys))

    def url(self, path: Path) -> str:
        return f"ssh://{self.user}@127.0.0.1:{self.port}{path}"

    @property
    def known_hosts(self) -> bytes:
        return f"[127.0.0.1]:{self.port} {self.host_key.public}\n".encode()

    @property
    def _authorized(self) -> Path:
        return self.directory / "authorized_keys"

    def __enter__(self) -> "SshGitServer":
        program = shutil.which("sshd") or "/usr/sbin/sshd"
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.directory / "sshd_config"
        # SHLVL: bash reads no ~/.bashrc, which may run and print anything.
        config.write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.host_key.path}\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {self._authorized}\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "SetEnv SHLVL=2\nUsePAM no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n"
            + (f"ForceCommand {self._command}\n" if self._command else "")
            + self._options
        )
        self._process = subprocess.Popen(
            [program, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL, start_new_session=True
        )
        _wait_for_port(self.port, self._process)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(START_TIMEOUT_S)
        # Sessions are processes of their own; they end when their client does, and all clients of a test have ended.


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    tick = threading.Event()
    deadline = datetime.now(UTC) + timedelta(seconds=START_TIMEOUT_S)
    while datetime.now(UTC) < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        tick.wait(0.02)
    raise RuntimeError(f"sshd does not listen (exit code {process.poll()})")


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield int(listener.getsockname()[1])

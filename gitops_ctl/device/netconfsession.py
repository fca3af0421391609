"""One NETCONF session over SSH, the blocking half: everything here runs in the one thread that owns the session.

ncclient keeps the message ids, the hello and the waiting; what it gets wrong is done here (devices.md, section 6).  The host key is
compared as a whole before anything about the user leaves, also for RSA.  No vendor handler is used: those accept every host key.
Every wait has a number.  After a time-out or an error the connection is cut, never closed politely.  The reading thread sleeps
until bytes come; requests are written by the owner, so that neither a request nor an idle session costs a poll.
"""

import logging
import socket
import threading
from dataclasses import dataclass
from typing import Final

import paramiko
import structlog
from lxml import etree
from ncclient.devices.default import DefaultDeviceHandler
from ncclient.operations.errors import TimeoutExpiredError
from ncclient.operations.rpc import RPC, RaiseMode, RPCReply
from ncclient.transport.errors import SessionCloseError, TransportError
from ncclient.transport.ssh import SSHSession

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, ReplyLost, Unavailable
from gitops_ctl.core.redact import redact_text
from gitops_ctl.device.hostkey import HostKey, negotiated
from gitops_ctl.device.login import Endpoint, key_of
from gitops_ctl.device.netconfframing import LARGEST_REPLY, Framing
from gitops_ctl.device.netconfreply import BASE, Reply, read_reply

log = structlog.get_logger(__name__)

BASE_11: Final = "urn:ietf:params:netconf:base:1.1"
_CAPABILITIES: Final = ["urn:ietf:params:netconf:base:1.0", BASE_11]
_KEEPALIVE_S: Final = 30
_PIECE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for each wait, and bytes of a reply (devices.md, section 6)."""

    tcp_s: float = 10.0
    hello_s: float = 20.0
    rpc_s: float = 30.0
    commit_s: float = 120.0
    close_s: float = 5.0
    margin_s: float = 5.0
    """How much later than its own waits a call may end: names resolve, and subsystems open, without a limit of their own."""
    largest_reply: int = LARGEST_REPLY

    @property
    def open_s(self) -> float:
        """TCP, key exchange, authentication and hello."""
        return self.tcp_s + 3 * self.hello_s + self.margin_s


class _Handler(DefaultDeviceHandler):
    """What we say about ourselves: both framings and nothing else."""

    def get_capabilities(self) -> list[str]:
        return _CAPABILITIES

    def handle_raw_dispatch(self, raw: str) -> Exception:
        """Text that is no XML is told to whoever waits, who would else wait for the time-out."""
        error: Exception = TransportError(f"{len(raw)} characters that are not XML")
        return error


class _RawReply(RPCReply):
    """The text of a reply; it is read by `read_reply`, which knows all errors and no entities."""

    def parse(self) -> None:
        """Nothing is parsed here."""


class _Call(RPC):
    REPLY_CLS = _RawReply


class _NotSent(TransportError):
    """The session was over before the first byte."""


class PinnedSession(SSHSession):
    """A session of ncclient with our own connection, framing and end."""

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        super().__init__(_Handler())
        self.endpoint = endpoint
        self._limits = limits
        self._framing = Framing(largest=limits.largest_reply)
        self._socket: socket.socket | None = None
        self._cut = threading.Event()

    def open(self) -> frozenset[str]:
        """Connect, compare the host key, log in, exchange hellos; the capabilities of the device.

        Raises:
            Unavailable: no connection, or no answer in time.
            BlockedError: another host key, or the credential is refused.
        """
        try:
            self._connect()
            self._compare_host_key()
            self._log_in()
            self._begin()
        except BaseException:
            self.hang_up()
            raise
        return frozenset(self.server_capabilities)

    def call(self, operation: etree._Element, *, timeout_s: float) -> Reply:
        """One request and its reply.

        Raises:
            ReplyLost: sent, and no usable end of it was seen; the session is over.
            Unavailable: not sent.
            NetconfRefused, AnswerUnusable: as `read_reply`.
        """
        call = _Call(self, self._device_handler, timeout=timeout_s, raise_mode=RaiseMode.NONE)
        try:
            raw = call._request(operation)
        except TimeoutExpiredError as error:
            self.hang_up()
            raise self._lost(f"no reply within {timeout_s:g} s") from error
        except _NotSent as error:
            raise self._unavailable("the session has ended") from error
        except Exception as error:
            # Whatever the reading thread ended with comes out here.
            self.hang_up()
            raise self._lost(_told(error, known=self.endpoint.login.secrets)) from error
        return read_reply(raw.xml, subject=self.endpoint.name, known=self.endpoint.login.secrets)

    def end(self) -> None:
        """Say goodbye when nothing went wrong, and be gone in either case; never raises."""
        if self._connected and not self._cut.is_set():
            goodbye = etree.Element(f"{BASE}close-session")
            try:
                self.call(goodbye, timeout_s=self._limits.close_s)
            except GitopsError:
                # The device frees the session when the connection ends.
                log.debug("no goodbye", device=self.endpoint.name)
        self.hang_up()

    def cut(self) -> None:
        """End the connection at once, from any thread; whoever waits for it gets an error."""
        self._cut.set()
        self._closing.set()
        self._connected = False
        if self._transport is not None:
            self._transport.close()
        if self._socket is not None:
            self._socket.close()

    def hang_up(self) -> None:
        """Cut the connection, and wait a bounded time for its threads to end."""
        self.cut()
        transport: paramiko.Transport | None = self._transport
        for thread in (transport, self):
            if thread is not None and thread.is_alive() and thread is not threading.current_thread():
                thread.join(self._limits.close_s)

    def close(self) -> None:
        """The library's name for the end; its own waits without a limit."""
        self.hang_up()

    def run(self) -> None:
        """The reading thread: hand on messages until the connection ends, and tell whoever waits why it did."""
        try:
            while data := self._receive():
                for message in self._framing.feed(data):
                    self._dispatch_message(message)
            ended: Exception = SessionCloseError(b"")
        except Exception as error:  # noqa: BLE001  whatever it is, somebody waits for this session
            ended = error
        self._connected = False
        self._dispatch_error(ended)

    def send(self, message: str) -> None:
        """Write one message, in the owner's thread."""
        if not self._connected:
            raise _NotSent
        self._channel.sendall(self._framing.frame(message))

    def _receive(self) -> bytes:
        while True:
            try:
                return bytes(self._channel.recv(_PIECE))
            except TimeoutError:
                # The channel's limit is for writing; reading may wait as long as the owner does.
                continue

    def _connect(self) -> None:
        endpoint, limits = self.endpoint, self._limits
        try:
            self._socket = socket.create_connection((endpoint.address, endpoint.port), timeout=limits.tcp_s)
        except OSError as error:
            raise self._unavailable(f"no connection to port {endpoint.port}: {error.strerror or error}") from error
        if self._cut.is_set():
            # Nobody waits any more: the name took too long to resolve.
            raise self._unavailable("given up")
        self._transport = transport = paramiko.Transport(self._socket)
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = limits.hello_s
        transport.channel_timeout = limits.hello_s
        transport.get_security_options().key_types = negotiated(endpoint.host_keys)
        try:
            transport.start_client(timeout=limits.hello_s)
        except paramiko.ssh_exception.IncompatiblePeer as error:
            if "host key" in str(error):
                raise self._wrong_key("a key of another type") from error
            raise self._unavailable(f"no common way to talk over SSH: {error}") from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._unavailable(
                f"no SSH on port {endpoint.port}: {_told(error, known=self.endpoint.login.secrets)}"
            ) from error
        transport.set_keepalive(_KEEPALIVE_S)

    def _compare_host_key(self) -> None:
        try:
            shown = self._transport.get_remote_server_key()
        except paramiko.SSHException as error:
            # The library's start returns without a word when its time is over.
            message = f"no SSH on port {self.endpoint.port} within {self._limits.hello_s:g} s"
            raise self._unavailable(message) from error
        key = HostKey(shown.get_name(), shown.asbytes())
        if key not in self.endpoint.host_keys:
            raise self._wrong_key(f"{key.type} {key.fingerprint}")

    def _log_in(self) -> None:
        login = self.endpoint.login
        try:
            if login.private_key:
                missing = self._transport.auth_publickey(login.username, key_of(login, name=self.endpoint.name))
            else:
                missing = self._transport.auth_password(login.username, login.password)
        except paramiko.AuthenticationException as error:
            if isinstance(error, paramiko.BadAuthenticationType):
                raise self._refused(f"only {', '.join(error.allowed_types)} is allowed") from error
            raise self._refused("the credential is not accepted") from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._unavailable(
                f"the connection ended while logging in: {_told(error, known=self.endpoint.login.secrets)}"
            ) from error
        if missing:
            raise self._refused(f"it also asks for {', '.join(missing)}")

    def _begin(self) -> None:
        try:
            self._channel = self._transport.open_session(timeout=self._limits.hello_s)
            self._channel.invoke_subsystem("netconf")
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._unavailable(
                f"the NETCONF subsystem is refused: {_told(error, known=self.endpoint.login.secrets)}"
            ) from error
        self._channel.settimeout(self._limits.rpc_s)
        self._connected = True
        try:
            self._post_connect(self._limits.hello_s)
        except Exception as error:
            raise self._unavailable(f"no NETCONF hello: {_told(error, known=self.endpoint.login.secrets)}") from error
        self._framing.chunked = BASE_11 in self.server_capabilities

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(why, code=ErrorCode.NETCONF_UNAVAILABLE, subject=self.endpoint.name)

    def _lost(self, why: str) -> ReplyLost:
        return ReplyLost(why, code=ErrorCode.NETCONF_REPLY_LOST, subject=self.endpoint.name)

    def _refused(self, why: str) -> BlockedError:
        message = f"the device does not let the account of the credential Secret in: {why}"
        return BlockedError(message, code=ErrorCode.DEVICE_CREDENTIAL_REFUSED, subject=self.endpoint.name)

    def _wrong_key(self, shown: str) -> BlockedError:
        expected = ", ".join(f"{key.type} {key.fingerprint}" for key in self.endpoint.host_keys)
        message = f"the device shows {shown}, and known_hosts has {expected}; nothing was sent to it"
        return BlockedError(message, code=ErrorCode.DEVICE_HOST_KEY_REFUSED, subject=self.endpoint.name)


def _told(error: BaseException, *, known: tuple[str, ...]) -> str:
    """Why a connection ended, without what was in its buffers and without the `known` secrets."""
    if isinstance(error, SessionCloseError):
        return "the device closed the connection"
    text = " ".join(redact_text(str(error), known=known).split())
    return text[:200] or type(error).__name__


def quiet_libraries() -> None:
    """Their logs hold whole messages and tracebacks; every failure is told by our own errors."""
    for name in ("ncclient", "paramiko"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

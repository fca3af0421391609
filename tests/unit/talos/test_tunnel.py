"""Why a connection failed is known exactly, also when the other side says it after the handshake (cni-switch.md, 14.3 and 15.11)."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.talos.talosconfig import parse_talosconfig
from gitops_ctl.talos.tunnel import Tunnel
from tests.support.talos_pki import TalosPki


class Server:
    """A TLS server that speaks as servers in Go do: what it thinks of a certificate it says in an alert."""

    def __init__(self, pki: TalosPki, *, client_ca: Path, answer: bytes = b"") -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pki.server("server"))
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        context.set_alpn_protocols(["h2"])
        self._context = context
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        # Closing alone does not wake a thread that waits in accept.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                plain.settimeout(10)
                with suppress(OSError), closing(plain), self._context.wrap_socket(plain, server_side=True) as secure:
                    while data := secure.recv(1000):
                        secure.sendall(self._answer or data)


@pytest.fixture
def pki(tmp_path: Path) -> TalosPki:
    return TalosPki(tmp_path / "pki")


@pytest.fixture
def server(pki: TalosPki) -> Iterator[Server]:
    with closing(Server(pki, client_ca=pki.ca_path)) as found:
        yield found


async def exchanged(tunnel: Tunnel, data: bytes) -> bytes:
    """What comes back through the tunnel until it is closed, at most as much as was sent."""
    reader, writer = await asyncio.open_unix_connection(tunnel.target.removeprefix("unix:"))
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.readexactly(len(data))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    finally:
        writer.close()


async def test_bytes_go_both_ways_over_one_connection_each(server: Server, pki: TalosPki):
    config = parse_talosconfig(pki.talosconfig())
    async with Tunnel(server.address, talosconfig=config, clock=SystemClock()) as tunnel:
        for size in (5, 300_000):
            data = bytes(size)
            assert await exchanged(tunnel, data) == data
        assert tunnel.failure is None


async def test_an_alert_after_the_handshake_names_the_client_certificate(pki: TalosPki, tmp_path: Path):
    other = TalosPki(tmp_path / "other")
    config = parse_talosconfig(pki.talosconfig())
    with closing(Server(pki, client_ca=other.ca_path)) as server:
        async with Tunnel(server.address, talosconfig=config, clock=SystemClock()) as tunnel:
            assert await exchanged(tunnel, b"hello") == b""
    assert tunnel.failure is not None
    assert tunnel.failure.kind == "tls"
    # Both authorities have the same name, so the server fails at the signature.
    assert tunnel.failure.message == "the machine does not accept the client certificate: tlsv1 alert decrypt error"
    assert not tunnel.failure.sent


async def test_a_pinned_tunnel_makes_no_new_connection(server: Server, pki: TalosPki):
    config = parse_talosconfig(pki.talosconfig())
    async with Tunnel(server.address, talosconfig=config, clock=SystemClock()) as tunnel:
        assert await exchanged(tunnel, b"first") == b"first"
        tunnel.pinned = True
        assert await exchanged(tunnel, b"second") == b""
        assert tunnel.failure is not None
        assert tunnel.failure.sent
        tunnel.pinned = False
        assert await exchanged(tunnel, b"third") == b"third"


async def test_a_name_that_does_not_exist_is_a_machine_that_is_down(pki: TalosPki):
    config = parse_talosconfig(pki.talosconfig())
    async with Tunnel("machine.invalid", talosconfig=config, clock=SystemClock()) as tunnel:
        assert await exchanged(tunnel, b"hello") == b""
    assert tunnel.failure is not None
    assert (tunnel.failure.kind, tunnel.failure.sent) == ("down", False)


async def test_nothing_is_left_behind(server: Server, pki: TalosPki):
    config = parse_talosconfig(pki.talosconfig())
    async with Tunnel(server.address, talosconfig=config, clock=SystemClock()) as tunnel:
        folder = Path(tunnel.target.removeprefix("unix:")).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [path.is_socket() for path in folder.iterdir()] == [True]
        assert await exchanged(tunnel, b"hello") == b"hello"
    assert not folder.exists()


@pytest.mark.parametrize("name", ["gone", "x" * 120])
async def test_a_temporary_folder_that_cannot_be_used_is_no_fault_of_the_machine(
    name: str, pki: TalosPki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / name
    if name != "gone":
        folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    tunnel = Tunnel("machine.invalid", talosconfig=parse_talosconfig(pki.talosconfig()), clock=SystemClock())
    with pytest.raises(Unavailable, match="the worker's own temporary folder cannot be used: "):
        await tunnel.__aenter__()
    assert not folder.exists() or list(folder.iterdir()) == []

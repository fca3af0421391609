"""A refused certificate is told from a machine that is down, and says which side refuses (cni-switch.md, 14.3 and 15.11)."""

import os
import socket
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.talos.client import TalosClient
from gitops_ctl.talos.errors import ConfigRefused, MachineUnreachable, TlsRefused
from gitops_ctl.talos.machineconfig import edited
from gitops_ctl.talos.talosconfig import parse_talosconfig
from tests.support.talos_bench import IMAGE, MachineBench, control_plane_machine, machine_bench, one_control_plane
from tests.support.talos_configs import machine_config
from tests.support.talos_pki import TalosPki

pytestmark = pytest.mark.peers
__all__ = ["control_plane_machine", "one_control_plane"]

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


class LateClock(SystemClock):
    """Two days ahead."""

    def wall(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=2)


async def _version(client: TalosClient) -> None:
    await client.version()


async def refusal(
    bench: MachineBench,
    talosconfig: bytes,
    *,
    call: Callable[[TalosClient], Awaitable[None]] = _version,
    **members: object,
) -> str:
    """Why a connection is refused when `call` is made on it."""
    async with bench.client(talosconfig, **members) as client:  # type: ignore[arg-type]
        with pytest.raises(TlsRefused) as caught:
            await call(client)
    return caught.value.message


@pytest.mark.parametrize("elliptic", [False, True], ids=["ed25519", "p256"])
async def test_certificates_of_both_kinds_are_accepted(tmp_path: Path, elliptic: bool):
    for bench in machine_bench(tmp_path, elliptic=elliptic):
        async with bench.client() as client:
            assert await client.version() == "v1.14.0"


async def test_a_machine_of_another_authority_is_refused(control_plane_machine: MachineBench, tmp_path: Path):
    bench = control_plane_machine
    talosconfig = bench.pki.talosconfig(trusting=TalosPki(tmp_path / "other"))
    assert "the certificate of the machine is not accepted" in await refusal(bench, talosconfig)


async def test_a_client_certificate_of_another_authority_is_refused(
    control_plane_machine: MachineBench, tmp_path: Path
):
    bench = control_plane_machine
    talosconfig = TalosPki(tmp_path / "other").talosconfig(trusting=bench.pki)
    assert "client certificate" in await refusal(bench, talosconfig)


async def test_a_certificate_for_another_host_is_refused(control_plane_machine: MachineBench):
    port = control_plane_machine.machine.address.rpartition(":")[2]
    message = await refusal(control_plane_machine, b"", address=f"localhost:{port}")
    assert "hostname mismatch" in message.lower()


async def test_an_expired_client_certificate_is_told_before_anything_is_sent(control_plane_machine: MachineBench):
    bench = control_plane_machine
    assert "of the talosconfig expired at" in await refusal(bench, bench.pki.talosconfig(expired=True))
    assert "of the talosconfig expired at" in await refusal(bench, b"", clock=LateClock())


@pytest.mark.parametrize("usages", [(SERVER,), (CLIENT, SERVER)], ids=["server", "both"])
async def test_a_certificate_that_is_not_for_clients_alone_is_refused(control_plane_machine: MachineBench, usages):
    message = await refusal(control_plane_machine, control_plane_machine.pki.talosconfig(usages=usages))
    assert "client certificate" in message


async def test_a_server_that_does_not_agree_on_http2_is_refused(control_plane_machine: MachineBench):
    control_plane_machine.machine.offer_alpn(False)
    assert "no ALPN" in await refusal(control_plane_machine, b"")


async def test_a_server_without_tls_is_refused(control_plane_machine: MachineBench):
    """The order side of the machine speaks plain HTTP."""
    bench = control_plane_machine
    message = await refusal(bench, b"", address=bench.machine.admin_address)
    assert message


async def test_a_refused_certificate_never_looks_like_a_lost_apply(control_plane_machine: MachineBench, tmp_path: Path):
    bench = control_plane_machine
    talosconfig = TalosPki(tmp_path / "other").talosconfig(trusting=bench.pki)
    base = machine_config(form="document", image=IMAGE)

    async def apply(client: TalosClient) -> None:
        wanted = edited(base, mode="replaced", contract="v1.14", role="controlplane")
        await client.apply_configuration(wanted, dry_run=False)

    assert "client certificate" in await refusal(bench, talosconfig, call=apply)
    assert bench.machine.applies == []


async def test_a_port_where_nobody_listens_is_a_machine_that_is_down(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    config = parse_talosconfig(TalosPki(tmp_path).talosconfig())
    async with TalosClient.connect(f"127.0.0.1:{port}", talosconfig=config, clock=SystemClock()) as client:
        with pytest.raises(MachineUnreachable, match="refused"):
            await client.version()


def test_an_address_that_is_none_is_refused(tmp_path: Path):
    config = parse_talosconfig(TalosPki(tmp_path).talosconfig())
    with pytest.raises(ConfigRefused):
        TalosClient.connect("127.0.0.1:99999", talosconfig=config, clock=SystemClock())


async def test_neither_key_nor_configuration_is_ever_in_a_file(control_plane_machine: MachineBench):
    """What is written below the folder for temporary files while a machine is read: a socket and nothing else."""
    async with control_plane_machine.client() as client:
        await client.machine_config("v1alpha1")
        folders = [
            path
            for path in Path(tempfile.gettempdir()).glob("gitops-ctl-talos-*")
            if path.owner() == Path.home().owner()
        ]
        found = [path for folder in folders for path in folder.iterdir()]
        assert found
        assert all(path.is_socket() for path in found)
        assert {oct(os.stat(folder).st_mode & 0o777) for folder in folders} == {"0o700"}

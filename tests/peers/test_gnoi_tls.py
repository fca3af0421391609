"""Each way in which TLS ends a connection to a device has its own readable reason, and none of them is "device down" (devices.md, 14 and 20)."""

import socket
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.device.channel import GnoiTlsRefused, GnoiUnavailable
from gitops_ctl.device.gnoi import gnoi_session
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.tlsprobe import TlsReason, probe
from gitops_ctl.local.ports import pick_ports
from tests.support.git_servers import silent_port
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_peer import OLD, a_switch
from tests.support.gnoi_pki import GnoiPki
from tests.support.kube_clock import JumpingClock

pytestmark = pytest.mark.peers

__all__ = ["pki"]

CLOCK = SystemClock()


async def refusal(target: GnoiTarget) -> GnoiTlsRefused:
    with pytest.raises(GnoiTlsRefused) as caught:
        async with gnoi_session(target, clock=CLOCK):
            pass
    assert caught.value.code is ErrorCode.GNOI_TLS_REFUSED
    assert str(caught.value).startswith(f"{caught.value.tls_reason.value}: ")
    assert caught.value.subject == str(target)
    return caught.value


async def test_no_client_certificate(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki, material=pki.material(with_certificate=False)) as switch:
        error = await refusal(switch.target)
        assert switch.side.guard.calls == {}
    assert error.tls_reason is TlsReason.NO_CLIENT_CERTIFICATE
    assert "the Secret has none" in str(error)


async def test_a_client_certificate_of_another_authority(tmp_path: Path, pki: GnoiPki) -> None:
    stranger = replace(GnoiPki(tmp_path / "other").material(), ca=pki.ca)
    async with a_switch(tmp_path, pki, material=stranger) as switch:
        error = await refusal(switch.target)
    assert error.tls_reason is TlsReason.CLIENT_CERTIFICATE_REFUSED


async def test_a_device_of_another_authority_gets_no_credential(tmp_path: Path, pki: GnoiPki) -> None:
    other = replace(pki.material(), ca=GnoiPki(tmp_path / "other").ca)
    async with a_switch(tmp_path, pki, material=other) as switch:
        error = await refusal(switch.target)
        assert switch.side.guard.metadata == set()
    assert error.tls_reason is TlsReason.WRONG_AUTHORITY


async def test_a_device_whose_certificate_expired(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await switch.side.show(pki.shown("late", expired=True))
        error = await refusal(switch.target)
    assert error.tls_reason is TlsReason.EXPIRED
    assert "the certificate of the device is not valid now" in str(error)


async def test_our_own_certificate_expired(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki, material=pki.material(expired=True)) as switch:
        error = await refusal(switch.target)
    assert error.tls_reason is TlsReason.EXPIRED
    assert "our client certificate expired at" in str(error)


async def test_a_certificate_for_another_name(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await switch.side.show(pki.shown("other", names=("other.example.net",)))
        error = await refusal(switch.target)
        assert error.tls_reason is TlsReason.WRONG_NAME
        # A name that the spec gives makes it right, for gRPC too.
        named = replace(switch.target, server_name="other.example.net")
        async with gnoi_session(named, clock=CLOCK) as session:
            assert (await session.verify()).version == OLD
        assert (await refusal(replace(named, server_name="third.example.net"))).tls_reason is TlsReason.WRONG_NAME


async def test_a_server_without_alpn(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await switch.side.show(replace(pki.shown(), alpn=False))
        error = await refusal(switch.target)
    assert error.tls_reason is TlsReason.NO_ALPN


async def test_a_port_without_tls(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, None) as switch:
        error = await refusal(replace(switch.target, tls=pki.material()))
    assert error.tls_reason is TlsReason.OTHER


async def test_a_device_that_is_down_is_no_matter_of_tls(pki: GnoiPki) -> None:
    (port,) = pick_ports(1)
    with pytest.raises(GnoiUnavailable, match="Connection refused"):
        async with gnoi_session(GnoiTarget("127.0.0.1", port, tls=pki.material()), clock=CLOCK):
            pass


async def test_a_device_that_is_silent_is_given_up(pki: GnoiPki) -> None:
    with silent_port() as port:
        target = GnoiTarget("127.0.0.1", port, tls=pki.material())
        with pytest.raises(GnoiUnavailable):
            async with gnoi_session(target, clock=CLOCK, connect_s=0.1, probe_s=0.1):
                pass


async def test_a_name_that_nobody_knows_is_told(pki: GnoiPki, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> object:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("gitops_ctl.device.tlsprobe.asyncio.open_connection", unknown)
    target = GnoiTarget("switch.example.net", 9339, tls=pki.material())
    finding = await probe(target, clock=CLOCK, limit_s=5)
    assert (finding.reason, finding.message) == (None, "[Errno -2] Name or service not known")


async def test_a_connection_that_is_fine_is_found_so_and_leaves_no_trace(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        finding = await probe(switch.target, clock=CLOCK, limit_s=30)
        assert (finding.reason, finding.message) == (None, "")
        assert switch.side.guard.calls == {}


async def test_the_end_of_our_certificate_is_judged_by_the_clock_of_the_worker(tmp_path: Path, pki: GnoiPki) -> None:
    clock = JumpingClock()
    clock.wall_offset = timedelta(days=4000)
    stranger = replace(GnoiPki(tmp_path / "other").material(), ca=pki.ca)
    async with a_switch(tmp_path, pki, material=stranger) as switch:
        finding = await probe(switch.target, clock=clock, limit_s=30)
    assert finding.reason is TlsReason.EXPIRED

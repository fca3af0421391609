"""Whether the Service answers: TLS with the authority of the cluster, and DNS inside of it (cni-switch.md, section 9.3)."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cni.worker.probe import ProbeOptions, ask_dns, probe
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.certificates import Authority
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.kube_clock import JumpingClock
from tests.support.target_cluster_fakes import WorkerWorld

ON = ProbeOptions("on")


@asynccontextmanager
async def cluster_with(port: int, *, dns_port: int = 0, seed: int = 0) -> AsyncIterator[KubeClient]:
    """A cluster whose Service is on the loopback address."""
    api = ApiServer(lag=0, seed=seed)
    spec: dict[str, Any] = {"clusterIP": "127.0.0.1", "ports": [{"name": "https", "port": port}]}
    WorkerWorld.send(
        api, "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "kubernetes"}, "spec": spec}
    )
    if dns_port:
        spec = {"clusterIP": "127.0.0.1", "ports": [{"name": "dns", "port": dns_port, "protocol": "UDP"}]}
        WorkerWorld.send(
            api, "POST", "/api/v1/namespaces/kube-system/services", {"metadata": {"name": "kube-dns"}, "spec": spec}
        )
    async with direct_client(api, component="t", clock=JumpingClock()) as client:
        yield client


@asynccontextmanager
async def tls_server(folder: Path) -> AsyncIterator[int]:
    """Something that shows a certificate of the authority in the folder."""
    certificate, key = Authority(folder, "ca", clock=SystemClock()).server("kube-apiserver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def trusting(folder: Path) -> ssl.SSLContext:
    """The context of a client of that authority, with a certificate of its own."""
    authority = Authority(folder, "ca", clock=SystemClock())
    context = ssl.create_default_context(cafile=str(authority.certificate_path))
    context.load_cert_chain(*authority.client("worker", user="worker"))
    return context


async def test_it_answers_with_a_certificate_of_the_clusters_authority(tmp_path: Path) -> None:
    async with tls_server(tmp_path) as port, cluster_with(port) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path), options=ON)
    assert (answer.result, answer.reason) == ("Answered", "")
    assert "nothing about other nodes" in answer.message


async def test_somebody_else_at_the_address_is_no_answer(tmp_path: Path) -> None:
    async with tls_server(tmp_path / "other") as port, cluster_with(port) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path / "ours"), options=ON)
    assert answer.result == "NotAnswered"
    assert "not as the API server of this cluster" in answer.message


async def test_a_server_without_tls_is_no_answer(tmp_path: Path) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server, cluster_with(server.sockets[0].getsockname()[1]) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path), options=ON)
    assert answer.result == "NotAnswered"


async def test_nobody_at_the_address_is_no_answer(tmp_path: Path) -> None:
    async with tls_server(tmp_path) as port:
        pass
    async with cluster_with(port) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path), options=ON)
    assert answer.result == "NotAnswered"
    assert f"127.0.0.1:{port}" in answer.message


async def test_the_port_can_be_replaced(tmp_path: Path) -> None:
    async with tls_server(tmp_path) as port, cluster_with(1) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path), options=ProbeOptions("on", port))
    assert answer.result == "Answered"


@pytest.mark.parametrize("when", ["auto", "off"])
async def test_outside_of_the_cluster_or_switched_off_it_is_not_possible_and_not_failed(
    tmp_path: Path, when: Any
) -> None:
    async with cluster_with(1, seed=1) as own, cluster_with(1) as target:
        answer = await probe(own, target, tls=trusting(tmp_path), options=ProbeOptions(when))
    assert (answer.result, answer.reason) == ("NotPossible", "ProbeNotPossible")


@pytest.mark.parametrize("when", ["auto", "on"])
async def test_inside_of_the_cluster_dns_is_asked_too(tmp_path: Path, when: Any) -> None:
    async with tls_server(tmp_path) as port, dns_server(code=3) as dns, cluster_with(port, dns_port=dns) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path), options=ProbeOptions(when))
    assert answer.result == "Answered"


@pytest.mark.parametrize("when", ["auto", "on"])
async def test_trap_7_a_dns_that_fails_is_no_answer(tmp_path: Path, when: Any) -> None:
    async with tls_server(tmp_path) as port, dns_server(code=2) as dns, cluster_with(port, dns_port=dns) as cluster:
        answer = await probe(cluster, cluster, tls=trusting(tmp_path), options=ProbeOptions(when))
    assert answer.result == "NotAnswered"
    assert "response code 2" in answer.message


async def test_outside_of_the_cluster_its_dns_cannot_be_asked(tmp_path: Path) -> None:
    async with (
        tls_server(tmp_path) as port,
        dns_server(code=2) as dns,
        cluster_with(port, dns_port=dns) as target,
        cluster_with(1, seed=1) as own,
    ):
        answer = await probe(own, target, tls=trusting(tmp_path), options=ON)
    assert answer.result == "Answered"


async def test_an_answer_to_another_question_is_not_taken() -> None:
    async with dns_server(code=0, stray=True) as port:
        assert await ask_dns("127.0.0.1", port) == 0


@asynccontextmanager
async def dns_server(*, code: int, stray: bool = False) -> AsyncIterator[int]:
    """Answers every question with a response code; `stray`: after one with another number and one that is too short."""

    class Answering(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: Any) -> None:
            number = struct.unpack("!H", data[:2])[0]
            assert data.endswith(b"\x00\x00\x01\x00\x01")
            if stray:
                self.transport.sendto(struct.pack("!2H", number ^ 1, 0x8002) + data[4:], addr)
                self.transport.sendto(b"short", addr)
            self.transport.sendto(struct.pack("!2H", number, 0x8000 | code) + data[4:], addr)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Answering, local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()

"""Asks the Service `kubernetes` and the cluster DNS whether they answer where the worker runs (cni-switch.md, section 9.3).

Address and port are read from the Service object: the environment of a pod can be overridden in its manifest and then proves nothing.
A TLS handshake that the authority of the cluster vouches for, not only a connection, says that an API server answered.  The answer holds for the
node of the worker and for no other.
"""

import asyncio
import secrets
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, int_at, objects_at, text_at
from gitops_ctl.kube.transport import KubeClient

TIMEOUT_S: Final = 5.0
KUBERNETES: Final = "/api/v1/namespaces/default/services/kubernetes"
DNS: Final = "/api/v1/namespaces/kube-system/services/kube-dns"
KUBE_SYSTEM: Final = "/api/v1/namespaces/kube-system"

_QUERY_NAME: Final = b"\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00"
_TYPE_A_CLASS_IN: Final = b"\x00\x01\x00\x01"
_RECURSE: Final = 0x0100
_ANSWERED: Final = (0, 3)
"""Response codes of a server that works: the name is known, or it is not."""

When = Literal["auto", "on", "off"]
Result = Literal["Answered", "NotAnswered", "NotPossible"]


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """What the command line says: whether to probe, and a port instead of the Service's, 0 for none."""

    when: When = "auto"
    port: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """How a probe ended; `reason` is set when it was not possible."""

    result: Result
    message: str
    reason: str = ""


async def probe(own: KubeClient, target: KubeClient, *, tls: ssl.SSLContext | None, options: ProbeOptions) -> Answer:
    """Ask once; never raises for what the network or the target does."""
    inside = False
    try:
        inside = options.when != "off" and await _is_inside(own, target)
    except GitopsError as error:
        if options.when == "auto":
            return Answer("NotAnswered", f"whether the worker runs in the target cluster is not known: {error.message}")
    try:
        if options.when == "off" or (options.when == "auto" and not inside):
            why = "the worker runs outside of the cluster" if options.when == "auto" else "it is switched off"
            return Answer("NotPossible", f"the Service kubernetes was not asked: {why}", "ProbeNotPossible")
        service = await target.get(KUBERNETES)
        problem = await _handshake(service, tls=tls, port=options.port)
        if not problem and inside:
            problem = await _dns(target)
    except GitopsError as error:
        return Answer("NotAnswered", f"the Service kubernetes cannot be read: {error.message}")
    if problem:
        return Answer("NotAnswered", problem)
    return Answer("Answered", "it answers on the node of the worker; that says nothing about other nodes")


async def _is_inside(own: KubeClient, target: KubeClient) -> bool:
    """Whether both are one cluster: then their namespaces kube-system are one object."""
    uids = [text_at(await client.get(KUBE_SYSTEM), "metadata", "uid") for client in (own, target)]
    return bool(uids[0]) and uids[0] == uids[1]


async def _handshake(service: JsonObject, *, tls: ssl.SSLContext | None, port: int) -> str:
    """Why the Service does not answer; empty when it does."""
    address = text_at(service, "spec", "clusterIP")
    ports = objects_at(service, "spec", "ports")
    port = port or (int_at(ports[0], "port") if ports else 0)
    if not address or address == "None" or not port:
        return "the Service kubernetes has no address or no port"
    try:
        async with asyncio.timeout(TIMEOUT_S):
            _, writer = await asyncio.open_connection(
                address, port, ssl=_without_identity(tls), server_hostname=address
            )
    except TimeoutError:
        return f"{address}:{port} did not answer within {TIMEOUT_S:g} s"
    except ssl.SSLError as error:
        return f"{address}:{port} answers, but not as the API server of this cluster ({error.reason or 'TLS'})"
    except OSError as error:
        return f"{address}:{port} did not answer ({type(error).__name__})"
    writer.close()
    with suppress(OSError, ssl.SSLError):
        await writer.wait_closed()
    return ""


def _without_identity(tls: ssl.SSLContext | None) -> ssl.SSLContext:
    """A context with the authorities of `tls` and without its client certificate: who answers there is not known yet."""
    plain = ssl.create_default_context(cadata=b"".join(tls.get_ca_certs(binary_form=True)) if tls is not None else None)
    plain.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return plain


async def _dns(target: KubeClient) -> str:
    """Why the cluster DNS does not answer; empty when it does, or when there is no such Service."""
    service = await target.find(DNS)
    address = text_at(service, "spec", "clusterIP") if service is not None else ""
    if not address or address == "None":
        return ""
    ports = [item for item in objects_at(service or {}, "spec", "ports") if text_at(item, "protocol") == "UDP"]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            code = await ask_dns(address, int_at(ports[0], "port") if ports else 53)
    except (TimeoutError, OSError) as error:
        return f"the cluster DNS at {address} did not answer ({type(error).__name__})"
    return "" if code in _ANSWERED else f"the cluster DNS at {address} failed with response code {code}"


async def ask_dns(address: str, port: int) -> int:
    """The response code for the name of the Service kubernetes; waits for ever when nobody answers.

    Raises:
        OSError: the address cannot be reached.
    """
    loop = asyncio.get_running_loop()
    number = secrets.randbits(16)
    answers: asyncio.Future[int] = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Asking(number, answers), remote_addr=(address, port))
    try:
        transport.sendto(struct.pack("!6H", number, _RECURSE, 1, 0, 0, 0) + _QUERY_NAME + _TYPE_A_CLASS_IN)
        return await answers
    finally:
        transport.close()


class _Asking(asyncio.DatagramProtocol):
    """Waits for the answer with the right number."""

    def __init__(self, number: int, answers: "asyncio.Future[int]") -> None:
        self._number = number
        self._answers = answers

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        del addr
        if len(data) < 12 or self._answers.done():
            return
        number, flags = struct.unpack("!2H", data[:4])
        if number == self._number and flags & 0x8000:
            self._answers.set_result(flags & 0x000F)

    def error_received(self, exc: Exception) -> None:
        if not self._answers.done():
            self._answers.set_exception(exc)

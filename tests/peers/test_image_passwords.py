"""Images over sftp with a password, from a server that remembers who tried to log in (rollouts.md, section 13.8)."""

from collections.abc import Iterator, Sequence

import paramiko
import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, Unavailable
from gitops_ctl.device.addresses import AddressRules, image_endpoint
from gitops_ctl.device.imagecredentials import image_login
from gitops_ctl.device.imagesources import ImageSources
from gitops_ctl.device.login import Endpoint
from tests.support.sftp_server import SftpServer, sftp_server

pytestmark = pytest.mark.peers

CONTENT = bytes(range(256)) * 10_000
LABELS = {"cisco.vk/purpose": "software-image-source"}


async def on_loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


SOURCES = ImageSources(AddressRules.of(["127.0.0.0/8"]), on_loopback)


@pytest.fixture
def server() -> Iterator[SftpServer]:
    with sftp_server({"/cat9k.bin": CONTENT}) as found:
        yield found


def login(server: SftpServer, **changes: bytes) -> Endpoint:
    secret = {
        "allowedScheme": b"sftp",
        "allowedHost": b"127.0.0.1",
        "allowedPort": str(server.port).encode(),
        "username": b"network-author",
        "password": b"hunter-2\n",
        "knownHosts": server.known_hosts,
    }
    endpoint = image_endpoint(f"sftp://127.0.0.1:{server.port}/cat9k.bin")
    return image_login({**secret, **changes}, labels=LABELS, endpoint=endpoint)


async def fetched(server: SftpServer, who: Endpoint) -> bytes:
    endpoint = image_endpoint(f"sftp://127.0.0.1:{server.port}/cat9k.bin")
    async with SOURCES.download(endpoint, who) as download:
        return b"".join([chunk async for chunk in download.chunks])


async def test_a_password_lets_in(server: SftpServer) -> None:
    assert await fetched(server, login(server)) == CONTENT
    assert server.attempts == [("network-author", "hunter-2")]


async def test_a_wrong_password_is_sent_once_and_shown_nowhere(server: SftpServer) -> None:
    with pytest.raises(GitopsError) as caught:
        await fetched(server, login(server, password=b"not-the-one"))
    assert caught.value.code is ErrorCode.IMAGE_SOURCE_REFUSED
    assert "not-the-one" not in f"{caught.value} {caught.value.subject}"
    assert server.attempts == [("network-author", "not-the-one")]


async def test_a_server_that_wants_more_than_the_secret_has_is_refused(server: SftpServer) -> None:
    server.wants_more = True
    with pytest.raises(GitopsError, match="asks for more") as caught:
        await fetched(server, login(server))
    assert caught.value.code is ErrorCode.IMAGE_SOURCE_REFUSED


async def test_nobody_is_named_to_a_server_with_another_host_key(server: SftpServer) -> None:
    stranger = paramiko.ECDSAKey.generate()
    text = f"[127.0.0.1]:{server.port} {stranger.get_name()} {stranger.get_base64()}\n".encode()
    with pytest.raises(GitopsError, match="another host key") as caught:
        await fetched(server, login(server, knownHosts=text))
    assert caught.value.code is ErrorCode.IMAGE_SOURCE_REFUSED
    assert server.attempts == []


async def test_a_file_that_ends_early_may_be_tried_again(server: SftpServer) -> None:
    server.ends_at = 2 * 2**20
    with pytest.raises(Unavailable) as caught:
        await fetched(server, login(server))
    assert caught.value.code is ErrorCode.IMAGE_SOURCE_UNREACHABLE

"""Images from a real https server and from openssh, good and bad ones, through the option `--image-source-allow` (rollouts.md, 13.8)."""

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, Refused, Unavailable
from gitops_ctl.device.addresses import AddressRules, ImageEndpoint, image_endpoint
from gitops_ctl.device.imagecredentials import image_login
from gitops_ctl.device.imagesources import ImageSources, system_resolver
from gitops_ctl.device.login import Endpoint
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.device.spool import Opening, Spool, Wanted
from gitops_ctl.local.ports import pick_ports
from tests.support.git_keys import SshKey
from tests.support.git_servers import Authority, SshGitServer, silent_port
from tests.support.inventory_server import Inventory, answer, inventory_service

pytestmark = pytest.mark.peers

CONTENT = os.urandom(3 * 2**20 + 12345)
LOOPBACK = AddressRules.of(["127.0.0.0/8"])


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


async def on_loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def https_server(authority: Authority, folder: Path, *, expired: bool = False) -> AsyncIterator[Inventory]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue(folder, host="images.example.net", expired=expired))
    async with inventory_service(context) as service:
        service.next = answer(CONTENT)
        yield service


def https(authority: Authority, *, rules: AddressRules = LOOPBACK, most_bytes: int = 2**30) -> ImageSources:
    return ImageSources(rules, on_loopback, authority.pem, most_bytes)


def https_url(service: Inventory) -> ImageEndpoint:
    return image_endpoint(f"https://images.example.net:{service.port}/cat9k.bin")


async def fetched(sources: ImageSources, endpoint: ImageEndpoint, login: Endpoint | None = None) -> bytes:
    async with sources.download(endpoint, login) as download:
        content = b"".join([chunk async for chunk in download.chunks])
        assert download.size in (None, len(content))
        return content


async def failure(sources: ImageSources, endpoint: ImageEndpoint, login: Endpoint | None = None) -> GitopsError:
    with pytest.raises(GitopsError) as caught:
        await fetched(sources, endpoint, login)
    assert caught.value.subject == str(endpoint)
    return caught.value


async def test_https_delivers_an_image_without_a_credential(authority: Authority, folder: Path) -> None:
    async with https_server(authority, folder) as service:
        assert await fetched(https(authority), https_url(service)) == CONTENT
    assert service.requests[0].startswith("GET /cat9k.bin HTTP/1.1")
    assert service.header("Host") == f"images.example.net:{service.port}"
    assert service.header("Accept-Encoding") == "identity"
    assert (service.header("Authorization"), service.header("Cookie")) == ("", "")


async def test_a_proxy_of_the_environment_is_not_used(
    authority: Authority, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with https_server(authority, folder) as service:
        assert await fetched(https(authority), https_url(service)) == CONTENT


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirect_is_not_followed(status: str, authority: Authority, folder: Path) -> None:
    async with https_server(authority, folder) as service:
        service.next = answer(b"", status=status, headers="Location: https://images.example.net/other\r\n")
        error = await failure(https(authority), https_url(service))
    assert isinstance(error, BlockedError)
    assert error.code is ErrorCode.IMAGE_SOURCE_REFUSED
    assert "redirects are not followed" in str(error)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ("404 Not Found", BlockedError, ErrorCode.IMAGE_SOURCE_REFUSED),
        ("401 Unauthorized", BlockedError, ErrorCode.IMAGE_SOURCE_REFUSED),
        ("206 Partial Content", BlockedError, ErrorCode.IMAGE_SOURCE_REFUSED),
        ("503 Service Unavailable", Unavailable, ErrorCode.IMAGE_SOURCE_UNREACHABLE),
        ("429 Too Many Requests", Unavailable, ErrorCode.IMAGE_SOURCE_UNREACHABLE),
    ],
)
async def test_another_status_than_200_is_no_image(
    status: str, kind: type[GitopsError], code: ErrorCode, authority: Authority, folder: Path
) -> None:
    async with https_server(authority, folder) as service:
        service.next = answer(b"no", status=status)
        error = await failure(https(authority), https_url(service))
    assert isinstance(error, kind)
    assert error.code is code
    assert status.split(maxsplit=1)[0] in str(error)


async def test_an_encoded_answer_is_refused(authority: Authority, folder: Path) -> None:
    async with https_server(authority, folder) as service:
        service.next = answer(CONTENT, headers="Content-Encoding: gzip\r\n")
        error = await failure(https(authority), https_url(service))
    assert "encoded" in str(error)


async def test_an_answer_that_ends_early_may_be_tried_again(authority: Authority, folder: Path) -> None:
    async with https_server(authority, folder) as service:
        service.next = f"HTTP/1.1 200 OK\r\nContent-Length: {len(CONTENT)}\r\n\r\n".encode() + CONTENT[:1000]
        error = await failure(https(authority), https_url(service))
    assert isinstance(error, Unavailable)


@pytest.mark.parametrize("says_size", [True, False])
async def test_an_image_that_is_too_large_is_refused(says_size: bool, authority: Authority, folder: Path) -> None:
    async with https_server(authority, folder) as service:
        if not says_size:
            service.next = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + CONTENT
        error = await failure(https(authority, most_bytes=2**20), https_url(service))
    assert error.code is ErrorCode.IMAGE_SOURCE_REFUSED
    assert "1048576 are allowed" in str(error)


async def test_a_server_that_is_not_trusted_or_out_of_date_or_another_one_is_refused(
    authority: Authority, folder: Path
) -> None:
    async with https_server(authority, folder) as service:
        stranger = await failure(https(Authority("other")), https_url(service))
        other = image_endpoint(f"https://other.example.net:{service.port}/a")
        another = await failure(https(authority), other)
        assert service.requests == []
    async with https_server(authority, folder, expired=True) as service:
        late = await failure(https(authority), https_url(service))
    for error, words in ((stranger, "unable to get local issuer"), (another, "not valid for"), (late, "expired")):
        assert error.code is ErrorCode.IMAGE_SOURCE_REFUSED
        assert words in str(error)


async def test_a_server_that_is_down_is_unreachable(authority: Authority) -> None:
    (port,) = pick_ports(1)
    error = await failure(https(authority), image_endpoint(f"https://images.example.net:{port}/a"))
    assert isinstance(error, Unavailable)
    assert error.code is ErrorCode.IMAGE_SOURCE_UNREACHABLE


async def test_with_the_option_off_nothing_reaches_the_server(authority: Authority, folder: Path) -> None:
    async with https_server(authority, folder) as service:
        error = await failure(https(authority, rules=AddressRules()), https_url(service))
        literal = image_endpoint(f"https://127.0.0.1:{service.port}/a")
        odd = image_endpoint(f"https://0x7f.1:{service.port}/a")
        sources = ImageSources(AddressRules(), system_resolver, authority.pem)
        refusals = [error, await failure(sources, literal), await failure(sources, odd)]
        assert service.requests == []
    assert {each.code for each in refusals} == {ErrorCode.IMAGE_ADDRESS_REFUSED}


async def test_a_name_that_changes_its_address_between_check_and_connection_gains_nothing(
    authority: Authority, folder: Path
) -> None:
    asked = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async with https_server(authority, folder) as service:
        sources = ImageSources(LOOPBACK, rebinding, authority.pem)
        assert await fetched(sources, https_url(service)) == CONTENT
        assert asked == ["images.example.net"]
        error = await failure(sources, https_url(service))
    assert error.code is ErrorCode.IMAGE_ADDRESS_REFUSED


class Sftp:
    """An openssh server for the present user, and the Secret for it."""

    def __init__(self, server: SshGitServer, key: SshKey, file: Path) -> None:
        self.server = server
        self.endpoint = image_endpoint(f"sftp://127.0.0.1:{server.port}{file}")
        self.labels = {"cisco.vk/purpose": "software-image-source"}
        self.secret = {
            "allowedScheme": b"sftp",
            "allowedHost": b"127.0.0.1",
            "allowedPort": str(server.port).encode(),
            "username": server.user.encode(),
            "privateKey": key.path.read_bytes(),
            "knownHosts": server.known_hosts,
        }

    def login(self, **changes: bytes) -> Endpoint:
        secret = {name: value for name, value in {**self.secret, **changes}.items() if value}
        return image_login(secret, labels=self.labels, endpoint=self.endpoint)


@pytest.fixture(scope="module")
def sftp(folder: Path) -> Iterator[Sftp]:
    host, user = SshKey.generate(folder, name="host"), SshKey.generate(folder, name="user")
    file = folder / "cat 9k.bin"
    file.write_bytes(CONTENT)
    with SshGitServer(
        folder / "sshd", host_key=host, allowed=(user,), options="Subsystem sftp internal-sftp\n"
    ) as server:
        yield Sftp(server, user, Path(str(file).replace(" ", "%20")))


SOURCES = ImageSources(LOOPBACK, on_loopback)


async def test_sftp_delivers_an_image_with_a_key(sftp: Sftp) -> None:
    assert await fetched(SOURCES, sftp.endpoint, sftp.login()) == CONTENT


async def test_an_empty_file_has_no_content(sftp: Sftp, folder: Path) -> None:
    (folder / "empty.bin").touch()
    endpoint = image_endpoint(f"{sftp.endpoint}{folder}/empty.bin")
    assert await fetched(SOURCES, endpoint, sftp.login()) == b""


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
async def test_another_host_key_is_refused_before_the_user_is_named(kind: str, sftp: Sftp, folder: Path) -> None:
    other = SshKey.generate(folder, type=kind, name="other")
    login = sftp.login(knownHosts=f"[127.0.0.1]:{sftp.server.port} {other.public}\n".encode())
    error = await failure(SOURCES, sftp.endpoint, login)
    assert error.code in (ErrorCode.IMAGE_SOURCE_REFUSED, ErrorCode.IMAGE_SOURCE_UNREACHABLE)
    assert kind != "ed25519" or "another host key" in str(error)


async def test_a_key_that_is_not_let_in_is_refused(sftp: Sftp, folder: Path) -> None:
    stranger = SshKey.generate(folder, name="stranger")
    error = await failure(SOURCES, sftp.endpoint, sftp.login(privateKey=stranger.path.read_bytes()))
    assert error.code is ErrorCode.IMAGE_SOURCE_REFUSED
    assert "does not accept the login" in str(error)


@pytest.mark.parametrize(
    ("name", "words"), [("missing.bin", "no file"), ("", "regular file"), ("sshd", "regular file")]
)
async def test_what_is_no_file_is_refused(name: str, words: str, sftp: Sftp, folder: Path) -> None:
    error = await failure(SOURCES, image_endpoint(f"{sftp.endpoint}{folder}/{name}"), sftp.login())
    assert error.code is ErrorCode.IMAGE_SOURCE_REFUSED
    assert words in str(error)


async def test_a_file_that_is_too_large_is_refused_before_it_is_read(sftp: Sftp) -> None:
    sources = ImageSources(LOOPBACK, on_loopback, most_bytes=2**20)
    error = await failure(sources, sftp.endpoint, sftp.login())
    assert "1048576 are allowed" in str(error)


async def test_sftp_to_a_loopback_address_needs_the_option(sftp: Sftp) -> None:
    error = await failure(ImageSources(AddressRules(), on_loopback), sftp.endpoint, sftp.login())
    assert error.code is ErrorCode.IMAGE_ADDRESS_REFUSED


async def test_a_caller_that_goes_away_does_not_wait_for_a_silent_server(sftp: Sftp) -> None:
    with silent_port() as port:
        endpoint = ImageEndpoint("sftp", "127.0.0.1", port, "/a")
        running = asyncio.create_task(fetched(SOURCES, endpoint, sftp.login()))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_sftp_needs_a_secret_and_https_takes_none(sftp: Sftp, authority: Authority) -> None:
    without = await failure(SOURCES, sftp.endpoint)
    with_one = await failure(SOURCES, ImageEndpoint("https", "images.example.net", 443, "/a"), sftp.login())
    assert {without.code, with_one.code} == {ErrorCode.IMAGE_CREDENTIAL_INVALID}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"allowedScheme": b"https"}, "allowedScheme is not the scheme"),
        ({"allowedHost": b"images.example.net"}, "allowedHost is not the host"),
        ({"allowedPort": b"22"}, "allowedPort is not the port"),
        ({"allowedPort": b""}, "allowedPort is not the port"),
        ({"username": b""}, "username"),
        ({"password": b"hunter-2"}, "one of password and privateKey"),
        ({"privateKey": b""}, "one of password and privateKey"),
        ({"privateKey": b"hunter-2"}, "private key cannot be used"),
        ({"knownHosts": b""}, "has no entry"),
        ({"knownHosts": b"other.example.net ssh-ed25519 AAAA"}, "known_hosts"),
    ],
)
def test_a_secret_for_something_else_is_refused_by_name(changes: dict[str, bytes], words: str, sftp: Sftp) -> None:
    with pytest.raises(Refused) as caught:
        sftp.login(**changes)
    assert caught.value.code is ErrorCode.IMAGE_CREDENTIAL_INVALID
    assert words in str(caught.value)
    assert "hunter-2" not in str(caught.value)


def test_a_secret_without_the_label_is_refused(sftp: Sftp) -> None:
    with pytest.raises(Refused, match="has not the label"):
        image_login(sftp.secret, labels={}, endpoint=sftp.endpoint)


async def test_an_image_goes_from_each_kind_of_server_into_the_spool(
    sftp: Sftp, authority: Authority, folder: Path, tmp_path: Path
) -> None:
    wanted = Wanted(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    async with https_server(authority, folder) as service:
        openings: dict[str, Opening] = {
            "https": lambda: https(authority).download(https_url(service), None),
            "sftp": lambda: SOURCES.download(sftp.endpoint, sftp.login()),
        }
        for name, opening in openings.items():
            spool = Spool(tmp_path / name)
            async with spool.image(wanted, opening, pacer=Pacer(None, clock=SystemClock())) as image:
                assert b"".join([chunk async for chunk in image.chunks(2**20)]) == CONTENT

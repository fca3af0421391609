"""The client of inventory services, alone (topology-scheduling.md, 10; D30, D31)."""

import gzip
import socket
import ssl
import tracemalloc
import zlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gitops_ctl.scheduling.snapshot import LARGEST
from gitops_ctl.scheduling.source_status import Failed
from gitops_ctl.scheduling.webhook import ClientCertificate, Inquiry, get
from tests.support.inventory_server import Authority, answer, inventory_service, key_pem, server_context

TOKEN = "only-for-tests-4c1d"
TEXT = b"revision: r1\n" * 100


@pytest.fixture(scope="module")
def authority():
    return Authority("inventory-ca")


@pytest.fixture(scope="module")
def other():
    return Authority("other-ca")


@pytest.fixture
async def service(authority, tmp_path):
    async with inventory_service(server_context(tmp_path, authority.issue("inventory"))) as found:
        found.next = answer(TEXT)
        yield found


@pytest.fixture
def nobody():
    """A port that answers no connection for as long as the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def ask(service, authority, **changes):
    given = {"token": TOKEN, "ca": authority.pem.encode(), **changes}
    found = await get(Inquiry(service.url, **given))
    assert TOKEN not in repr(found)
    return found


async def detail(service, authority, **changes):
    found = await ask(service, authority, **changes)
    assert isinstance(found, Failed)
    assert found.reason == "WebhookReadFailed"
    return found.detail


async def test_proxies_of_the_environment_are_not_used(service, authority, nobody, monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{nobody}")
    assert await ask(service, authority) == TEXT


async def test_a_netrc_of_the_environment_is_not_used(service, authority, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    await ask(service, authority, token="")
    assert service.header("authorization") == ""


async def test_a_bundle_replaces_the_roots_of_the_system(service, authority, other, monkeypatch, tmp_path):
    (tmp_path / "roots.pem").write_text(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    assert await ask(service, authority, ca=None) == TEXT
    assert "not trusted" in await detail(service, authority, ca=other.pem.encode())


@pytest.mark.parametrize("bundle", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAA\n", "é".encode()])
async def test_a_bundle_without_a_certificate_is_an_error(bundle, service, authority):
    assert "CA bundle" in await detail(service, authority, ca=bundle)
    assert service.requests == []


async def test_the_name_in_the_certificate_is_compared(authority, tmp_path):
    context = server_context(tmp_path, authority.issue("inventory", address="127.0.0.9"))
    async with inventory_service(context) as service:
        assert "not trusted" in await detail(service, authority)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_older_than_1_2_is_not_spoken(authority, tmp_path):
    context = server_context(tmp_path, authority.issue("inventory"))
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with inventory_service(context) as service:
        assert "no connection" in await detail(service, authority)
        assert service.requests == []


async def test_a_pair_that_is_none_is_an_error(service, authority):
    chain, key = (part.encode() for part in authority.issue("gitops-ctl"))
    another = key_pem(ec.generate_private_key(ec.SECP256R1())).encode()
    locked = key_pem(ec.generate_private_key(ec.SECP256R1()), b"secret-word").encode()
    for pair in ((chain, another), (chain, locked), (b"x", key), (chain, b"x")):
        found = await detail(service, authority, token="", certificate=ClientCertificate(*pair))
        assert "no usable pair" in found
    assert service.requests == []


async def test_a_server_that_wants_a_certificate_and_gets_none_is_a_failure(authority, tmp_path):
    context = server_context(tmp_path, authority.issue("inventory"), clients=authority)
    async with inventory_service(context) as service:
        assert isinstance(await ask(service, authority), Failed)
        assert service.requests == []


@pytest.mark.parametrize(
    ("encoding", "data"),
    [("gzip", gzip.compress(TEXT, mtime=0)), ("deflate", zlib.compress(TEXT)), ("identity", TEXT), ("", TEXT)],
)
async def test_what_was_compressed_all_the_same_is_unpacked(encoding, data, service, authority):
    service.next = answer(data, headers=f"Content-Encoding: {encoding}\r\n" if encoding else "")
    assert await ask(service, authority) == TEXT


@pytest.mark.parametrize(
    ("encoding", "data", "said"),
    [
        ("br", TEXT, "encoded"),
        ("gzip, gzip", TEXT, "encoded"),
        ("gzip", TEXT, "cannot be unpacked"),
        ("gzip", gzip.compress(TEXT, mtime=0)[:-6], "not one whole"),
        ("gzip", gzip.compress(TEXT, mtime=0) * 2, "not one whole"),
        ("gzip", b"", "not one whole"),
    ],
)
async def test_what_cannot_be_unpacked_is_a_failure(encoding, data, said, service, authority):
    service.next = answer(data, headers=f"Content-Encoding: {encoding}\r\n")
    assert said in await detail(service, authority)


async def test_the_limit_holds_for_the_unpacked_answer_and_so_does_memory(service, authority):
    """D30."""
    service.next = answer(gzip.compress(b"\0" * (64 * LARGEST)), headers="Content-Encoding: gzip\r\n")
    tracemalloc.start()
    try:
        found = await detail(service, authority)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "longer than" in found
    assert most < 8 * LARGEST


async def test_a_length_that_is_never_sent_allocates_nothing(service, authority):
    service.next = b"HTTP/1.1 200 OK\r\nContent-Length: 900000000000\r\n\r\nrevision"
    assert "no whole answer" in await detail(service, authority)


@pytest.mark.parametrize(
    "sent", [b"", b"no http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhidden-w"]
)
async def test_an_answer_that_is_none_is_a_failure_that_quotes_nothing(sent, service, authority):
    service.next = sent
    found = await detail(service, authority)
    assert "no whole answer" in found
    assert "hidden" not in found


async def test_nobody_there_is_a_failure(authority, nobody):
    found = await get(Inquiry(f"https://127.0.0.1:{nobody}/", token=TOKEN, ca=authority.pem.encode()))
    assert found == Failed("WebhookReadFailed", "no connection to the server")


@pytest.mark.parametrize("token", ["two\nlines", "tokén", "nul\0byte"])
async def test_a_token_that_no_header_can_hold_is_a_failure_and_is_not_shown(token, service, authority):
    found = await detail(service, authority, token=token)
    assert "token cannot be sent" in found
    assert token not in found
    assert service.requests == []


async def test_cookies_are_not_kept(service, authority):
    service.next = answer(TEXT, headers="Set-Cookie: a=b\r\n")
    for _ in range(2):
        assert await ask(service, authority) == TEXT
        assert service.header("cookie") == ""


def test_an_inquiry_shows_no_secret():
    inquiry = Inquiry("https://inventory.example.net/", token=TOKEN, certificate=ClientCertificate(b"chain", b"hidden"))
    assert TOKEN not in repr(inquiry)
    assert "hidden" not in repr(inquiry)

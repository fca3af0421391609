"""Which URLs an image may have, and which addresses their names may stand for; the option is off unless a test says so (rollouts.md, 13.8)."""

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Refused, Unavailable
from gitops_ctl.device.addresses import (
    AddressKind,
    AddressRules,
    ImageEndpoint,
    Scheme,
    checked_addresses,
    image_endpoint,
    kind_of,
)

OFF = AddressRules()
PUBLIC, PUBLIC_6 = "93.184.216.34", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


@pytest.mark.parametrize(
    ("url", "canonical", "path"),
    [
        ("https://images.example.net/a/b.bin", "https://images.example.net:443", "/a/b.bin"),
        ("HTTPS://Images.Example.NET./a", "https://images.example.net:443", "/a"),
        ("https://images.example.net:8443/a%20b", "https://images.example.net:8443", "/a%20b"),
        ("sftp://images.example.net/a", "sftp://images.example.net:22", "/a"),
        ("sftp://192.0.2.7:2022//srv/a", "sftp://192.0.2.7:2022", "//srv/a"),
        ("https://[2001:0DB8:0::1]/a", "https://[2001:db8::1]:443", "/a"),
    ],
)
def test_a_url_has_one_canonical_form(url: str, canonical: str, path: str) -> None:
    endpoint = image_endpoint(url)
    assert (str(endpoint), endpoint.path) == (canonical, path)
    assert image_endpoint(f"{canonical}{path}") == endpoint


def test_percent_signs_of_a_path_name_a_file() -> None:
    assert image_endpoint("sftp://images.example.net/a%20b").file == "/a b"


@pytest.mark.parametrize(
    "url",
    [
        "https://author:word@images.example.net/a",
        "https://@images.example.net/a",
        "https://images.example.net/a?x=1",
        "https://images.example.net/a?",
        "https://images.example.net/a#b",
        "https://images.example.net/a#",
        "https://images.example.net/",
        "https://images.example.net",
        "https:///a",
        "http://images.example.net/a",
        "ftp://images.example.net/a",
        "file:///etc/passwd",
        "https://images.example.net:0/a",
        "https://images.example.net:65536/a",
        "https://images.example.net:x/a",
        "https://images.example.net\\@192.0.2.1/a",
        "https://images example.net/a",
        "https://images.example.net/a\nb",
        "https://images.example.net/a%0ab",
        "https://images.example.net/a%00",
        "https://bücher.example.net/a",
        "https://[fe80::1%25eth0]/a",
        "https://[::1/a",
        "https://-bad-/a",
        f"https://images.example.net/{'a' * 2048}",
        "",
    ],
)
def test_every_other_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(Refused) as caught:
        image_endpoint(url)
    assert caught.value.code is ErrorCode.IMAGE_URL_REFUSED
    assert "word" not in str(caught.value)


KINDS = {
    AddressKind.PUBLIC: (PUBLIC, PUBLIC_6, "64:ff9b::5db8:d822", "2002:5db8:d822::1"),
    AddressKind.PRIVATE: (
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd12::1", "fec0::1"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:0a00:0001::1"),
    ),
    AddressKind.LOOPBACK: ("127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
    AddressKind.LINK_LOCAL: ("169.254.1.1", "fe80::1", "::ffff:169.254.1.1"),
    AddressKind.MULTICAST: ("224.0.0.1", "239.1.1.1", "ff02::1"),
    AddressKind.UNSPECIFIED: ("0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"),
    AddressKind.METADATA: (
        *("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"),
        "::ffff:169.254.169.254",
    ),
    AddressKind.RESERVED: ("240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "2001:db8::1"),
}


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for kind, texts in KINDS.items() for text in texts], ids=str)
def test_an_address_is_what_it_carries(text: str, kind: AddressKind) -> None:
    assert kind_of(ip_address(text)) is kind


@pytest.mark.parametrize("scheme", ["https", "sftp"])
@pytest.mark.parametrize("kind", list(AddressKind), ids=lambda kind: kind.value)
def test_with_the_option_off_only_public_addresses_and_private_ones_of_sftp_are_used(
    kind: AddressKind, scheme: Scheme
) -> None:
    is_fine = kind is AddressKind.PUBLIC or (kind is AddressKind.PRIVATE and scheme == "sftp")
    for text in KINDS[kind]:
        problem = OFF.complaint([text], scheme=scheme)
        assert (problem == "") is is_fine, text
        assert is_fine or kind.value in problem


@pytest.mark.parametrize("kind", list(AddressKind), ids=lambda kind: kind.value)
def test_the_option_opens_private_and_loopback_networks_and_nothing_else(kind: AddressKind) -> None:
    everything = AddressRules.of(["0.0.0.0/0", "::/0"])
    is_fine = kind in (AddressKind.PUBLIC, AddressKind.PRIVATE, AddressKind.LOOPBACK)
    for text in KINDS[kind]:
        assert (everything.complaint([text], scheme="https") == "") is is_fine, text


def test_the_option_opens_only_the_networks_that_it_names() -> None:
    rules = AddressRules.of(["127.0.0.0/8"])
    assert rules.complaint(["127.0.0.1"], scheme="https") == ""
    assert rules.complaint(["::ffff:127.0.0.1"], scheme="https") == ""
    assert "loopback" in rules.complaint(["::1"], scheme="https")
    assert "private" in rules.complaint(["10.0.0.1"], scheme="https")


@pytest.mark.parametrize(
    ("answers", "scheme", "rules"),
    [
        ([PUBLIC, "127.0.0.1"], "https", OFF),
        ([PUBLIC, "10.0.0.1"], "https", OFF),
        ([PUBLIC, "10.0.0.1"], "sftp", OFF),
        ([PUBLIC_6, "fd12::1"], "sftp", OFF),
        ([PUBLIC, "169.254.169.254"], "https", OFF),
        ([PUBLIC, "10.0.0.1"], "https", AddressRules.of(["10.0.0.0/8"])),
        (["127.0.0.1", "10.0.0.1"], "https", AddressRules.of(["10.0.0.0/8", "127.0.0.0/8"])),
    ],
)
def test_mixed_answers_are_refused_as_a_whole(answers: list[str], scheme: Scheme, rules: AddressRules) -> None:
    assert rules.complaint(answers, scheme=scheme)


def test_answers_that_are_no_addresses_or_none_are_refused() -> None:
    assert OFF.complaint(["images.example.net"], scheme="https") == "an answer is no address"
    assert OFF.complaint([], scheme="https") == "the name has no address"
    assert "interface" in AddressRules.of(["::/0"]).complaint(["fd12::1%eth0"], scheme="https")


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not-a-network"):
        AddressRules.of(["not-a-network"])


ENDPOINT = ImageEndpoint("https", "images.example.net", 443, "/a")


async def test_each_attempt_asks_once_and_uses_what_was_judged() -> None:
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        # A name that stands for another address the next time.
        return [PUBLIC, PUBLIC, PUBLIC_6] if len(asked) == 1 else ["127.0.0.1"]

    assert await checked_addresses(ENDPOINT, resolve=resolve, rules=OFF) == (PUBLIC, PUBLIC_6)
    assert asked == [("images.example.net", 443)]
    with pytest.raises(BlockedError) as caught:
        await checked_addresses(ENDPOINT, resolve=resolve, rules=OFF)
    assert caught.value.code is ErrorCode.IMAGE_ADDRESS_REFUSED
    assert caught.value.subject == "https://images.example.net:443"


async def test_a_name_that_cannot_be_resolved_is_tried_again() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(Unavailable) as caught:
        await checked_addresses(ENDPOINT, resolve=resolve, rules=OFF)
    assert caught.value.code is ErrorCode.IMAGE_SOURCE_UNREACHABLE
    assert "Name or service not known" in str(caught.value)

"""Where an image may come from: URLs in one canonical form, and the addresses that their names may stand for (rollouts.md, 13.8).

A name is resolved once for each attempt, every answer is judged, and the connection goes to an address that was judged: a name that stands for
another address a moment later gains nothing.  One bad answer spoils all; public and private answers together are refused, because then
nobody can say which server was meant.
"""

import enum
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Refused, Unavailable

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Scheme: TypeAlias = Literal["https", "sftp"]
Resolver: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Addresses of a name and port; raises OSError when there are none."""

DEFAULT_PORTS: Final[dict[str, int]] = {"https": 443, "sftp": 22}
_LONGEST_URL: Final = 2048
_HOST = re.compile(r"[a-z0-9]([a-z0-9_.-]*[a-z0-9])?\.?")
_PLAIN = re.compile(r"[\x21-\x7e]+")
_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
"""Where clouds serve credentials to their machines."""
_PRIVATE: Final = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")
)
_THIS_NETWORK: Final = ipaddress.ip_network("0.0.0.0/8")
_NAT64: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


@dataclass(frozen=True, slots=True)
class ImageEndpoint:
    """A URL of an image, taken apart.

    Attributes:
        scheme: `https` or `sftp`.
        host: lower case, without brackets and without a dot at its end.
        port: the one of the URL, else the usual one of the scheme.
        path: as the URL has it, with its slash.
    """

    scheme: Scheme
    host: str
    port: int
    path: str

    @property
    def file(self) -> str:
        """The path with its percent signs resolved."""
        return unquote(self.path)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def image_endpoint(url: str) -> ImageEndpoint:
    """The canonical form of a URL.

    Raises:
        Refused: IMAGE_URL_REFUSED: it is no https or sftp URL, or it has user information, a query or a fragment.
    """
    if len(url) > _LONGEST_URL or not _PLAIN.fullmatch(url):
        raise _bad_url("it is too long, or has blanks or characters outside of ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad_url("it cannot be read") from None
    scheme, host = parts.scheme.lower(), (parts.hostname or "").removesuffix(".")
    _require_plain(parts, url)
    if scheme not in DEFAULT_PORTS:
        raise _bad_url("only https:// and sftp:// are possible")
    if not host or not (_HOST.fullmatch(host) or _is_address(host)):
        raise _bad_url("its host is neither a name nor an address")
    if port == 0:
        raise _bad_url("port 0 is no port")
    if len(parts.path) < 2 or any(ord(letter) < 32 or letter == "\x7f" for letter in unquote(parts.path)):
        raise _bad_url("it names no file")
    if _is_address(host):
        host = str(ipaddress.ip_address(host))
    return ImageEndpoint(cast("Scheme", scheme), host, port or DEFAULT_PORTS[scheme], parts.path)


class AddressKind(enum.Enum):
    """What an address is; the value is a word for messages."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    UNSPECIFIED = "unspecified"
    METADATA = "metadata"
    RESERVED = "reserved"


_NEVER: Final = frozenset(
    (
        AddressKind.LINK_LOCAL,
        AddressKind.MULTICAST,
        AddressKind.UNSPECIFIED,
        AddressKind.METADATA,
        AddressKind.RESERVED,
    )
)


_KINDS: Final[tuple[tuple[AddressKind, Callable[[Address], bool]], ...]] = (
    (AddressKind.METADATA, lambda address: address in _METADATA),
    (AddressKind.UNSPECIFIED, lambda address: address.is_unspecified or _is_within(address, (_THIS_NETWORK,))),
    (AddressKind.LOOPBACK, lambda address: address.is_loopback),
    (AddressKind.LINK_LOCAL, lambda address: address.is_link_local),
    (AddressKind.MULTICAST, lambda address: address.is_multicast),
    (AddressKind.PRIVATE, lambda address: _is_within(address, _PRIVATE)),
)
"""The first that holds."""


def kind_of(address: Address) -> AddressKind:
    """What an address is.  One that carries another one inside (mapped, translated, tunnelled) is what that one is."""
    inner = _inner(address)
    if inner is not None:
        return kind_of(inner)
    for kind, holds in _KINDS:
        if holds(address):
            return kind
    return AddressKind.PUBLIC if address.is_global else AddressKind.RESERVED


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What this worker accepts.

    Attributes:
        allow: networks whose private and loopback addresses are accepted, also for https (`--image-source-allow`).
    """

    allow: tuple[Network, ...] = field(default=())

    @classmethod
    def of(cls, networks: Iterable[str]) -> "AddressRules":
        """The rules for these CIDRs.

        Raises:
            ValueError: one of them is none.
        """
        return cls(tuple(ipaddress.ip_network(text) for text in networks))

    def complaint(self, answers: Iterable[str], *, scheme: Scheme) -> str:
        """Why these answers may not be used together; empty when they may."""
        try:
            addresses = tuple(ipaddress.ip_address(text) for text in answers)
        except ValueError:
            return "an answer is no address"
        if not addresses:
            return "the name has no address"
        for address in addresses:
            if problem := self._complaint_about(address, scheme):
                return problem
        kinds = {kind_of(address) for address in addresses}
        if len(kinds) > 1:
            return f"the name stands for {' and '.join(sorted(kind.value for kind in kinds))} addresses at once"
        return ""

    def _complaint_about(self, address: Address, scheme: Scheme) -> str:
        kind = kind_of(address)
        if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
            return f"{address} names an interface of this host"
        if kind in _NEVER:
            return f"{address} is a {kind.value} address"
        # Private servers are reached over sftp: there a pinned host key and a bound credential say which one is meant.
        is_fine = kind is AddressKind.PUBLIC or (kind is AddressKind.PRIVATE and scheme == "sftp")
        if is_fine or self._is_allowed(address):
            return ""
        return f"{address} is a {kind.value} address"

    def _is_allowed(self, address: Address) -> bool:
        return _is_within(_inner(address) or address, self.allow)


async def checked_addresses(endpoint: ImageEndpoint, *, resolve: Resolver, rules: AddressRules) -> tuple[str, ...]:
    """The addresses to connect to for one attempt, at least one, in the order of the answers.

    Raises:
        Unavailable: IMAGE_SOURCE_UNREACHABLE: the name cannot be resolved now.
        BlockedError: IMAGE_ADDRESS_REFUSED: an answer may not be used.
    """
    try:
        answers = tuple(dict.fromkeys(await resolve(endpoint.host, endpoint.port)))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Unavailable(
            f"the name {endpoint.host} cannot be resolved: {why}",
            code=ErrorCode.IMAGE_SOURCE_UNREACHABLE,
            subject=str(endpoint),
        ) from None
    if problem := rules.complaint(answers, scheme=endpoint.scheme):
        raise BlockedError(
            f"{problem}: no image is fetched from it", code=ErrorCode.IMAGE_ADDRESS_REFUSED, subject=str(endpoint)
        )
    return answers


def _inner(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if _is_within(address, _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    return address.teredo[1] if address.teredo is not None else None


def _is_within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def _require_plain(parts: SplitResult, url: str) -> None:
    # An empty query or fragment leaves no trace in the parts.
    if "@" in parts.netloc:
        raise _bad_url("it has user information")
    if "?" in url or "#" in url:
        raise _bad_url("it has a query or a fragment")


def _bad_url(why: str) -> Refused:
    """The URL itself stays out of the text: it may hold a password."""
    return Refused(f"the URL of the image is not acceptable: {why}", code=ErrorCode.IMAGE_URL_REFUSED)

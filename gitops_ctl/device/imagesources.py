"""Where images come from: https without a credential, or sftp with one (rollouts.md, section 13.8).

Each attempt resolves the name anew and checks every answer; `addresses` has the rules.  An attempt is never continued by another one.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.device.addresses import AddressRules, ImageEndpoint, Resolver, checked_addresses
from gitops_ctl.device.httpssource import https_download
from gitops_ctl.device.imagedownload import MOST_BYTES, Download
from gitops_ctl.device.login import Endpoint
from gitops_ctl.device.sftpsource import sftp_download

_RESOLVE_S: Final = 10.0


async def system_resolver(host: str, port: int) -> tuple[str, ...]:
    """What the resolver of this system says.

    Raises:
        OSError: it knows no such name, or does not answer in time.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_RESOLVE_S):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(str(entry[4][0]) for entry in found)


@dataclass(frozen=True, slots=True)
class ImageSources:
    """How this worker reaches image servers.

    Attributes:
        rules: which addresses it accepts.
        resolve: injected in tests.
        authorities: PEM that replaces the roots of the system for https; None keeps them.
        most_bytes: of one image.
    """

    rules: AddressRules = field(default_factory=AddressRules)
    resolve: Resolver = system_resolver
    authorities: bytes | None = None
    most_bytes: int = MOST_BYTES

    @asynccontextmanager
    async def download(self, endpoint: ImageEndpoint, login: Endpoint | None) -> AsyncIterator[Download]:
        """One attempt.

        Args:
            endpoint: of the URL.
            login: of the Secret; sftp needs one, https takes none.

        Raises:
            Unavailable: IMAGE_SOURCE_UNREACHABLE: trying again may help.
            BlockedError: IMAGE_SOURCE_REFUSED or IMAGE_ADDRESS_REFUSED: somebody has to change something.
            Refused: IMAGE_CREDENTIAL_INVALID: there is a Secret where none may be, or none where one must be.
        """
        if (endpoint.scheme == "sftp") != (login is not None):
            why = "sftp needs a Secret" if login is None else "https is used without a Secret"
            raise Refused(
                f"the Secret of the image source is not acceptable: {why}",
                code=ErrorCode.IMAGE_CREDENTIAL_INVALID,
                subject=str(endpoint),
            )
        addresses = await checked_addresses(endpoint, resolve=self.resolve, rules=self.rules)
        if login is None:
            attempt = https_download(
                endpoint, addresses=addresses, most_bytes=self.most_bytes, authorities=self.authorities
            )
        else:
            attempt = sftp_download(endpoint, login, addresses=addresses, most_bytes=self.most_bytes)
        async with attempt as download:
            yield download

"""What an install is given in tests: content from a file, an order for it, and terms."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.device.installstream import InstallOrder, InstallTerms, Progress
from gitops_ctl.device.pacing import Pacer
from tools.peers.gnoi.package import Package


class FileContent:
    """The bytes of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def chunks(self, size: int) -> AsyncIterator[bytes]:
        with self._path.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, size):
                yield chunk


def order_of(package: Package, *, version: str = "17.18.03", standby: bool = False) -> InstallOrder:
    """The order for a package; `version` is the one of the plan."""
    return InstallOrder(version, package.size, package.sha256, standby)


def terms(
    *,
    clock: Clock | None = None,
    rate: int | None = None,
    limit_s: float = 60.0,
    tell: Callable[[Progress], None] | None = None,
) -> InstallTerms:
    """Terms of an install that may take `limit_s` from now on."""
    chosen = clock or SystemClock()
    return InstallTerms(chosen.boot_s() + limit_s, Pacer(rate, clock=chosen), tell or (lambda _: None))

"""The checks Source and Spool before an upgrade: the image is fetched once into the spool, for all devices that need it (rollouts.md, 9.4).

Devices that ask at the same time share one attempt, and an answer holds for some time, so that a hundred targets are not a hundred downloads.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, Refused
from gitops_ctl.device import imagechecks
from gitops_ctl.device.addresses import image_endpoint
from gitops_ctl.device.imagecredentials import image_login
from gitops_ctl.device.login import Endpoint
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.device.preflightchecks import Check
from gitops_ctl.device.spool import Wanted
from gitops_ctl.device.worker.campaigns import Order
from gitops_ctl.device.worker.place import Equipment

_FAILED_S: Final = 60.0
"""An attempt that failed is not repeated earlier, however many devices ask."""


@dataclass(frozen=True, slots=True)
class ImageAnswer:
    """Both checks, and the size of the image in bytes where it is known."""

    checks: tuple[Check, ...]
    size: int | None


class Images:
    """Answers of this worker, by where the image comes from and its digest."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._answers: dict[tuple[str, str, str], tuple[float, ImageAnswer]] = {}
        self._turns: dict[tuple[str, str, str], asyncio.Lock] = {}

    async def answer(self, order: Order) -> ImageAnswer:
        """Whether the image of an order is there; asked anew when the last answer is old, or the file is gone."""
        key = (order.url, order.sha256, order.secret_uid)
        async with self._turns.setdefault(key, asyncio.Lock()):
            at_s, known = self._answers.get(key, (0.0, None))
            now_s = self._equipment.clock.boot_s()
            if known is not None and now_s - at_s < self._holds_s(order, known):
                return known
            found = await self._ask(order)
            self._answers[key] = (self._equipment.clock.boot_s(), found)
            return found

    def forget(self, kept: frozenset[tuple[str, str, str]]) -> None:
        """Keep only the answers for these sources: URL, SHA-256 and UID of the Secret."""
        for key in [key for key, turn in self._turns.items() if key not in kept and not turn.locked()]:
            self._turns.pop(key)
            self._answers.pop(key, None)

    def _holds_s(self, order: Order, known: ImageAnswer) -> float:
        is_there = known.size is not None and not any(check.blocks for check in known.checks)
        if not is_there:
            return _FAILED_S
        return self._equipment.intervals.preflight_s / 2 if self._equipment.spool.holds(order.sha256) else 0.0

    async def _ask(self, order: Order) -> ImageAnswer:
        size: int | None = None
        problem: GitopsError | None = None
        try:
            endpoint, wanted = image_endpoint(order.url), Wanted(order.sha256)
            login = await self._login(order)
            opening = lambda: self._equipment.sources.download(endpoint, login)  # noqa: E731  an attempt, begun where there is room
            pacer = Pacer(order.max_bytes_per_s or None, clock=self._equipment.clock)
            async with self._equipment.spool.image(wanted, opening, pacer=pacer) as image:
                size = image.size
        except GitopsError as error:
            problem = error
        return ImageAnswer(imagechecks.source_and_spool(problem, size=size), size)

    async def _login(self, order: Order) -> Endpoint | None:
        if not order.secret:
            return None
        secret = await self._equipment.secrets.read(order.secret)
        if secret is None or (order.secret_uid and secret.uid != order.secret_uid):
            why = "does not exist" if secret is None else "was made anew since the plan was frozen"
            raise Refused(f"Secret {order.secret} {why}", code=ErrorCode.IMAGE_CREDENTIAL_INVALID)
        return image_login(secret.data, labels=secret.labels, endpoint=image_endpoint(order.url))

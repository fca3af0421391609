"""What both kinds of image servers have in common: the download, its limits, and its errors (rollouts.md, section 13.8)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Unavailable
from gitops_ctl.core.redact import redact_text
from gitops_ctl.device.addresses import ImageEndpoint

MOST_BYTES: Final = 8 * 2**30
CONNECT_S: Final = 10.0
SILENCE_S: Final = 60.0
"""A server that sends nothing for this long is given up."""


@dataclass(frozen=True, slots=True)
class Download:
    """One attempt that has begun.

    Attributes:
        size: in bytes, as the server says; None when it does not say.
        chunks: the content in its order; it ends with an error when the content ends early or is longer than it may be.
    """

    size: int | None
    chunks: AsyncIterator[bytes]


def unreachable(endpoint: ImageEndpoint, why: str) -> Unavailable:
    """Trying again later may help."""
    message = f"the image server does not answer: {redact_text(why)}"
    return Unavailable(message, code=ErrorCode.IMAGE_SOURCE_UNREACHABLE, subject=str(endpoint))


def refused(endpoint: ImageEndpoint, what: str) -> BlockedError:
    """Somebody has to change something; `what` begins with what the server does."""
    return BlockedError(f"the image server {what}", code=ErrorCode.IMAGE_SOURCE_REFUSED, subject=str(endpoint))


def require_size(size: int, *, most_bytes: int, endpoint: ImageEndpoint) -> None:
    """Raises BlockedError when an image is larger than it may be."""
    if size > most_bytes:
        raise refused(endpoint, f"has an image of {size} bytes or more, {most_bytes} are allowed")

"""From the status of a gNOI call to an error or an outcome of ours (rollouts.md, section 13.4)."""

from typing import Final

import grpc

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError
from gitops_ctl.core.redact import redact_text
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.outcome import Refused, Unknown

NOT_PROVISIONED: Final = "NOT_PROVISIONED"
UNIMPLEMENTED: Final = grpc.StatusCode.UNIMPLEMENTED.name
"""Kind of a refusal by a device that does not have the call."""
_LONGEST: Final = 400
_LONGEST_VERSION: Final = 128
_PERMANENT: Final = frozenset(
    (
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.NOT_FOUND,
    )
)
"""With these the device says that it did not begin."""

_DOWN: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
_RIGHTS: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_UNPROVISIONED_WORDS: Final = ("not provisioned", "unprovisioned", "bootstrapping")


class GnoiUnsupported(BlockedError):
    """The device does not have this call; ask again after an upgrade."""

    code = ErrorCode.GNOI_UNSUPPORTED


class GnoiNotProvisioned(BlockedError):
    """The device waits for its gNOI certificate."""

    code = ErrorCode.GNOI_NOT_PROVISIONED


def said(text: str, *, known: tuple[str, ...] = ()) -> str:
    """What a device said, fit for people: without secrets and without the `known` ones, on one line, not endless."""
    shown = " ".join(redact_text(text, known=known).split())
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def named_version(text: str, *, known: tuple[str, ...] = ()) -> str:
    """The version that a device names; empty when it is none: too long for a status, not printable, or with a secret in it."""
    is_plain = text.isprintable() and said(text, known=known) == text
    return text if len(text) <= _LONGEST_VERSION and is_plain else ""


def read_error(error: grpc.aio.AioRpcError, *, method: str, subject: str, known: tuple[str, ...] = ()) -> GitopsError:
    """The error of a call that changes nothing; `known` are secrets that it must not hold."""
    code, details = error.code(), said(error.details() or "", known=known)
    if _is_unprovisioned(details):
        return GnoiNotProvisioned(f"{method}: the device is not provisioned for gNOI: {details}", subject=subject)
    if code in _DOWN:
        what = "no answer in time" if code is grpc.StatusCode.DEADLINE_EXCEEDED else details
        return GnoiUnavailable(f"{method}: the device does not answer: {what}", subject=subject)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return GnoiUnsupported(f"{method}: the device does not offer this call", subject=subject)
    if code in _RIGHTS:
        message = f"{method}: the device does not let this account in: {details}"
        return BlockedError(message, code=ErrorCode.GNOI_NOT_AUTHORISED, subject=subject)
    return unusable(f"{method}: the device answers {code.name}: {details}", subject=subject)


def unusable(message: str, *, subject: str) -> BlockedError:
    """The error for an answer that the service does not give."""
    return BlockedError(message, code=ErrorCode.GNOI_ANSWER_UNUSABLE, subject=subject)


def outcome_of_error(
    error: grpc.aio.AioRpcError, *, method: str, sent_bytes: int = 0, known: tuple[str, ...] = ()
) -> Refused | Unknown:
    """What became of a changing call that ended with a status.  Whatever does not prove that nothing was done is `Unknown`."""
    code, details = error.code(), said(error.details() or "", known=known)
    if code in _PERMANENT:
        kind = NOT_PROVISIONED if _is_unprovisioned(details) else code.name
        return Refused(kind, f"{method}: the device answers {code.name}: {details}", sent_bytes)
    return Unknown(f"the reply to {method} is lost: {code.name} {details}".strip(), sent_bytes)


def _is_unprovisioned(details: str) -> bool:
    return any(words in details.lower() for words in _UNPROVISIONED_WORDS)

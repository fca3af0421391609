"""From the status of a call to the error of ours, and from replies to what they hold.

Every reply to a single call is a list with one element per machine; we always talk to one (cni-switch.md, section 14.3).
"""

from collections.abc import Sequence
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.talos.errors import (
    AnswerUnusable,
    ApplyRefused,
    ApplyUnknown,
    MachineBusy,
    MachineUnreachable,
    NotAuthorised,
    TlsRefused,
    said_about,
    single_errors,
)
from gitops_ctl.talos.tunnel import Failure

M = TypeVar("M", bound=Message)

_ANOTHER_APPLY = "another apply configuration is already in progress"
_DOWN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
_CONTENT = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED)
_RIGHTS = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


def error_of(error: grpc.aio.AioRpcError, *, method: str, subject: str, failure: Failure | None) -> GitopsError:
    """The error of a call that changes nothing."""
    code, details = error.code(), error.details() or ""
    if code in _DOWN:
        if failure is not None and failure.kind == "tls":
            return TlsRefused(failure.message, subject=subject)
        what = "no answer in time" if code is grpc.StatusCode.DEADLINE_EXCEEDED else said_about(details)
        return MachineUnreachable(f"{method}: {failure.message if failure is not None else what}", subject=subject)
    if code in _RIGHTS:
        return NotAuthorised(f"{method}: the machine says: {said_about(details)}", subject=subject)
    return AnswerUnusable(f"{method}: the machine answers {code.name}: {said_about(details)}", subject=subject)


def apply_error_of(
    error: grpc.aio.AioRpcError, *, subject: str, failure: Failure | None, known: tuple[str, ...]
) -> GitopsError:
    """The error of an apply.  Whatever does not prove that nothing was done is `ApplyUnknown`.

    Args:
        error: status of the call.
        subject: the machine.
        failure: why the connection ended, when it did.
        known: secret values of the configuration; they are blanked.
    """
    code, details = error.code(), error.details() or ""
    if code in _CONTENT:
        return ApplyRefused(single_errors(details, known=known), subject=subject)
    if code is grpc.StatusCode.FAILED_PRECONDITION and _ANOTHER_APPLY in details:
        return MachineBusy(f"ApplyConfiguration: {_ANOTHER_APPLY}", subject=subject)
    never_sent = code is grpc.StatusCode.UNAVAILABLE and failure is not None and not failure.sent
    if code in _RIGHTS or never_sent:
        return error_of(error, method="ApplyConfiguration", subject=subject, failure=failure)
    what = failure.message if failure is not None else f"{code.name} {said_about(details, known=known)}".strip()
    return ApplyUnknown(
        f"the reply to ApplyConfiguration is lost, it may have been carried out: {what}", subject=subject
    )


def only(messages: Sequence[M], *, method: str, subject: str) -> M:
    """The one element of a reply.

    Raises:
        AnswerUnusable: there is another number of them.
    """
    if len(messages) != 1:
        raise AnswerUnusable(f"{method}: the reply has {len(messages)} elements instead of one", subject=subject)
    return messages[0]


def decoded(kind: type[M], data: bytes, *, what: str, subject: str) -> M:
    """The message in `data`.

    Raises:
        AnswerUnusable: these bytes are no such message.
    """
    try:
        message = kind()
        message.ParseFromString(data)
    except DecodeError:
        raise AnswerUnusable(f"{what} of the machine cannot be decoded", subject=subject) from None
    return message

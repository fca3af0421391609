"""What can go wrong between a worker and a Talos machine.  The base decides about trying again (core.errors).

Unavailable                 nothing happened, or repeating is safe
 ├── MachineUnreachable        no connection, no answer in time, or the machine says that it cannot now
 └── MachineBusy               another apply runs on this machine
ReplyLost
 └── ApplyUnknown              an apply was sent and its reply is lost: only reading back tells
BlockedError
 ├── TlsRefused                one side does not accept the certificate of the other: not the same as being down
 ├── NotAuthorised             the certificate lacks a role
 ├── WrongMachine              another machine answers at this address
 ├── AnswerUnusable            the machine does not speak as Talos does
 └── ProxyImageUnknown         kube-proxy cannot be enabled: no image is known
Refused
 ├── ApplyRefused              the machine does not accept this configuration
 ├── ConfigRefused             the configuration cannot be read, or not be edited without touching anything else
 └── TalosconfigInvalid        the credentials file cannot be used

No message holds configuration text: what a machine says about a configuration goes through `said_about`.
"""

import re

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Refused, ReplyLost, Unavailable
from gitops_ctl.core.redact import REDACTED, redact_text

_LONGEST = 2000
_SNIPPET = re.compile(r"`[^`]*`")
"""Parsers of YAML put a piece of the line between these marks."""


class MachineUnreachable(Unavailable):
    """The machine cannot be talked to now; nothing was changed."""

    code = ErrorCode.MACHINE_UNREACHABLE


class MachineBusy(Unavailable):
    """Another apply runs on the machine; nothing was changed."""


class ApplyUnknown(ReplyLost):
    """An apply was sent and no reply came: it may have been carried out."""

    code = ErrorCode.MACHINE_REPLY_LOST


class TlsRefused(BlockedError):
    """A certificate is not accepted, on this side or on that one."""

    code = ErrorCode.MACHINE_CERTIFICATE_REFUSED


class NotAuthorised(BlockedError):
    """The roles of the certificate are not enough."""

    code = ErrorCode.MACHINE_NOT_AUTHORISED


class WrongMachine(BlockedError):
    """Name or type of the machine is not what was expected."""

    code = ErrorCode.WRONG_MACHINE


class AnswerUnusable(BlockedError):
    """An answer that the Talos API does not give."""

    code = ErrorCode.MACHINE_ANSWER_UNUSABLE


class ProxyImageUnknown(BlockedError):
    """Enabling kube-proxy needs an image, and none is known."""

    code = ErrorCode.PROXY_IMAGE_UNKNOWN


class ApplyRefused(Refused):
    """The machine refused a configuration; `errors` holds everything that it complained about, without configuration text."""

    code = ErrorCode.MACHINE_CONFIG_REFUSED

    def __init__(self, errors: tuple[str, ...], *, subject: str = "") -> None:
        super().__init__(f"the machine refuses the configuration: {'; '.join(errors)}", subject=subject)
        self.errors = errors


class ConfigRefused(Refused):
    """A machine configuration that cannot be read or edited."""

    code = ErrorCode.MACHINE_CONFIG_UNREADABLE


class TalosconfigInvalid(Refused):
    """A talosconfig without what a connection needs."""

    code = ErrorCode.TALOSCONFIG_INVALID


def said_about(text: str, *, known: tuple[str, ...] = ()) -> str:
    """What a machine said, fit for people: without `known` values, without pieces of YAML, not endless."""
    shown = redact_text(_SNIPPET.sub(f"`{REDACTED}`", text), known=known).strip()
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def single_errors(text: str, *, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The errors that a machine put into one text, in their order; never empty."""
    listed = [part.strip() for part in re.findall(r"^\s*\* (.+(?:\n(?!\s*\* ).+)*)", text, re.MULTILINE)]
    return tuple(said_about(part, known=known) for part in listed or [text or "no reason given"])

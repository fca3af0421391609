"""Errors of gitops-ctl.  The retry decision is in the type.  This module imports only the code registry.

GitopsError
 ├── TransientError        try again by itself        requeue with back-off, or after retry_after_s
 │    ├── Unavailable          never sent, or answered 5xx: nothing happened, or repeating is safe
 │    ├── ReplyLost            sent, no answer: it may have happened
 │    └── RateLimited          429; retry_after_s is set when the server named it
 ├── BlockedError          waits for something named  requeue when that changes
 │    ├── Forbidden            RBAC, forge permission
 │    ├── NotFound             an object that something needs is not there
 │    └── Conflict             somebody else wrote first: read again, plan again
 ├── TerminalError         wrong until somebody edits requeue only on a new generation or revision
 │    └── Refused              the server or a rule says no to this content
 └── InternalError         our bug                    logged with traceback, counted, requeued slowly
"""

from gitops_ctl.core.codes import ErrorCode


class GitopsError(Exception):
    """Base.  The text never holds a secret or a foreign traceback.

    Attributes:
        code: entry of the registry; carries the reason for conditions and the page for people.
        subject: where it is: `file:line:column`, an object, a URL without user info.
        hint: one imperative sentence that says how to clear it.
    """

    code: ErrorCode = ErrorCode.INTERNAL

    def __init__(self, message: str, *, code: ErrorCode | None = None, subject: str = "", hint: str = "") -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.subject = subject
        self.hint = hint or self.code.fix

    @property
    def message(self) -> str:
        return str(self.args[0])

    @property
    def reason(self) -> str:
        """CamelCase word for conditions and events."""
        return self.code.reason


class TransientError(GitopsError):
    """Clears by itself.  `retry_after_s` is the least wait that the other side asked for, None when it named none."""

    code = ErrorCode.UNAVAILABLE

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | None = None,
        subject: str = "",
        hint: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, code=code, subject=subject, hint=hint)
        self.retry_after_s = retry_after_s


class Unavailable(TransientError):
    """Nothing was carried out, or carrying it out again is safe."""


class ReplyLost(TransientError):
    """The request was sent and no answer came: it may have been carried out."""

    code = ErrorCode.REPLY_LOST


class RateLimited(TransientError):
    """The other side asks for fewer requests."""

    code = ErrorCode.RATE_LIMITED


class BlockedError(GitopsError):
    """Waits for somebody or something else."""

    code = ErrorCode.BLOCKED


class Forbidden(BlockedError):
    """The account lacks a right; the message names verb, resource and namespace."""

    code = ErrorCode.FORBIDDEN


class NotFound(BlockedError):
    """Something that is needed is not there."""

    code = ErrorCode.NOT_FOUND


class Conflict(BlockedError):
    """A compare-and-swap was lost."""

    code = ErrorCode.CONFLICT


class TerminalError(GitopsError):
    """Wrong until somebody edits it."""

    code = ErrorCode.REFUSED


class Refused(TerminalError):
    """The content is not acceptable; trying again changes nothing."""


class InternalError(GitopsError):
    """A bug of ours."""


def caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether an error, or anything that it came from, is of this kind."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind):
            return True
        seen = seen.__cause__ or seen.__context__
    return False

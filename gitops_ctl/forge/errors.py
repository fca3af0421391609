"""What can go wrong between us and a forge.  The retry decision is in the type (core/errors.py; forges.md, section 18).

GitopsError
 ├── TransientError
 │    ├── Unavailable               core: nothing happened, or repeating is safe
 │    ├── ReplyLost                 core: it may have happened: look up by head branch and marker before a second POST
 │    └── RateLimited               core: wait `retry_after_s`, at most an hour
 ├── BlockedError
 │    ├── TokenRejected             401: nothing is tried until the Secret changes
 │    ├── RedirectRefused           the address answers with another place
 │    ├── RepositoryUnavailable     archived, moved or deleted
 │    ├── NotOffered                plain Git has no such thing
 │    ├── Forbidden                 core
 │    │    └── ForbiddenOrMissing   403 or 404; names the call and the right that it needs
 │    ├── NotFound                  core
 │    │    ├── Gone                 the head branch is not there (any more)
 │    │    └── BaseMissing          the base branch is not there
 │    └── Conflict                  core: the text or the state was changed meanwhile: read again
 │         └── AlreadyExists        an open pull request of this head and base: look it up and adopt it
 └── TerminalError
      ├── AnswerRefused             cut, or no JSON of the expected shape
      │    └── AnswerTooLong        of a list: it is asked for in smaller pages
      └── Refused                   core: the forge does not take this content
           └── NoDiff               head has nothing that base lacks
"""

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import (
    BlockedError,
    Conflict,
    Forbidden,
    NotFound,
    RateLimited,
    Refused,
    ReplyLost,
    TerminalError,
    Unavailable,
)

__all__ = [
    "AlreadyExists",
    "AnswerRefused",
    "AnswerTooLong",
    "BaseMissing",
    "Conflict",
    "Forbidden",
    "ForbiddenOrMissing",
    "Gone",
    "NoDiff",
    "NotOffered",
    "RateLimited",
    "RedirectRefused",
    "Refused",
    "ReplyLost",
    "RepositoryUnavailable",
    "TokenRejected",
    "Unavailable",
]


class TokenRejected(BlockedError):
    """The forge does not know the token, or it has expired."""

    code = ErrorCode.TOKEN_REJECTED


class RedirectRefused(BlockedError):
    """Credentials are never carried to another host, scheme or port."""

    code = ErrorCode.REDIRECT_REFUSED


class RepositoryUnavailable(BlockedError):
    """The project is archived, moved or deleted."""

    code = ErrorCode.REPOSITORY_UNAVAILABLE


class NotOffered(BlockedError):
    """Plain Git knows branches and nothing else."""

    code = ErrorCode.NOT_OFFERED


class ForbiddenOrMissing(Forbidden):
    """Forges answer 404 as well as 403 where a right is missing, so the two cannot be told apart."""

    code = ErrorCode.FORBIDDEN_OR_MISSING


class Gone(NotFound):
    """The head branch is not there."""

    code = ErrorCode.HEAD_MISSING


class BaseMissing(NotFound):
    """The base branch is not there: renamed or deleted; it is never guessed."""

    code = ErrorCode.BASE_MISSING


class AlreadyExists(Conflict):
    """There is an open pull request of this head and base already."""

    code = ErrorCode.PULL_REQUEST_EXISTS


class AnswerRefused(TerminalError):
    """The answer cannot be read: nothing is concluded from it."""

    code = ErrorCode.ANSWER_REFUSED


class AnswerTooLong(AnswerRefused):
    """The answer is longer than any that is read."""


class NoDiff(Refused):
    """Head has nothing that base lacks."""

    code = ErrorCode.NO_DIFFERENCE

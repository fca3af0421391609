"""The retry decision is in the type, and every error says code, cause, place and way out."""

import pytest

from gitops_ctl.core import errors
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import (
    BlockedError,
    Conflict,
    Forbidden,
    GitopsError,
    InternalError,
    NotFound,
    RateLimited,
    Refused,
    ReplyLost,
    TerminalError,
    TransientError,
    Unavailable,
)

DECISIONS = (TransientError, BlockedError, TerminalError, InternalError)
TYPES = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, GitopsError)]


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind is not GitopsError], ids=lambda kind: kind.__name__)
def test_every_type_carries_exactly_one_decision(kind):
    assert sum(issubclass(kind, decision) for decision in DECISIONS) == 1


@pytest.mark.parametrize(
    ("kind", "decision", "code"),
    [
        (Unavailable, TransientError, ErrorCode.UNAVAILABLE),
        (ReplyLost, TransientError, ErrorCode.REPLY_LOST),
        (RateLimited, TransientError, ErrorCode.RATE_LIMITED),
        (BlockedError, BlockedError, ErrorCode.BLOCKED),
        (Forbidden, BlockedError, ErrorCode.FORBIDDEN),
        (NotFound, BlockedError, ErrorCode.NOT_FOUND),
        (Conflict, BlockedError, ErrorCode.CONFLICT),
        (Refused, TerminalError, ErrorCode.REFUSED),
        (InternalError, InternalError, ErrorCode.INTERNAL),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_type_has_its_decision_and_its_code(kind, decision, code):
    found = kind("what happened")
    assert isinstance(found, decision)
    assert found.code is code
    assert found.reason == code.reason


def test_a_code_that_is_given_replaces_the_one_of_the_type():
    found = Refused("no such name", code=ErrorCode.REF_NOT_FOUND, subject="https://git.example.net/net.git")
    assert (found.code, found.reason) == (ErrorCode.REF_NOT_FOUND, "RefNotFound")
    assert Refused("again").code is ErrorCode.REFUSED


def test_the_hint_is_that_of_the_code_unless_one_is_given():
    assert Forbidden("no").hint == ErrorCode.FORBIDDEN.fix
    assert Forbidden("no", hint="ask the owner").hint == "ask the owner"
    assert Refused("no", code=ErrorCode.URL_REFUSED).hint == ErrorCode.URL_REFUSED.fix


def test_message_and_text_are_the_same():
    found = NotFound("Secret git does not exist", subject="Secret/team-network/git")
    assert found.message == str(found) == "Secret git does not exist"
    assert found.subject == "Secret/team-network/git"


def test_only_transient_errors_name_a_wait():
    assert RateLimited("slow down", retry_after_s=2.5).retry_after_s == 2.5
    assert Unavailable("no answer").retry_after_s is None
    assert not hasattr(BlockedError("no"), "retry_after_s")

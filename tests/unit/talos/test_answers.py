"""A status becomes the error that says whether trying again is safe; what a machine says never carries configuration text."""

import grpc
import pytest

from gitops_ctl.core.errors import BlockedError, Refused, ReplyLost, Unavailable
from gitops_ctl.netpb.talos.machine import machine_pb2
from gitops_ctl.talos.answers import apply_error_of, decoded, error_of, only
from gitops_ctl.talos.errors import (
    AnswerUnusable,
    ApplyRefused,
    ApplyUnknown,
    ConfigRefused,
    MachineBusy,
    MachineUnreachable,
    NotAuthorised,
    ProxyImageUnknown,
    TalosconfigInvalid,
    TlsRefused,
    WrongMachine,
    single_errors,
)
from gitops_ctl.talos.tunnel import Failure, split_address

CODE = grpc.StatusCode
TLS = Failure("tls", "the certificate of the machine is not accepted", sent=False)
DOWN = Failure("down", "Connection refused", sent=False)
CUT = Failure("down", "the machine closed the connection", sent=True)


def status(code: grpc.StatusCode, details: str = "") -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


@pytest.mark.parametrize(
    ("code", "failure", "kind", "base"),
    [
        (CODE.UNAVAILABLE, DOWN, MachineUnreachable, Unavailable),
        (CODE.UNAVAILABLE, None, MachineUnreachable, Unavailable),
        (CODE.UNAVAILABLE, TLS, TlsRefused, BlockedError),
        (CODE.DEADLINE_EXCEEDED, None, MachineUnreachable, Unavailable),
        (CODE.PERMISSION_DENIED, None, NotAuthorised, BlockedError),
        (CODE.UNIMPLEMENTED, None, AnswerUnusable, BlockedError),
        (CODE.INTERNAL, None, AnswerUnusable, BlockedError),
    ],
)
def test_a_call_that_changes_nothing_may_be_repeated_or_waits(code, failure, kind, base):
    error = error_of(status(code, "said"), method="Version", subject="192.0.2.11", failure=failure)
    assert type(error) is kind
    assert isinstance(error, base)
    assert error.subject == "192.0.2.11"


@pytest.mark.parametrize(
    ("code", "details", "failure", "kind"),
    [
        (CODE.INVALID_ARGUMENT, "1 error occurred:\n\t* wrong\n", None, ApplyRefused),
        (CODE.UNIMPLEMENTED, "the REBOOT mode is not supported", None, ApplyRefused),
        (CODE.RESOURCE_EXHAUSTED, "larger than max", None, ApplyRefused),
        (CODE.FAILED_PRECONDITION, "another apply configuration is already in progress", None, MachineBusy),
        (CODE.FAILED_PRECONDITION, "something else", None, ApplyUnknown),
        (CODE.PERMISSION_DENIED, "not authorized", None, NotAuthorised),
        (CODE.UNAVAILABLE, "", DOWN, MachineUnreachable),
        (CODE.UNAVAILABLE, "", TLS, TlsRefused),
        (CODE.UNAVAILABLE, "", CUT, ApplyUnknown),
        (CODE.UNAVAILABLE, "the machine says so", None, ApplyUnknown),
        (CODE.DEADLINE_EXCEEDED, "", None, ApplyUnknown),
        (CODE.DEADLINE_EXCEEDED, "", DOWN, ApplyUnknown),
        (CODE.CANCELLED, "", None, ApplyUnknown),
        (CODE.INTERNAL, "", None, ApplyUnknown),
        (CODE.UNKNOWN, "", None, ApplyUnknown),
    ],
)
def test_an_apply_is_unknown_unless_it_is_certain_that_nothing_was_done(code, details, failure, kind):
    error = apply_error_of(status(code, details), subject="192.0.2.11", failure=failure, known=())
    assert type(error) is kind
    assert isinstance(error, ReplyLost) is (kind is ApplyUnknown)
    assert isinstance(error, Refused) is (kind is ApplyRefused)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (MachineUnreachable, "MachineUnreachable"),
        (TlsRefused, "MachineCertificateRefused"),
        (NotAuthorised, "MachineNotAuthorised"),
        (WrongMachine, "WrongMachine"),
        (AnswerUnusable, "MachineAnswerUnusable"),
        (ApplyUnknown, "MachineReplyLost"),
        (ConfigRefused, "MachineConfigUnreadable"),
        (TalosconfigInvalid, "TalosconfigInvalid"),
        (ProxyImageUnknown, "ProxyImageUnknown"),
    ],
)
def test_a_kind_of_error_has_a_reason_of_its_own(kind, reason):
    assert kind("said").reason == reason


def test_a_refused_apply_holds_its_errors_one_by_one():
    error = ApplyRefused(("first", "second"), subject="192.0.2.11")
    assert (error.reason, error.errors) == ("MachineConfigRefused", ("first", "second"))
    assert error.message.endswith("first; second")


def test_all_errors_of_a_validation_are_shown():
    text = "3 errors occurred:\n\t* first\n\t* second\n\t  with a second line\n\t* third\n\n"
    assert single_errors(text) == ("first", "second\n\t  with a second line", "third")
    assert single_errors("only one") == ("only one",)
    assert single_errors("") == ("no reason given",)


def test_neither_secret_values_nor_pieces_of_yaml_are_shown():
    text = (
        "1 error occurred:\n\t* token invented-value is wrong, line 3: cannot unmarshal !!str `abcdef...` into bool\n"
    )
    shown = "".join(single_errors(text, known=("invented-value",)))
    assert "invented-value" not in shown
    assert "abcdef" not in shown
    assert "cannot unmarshal" in shown


def test_a_machine_cannot_talk_for_ever():
    assert len(single_errors("x" * 100_000)[0]) < 2100


@pytest.mark.parametrize("count", [0, 2])
def test_a_reply_of_several_machines_is_refused(count):
    reply = machine_pb2.VersionResponse(messages=[machine_pb2.Version()] * count)
    with pytest.raises(AnswerUnusable, match=f"has {count} elements"):
        only(reply.messages, method="Version", subject="x")


def test_bytes_that_are_no_message_are_refused():
    with pytest.raises(AnswerUnusable, match="cannot be decoded"):
        decoded(machine_pb2.Version, b"\xff\xff\xff", what="a version", subject="x")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("192.0.2.11", ("192.0.2.11", 50000)),
        ("192.0.2.11:50001", ("192.0.2.11", 50001)),
        ("north-cp-1.example.net", ("north-cp-1.example.net", 50000)),
        ("2001:db8::1", ("2001:db8::1", 50000)),
        ("[2001:db8::1]", ("2001:db8::1", 50000)),
        ("[2001:db8::1]:50001", ("2001:db8::1", 50001)),
    ],
)
def test_an_address_has_a_port_or_gets_the_one_of_talos(text, found):
    assert split_address(text) == found


@pytest.mark.parametrize("text", ["", ":50000", "host:port", "host:0", "host:70000"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  int() has its own words
        split_address(text)

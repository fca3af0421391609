"""Each check that gNOI, the source and the spool answer fails alone, with the word of the contract (rollouts.md, section 9.4)."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, Refused, Unavailable
from gitops_ctl.device.channel import GnoiTlsRefused, GnoiUnavailable
from gitops_ctl.device.gnoianswers import GnoiNotProvisioned, GnoiUnsupported
from gitops_ctl.device.imagechecks import gnoi, source_and_spool
from gitops_ctl.device.preflightchecks import Check, Status, result_of
from gitops_ctl.device.spool import SpoolFull
from gitops_ctl.device.tlsprobe import TlsReason


def test_a_device_that_answers_passes_with_its_version() -> None:
    assert gnoi(None, running="17.18.02") == Check("Gnoi", Status.PASS, message="17.18.02")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (GnoiUnavailable("no connection"), "GnoiUnavailable"),
        (GnoiTlsRefused("wrong", tls_reason=TlsReason.WRONG_NAME, subject="192.0.2.1:9339"), "GnoiUnavailable"),
        (GnoiUnsupported("Verify"), "GnoiUnavailable"),
        (GnoiNotProvisioned("not provisioned"), "NotProvisioned"),
    ],
    ids=["down", "tls", "unsupported", "not provisioned"],
)
def test_a_device_that_cannot_be_upgraded_fails(error: GitopsError, reason: str) -> None:
    check = gnoi(error)
    assert (check.status, check.reason, check.message) == (Status.FAIL, reason, error.message)


def test_an_image_that_is_there_passes_both() -> None:
    checks = source_and_spool(None, size=1249368115)
    assert [(check.name, check.status, check.message) for check in checks] == [
        ("Source", Status.PASS, "1249368115 bytes"),
        ("Spool", Status.PASS, "1249368115 bytes"),
    ]
    assert result_of(checks) == "Passed"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            Unavailable("no answer", code=ErrorCode.IMAGE_SOURCE_UNREACHABLE),
            ("Fail SourceUnreachable", "Unknown SpoolFull"),
        ),
        (
            BlockedError("private", code=ErrorCode.IMAGE_ADDRESS_REFUSED),
            ("Fail SourceUnreachable", "Unknown SpoolFull"),
        ),
        (
            Refused("another digest", code=ErrorCode.IMAGE_DIGEST_MISMATCH),
            ("Fail SourceDigestMismatch", "Unknown SpoolFull"),
        ),
        (SpoolFull("the image needs 2 bytes and has 1"), ("Unknown SourceUnreachable", "Fail SpoolFull")),
    ],
    ids=["unreachable", "address", "digest", "spool"],
)
def test_an_image_that_is_not_there_fails_the_check_that_is_its_reason(
    error: GitopsError, expected: tuple[str, str]
) -> None:
    checks = source_and_spool(error, size=None)
    assert tuple(f"{check.status.value} {check.reason}" for check in checks) == expected
    assert result_of(checks) == "Failed"
    assert error.message in [check.message for check in checks]


def test_a_long_message_is_cut_to_what_the_status_takes() -> None:
    assert len(gnoi(GnoiUnavailable("x" * 1000)).message) == 256

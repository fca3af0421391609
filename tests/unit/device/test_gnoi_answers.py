"""What of a device's own words gets into errors, outcomes and versions (rollouts.md, section 13.4)."""

import grpc
import pytest

from gitops_ctl.device.gnoianswers import named_version, outcome_of_error, read_error, said

SECRET = "ochre-Lantern"


def failure(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details)


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_no_status_of_a_device_carries_a_known_secret(code: grpc.StatusCode) -> None:
    error = failure(code, f"user x {SECRET} refused")
    assert SECRET not in read_error(error, method="Verify", subject="switch-17", known=(SECRET,)).message
    assert SECRET not in outcome_of_error(error, method="Install", known=(SECRET,)).message


def test_a_known_secret_is_not_said() -> None:
    assert SECRET not in said(f"boot failed for {SECRET}", known=(SECRET,))


@pytest.mark.parametrize("text", ["", "1" * 129, "17.18\n03", "17.18\x0003", f"17.18.{SECRET}"])
def test_what_cannot_stand_in_a_status_is_no_version(text: str) -> None:
    assert named_version(text, known=(SECRET,)) == ""


def test_a_version_is_taken_as_it_is() -> None:
    assert named_version("17.18.03.0.5496.1776157760", known=(SECRET,)) == "17.18.03.0.5496.1776157760"

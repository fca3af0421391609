"""Each check of the preflight that NETCONF answers fails alone, with its reason (rollouts.md, sections 9.4 and 13.2)."""

from dataclasses import replace

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.device import preflightchecks as checks
from gitops_ctl.device.operational import (
    Flash,
    InstallState,
    Mode,
    Platform,
    SavedConfiguration,
    Seen,
    Version,
    VersionState,
)
from gitops_ctl.device.preflightchecks import Check, Status

RUNNING = "17.18.02.0.4112.1766116039"
STATE = InstallState(
    running=RUNNING,
    committed=True,
    versions=(Version(RUNNING, VersionState.COMMITTED),),
    mode=Mode.INSTALL,
    supervisors=1,
)
INSTALL = Seen(STATE)
FLASH = Seen(Platform("FOC1234", (Flash("supervisor 1/0", 10_000, 6_000),)))


def ended(check: Check) -> tuple[str, str]:
    return check.status.value, check.reason


def test_a_healthy_device_passes_every_check():
    found = (
        checks.netconf(None),
        checks.flash_space(FLASH, INSTALL, needed=6_000),
        checks.install_mode(INSTALL),
        checks.quiescent(INSTALL, verified=RUNNING),
        checks.saved_configuration(Seen(SavedConfiguration(saved=True)), block=True),
    )
    assert [check.name for check in found] == [
        "Netconf",
        "FlashSpace",
        "InstallMode",
        "Quiescent",
        "SavedConfiguration",
    ]
    assert {check.status for check in found} == {Status.PASS}
    assert checks.result_of(found) == "Passed"


def test_a_session_that_does_not_open_is_told_with_its_cause():
    check = checks.netconf(Unavailable("no connection to port 830", code=ErrorCode.NETCONF_UNAVAILABLE))
    assert ended(check) == ("Fail", "NetconfUnavailable")
    assert "port 830" in check.message


class TestFlashSpace:
    def test_one_supervisor_with_too_little_fails_with_both_numbers(self):
        both = Seen(replace(FLASH.value, flash=(*FLASH.value.flash, Flash("supervisor 2/0", 10_000, 10))))
        check = checks.flash_space(both, Seen(replace(STATE, supervisors=2)), needed=5_000)
        assert ended(check) == ("Fail", "FlashSpaceInsufficient")
        assert check.message == "supervisor 2/0 has 10 bytes free, the image needs 5000"

    def test_a_supervisor_whose_flash_is_not_seen_is_unknown(self):
        check = checks.flash_space(FLASH, Seen(replace(STATE, supervisors=2)), needed=5_000)
        assert ended(check) == ("Unknown", "FlashSpaceInsufficient")
        assert check.message == "the flash of 1 of 2 supervisors is known"

    @pytest.mark.parametrize(
        ("platform", "install"),
        [
            (Seen(FLASH.value, ("the inventory has 2 chassis",)), INSTALL),
            (Seen(Platform()), INSTALL),
            (FLASH, Seen(InstallState(), ("install-oper-data is missing",))),
        ],
        ids=["gap", "no-flash", "no-supervisors"],
    )
    def test_what_cannot_be_answered_is_unknown(self, platform, install):
        assert ended(checks.flash_space(platform, install, needed=1)) == ("Unknown", "FlashSpaceInsufficient")


class TestInstallMode:
    def test_bundle_mode_fails(self):
        assert ended(checks.install_mode(Seen(replace(STATE, mode=Mode.BUNDLE)))) == ("Fail", "NotInstallMode")

    def test_a_device_that_does_not_say_is_unknown(self):
        seen = Seen(replace(STATE, mode=Mode.UNKNOWN), ("supervisor 1/0 has no boot-mode",))
        assert ended(checks.install_mode(seen)) == ("Unknown", "NotInstallMode")


class TestQuiescent:
    @pytest.mark.parametrize(
        ("state", "why"),
        [
            (replace(STATE, operation=True), "an install operation is in progress"),
            (replace(STATE, timer=True), "the auto-abort timer runs"),
            (replace(STATE, committed=False), f"the running version {RUNNING} is not committed"),
            (
                replace(STATE, versions=(Version("17.18.03", VersionState.PENDING),)),
                "the activation of 17.18.03 is pending",
            ),
            (replace(STATE, running=""), "the running version is not known"),
        ],
        ids=["operation", "timer", "uncommitted", "pending", "unknown"],
    )
    def test_each_thing_in_the_way_is_named(self, state, why):
        check = checks.quiescent(Seen(state), verified=RUNNING)
        assert ended(check) == ("Fail", "DeviceNotQuiescent")
        assert check.message == why

    def test_a_partial_answer_is_not_quiescent(self):
        check = checks.quiescent(Seen(STATE, ("supervisor 1/0 has no sys-activity",)), verified=RUNNING)
        assert ended(check) == ("Unknown", "DeviceNotQuiescent")

    def test_a_device_without_an_answer_of_os_verify_is_not_quiescent(self):
        check = checks.quiescent(INSTALL, verified="")
        assert ended(check) == ("Unknown", "DeviceNotQuiescent")
        assert check.message == "OS.Verify does not answer"

    def test_both_sides_have_to_name_the_same_version(self):
        assert "OS.Verify says 17.18.03" in checks.quiescence_problem(INSTALL, verified="17.18.03")
        assert checks.quiescence_problem(INSTALL, verified="17.18.02") == ""
        assert checks.quiescence_problem(INSTALL, verified="17.18.0") != ""


class TestSavedConfiguration:
    UNSAVED = Seen(SavedConfiguration(saved=False, differences=("/native/hostname",)))
    UNREADABLE = Seen(SavedConfiguration(saved=False), ("the startup datastore cannot be read: in-use",))

    def test_under_block_a_difference_fails_and_says_where(self):
        check = checks.saved_configuration(self.UNSAVED, block=True)
        assert ended(check) == ("Fail", "UnsavedConfiguration")
        assert "/native/hostname" in check.message

    def test_under_block_an_unreadable_startup_blocks_too(self):
        check = checks.saved_configuration(self.UNREADABLE, block=True)
        assert ended(check) == ("Unknown", "UnsavedConfiguration")
        assert check.blocks

    @pytest.mark.parametrize("seen", [UNSAVED, UNREADABLE], ids=["unsaved", "unreadable"])
    def test_under_warn_both_warn(self, seen):
        check = checks.saved_configuration(seen, block=False)
        assert ended(check) == ("Warn", "UnsavedConfiguration")
        assert check.message


@pytest.mark.parametrize(
    ("statuses", "result"),
    [
        (["Pass"], "Passed"),
        ([], "Passed"),
        (["Pass", "Warn"], "Warned"),
        (["Warn", "Fail"], "Failed"),
        (["Pass", "Unknown"], "Failed"),
    ],
)
def test_the_result_is_that_of_the_worst_check(statuses, result):
    assert checks.result_of(Check("x", Status(status)) for status in statuses) == result


def test_a_message_fits_into_the_status():
    gaps = tuple(f"gap number {number} " + "x" * 50 for number in range(20))
    check = checks.quiescent(Seen(STATE, gaps), verified=RUNNING)
    assert 0 < len(check.message) <= 256

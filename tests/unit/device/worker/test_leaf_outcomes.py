"""What a switch can do to an upgrade, and how its leaf ends (rollouts.md, sections 13.3 and 13.4).  Nothing is ever sent twice."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.device.worker.campaigns import absent_call
from tests.support.leaf_world import NEW, ODD, OLD
from tools.peers.iosxe.state import AUTO_ABORT_S


async def ended(world, **run):
    await world.grant()
    await world.run(**run)
    return world.status


def assert_settled(world):
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert world.journal.open_claims("edge-1-uid") == ()
    assert world.maintenance.held == ""


async def test_D06_an_install_whose_answer_is_lost_goes_on_by_native_proof(build):
    world = build()
    world.switch.order("drop", on="Install:stored")
    status = await ended(world)
    assert status["phase"] == "Succeeded", status
    assert world.condition("Validated")["reason"] == "NativeInstallCorroborated"
    assert world.mutations() == ["Install", "Activate", "Commit"]


@pytest.mark.parametrize("place", ["Install", "Install:asked", "Install:content", "Install:end"])
async def test_a_torn_install_is_never_sent_again_and_fails_when_the_target_is_not_there(build, place):
    world = build()
    world.switch.order("drop", on=place)
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("Failed", "InstallInterrupted")
    assert world.mutations() == (["Install"] if ":" in place else [])
    assert_settled(world)


def on_the_standby(world, act):
    """Do something when the install on the standby supervisor begins."""

    async def hear(method, when):
        installs = [one for one in world.switch.read()["mutations"] if one["method"] == "Install"]
        if (method, when) == ("Install", "before") and len(installs) == 1:
            act()

    world.on_call = hear


@pytest.mark.parametrize("place", ["Install", "Install:asked", "Install:content", "Install:end"])
async def test_an_install_on_the_standby_that_is_torn_is_not_proven_by_that_on_the_first_supervisor(build, place):
    world = build(layout="individual")
    with world.switch.change() as device:
        device["gnoi"]["copies"] = False
    await world.grant()
    on_the_standby(world, lambda: world.switch.order("drop", on=place))
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "InstallInterrupted"), world.status
    assert world.stages == ["PrimaryInstall", "StandbyInstall"]
    assert "standbySupervisorInstalled" not in world.status
    assert world.switch.read()["gnoi"]["standbyVersions"] == []
    assert_settled(world)


async def test_an_install_on_the_standby_whose_answer_is_lost_is_proven_by_what_both_supervisors_list(build):
    world = build(layout="individual")
    with world.switch.change() as device:
        device["gnoi"]["copies"] = False
    await world.grant()
    on_the_standby(world, lambda: world.switch.order("drop", on="Install:stored"))
    await world.run()
    assert world.status["phase"] == "Succeeded", world.status
    assert world.condition("Validated")["reason"] == "NativeInstallCorroborated"
    assert [one["arguments"].get("standby") for one in world.switch.read()["mutations"]] == [False, True, True, False]


async def test_a_target_that_is_there_without_all_bytes_sent_proves_nothing(build):
    world = build()
    world.switch.order("store", on="Install:content", version=NEW)
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("Failed", "InstallOutcomeUnknown")
    assert world.mutations() == ["Install"]
    assert world.condition("DeviceMutationSettled") is None
    with world.switch.change() as device:
        device["packages"] = [one for one in device["packages"] if one["version"] != NEW]
    await world.run()
    assert_settled(world)


async def test_a_torn_install_is_observed_while_the_switch_is_busy_and_stays_unresolved_at_the_deadline(build):
    world = build()

    async def busy(method, when):
        if (method, when) == ("Install", "before"):
            with world.switch.change() as device:
                device["operation"] = {"kind": "add", "by": "somebody", "startedAt": 0}

    await world.grant()
    world.on_call = busy
    world.switch.order("drop", on="Install")
    await world.run(hours=0.5)
    assert world.status["phase"] == "TransferInterrupted"
    await world.run(hours=1)
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "InstallOutcomeUnknown")
    assert world.condition("DeviceMutationSettled") is None
    with world.switch.change() as device:
        device["operation"] = None
    await world.run()
    assert_settled(world)


async def test_a_refused_install_fails_with_the_word_of_the_switch(build):
    world = build()
    world.switch.order("answer", on="Install:asked", type="INTEGRITY_FAIL", detail="")
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("Failed", "InstallRefused")
    assert "INTEGRITY_FAIL" in status["message"]
    assert_settled(world)


async def test_an_image_of_another_version_fails_the_validation(build):
    world = build()
    world.switch.order("validated", on="Install:stored", version=ODD)
    status = await ended(world)
    assert status["phase"] == "ValidationFailed"
    assert ODD in status["message"]
    assert world.mutations() == ["Install"]
    assert_settled(world)


async def test_a_switch_that_runs_the_target_already_succeeds_untouched(build):
    world = build()
    with world.switch.change() as device:
        device["running"] = device["committed"] = NEW
        device["packages"].append({"version": NEW, "state": "committed", "file": "", "addedAt": 0})
        for supervisor in device["supervisors"]:
            supervisor["running"] = NEW
    status = await ended(world)
    assert status["phase"] == "Succeeded"
    assert world.mutations() == []
    assert world.downloads == 0


async def test_a_standby_that_is_missing_fails_the_preflight(build):
    world = build(layout="individual", standby="absent")
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("PreflightFailed", "StandbyUnavailable")
    assert world.mutations() == []


async def test_a_switch_without_the_service_fails_the_preflight_by_that_name(build):
    world = build()
    world.switch.order("error", on="Verify", code="UNIMPLEMENTED", times=1000)
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("PreflightFailed", "GnoiUnavailable")


async def test_an_unfit_source_fails_with_its_own_reason_and_not_as_another_digest(build):
    world = build()

    async def refuses(_method, _when):
        raise Refused("it is no image", code=ErrorCode.IMAGE_URL_REFUSED)

    await world.grant()
    world.on_download = refuses
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("PreflightFailed", "SourceUnreachable")


async def test_a_switch_in_bundle_mode_fails_the_preflight(build):
    world = build()
    with world.switch.change() as device:
        device["mode"] = "bundle"
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("PreflightFailed", "NotInstallMode")


async def test_a_switch_that_does_not_answer_is_tried_again_until_the_time_to_get_ready_is_over(build):
    world = build()
    await world.grant()
    world.gnoi.away.add("edge-1:9339")
    await world.run(hours=0.5)
    assert world.status["phase"] == "Resolving"
    await world.run(hours=1)
    assert (world.status["phase"], world.status["failureReason"]) == ("PreflightFailed", "GnoiUnavailable")
    assert world.mutations() == []


async def test_an_image_with_another_digest_is_not_downloaded_again(build):
    world = build()
    world.package.path.write_bytes(world.package.path.read_bytes() + b"x")
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("PreflightFailed", "SourceDigestMismatch")
    assert world.downloads == 1


@pytest.mark.parametrize("layout", ["whole", "individual"])
async def test_two_supervisors_are_upgraded_in_the_order_that_the_switch_asks_for(build, layout):
    world = build(layout=layout)
    status = await ended(world)
    assert status["phase"] == "Succeeded", status
    methods = [(one["method"], one["arguments"].get("standby", False)) for one in world.switch.read()["mutations"]]
    one, both = [("Install", False), ("Activate", False)], [("Install", False), ("Install", True)]
    assert methods == (one if layout == "whole" else [*both, ("Activate", True), ("Activate", False)])


async def test_D06_an_activation_whose_reply_is_lost_is_observed(build):
    world = build()
    world.switch.order("drop", on="Activate:done")
    status = await ended(world)
    assert status["phase"] == "Succeeded"
    assert world.condition("Activated")["reason"] == "ActivationRecorded"
    assert world.mutations() == ["Install", "Activate", "Commit"]


async def test_an_activation_that_never_arrived_ends_on_the_version_from_before(build):
    world = build()
    world.switch.order("drop", on="Activate")
    status = await ended(world)
    assert (status["phase"], status["runningVersion"]) == ("RolledBack", OLD)
    assert world.mutations() == ["Install", "Activate"]
    assert_settled(world)


@pytest.mark.parametrize(("call", "reason"), [("Install", "InstallUnsupported"), ("Activate", "ActivationUnsupported")])
async def test_a_call_that_the_switch_does_not_have_is_recorded_for_the_version_that_runs(build, call, reason):
    world = build()
    world.switch.order("error", on=call, code="UNIMPLEMENTED")
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("Failed", reason)
    assert_settled(world)
    leaf, running = world.leaf(), world.switch.read()["running"]
    assert f"{OLD} does not offer OS.{call}" in absent_call("edge-1-uid", running, [leaf])
    assert absent_call("edge-1-uid", NEW, [leaf]) == ""
    assert absent_call("edge-2-uid", running, [leaf]) == ""
    assert absent_call("edge-1-uid", "", [leaf]) == ""


async def test_a_refused_activation_fails(build):
    world = build()

    async def forget(method, when):
        if (method, when) == ("Activate", "before"):
            with world.switch.change() as device:
                device["packages"] = [one for one in device["packages"] if one["version"] != NEW]

    await world.grant()
    world.on_call = forget
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "ActivationRefused")
    assert_settled(world)


async def test_a_reboot_that_never_returns_times_out_unresolved_and_is_settled_when_the_switch_is_back(build):
    world = build()

    async def die(method, when):
        if (method, when) == ("Activate", "after"):
            world.gnoi.away.add("edge-1:9339")
            world.netconf.away.add("edge-1")

    await world.grant()
    world.on_call = die
    await world.run(hours=1.5)
    assert world.status["phase"] == "RebootTimeout"
    assert world.condition("DeviceMutationSettled") is None
    world.gnoi.away.clear()
    world.netconf.away.clear()
    await world.run(hours=AUTO_ABORT_S / 3600 + 1)
    assert world.status["phase"] == "RebootTimeout"
    assert world.mutations() == ["Install", "Activate"]
    assert world.status["runningVersion"] == OLD
    assert_settled(world)


@pytest.mark.parametrize("how", ["message", "silent"])
async def test_a_switch_that_goes_back_by_itself_is_rolled_back_without_a_request(build, how):
    world = build(failing=[NEW], bootFails=how)
    status = await ended(world)
    assert (status["phase"], status["runningVersion"]) == ("RolledBack", OLD)
    assert world.mutations() == ["Install", "Activate"]
    assert_settled(world)


@pytest.mark.parametrize("effect", ["drop-before", "drop-after"])
async def test_D06_a_lost_reply_to_the_commit_is_settled_by_looking(build, effect):
    world = build()
    world.switch.fault(effect, on="install-commit")
    status = await ended(world)
    assert world.mutations() == ["Install", "Activate", *(["Commit"] if effect == "drop-after" else [])]
    assert_settled(world)
    if effect == "drop-after":
        assert status["phase"] == "Succeeded"
    else:
        assert (status["phase"], status["failureReason"]) == ("Failed", "CommitNotObserved")
        assert status["runningVersion"] == OLD


async def test_a_commit_that_takes_its_time_is_waited_for(build):
    world = build()
    world.switch.fault("slow", on="install-commit", seconds=240)
    status = await ended(world)
    assert status["phase"] == "Succeeded"
    assert status["installCommit"]["observedAt"] > status["installCommit"]["requestedAt"]


async def test_a_refused_commit_is_not_sent_again(build):
    world = build()
    world.switch.fault("error", on="install-commit", errors=[{"tag": "operation-failed", "message": "no"}])
    status = await ended(world)
    assert (status["phase"], status["failureReason"]) == ("Failed", "CommitNotObserved")
    assert_settled(world)


async def test_a_switch_that_needs_no_commit_gets_none(build):
    world = build()
    with world.switch.change() as device:
        device["autoAbortSeconds"] = 0
    status = await ended(world)
    assert status["phase"] == "Succeeded"
    assert world.mutations() == ["Install", "Activate"]
    assert "requestedAt" not in status["installCommit"]


def into(world, version):
    """The switch boots another version than the one that was asked for."""

    async def boot(method, when):
        if (method, when) != ("Activate", "after") or world.mutations().count("Activate") > 1:
            return
        with world.switch.change() as device:
            device["packages"].append({"version": version, "state": "added", "file": "", "addedAt": 0})
            device["gnoi"]["reboot"]["into"] = version

    return boot


async def test_a_third_version_is_left_by_a_rollback_with_its_own_claim(build):
    world = build()
    await world.grant()
    world.on_call = into(world, ODD)
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("RolledBack", OLD)
    assert world.stages == ["PrimaryActivation", "PrimaryInstall", "RollbackActivation"]
    assert [one["arguments"].get("version") for one in world.switch.read()["mutations"]] == ["17.18.03", NEW, OLD]
    assert_settled(world)


async def test_D05_a_rollback_begins_after_the_deadline_of_the_activation_and_has_its_own(build):
    world = build()
    await world.grant()
    boot = into(world, ODD)

    async def and_block(method, when):
        await boot(method, when)
        if (method, when) == ("Activate", "after"):
            world.pod("app", "edge-1")

    world.on_call = and_block
    await world.run(hours=1)
    assert (world.status["runningVersion"], world.mutations()) == (ODD, ["Install", "Activate"])
    world.on_call = None
    world.pod("app", "edge-1", phase="Succeeded")
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("RolledBack", OLD)
    assert world.status["rollbackStartTime"] > world.status["activationControlStartTime"]
    assert_settled(world)


async def test_without_rollback_a_third_version_fails_the_leaf(build):
    world = build(plan={"rollbackOnFailure": False})
    await world.grant()
    world.on_call = into(world, ODD)
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "WrongVersion")
    assert world.mutations() == ["Install", "Activate"]


async def test_without_a_reboot_the_leaf_ends_staged(build):
    world = build()
    world.strategy = "NoReboot"
    status = await ended(world)
    assert status["phase"] == "StagedForNextBoot", status
    assert status["noRebootActivationAccepted"] is True
    assert status["runningVersion"] == OLD
    assert_settled(world)


async def test_a_switch_that_reboots_although_it_should_not_is_verified_like_any_other(build):
    world = build(ignoreNoReboot=True)
    world.strategy = "NoReboot"
    status = await ended(world)
    assert (status["phase"], status["runningVersion"]) == ("Succeeded", NEW)

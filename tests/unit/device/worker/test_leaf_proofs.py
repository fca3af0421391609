"""An outcome needs a proof, and a request needs what held when it was decided (rollouts.md, sections 13.2 to 13.4; devices.md, section 14).

A switch that answered has not acted yet: what it shows until then, and what it said about an earlier try, proves nothing.
"""

from datetime import timedelta

import pytest

from gitops_ctl.device.channel import GnoiTlsRefused
from gitops_ctl.device.tlsprobe import TlsReason
from tests.support.admission_world import DEVICES
from tests.support.kube_crash import Crash
from tests.support.leaf_world import NEW, ODD, OLD
from tests.support.rollout_planning import ago

SLOW_S = 240.0


def runs(world, version):
    """The switch runs and has committed that version, by somebody's hand."""
    with world.switch.change() as device:
        device["packages"].append({"version": version, "state": "added", "file": "", "addedAt": 0})
        device["running"] = device["committed"] = version


def on(world, wanted, act, *, when="before"):
    """Do it once, at the first call of that name."""
    done = []

    async def hear(method, moment):
        if (method, moment) == (wanted, when) and not done:
            done.append(method)
            act()

    world.on_call = hear


# ---- an activation that was accepted and has no effect yet ----


async def test_an_activation_that_takes_effect_late_is_waited_for_and_committed(build):
    world = build(effectAfterS=SLOW_S)
    await world.grant()
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)
    assert world.mutations() == ["Install", "Activate", "Commit"]


async def test_a_message_about_an_earlier_try_does_not_end_an_activation(build):
    world = build(effectAfterS=SLOW_S)
    await world.grant()
    with world.switch.change() as device:
        device["failMessage"] = "an older version did not boot"
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)


async def test_a_reboot_that_nobody_saw_ends_by_the_message_of_the_switch_once_it_stood_still(build):
    world = build(rebootS=0.0, failing=[NEW])
    await world.grant()
    await world.run(hours=0.1)
    assert world.status["phase"] not in {"Failed", "RolledBack"}
    await world.run(hours=0.2)
    assert (world.status["phase"], world.status["runningVersion"]) == ("RolledBack", OLD)
    assert world.condition("DeviceReachable") is None
    assert world.mutations() == ["Install", "Activate"]


async def test_a_message_of_the_standby_about_an_earlier_try_does_not_end_its_activation(build):
    world = build(effectAfterS=SLOW_S, layout="individual")
    await world.grant()
    with world.switch.change() as device:
        device["gnoi"]["standbyFailMessage"] = "an older version did not boot"
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)


async def test_a_refused_session_is_no_reboot(build):
    world = build(effectAfterS=SLOW_S)
    await world.grant()
    refusals = []

    async def refuse(method, when):
        if (method, when) == ("Verify", "before") and "Activate" in world.mutations() and len(refusals) < 2:
            refusals.append(method)
            raise GnoiTlsRefused("the certificate has expired", subject="edge-1", tls_reason=TlsReason.EXPIRED)

    world.on_call = refuse
    await world.run()
    assert refusals
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)


async def test_a_connection_that_fails_before_the_switch_acts_is_no_reboot(build):
    world = build(effectAfterS=SLOW_S)
    await world.grant()
    on(world, "Activate", lambda: (world.gnoi.away.add("edge-1:9339"), world.netconf.away.add("edge-1")), when="after")
    await world.run(hours=0.01)
    await world.step()
    world.gnoi.away.clear()
    world.netconf.away.clear()
    assert world.condition("DeviceReachable")["reason"] == "Rebooting"
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)


async def test_a_wall_clock_that_jumps_over_the_deadline_does_not_end_an_activation(build):
    world = build(effectAfterS=SLOW_S)
    await world.grant()
    steps = []
    real = world.clock.wall

    def jump():
        steps.append(1)
        world.clock.wall = lambda: real() + timedelta(hours=2)

    world.switch._now = world.switch.now = lambda: real().timestamp()
    on(world, "Activate", jump, when="after")
    await world.run(hours=0.2)
    assert steps
    assert world.status["phase"] != "RolledBack"
    assert world.switch.read()["running"] == NEW
    await world.run()
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert world.status["runningVersion"] == world.switch.read()["committed"]


async def test_a_reboot_that_was_to_wait_and_does_not_is_not_taken_for_staged(build):
    world = build(ignoreNoReboot=True, effectAfterS=SLOW_S)
    world.strategy = "NoReboot"
    await world.grant()
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)


async def test_an_ended_leaf_is_not_settled_by_the_first_look_at_a_switch_that_has_not_acted(build):
    world = build(effectAfterS=3000.0, plan={"rebootTimeoutSeconds": 300})
    await world.grant()
    on(world, "Activate", lambda: world.gnoi.away.add("edge-1:9339"), when="after")
    await world.run(hours=0.2)
    assert world.status["phase"] == "RebootTimeout"
    world.gnoi.away.clear()
    await world.run(hours=0.05)
    assert world.condition("DeviceMutationSettled") is None


# ---- an install whose package the inventory lists late ----


async def test_a_package_that_is_listed_late_is_not_taken_for_a_torn_install(build):
    world = build(listedAfterS=SLOW_S)
    world.switch.order("drop", on="Install:stored")
    await world.grant()
    await world.run()
    assert world.status["phase"] == "Succeeded", world.status
    assert world.mutations() == ["Install", "Activate", "Commit"]


# ---- directly before the request ----


async def test_what_changes_while_the_image_is_read_forbids_the_claim(build, monkeypatch):
    world = build()
    await world.grant()
    real = world.spool.image

    def read_again(wanted, opening, **more):
        if "sourceDigest" in world.status:
            world.pod("app", "edge-1")
        return real(wanted, opening, **more)

    monkeypatch.setattr(world.spool, "image", read_again)
    await world.run(hours=0.2)
    assert world.condition("Ready")["reason"] == "WorkloadsRunning"
    assert (world.stages, world.mutations()) == ([], [])


async def test_a_version_that_somebody_installed_meanwhile_is_looked_at_anew(build):
    world = build(plan={"maintenanceWindow": {"notBefore": ago(-3600), "notAfter": ago(-36000)}})
    await world.grant()
    await world.run(hours=0.2)
    assert world.status["previousVersion"] == OLD
    runs(world, ODD)
    await world.run()
    assert (world.status["phase"], world.status["previousVersion"]) == ("Succeeded", ODD)


async def test_a_switch_that_runs_the_target_by_hand_before_the_claim_is_left_alone(build):
    world = build(plan={"maintenanceWindow": {"notBefore": ago(-3600), "notAfter": ago(-36000)}})
    await world.grant()
    await world.run(hours=0.2)
    runs(world, NEW)
    await world.run()
    assert (world.status["phase"], world.mutations()) == ("Succeeded", [])


async def test_another_version_after_the_install_ends_the_leaf_before_the_activation(build):
    world = build()
    await world.grant()
    on(world, "Install", lambda: runs(world, ODD), when="after")
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "RunningVersionChanged")
    assert world.mutations() == ["Install"]


# ---- a claim that was made and never sent ----


async def unsent(world, stage, monkeypatch):
    """The leaf has the claim, the journal its intent, and the process died in between."""
    real = world.journal.claim

    def die(key):
        if key.stage == stage:
            raise Crash
        return real(key)

    with monkeypatch.context() as patched:
        patched.setattr(world.journal, "claim", die)
        with pytest.raises(Crash):
            await world.run()
    assert stage in world.stages
    world.restart()


async def test_an_unsent_claim_that_is_revoked_in_between_is_not_sent(build, monkeypatch):
    world = build()
    await world.grant()
    await unsent(world, "PrimaryInstall", monkeypatch)
    real = world.journal.intend

    def revoke(record):
        admission = {**world.status["managerAdmission"], "state": "Revoked", "revocationReason": "CampaignCancelled"}
        world.set_leaf("status", "managerAdmission", to=admission)
        return real(record)

    monkeypatch.setattr(world.journal, "intend", revoke)
    await world.run()
    assert world.mutations() == []
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "CampaignCancelled")


async def test_an_unsent_first_claim_is_not_sent_after_the_window(build, monkeypatch):
    world = build(plan={"maintenanceWindow": {"notBefore": ago(60), "notAfter": ago(-3600)}})
    await world.grant()
    await unsent(world, "PrimaryInstall", monkeypatch)
    world.clock.now_s += 3601
    await world.run()
    assert world.mutations() == []
    assert world.status["phase"] == "Failed"


async def test_an_unsent_install_is_not_sent_after_its_deadline(build, monkeypatch):
    world = build()
    await world.grant()
    await unsent(world, "PrimaryInstall", monkeypatch)
    world.clock.now_s += 6 * 3600
    await world.run()
    assert (world.mutations(), world.status["failureReason"]) == ([], "InstallTimeout")


async def test_an_unsent_activation_of_the_standby_is_not_sent_after_its_deadline(build, monkeypatch):
    world = build(layout="individual")
    await world.grant()
    await unsent(world, "StandbyActivation", monkeypatch)
    world.clock.now_s += 6 * 3600
    await world.run()
    assert world.status["failureReason"] == "ActivationTimeout"
    assert world.mutations() == ["Install", "Install"]


# ---- what stands in the status alone ----


async def test_a_flag_without_its_claim_proves_no_install(build):
    world = build()
    await world.grant()
    await world.run(hours=0)
    world.set_leaf("status", "primarySupervisorInstalled", to=True)
    world.set_leaf("status", "validatedVersion", to=NEW)
    await world.run()
    assert world.mutations()[0] == "Install"
    assert world.stages == ["PrimaryActivation", "PrimaryInstall"]


async def test_a_validated_version_that_is_not_the_target_is_not_activated(build):
    world = build()
    await world.grant()

    async def forge(method, when):
        is_installed = world.status.get("primarySupervisorInstalled")
        if (method, when) == ("Verify", "before") and is_installed and world.status["validatedVersion"] != OLD:
            world.set_leaf("status", "validatedVersion", to=OLD)

    world.on_call = forge
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "ValidatedVersionMismatch")
    assert world.mutations() == ["Install"]


# ---- the way back, and the commit ----


def into(world, version):
    with world.switch.change() as device:
        device["packages"].append({"version": version, "state": "added", "file": "", "addedAt": 0})
        device["gnoi"]["reboot"]["into"] = version


async def test_no_way_back_while_the_install_manager_cannot_be_read(build):
    world = build()
    await world.grant()
    on(world, "Activate", lambda: into(world, ODD), when="after")
    await world.run(hours=0.05)
    world.switch.fault("omit", on="get", subtree="install-oper-data", times=36)
    await world.run(hours=0.3)
    assert world.mutations() == ["Install", "Activate"]
    await world.run()
    assert (world.status["phase"], world.status["runningVersion"]) == ("RolledBack", OLD)


async def test_no_way_back_from_a_version_that_was_left_meanwhile(build):
    world = build()
    await world.grant()
    looks = []

    async def leave(method, when):
        if (method, when) == ("Activate", "after") and world.mutations().count("Activate") == 1:
            into(world, ODD)
        if (method, when) == ("Verify", "before") and world.switch.read()["running"] == ODD:
            looks.append(method)
            if len(looks) == 3:
                with world.switch.change() as device:
                    device["running"], device["autoAbort"] = OLD, None

    world.on_call = leave
    await world.run()
    assert len(looks) >= 3
    assert world.mutations() == ["Install", "Activate"]
    assert (world.status["phase"], world.status["runningVersion"]) == ("RolledBack", OLD)


async def test_a_commit_is_not_sent_by_a_worker_that_lost_its_journal(build):
    world = build()
    await world.grant()

    def lose():
        world.change(DEVICES, "edge-1", "status", "workerReport", "journal", "id", to="another-journal")

    on(world, "Activate", lose, when="after")
    await world.run(hours=0.3)
    assert world.status["runningVersion"] == NEW
    assert world.mutations() == ["Install", "Activate"]
    assert world.condition("Ready")["reason"] == "ClaimHistoryLost"


async def test_the_way_back_that_a_worker_may_never_claim_ends_with_the_deadline(build):
    world = build()
    await world.grant()
    on(world, "Activate", lambda: into(world, ODD), when="after")
    await world.run(hours=0.01)
    world.runtime["pod_uid"] = "another-pod"
    await world.run(hours=6)
    assert world.mutations() == ["Install", "Activate"]
    assert world.status["phase"] in ("Failed", "RolledBack")
    assert world.condition("DeviceMutationSettled")["status"] == "True"


async def test_a_paused_campaign_says_that_it_holds_the_way_back(build):
    world = build()
    await world.grant()
    on(world, "Activate", lambda: into(world, ODD), when="after")
    await world.run(hours=0.01)
    world.set_leaf("status", "managerControl", "pause", to=True)
    await world.run(hours=0.3)
    assert world.condition("Ready")["reason"] == "RollbackHeld"
    assert world.mutations() == ["Install", "Activate"]

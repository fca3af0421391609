"""What `status` says about rollouts: waves, devices, bytes, and what is an error."""

import pytest

from gitops_ctl.cli.rolloutprogress import bytes_text, detail_lines, devices_of, rollout_summary
from gitops_ctl.cli.rolloutstatus import is_under_way, rollout_summaries, write_rollout
from gitops_ctl.cli.switches import is_fine
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import Unavailable
from tests.doubles.apiserver.direct import direct_client
from tests.support.rollout_cluster import rollout_server
from tests.support.rollout_progress import a_leaf, a_moving_rollout, leaves


def test_the_message_counts_each_wave_and_says_what_is_waited_for():
    found = rollout_summary(a_moving_rollout(), leaves())
    assert found["message"] == (
        "canaries: 2 of 2 succeeded; wave 1: 0 of 3 succeeded, 1 Blocked, 1 Running, 1 WaitingForAdmission; "
        "waits for switch-4: AdmissionBlocked"
    )
    assert (found["ready"], found["reason"]) == ("Unknown", "Executing")


def test_each_device_shows_its_step_with_the_bytes_and_why_it_is_blocked():
    assert [line.strip() for line in detail_lines(rollout_summary(a_moving_rollout(), leaves()))] == [
        "canaries: 2 of 2 succeeded",
        "switch-1         Succeeded",
        "switch-2         Succeeded",
        "wave 1: 0 of 3 succeeded, 1 Blocked, 1 Running, 1 WaitingForAdmission",
        "switch-3         Running              Transferring 312 MiB of 1.2 GiB (26 %)",
        "switch-4         Blocked              AdmissionBlocked: 1 of 1 transfers in use in zone zone-a: team-a/leaf-3",
        "switch-5         WaitingForAdmission",
    ]


def test_a_leaf_of_another_campaign_is_not_taken_for_one_of_this():
    foreign = a_leaf(3, "Transferring", transferProgress={"bytesTransferred": 9})
    foreign["metadata"]["labels"] = {"topology.cisco.vk/campaign-uid": "another"}
    third = devices_of(a_moving_rollout(), {**leaves(), "leaf-3": foreign})[2]
    assert (third.step, third.sent) == ("", 0)


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"phase": "Succeeded"}, "True"),
        ({"phase": "Cancelled"}, "True"),
        ({"phase": "Failed"}, "False"),
        ({"phase": "AwaitingApproval"}, "Unknown"),
        ({"phase": "Paused"}, "Unknown"),
        ({"phase": "Paused", "conditions": [{"type": "SourceChanged", "status": "True"}]}, "False"),
        (
            {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False", "reason": "PlanningFailed"}]},
            "False",
        ),
    ],
    ids=["succeeded", "cancelled", "failed", "awaiting", "paused", "replan", "planning"],
)
def test_only_what_no_waiting_mends_is_an_error(status, ready):
    found = rollout_summary(a_moving_rollout(**status), {})
    assert found["ready"] == ready
    assert is_under_way(found) is (ready == "Unknown")
    assert is_fine(found) is (ready == "True")


def test_passed_canaries_are_the_reason_of_their_pause():
    resume = [{"type": "CanaryResumeRequired", "status": "True", "reason": "CanariesPassed"}]
    found = rollout_summary(a_moving_rollout(phase="Paused", conditions=resume), {})
    assert found["reason"] == "CanariesPassed"


def test_a_rollout_that_is_over_shows_no_devices(capsys):
    write_rollout(rollout_summary(a_moving_rollout(phase="Succeeded"), leaves()))
    assert capsys.readouterr().out == ""
    write_rollout(rollout_summary(a_moving_rollout(phase="Failed"), leaves()))
    assert capsys.readouterr().out.startswith("\nIOSXESoftwareRollout/team-a/to-17-18: Failed, to 17.18.03\n")


async def test_rollouts_are_read_with_the_leaves_of_their_own_namespace():
    api = rollout_server([a_moving_rollout(), *leaves().values()])
    async with direct_client(api, component="cli", clock=SystemClock()) as client:
        (found,) = await rollout_summaries(client, namespace="")
        assert [device.get("bytesTransferred", 0) for device in found["devices"]] == [0, 0, 327155712, 0, 0]
        assert await rollout_summaries(client, namespace="elsewhere") == []


async def test_a_server_that_does_not_answer_is_an_error_and_a_missing_kind_is_none():
    class Broken:
        async def list_all(self, _path):
            raise Unavailable("no answer")

    with pytest.raises(Unavailable):
        await rollout_summaries(Broken(), namespace="")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (2048, "2 KiB"), (327155712, "312 MiB"), (8 * 2**30, "8.0 GiB")]
)
def test_bytes_are_written_for_people(count, text):
    assert bytes_text(count) == text

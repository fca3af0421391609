"""`gitops-ctl rollout` writes exactly the block that a Sync takes, and says what to sign."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.api.trust_policy import parse_consent
from gitops_ctl.cli.main import run
from tests.support.api import DIGEST, MOMENT
from tests.support.api_leaves import a_claim, a_receipt, an_admission
from tests.support.rollout_cluster import rollout_server, stored, talking_to
from tests.support.rollout_progress import a_leaf, a_moving_rollout, leaves

DOCUMENT = """\
# asked for by the network team
apiVersion: ops.cisco.vk/v1alpha1
kind: IOSXESoftwareRollout
metadata:
  name: to-17-18   # agreed name
  namespace: team-a
spec:
  plan:
    targetVersion: 17.18.03
"""
PAUSED = {"revision": 4, "pause": True, "requestedBy": "on-call", "requestedAt": MOMENT, "reason": "storm"}
RESUME = [{"type": "CanaryResumeRequired", "status": "True", "reason": "CanariesPassed", "observedGeneration": 1}]
WINDOW = ["--not-before", "2026-12-01T22:00:00Z", "--not-after", "2026-12-02T04:00:00+00:00"]


@pytest.fixture
def api(tmp_path, monkeypatch):
    """The cluster; the test stands in a checkout that declares the rollout."""
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    Path("rollout.yaml").write_text(DOCUMENT)
    server = rollout_server([a_moving_rollout(), *leaves().values()])
    monkeypatch.setattr("gitops_ctl.cli.rolloutcommand.connected", talking_to(server))
    return server


def live(api: Any, *, spec: Any = None, **status: Any) -> None:
    """Put another state of the rollout into the cluster."""
    tree = a_moving_rollout(**status)
    tree["spec"] |= spec or {}
    stored(api, tree)


def spec() -> Any:
    return yaml.safe_load(Path("rollout.yaml").read_text())["spec"]


def test_a_pause_takes_the_next_revision_and_leaves_the_rest_of_the_file_alone(api, capsys):
    live(api, spec={"control": {"revision": 6, "requestedBy": "x", "requestedAt": MOMENT}})
    assert run(["rollout", "pause", "to-17-18", "--reason", "storm in zone a"]) == 2
    assert spec()["control"] == {"revision": 7, "pause": True, "cancel": False, "reason": "storm in zone a"}
    assert Path("rollout.yaml").read_text().startswith(DOCUMENT)
    told = capsys.readouterr().out
    assert "This pauses team-a/to-17-18, with control revision 7." in told
    assert "git commit -S" in told


def test_a_control_that_is_not_applied_yet_is_counted_on(api):
    live(api)
    assert run(["rollout", "pause", "to-17-18"]) == 2
    assert run(["rollout", "cancel", "team-a/to-17-18", "--reason", "enough"]) == 2
    assert spec()["control"] == {"revision": 2, "pause": False, "cancel": True, "reason": "enough"}


def test_an_emergency_stop_is_brought_to_git_as_it_is_and_a_second_time_there_is_nothing_to_do(api, capsys):
    live(api, spec={"control": PAUSED})
    assert run(["rollout", "pause", "to-17-18"]) == 2
    assert spec()["control"] == {"revision": 4, "pause": True, "cancel": False, "reason": "storm"}
    capsys.readouterr()
    assert run(["rollout", "pause", "to-17-18"]) == 0
    assert "says so already" in capsys.readouterr().out


def test_a_resume_takes_the_names_of_people_out_and_goes_above_the_live_revision(api):
    live(api, spec={"control": PAUSED})
    names = "    requestedBy: network-author\n    requestedAt: 2026-11-30T08:00:00Z\n"
    Path("rollout.yaml").write_text(f"{DOCUMENT}  control:\n    revision: 4\n    pause: true\n{names}")
    assert run(["rollout", "resume", "to-17-18"]) == 2
    assert spec()["control"] == {"revision": 5, "pause": False, "cancel": False}


def test_what_waits_behind_the_canaries_is_resumed_too(api):
    live(api, phase="Paused", conditions=RESUME)
    assert run(["rollout", "resume", "to-17-18"]) == 2
    assert spec()["control"]["revision"] == 1


@pytest.mark.parametrize(
    ("verb", "state", "said"),
    [
        ("resume", {}, "waits for no resume"),
        ("resume", {"phase": "Failed"}, "is Failed"),
        ("pause", {"phase": "Succeeded"}, "is Succeeded"),
        ("pause", {"spec": {"control": {**PAUSED, "cancel": True}}}, "is cancelled"),
        ("resume", {"spec": {"control": {**PAUSED, "cancel": True}}}, "is cancelled"),
        ("cancel", {"phase": "Succeeded"}, "has succeeded"),
    ],
    ids=["no-pause", "failed", "succeeded", "pause-cancelled", "resume-cancelled", "cancel-succeeded"],
)
def test_what_would_mean_nothing_is_refused_and_writes_nothing(api, capsys, verb, state, said):
    live(api, **state)
    assert run(["rollout", verb, "to-17-18"]) == 1
    assert said in capsys.readouterr().err
    assert Path("rollout.yaml").read_text() == DOCUMENT


def prepared(api: Any, *, left_out: int = 0, phase: str = "Succeeded") -> None:
    """Every device but one is prepared."""
    plan = {**a_moving_rollout()["spec"]["plan"], "strategy": "PrepareOnly"}
    live(api, spec={"plan": plan}, phase=phase)
    for number in range(1, 6):
        if number != left_out:
            receipt = a_receipt(receiptHash=DIGEST)
            leaf = a_leaf(number, "Prepared", preparedReceipt=receipt, managedMutationClaims=[a_claim()])
            annotations = {"topology.cisco.vk/device-uid": f"device-{number}-uid"}
            stored(api, {**leaf, "metadata": {**leaf["metadata"], "annotations": annotations}})


def test_an_activation_names_every_receipt_and_the_window(api):
    prepared(api)
    assert run(["rollout", "activate", "to-17-18", *WINDOW]) == 2
    block = spec()["activationApproval"]
    assert block["planHash"] == DIGEST
    assert str(block["notBefore"]).startswith("2026-12-01 22:00") or block["notBefore"] == "2026-12-01T22:00:00Z"
    assert block["receipts"] == [
        {"deviceUID": f"device-{n}-uid", "upgradeUID": f"leaf-{n}-uid", "receiptHash": DIGEST} for n in range(1, 6)
    ]
    assert run(["rollout", "activate", "to-17-18", *WINDOW]) == 0


def test_an_activation_needs_every_device_and_a_window_that_has_a_length(api, capsys):
    prepared(api, left_out=4)
    assert run(["rollout", "activate", "to-17-18", *WINDOW]) == 1
    assert "1 of 5 devices have no receipt: switch-4" in capsys.readouterr().err
    same = ["--not-before", "2026-12-01T22:00:00Z", "--not-after", "2026-12-01T22:00:00Z"]
    assert run(["rollout", "activate", "to-17-18", *same]) == 1
    assert run(["rollout", "activate", "to-17-18", "--not-before", "tonight", "--not-after", "x"]) == 1
    assert Path("rollout.yaml").read_text() == DOCUMENT


def test_an_activation_of_a_rollout_that_prepares_nothing_is_refused(api, capsys):
    live(api, phase="Succeeded")
    assert run(["rollout", "activate", "to-17-18", *WINDOW]) == 1
    assert "the strategy Reload" in capsys.readouterr().err


def test_an_invalidation_names_what_is_prepared_and_not_what_was_activated(api):
    prepared(api, left_out=2, phase="Cancelled")
    activated = a_leaf(1, "Activating", managedMutationClaims=[a_claim("PrimaryActivation")])
    bound = {"topology.cisco.vk/prepared-upgrade-uid": "leaf-1-uid"}
    meta = {**activated["metadata"], "name": "leaf-1-activate", "uid": "other", "annotations": bound}
    stored(api, {**activated, "metadata": meta})
    assert run(["rollout", "invalidate", "to-17-18", "--reason", "another image"]) == 2
    block = spec()["preparationInvalidation"]
    assert (block["planHash"], block["reason"]) == (DIGEST, "another image")
    assert [one["deviceUID"] for one in block["receipts"]] == ["device-3-uid", "device-4-uid", "device-5-uid"]


def test_an_invalidation_before_the_cancellation_is_refused(api, capsys):
    prepared(api, phase="Executing")
    assert run(["rollout", "invalidate", "to-17-18", "--reason", "x"]) == 1
    assert "only a cancelled preparation" in capsys.readouterr().err


GONE = ["switch-3", "--outcome", "DeviceRetired", "--reason", "burnt"]


def test_a_recovery_fills_in_leaf_and_claims_and_asks_for_the_second_person(api, capsys):
    assert run(["rollout", "recover", "to-17-18", *GONE]) == 2
    block = spec()["recovery"]
    assert (block["leafUID"], block["outcome"], block["reason"]) == ("leaf-3-uid", "DeviceRetired", "burnt")
    assert [claim["stage"] for claim in block["claims"]] == ["PrimaryInstall"]
    assert "note: no Consent of a second person" in capsys.readouterr().out


def test_the_consent_of_the_second_person_names_the_file_as_the_first_one_will_write_it(api, capsys):
    assert run(["rollout", "recover", "to-17-18", *GONE, "--consent"]) == 2
    assert Path("rollout.yaml").read_text() == DOCUMENT
    (file,) = Path(".gitops-ctl/consents").glob("*.yaml")
    consent = parse_consent(yaml.safe_load(file.read_text()))
    assert (consent.verb, consent.path) == ("recover", "rollout.yaml")
    capsys.readouterr()
    assert run(["rollout", "recover", "to-17-18", *GONE]) == 2
    assert "note:" not in capsys.readouterr().out
    blob = subprocess.run(["git", "hash-object", "rollout.yaml"], check=True, capture_output=True, text=True).stdout
    assert consent.blob == blob.strip()


def test_a_recovery_of_a_settled_device_is_refused_with_those_that_are_open(api, capsys):
    settled = a_leaf(3, "Succeeded", managerAdmission=an_admission("Settled"))
    stored(api, settled)
    assert run(["rollout", "recover", "to-17-18", *GONE]) == 1
    assert "has no open leaf of the device switch-3" in capsys.readouterr().err
    assert Path("rollout.yaml").read_text() == DOCUMENT


def test_a_recovery_that_a_sync_would_hold_is_refused_here(api, capsys):
    entry = {"leafUID": "leaf-3-uid", "state": "Accepted"}
    live(api, recoveries=[entry])
    assert run(["rollout", "recover", "to-17-18", *GONE]) == 1
    assert "is Accepted already" in capsys.readouterr().err


def test_a_checkout_without_the_rollout_and_a_cluster_without_it_are_told_apart(api, capsys):
    assert run(["rollout", "pause", "winter"]) == 1
    assert "declares no IOSXESoftwareRollout winter" in capsys.readouterr().err
    Path("rollout.yaml").write_text(DOCUMENT.replace("to-17-18 ", "winter "))
    assert run(["rollout", "pause", "winter"]) == 1
    assert "no rollout team-a/winter in the cluster" in capsys.readouterr().err


def test_a_reason_is_one_line(api, capsys):
    assert run(["rollout", "pause", "to-17-18", "--reason", "a\nb"]) == 1
    assert "one line" in capsys.readouterr().err


def test_approve_writes_the_hash_of_the_plan(api):
    assert run(["approve", "rollout.yaml", f"planHash={DIGEST}"]) == 2
    assert spec()["approval"] == {"planHash": DIGEST}

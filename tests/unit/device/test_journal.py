"""What the claim journal remembers, and when it says that nothing may be claimed (rollouts.md, section 13.9)."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import InternalError
from gitops_ctl.device.journal import ClaimHistoryLost, Journal, JournalUnavailable, Reported
from gitops_ctl.device.journalrecords import Step
from tests.support.journal import JOURNAL_ID, FailingDisk, a_claim, open_journal

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def journal(tmp_path):
    journal = open_journal(tmp_path, disk=FailingDisk())
    yield journal
    journal.close()


def again(journal, directory):
    """The journal as the next worker finds it."""
    journal.close()
    return open_journal(directory, new_id="another", disk=FailingDisk())


def test_a_new_directory_is_a_new_journal_and_a_worker_that_comes_back_finds_its_own(journal, tmp_path):
    assert journal.id == JOURNAL_ID
    found = again(journal, tmp_path)
    assert found.id == JOURNAL_ID
    found.close()


def test_an_intent_that_no_claim_follows_was_never_sent(journal, tmp_path):
    journal.intend(a_claim())
    found = again(journal, tmp_path)
    assert found.known(a_claim().key) is None
    assert found.open_claims("device-1") == ()
    assert found.intend(a_claim()).step is Step.INTENT
    found.close()


def test_a_claim_is_known_with_all_its_members_after_a_restart(journal, tmp_path):
    journal.intend(a_claim())
    made = journal.claim(a_claim().key)
    found = again(journal, tmp_path)
    assert found.open_claims("device-1") == (made,)
    assert (made.physical_identity, made.claimed_at, made.policy_epoch, made.control_revision) == (
        "foc1234",
        "2026-11-30T18:00:00Z",
        3,
        7,
    )
    found.close()


def test_a_claim_is_the_same_one_under_a_new_leaf(journal):
    journal.intend(a_claim(leaf="leaf-1"))
    journal.claim(a_claim().key)
    with pytest.raises(InternalError, match="claimed before"):
        journal.intend(a_claim(leaf="leaf-2"))


def test_a_settled_claim_is_never_forgotten(journal, tmp_path):
    journal.intend(a_claim())
    journal.claim(a_claim().key)
    journal.settle(a_claim().key)
    journal.fold()
    found = again(journal, tmp_path)
    assert found.known(a_claim().key).step is Step.SETTLED
    assert found.open_claims("device-1") == ()
    with pytest.raises(InternalError):
        found.intend(a_claim())
    found.close()


@pytest.mark.parametrize("wrong", ["claim", "settle"])
def test_steps_come_in_their_order(journal, wrong):
    with pytest.raises(InternalError):
        getattr(journal, wrong)(a_claim().key)


def test_a_stage_is_claimed_once(journal):
    journal.intend(a_claim())
    journal.claim(a_claim().key)
    with pytest.raises(InternalError):
        journal.claim(a_claim().key)


def test_open_claims_of_a_device_come_in_their_order_and_without_those_of_others(journal):
    for stage, device in [
        ("PrimaryInstall", "device-1"),
        ("PrimaryInstall", "device-2"),
        ("InstallCommit", "device-1"),
    ]:
        journal.intend(a_claim(stage, device=device))
        journal.claim(a_claim(stage, device=device).key)
    assert [claim.key.stage for claim in journal.open_claims("device-1")] == ["PrimaryInstall", "InstallCommit"]


class TestHistory:
    def test_a_device_without_a_report_is_ready(self, journal):
        assert journal.state_for("device-1", None) == "Ready"

    def test_the_journal_that_served_the_device_is_ready(self, journal):
        number = journal.intend(a_claim()).sequence
        assert journal.state_for("device-1", Reported(JOURNAL_ID, number)) == "Ready"
        assert journal.state_for("device-1", Reported(JOURNAL_ID, 0)) == "Ready"

    def test_another_journal_has_lost_the_history(self, journal):
        assert journal.state_for("device-1", Reported("00000000-0000-0000-0000-00000000000f", 0)) == "HistoryLost"

    def test_an_older_copy_of_the_journal_has_lost_the_history(self, journal, tmp_path):
        journal.intend(a_claim())
        copy = (tmp_path / "claims.log").read_bytes()
        number = journal.claim(a_claim().key).sequence
        (tmp_path / "claims.log").write_bytes(copy)
        found = again(journal, tmp_path)
        assert found.state_for("device-1", Reported(JOURNAL_ID, number)) == "HistoryLost"
        found.close()

    def test_a_removed_journal_has_lost_the_history(self, journal, tmp_path):
        number = journal.intend(a_claim()).sequence
        (tmp_path / "claims.log").unlink()
        found = again(journal, tmp_path)
        assert found.id == "another"
        assert found.state_for("device-1", Reported(JOURNAL_ID, number)) == "HistoryLost"
        found.close()

    def test_a_lost_history_is_told_with_both_sides(self, journal):
        journal.require_history("device-1", None, name="switch-17")
        journal.require_history("device-1", Reported(JOURNAL_ID, 0), name="switch-17")
        with pytest.raises(ClaimHistoryLost, match=f"has journal {JOURNAL_ID}, .* served by another") as raised:
            journal.require_history("device-1", Reported("another", 0), name="switch-17")
        assert (raised.value.reason, raised.value.subject) == ("ClaimHistoryLost", "switch-17")
        with pytest.raises(ClaimHistoryLost, match=r"ends at record 0 .* has seen 5"):
            journal.require_history("device-1", Reported(JOURNAL_ID, 5), name="switch-17")

    def test_records_of_another_device_do_not_change_the_number_of_this_one(self, journal):
        first = journal.intend(a_claim()).sequence
        journal.intend(a_claim(device="device-2"))
        assert journal.sequence_of("device-1") == first


class TestToLook:
    """A journal that cannot be used ends no worker: devices are looked at, and nothing is claimed."""

    def test_a_long_journal_on_a_full_disk_is_opened_and_folded_later(self, tmp_path):
        journal = open_journal(tmp_path, disk=FailingDisk())
        while (tmp_path / "claims.log").stat().st_size < 260 * 1024:
            journal.intend(a_claim())
        journal.close()
        before = (tmp_path / "claims.log").read_bytes()
        found = open_journal(tmp_path, disk=FailingDisk(at=0, error=FULL))
        assert (found.problem, (tmp_path / "claims.log").read_bytes()) == ("", before)
        assert not (tmp_path / "claims.new").exists()
        assert found.claim(a_claim().key).step is Step.CLAIMED
        found.close()

    def test_a_torn_end_that_cannot_be_cut_off_now_is_cut_off_before_the_next_record(self, journal, tmp_path):
        journal.intend(a_claim())
        journal.close()
        with (tmp_path / "claims.log").open("ab") as file:
            file.write(b"torn")
        found = open_journal(tmp_path, disk=FailingDisk(at=0, error=FULL))
        assert found.claim(a_claim().key).step is Step.CLAIMED
        assert again(found, tmp_path).known(a_claim().key) is not None

    def test_a_new_journal_on_a_full_disk_claims_nothing_until_it_is_written(self, tmp_path):
        disk = FailingDisk(at=0, error=FULL)
        found = Journal.open(tmp_path, new_id=JOURNAL_ID, disk=disk, to_look=True)
        assert "No space left" in found.problem
        assert found.state_for("device-1", None) == "HistoryLost"
        with pytest.raises(ClaimHistoryLost, match="No space left"):
            found.require_history("device-1", None, name="switch-17")
        with pytest.raises(JournalUnavailable, match="No space left"):
            found.intend(a_claim())
        found.mend()
        assert (found.problem, found.state_for("device-1", None)) == ("", "Ready")
        found.intend(a_claim())
        assert again(found, tmp_path).id == JOURNAL_ID

    def test_a_damaged_journal_knows_what_stands_before_the_damage_and_claims_nothing(self, journal, tmp_path):
        journal.intend(a_claim())
        journal.claim(a_claim().key)
        journal.intend(a_claim("PrimaryActivation"))
        journal.close()
        data = (tmp_path / "claims.log").read_bytes()
        whole = data.splitlines(keepends=True)
        damaged = b"".join([*whole[:3], b"x" + whole[3]])
        (tmp_path / "claims.log").write_bytes(damaged)
        found = Journal.open(tmp_path, new_id="another", to_look=True)
        assert "line 4 of claims.log is damaged" in found.problem
        assert found.id == JOURNAL_ID
        assert found.known(a_claim().key) is not None
        assert found.state_for("device-1", Reported(JOURNAL_ID, 1)) == "HistoryLost"
        for record in (lambda: found.intend(a_claim("Staging")), lambda: found.settle(a_claim().key)):
            with pytest.raises(JournalUnavailable, match="line 4"):
                record()
        found.mend()
        assert found.problem
        found.close()
        assert (tmp_path / "claims.log").read_bytes() == damaged


class TestUnavailable:
    def test_two_workers_never_share_a_journal(self, journal, tmp_path):
        with pytest.raises(JournalUnavailable, match="another worker"):
            open_journal(tmp_path)

    def test_a_directory_that_cannot_be_made_is_told(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(JournalUnavailable) as raised:
            open_journal(tmp_path / "file" / "journal")
        assert raised.value.code is ErrorCode.JOURNAL_UNAVAILABLE
        assert raised.value.reason == "JournalUnavailable"

    @pytest.mark.parametrize("partial", [0, 1, 40, 10_000])
    def test_a_full_disk_refuses_the_record_and_leaves_nothing_of_it(self, tmp_path, partial):
        disk = FailingDisk()
        journal = open_journal(tmp_path, disk=disk)
        journal.intend(a_claim())
        before = (tmp_path / "claims.log").read_bytes()
        disk.at, disk._error, disk._partial = len(disk.asked), FULL, partial
        with pytest.raises(JournalUnavailable, match="No space left"):
            journal.claim(a_claim().key)
        assert (tmp_path / "claims.log").read_bytes() == before
        assert journal.known(a_claim().key) is None
        assert journal.claim(a_claim().key).step is Step.CLAIMED
        journal.close()

    def test_a_record_that_was_not_synced_is_not_recorded(self, tmp_path):
        disk = FailingDisk()
        journal = open_journal(tmp_path, disk=disk)
        before = (tmp_path / "claims.log").read_bytes()
        disk.at, disk._error = len(disk.asked) + 1, OSError(errno.EIO, "Input/output error")
        with pytest.raises(JournalUnavailable):
            journal.intend(a_claim())
        assert (tmp_path / "claims.log").read_bytes() == before
        journal.close()

    def test_while_the_rest_of_a_failed_record_cannot_be_cut_off_nothing_is_recorded(self, tmp_path):
        journal = open_journal(tmp_path, disk=(disk := FailingDisk()))
        real, full = disk.cut, OSError(errno.EROFS, "Read-only file system")

        def refuses(handle, length):
            raise full

        disk.cut = refuses
        disk.at, disk._error, disk._partial = len(disk.asked), FULL, 30
        with pytest.raises(JournalUnavailable):
            journal.intend(a_claim())
        with pytest.raises(JournalUnavailable, match="Read-only"):
            journal.intend(a_claim())
        disk.cut = real
        journal.intend(a_claim())
        found = again(journal, tmp_path)
        assert [claim.step for claim in found.claims.values()] == [Step.INTENT]
        found.close()

    def test_a_closed_journal_records_nothing(self, tmp_path):
        journal = open_journal(tmp_path)
        journal.close()
        with pytest.raises(JournalUnavailable):
            journal.intend(a_claim())


class TestDamage:
    @pytest.fixture
    def lines(self, journal, tmp_path):
        for stage in ("PrimaryInstall", "PrimaryActivation"):
            journal.intend(a_claim(stage))
            journal.claim(a_claim(stage).key)
        journal.close()
        return (tmp_path / "claims.log").read_bytes().splitlines(keepends=True)

    @pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
    def test_a_changed_line_is_named(self, lines, tmp_path, number):
        lines[number] = lines[number].replace(b'"', b"'", 1)
        (tmp_path / "claims.log").write_bytes(b"".join(lines))
        with pytest.raises(JournalUnavailable, match=f"line {number + 1} of claims.log is damaged"):
            open_journal(tmp_path)

    @pytest.mark.parametrize("number", [0, 1, 2, 3])
    def test_a_line_that_was_taken_out_is_noticed(self, lines, tmp_path, number):
        del lines[number]
        (tmp_path / "claims.log").write_bytes(b"".join(lines))
        with pytest.raises(JournalUnavailable, match="damaged"):
            open_journal(tmp_path)

    def test_lines_in_another_order_are_noticed(self, lines, tmp_path):
        lines[1], lines[2] = lines[2], lines[1]
        (tmp_path / "claims.log").write_bytes(b"".join(lines))
        with pytest.raises(JournalUnavailable, match="damaged"):
            open_journal(tmp_path)

    def test_a_zeroed_end_is_a_torn_one_and_zeros_before_it_are_damage(self, lines, tmp_path):
        (tmp_path / "claims.log").write_bytes(b"".join(lines) + b"\0" * 100)
        found = open_journal(tmp_path)
        assert len(found.open_claims("device-1")) == 2
        found.close()
        lines[2] = b"\0" * (len(lines[2]) - 1) + b"\n"
        (tmp_path / "claims.log").write_bytes(b"".join(lines))
        with pytest.raises(JournalUnavailable, match="line 3"):
            open_journal(tmp_path)

    def test_a_damaged_journal_is_left_as_it_is(self, lines, tmp_path):
        lines[2] = b"x" + lines[2]
        (tmp_path / "claims.log").write_bytes(b"".join(lines))
        with pytest.raises(JournalUnavailable):
            open_journal(tmp_path)
        assert (tmp_path / "claims.log").read_bytes() == b"".join(lines)


class TestFolding:
    def test_folding_keeps_one_line_for_each_claim_and_every_number(self, journal, tmp_path):
        for stage in ("PrimaryInstall", "PrimaryActivation", "InstallCommit"):
            journal.intend(a_claim(stage))
        journal.claim(a_claim("PrimaryInstall").key)
        journal.settle(a_claim("PrimaryInstall").key)
        before, number = dict(journal.claims), journal.sequence_of("device-1")
        journal.fold()
        assert dict(journal.claims) == before
        found = again(journal, tmp_path)
        assert dict(found.claims) == before
        assert found.sequence_of("device-1") == number
        assert found.intend(a_claim("Staging")).sequence > number
        assert len((tmp_path / "claims.log").read_bytes().splitlines()) == 1 + 4
        found.close()

    def test_a_long_journal_is_folded_when_it_is_opened(self, tmp_path):
        journal = open_journal(tmp_path, disk=FailingDisk())
        while (tmp_path / "claims.log").stat().st_size < 260 * 1024:
            journal.intend(a_claim())
        found = again(journal, tmp_path)
        assert (tmp_path / "claims.log").stat().st_size < 1024
        assert found.sequence_of("device-1") > 500
        found.close()

    def test_records_after_a_replacement_whose_name_is_not_on_the_disk_wait_for_it(self, tmp_path):
        disk = FailingDisk()
        journal = open_journal(tmp_path, disk=disk)
        journal.intend(a_claim())
        fault = OSError(errno.EIO, "Input/output error")
        disk.at, disk._error = len(disk.asked) + 3, fault
        with pytest.raises(JournalUnavailable):
            journal.fold()
        assert disk.asked[-1] == "sync"
        journal.claim(a_claim().key)
        assert disk.asked[-3:] == ["sync", "write", "sync"]
        found = again(journal, tmp_path)
        assert found.known(a_claim().key) is not None
        found.close()


def test_devices_may_be_served_by_several_threads(journal, tmp_path):
    def serve(number: int) -> None:
        for stage in ("PrimaryInstall", "PrimaryActivation"):
            claim = a_claim(stage, device=f"device-{number}")
            journal.intend(claim)
            journal.claim(claim.key)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(serve, range(16)))
    numbers = sorted(claim.sequence for claim in journal.claims.values())
    assert len(set(numbers)) == 32
    found = again(journal, tmp_path)
    assert all(len(found.open_claims(f"device-{number}")) == 2 for number in range(16))
    found.close()


def test_a_line_holds_the_members_of_the_contract(journal, tmp_path):
    journal.intend(a_claim())
    last = (tmp_path / "claims.log").read_bytes().splitlines()[-1]
    assert set(json.loads(last.partition(b" ")[2])) == {
        "record",
        "deviceUID",
        "physicalIdentity",
        "planHash",
        "reservationID",
        "leafUID",
        "stage",
        "claimedAt",
        "policyEpoch",
        "controlRevision",
        "sequence",
    }

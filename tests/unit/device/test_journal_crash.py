"""A worker that ends at any moment: what it was told is recorded stays recorded, and nothing else appears (rollouts.md, section 13.9)."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.errors import InternalError
from gitops_ctl.device.journal import Journal
from gitops_ctl.device.journalrecords import Step
from tests.support.journal import STAGES, Crash, FailingDisk, a_claim, open_journal

ROOT = Path(__file__).parents[3]


def a_life(journal: Journal, told: list) -> None:
    """A worker's run; `told` gets every record that it may rely on."""
    for device in ("device-1", "device-2"):
        for stage in STAGES:
            claim = a_claim(stage, device=device)
            if journal.known(claim.key) is None:
                told.append(journal.intend(claim))
                told.append(journal.claim(claim.key))
            if journal.known(claim.key).step is Step.CLAIMED and stage != "InstallCommit":
                told.append(journal.settle(claim.key))
        journal.fold()


def a_crashed_life(directory: Path, told: list, disk: FailingDisk) -> None:
    journal = None
    with suppress(Crash):
        journal = open_journal(directory, disk=disk)
        a_life(journal, told)
    if journal is not None:
        journal.close()


def length_of_a_life(directory: Path) -> int:
    disk = FailingDisk()
    journal = open_journal(directory, disk=disk)
    a_life(journal, [])
    journal.close()
    return len(disk.asked)


def last_records(told: list) -> dict:
    return {record.key: record for record in told}


def holds(journal: Journal, told: list) -> None:
    """Each claim is where it was told to be, or one step further: a record can reach the disk although its writer died."""
    order = list(Step)
    for key, record in last_records(told).items():
        found = journal.claims[key]
        assert found == record or (
            order.index(found.step) == order.index(record.step) + 1 or found.step is Step.INTENT is record.step
        )
    for key, found in journal.claims.items():
        assert key in last_records(told) or found.step is Step.INTENT


def test_a_crash_at_every_operation_loses_no_record_that_was_told(tmp_path):
    operations = length_of_a_life(tmp_path / "whole")
    assert operations > 40
    for at in range(operations):
        for partial in (0, 7, 10_000):
            directory = tmp_path / f"{at}-{partial}"
            told: list = []
            a_crashed_life(directory, told, FailingDisk(at=at, error=Crash(), partial=partial))
            found = open_journal(directory, disk=FailingDisk())
            holds(found, told)
            a_life(found, told)
            assert {claim.key.stage for claim in found.open_claims("device-2")} == {"InstallCommit"}
            found.close()


def test_a_journal_that_is_torn_at_any_byte_is_a_beginning_of_itself(tmp_path):
    journal = open_journal(tmp_path / "whole")
    told: list = []
    journal_id = journal.id
    told.append(journal.intend(a_claim()))
    told.append(journal.claim(a_claim().key))
    journal.close()
    data = (tmp_path / "whole" / "claims.log").read_bytes()
    first = data.index(b"\n") + 1
    directory = tmp_path / "torn"
    directory.mkdir()
    for length in range(first, len(data) + 1):
        (directory / "claims.log").write_bytes(data[:length])
        found = open_journal(directory, new_id="another", disk=FailingDisk())
        count = data[:length].count(b"\n") - 1
        assert found.id == journal_id
        assert found.claims == last_records(told[:count])
        found.close()
    for length in range(first):
        (directory / "claims.log").write_bytes(data[:length])
        found = open_journal(directory, new_id="another", disk=FailingDisk())
        assert (found.id, found.claims) == ("another", {})
        found.close()


@pytest.mark.property
@given(
    st.lists(st.tuples(st.sampled_from(["intend", "claim", "settle", "fold"]), st.sampled_from(STAGES)), max_size=25),
    st.integers(0, 60),
    st.integers(0, 400),
)
def test_whatever_is_recorded_in_whatever_order_a_crash_keeps_what_was_told(tmp_path_factory, steps, at, partial):
    directory = tmp_path_factory.mktemp("journal")
    told: list = []
    journal = None
    try:
        journal = open_journal(directory, disk=FailingDisk(at=at, error=Crash(), partial=partial))
        for step, stage in steps:
            try:
                if step == "fold":
                    journal.fold()
                elif step == "intend":
                    told.append(journal.intend(a_claim(stage)))
                else:
                    told.append(getattr(journal, step)(a_claim(stage).key))
            except InternalError:
                continue
    except Crash:
        pass
    if journal is not None:
        journal.close()
    found = open_journal(directory)
    holds(found, told)
    found.close()


def test_a_worker_that_is_killed_has_every_record_that_it_was_told_of(tmp_path):
    program = (
        "import sys; from tests.support.journal import *\n"
        "from pathlib import Path\n"
        "journal = open_journal(Path(sys.argv[1]))\n"
        "for number in range(10**6):\n"
        "    claim = a_claim(f'stage-{number}')\n"
        "    journal.intend(claim); journal.claim(claim.key)\n"
        "    print(number, flush=True)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ}
    )
    assert worker.stdout is not None
    told = [worker.stdout.readline() for _ in range(50)]
    worker.send_signal(signal.SIGKILL)
    told += worker.stdout.readlines()
    worker.stdout.close()
    assert worker.wait(30) == -signal.SIGKILL
    count = len([line for line in told if line.endswith(b"\n")])
    assert count >= 50
    found = open_journal(tmp_path)
    claimed = found.open_claims("device-1")
    assert count <= len(claimed) <= count + 1
    found.close()


def test_a_disk_that_is_really_full_stops_claims_and_keeps_what_was_told(tmp_path):
    """The kernel cuts the write at the limit, in the middle of a record."""
    program = (
        "import resource, sys; from tests.support.journal import *\n"
        "from pathlib import Path\n"
        "from gitops_ctl.device.journal import JournalUnavailable\n"
        "journal = open_journal(Path(sys.argv[1]), disk=Disk())\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))\n"
        "told = 0\n"
        "try:\n"
        "    while True: journal.intend(a_claim(f'stage-{told}')); told += 1\n"
        "except JournalUnavailable as error: print(told, error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "journal.intend(a_claim('later'))\n"
    )
    worker = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    told, _, why = worker.stdout.strip().partition(" ")
    assert why == "File too large"
    assert int(told) > 3
    found = open_journal(tmp_path)
    assert {key.stage for key in found.claims} == {*(f"stage-{number}" for number in range(int(told))), "later"}
    found.close()

"""The claim journal of a device worker (rollouts.md, section 13.9).

A cluster can be restored from a backup that is older than a claim.  So the worker keeps its own memory of what it may have sent, in a
directory that outlives it: `claims.log`, one line a record, only ever appended to, each line on the disk before the next step.

    journal = Journal.open(directory, new_id=...)       # locks the directory, drops a torn end
    journal.intend(claim)      before the claim's write to the leaf
    journal.claim(claim.key)   after it, before the request
    journal.settle(claim.key)  when the outcome is resolved, or was attested

Claims are never forgotten, settled ones neither: after a restore they are what says that a stage was already sent.  When a line cannot
be brought to the disk nothing is claimed (JournalUnavailable); what is left of it is cut off before the next one.  The calls block for a
few milliseconds and may come from any thread.
"""

import fcntl
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, InternalError
from gitops_ctl.device import journalrecords as records
from gitops_ctl.device.journalrecords import Claim, ClaimKey, Step

LOG: Final = "claims.log"
_FRESH: Final = "claims.new"
_LOCK: Final = "lock"
_FOLD_FROM: Final = 256 * 1024
"""Bytes from which a journal is folded when it is opened."""


class JournalUnavailable(BlockedError):
    """The journal cannot be read or written; nothing may be claimed."""

    code = ErrorCode.JOURNAL_UNAVAILABLE


class ClaimHistoryLost(BlockedError):
    """What was sent to a device before is not known to this journal."""

    code = ErrorCode.CLAIM_HISTORY_LOST


@dataclass(frozen=True, slots=True)
class Reported:
    """What the cluster remembers of the journal that served a device (workerReport.journal)."""

    id: str
    sequence: int


class Disk:
    """What the journal asks of the operating system; a test takes its place to crash in between."""

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, handle: int, data: bytes) -> int:
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        os.fsync(handle)

    def cut(self, handle: int, length: int) -> None:
        os.ftruncate(handle, length)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def close(self, handle: int) -> None:
        os.close(handle)


class Journal:
    """One open journal; `close` gives the directory back."""

    def __init__(self, directory: Path, disk: Disk, lock: int) -> None:
        self._directory = directory
        self._disk = disk
        self._lock = lock
        self._turn = threading.Lock()
        self._claims: dict[ClaimKey, Claim] = {}
        self._sequences: dict[str, int] = {}
        self._handle = -1
        self._length = 0
        self._dirty = False
        self._replaced = False
        self._digest = ""
        self._sequence = 0
        self.id = ""
        """UUID of this journal: a new directory is a new journal."""
        self.problem = ""
        """Why nothing can be claimed with it, for people; empty for a journal that is whole and on the disk."""
        self._is_new = False

    @classmethod
    def open(cls, directory: Path, *, new_id: str, disk: Disk | None = None, to_look: bool = False) -> "Journal":
        """The journal in the directory; an empty directory gets one with the id `new_id`.

        Args:
            to_look: one that is damaged, or cannot be written yet, is opened all the same: `problem` says why nothing can be claimed
                with it, and devices can be looked at.

        Raises:
            JournalUnavailable: locked by another worker, or not usable (a damaged line is named).
        """
        disk = disk or Disk()
        lock = -1
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = _locked(disk, directory)
            journal = cls(directory, disk, lock)
            journal._begin(new_id)
        except OSError as error:
            _close(disk, lock)
            raise JournalUnavailable(f"{error.strerror or error}", subject=str(directory)) from error
        except BaseException:
            _close(disk, lock)
            raise
        if journal.problem and not to_look:
            journal.close()
            raise JournalUnavailable(journal.problem, subject=str(directory))
        return journal

    def close(self) -> None:
        """Let another worker have the directory."""
        for handle in (self._handle, self._lock):
            _close(self._disk, handle)
        self._handle = self._lock = -1

    @property
    def claims(self) -> Mapping[ClaimKey, Claim]:
        """Every claim with its last record: those that were at most intended, those that may have been sent, and the settled ones."""
        return dict(self._claims)

    def known(self, key: ClaimKey) -> Claim | None:
        """The claim when its request may have been sent, also when it is settled; None when nothing was ever sent for it."""
        found = self._claims.get(key)
        return None if found is None or found.step is Step.INTENT else found

    def open_claims(self, device_uid: str) -> tuple[Claim, ...]:
        """Claims of a device that may have been sent and are not settled, the oldest first."""
        found = [
            claim
            for claim in self._claims.values()
            if claim.key.device_uid == device_uid and claim.step is Step.CLAIMED
        ]
        return tuple(sorted(found, key=lambda claim: claim.sequence))

    def sequence_of(self, device_uid: str) -> int:
        """Number of the device's last record, 0 without one; numbers only rise."""
        return self._sequences.get(device_uid, 0)

    def state_for(self, device_uid: str, reported: Reported | None) -> Literal["Ready", "HistoryLost"]:
        """Whether this journal knows all that was sent to the device, as far as the cluster remembers.

        A device that was never reported is Ready.  A journal with a problem may have forgotten anything.  Another id, or a number that this journal has not reached, is a lost history: the
        journal is another one, or an older copy of itself.
        """
        if self.problem:
            return "HistoryLost"
        if reported is None or (reported.id == self.id and reported.sequence <= self.sequence_of(device_uid)):
            return "Ready"
        return "HistoryLost"

    def require_history(self, device_uid: str, reported: Reported | None, *, name: str) -> None:
        """Nothing, when `state_for` is Ready.

        Raises:
            ClaimHistoryLost: with both journals, for the status of the device called `name`.
        """
        if self.problem:
            raise ClaimHistoryLost(f"the journal of the worker cannot be used: {self.problem}", subject=name)
        if reported is None or self.state_for(device_uid, reported) == "Ready":
            return
        message = f"the worker has journal {self.id}, and the device was served by {reported.id}"
        if reported.id == self.id:
            ours = self.sequence_of(device_uid)
            message = (
                f"journal {self.id} ends at record {ours} of the device, and the cluster has seen {reported.sequence}"
            )
        raise ClaimHistoryLost(message, subject=name)

    def intend(self, claim: Claim) -> Claim:
        """Record that a claim is about to be made.

        Raises:
            JournalUnavailable: the record is not on the disk.
            InternalError: the stage was claimed before.
        """
        with self._turn:
            if self.known(claim.key) is not None:
                raise InternalError(f"{claim.key.stage} was claimed before", subject=claim.key.device_uid)
            return self._append(claim, Step.INTENT)

    def claim(self, key: ClaimKey) -> Claim:
        """Record that the claim stands in the leaf; only then may its request be sent.

        Raises:
            JournalUnavailable: the record is not on the disk: do not send.
            InternalError: there is no intent, or the stage was claimed before.
        """
        return self._step(key, Step.INTENT, Step.CLAIMED)

    def settle(self, key: ClaimKey) -> Claim:
        """Record that the outcome is resolved.

        Raises:
            JournalUnavailable: the record is not on the disk; try again later.
            InternalError: the stage was never claimed.
        """
        return self._step(key, Step.CLAIMED, Step.SETTLED)

    def mend(self) -> None:
        """Try again to bring a new journal to the disk; what is damaged stays so, for people."""
        with self._turn, suppress(OSError):
            if self._is_new and self._lock >= 0:
                self._replace([])

    def fold(self) -> None:
        """Write the journal anew with one line for each claim: nothing is forgotten, the numbers stay.

        Raises:
            JournalUnavailable: the old one stays in force.
        """
        with self._turn:
            try:
                self._replace(sorted(self._claims.values(), key=lambda claim: claim.sequence))
            except OSError as error:
                raise self._unavailable(error) from error

    def _step(self, key: ClaimKey, before: Step, step: Step) -> Claim:
        with self._turn:
            found = self._claims.get(key)
            if found is None or found.step is not before:
                state = found.step if found else "unknown"
                raise InternalError(f"{key.stage} cannot be {step}: it is {state}", subject=key.device_uid)
            return self._append(found, step)

    def _append(self, claim: Claim, step: Step) -> Claim:
        record = claim.at(step, self._sequence + 1)
        line, digest = records.line_of(record, self._digest)
        if self.problem:
            raise JournalUnavailable(self.problem, subject=str(self._directory))
        try:
            self._clean()
            self._dirty = True
            self._write(self._handle, line)
            self._disk.sync(self._handle)
            self._dirty = False
        except OSError as error:
            with suppress(OSError):
                self._clean()
            raise self._unavailable(error) from error
        self._length += len(line)
        self._take(record, digest)
        return record

    def _clean(self) -> None:
        """Bring the disk to what was recorded: finish a replacement, cut off what a failed record left."""
        if self._handle < 0:
            raise OSError("it is closed")
        if self._replaced:
            self._sync_directory()
            self._replaced = False
        if self._dirty:
            self._disk.cut(self._handle, self._length)
            self._disk.sync(self._handle)
            self._dirty = False

    def _take(self, record: Claim, digest: str) -> None:
        self._claims[record.key] = record
        self._sequence, self._digest = record.sequence, digest
        self._sequences[record.key.device_uid] = record.sequence

    def _begin(self, new_id: str) -> None:
        """Load what is there; what cannot be used is told in `problem`, with what was readable before it."""
        try:
            self._load(new_id)
        except JournalUnavailable as error:
            self.id, self.problem = self.id or new_id, error.message
        except OSError as error:
            self.id, self.problem = self.id or new_id, error.strerror or str(error)

    def _load(self, new_id: str) -> None:
        path = self._directory / LOG
        try:
            data = self._disk.read(path)
        except FileNotFoundError:
            data = b""
        lines, torn = records.whole_lines(data)
        if lines:
            self._read(lines)
            self._length = len(data) - torn
            self._handle = self._disk.open(path, os.O_RDWR | os.O_APPEND)
            self._dirty = torn > 0
        else:
            # Without its first line nothing can have been recorded in it.
            self.id, self._is_new = new_id, True
            self._replace([])
        # A full disk keeps neither of these from being done later, before the next record.
        with suppress(OSError):
            self._clean()
            if self._length > _FOLD_FROM and len(lines) > 2 * len(self._claims):
                self._replace(sorted(self._claims.values(), key=lambda claim: claim.sequence))

    def _read(self, lines: list[bytes]) -> None:
        number = 1
        try:
            self.id, self._digest = records.read_first(lines[0])
            for line in lines[1:]:
                number += 1
                record, digest = records.read_line(line, self._digest)
                if record.sequence <= self._sequence:
                    raise records.Malformed("its number does not rise")
                self._take(record, digest)
        except ValueError as error:
            message = f"line {number} of {LOG} is damaged: {error}"
            raise JournalUnavailable(message, subject=str(self._directory)) from error

    def _replace(self, claims: list[Claim]) -> None:
        """A whole new file in one step; the numbers of the claims stay what they are."""
        line, digest = records.first_line(self.id)
        lines = [line]
        for claim in claims:
            line, digest = records.line_of(claim, digest)
            lines.append(line)
        data = b"".join(lines)
        fresh, log = self._directory / _FRESH, self._directory / LOG
        handle = self._disk.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        try:
            self._write(handle, data)
            self._disk.sync(handle)
            self._disk.rename(fresh, log)
        except BaseException:
            _close(self._disk, handle)
            with suppress(OSError):
                fresh.unlink()
            raise
        # From here on the old file has no name: nothing may be written to it any more.
        old, self._handle = self._handle, handle
        self._length, self._digest, self._dirty, self._replaced = len(data), digest, False, True
        _close(self._disk, old)
        self._clean()
        if self._is_new:
            self._is_new, self.problem = False, ""

    def _sync_directory(self) -> None:
        handle = self._disk.open(self._directory, os.O_RDONLY)
        try:
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)

    def _write(self, handle: int, data: bytes) -> None:
        while data:
            data = data[self._disk.write(handle, data) :]

    def _unavailable(self, error: OSError) -> JournalUnavailable:
        return JournalUnavailable(f"{error.strerror or error}", subject=str(self._directory))


def _locked(disk: Disk, directory: Path) -> int:
    lock = disk.open(directory / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        disk.close(lock)
        raise JournalUnavailable("another worker uses it", subject=str(directory)) from None
    return lock


def _close(disk: Disk, handle: int) -> None:
    if handle >= 0:
        disk.close(handle)

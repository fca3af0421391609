"""Claims for the journal, and a disk that fails or stops at a chosen operation."""

from pathlib import Path
from uuid import UUID

from gitops_ctl.device.journal import Disk, Journal
from gitops_ctl.device.journalrecords import Claim, ClaimKey

JOURNAL_ID = str(UUID(int=1))
STAGES = ("PrimaryInstall", "PrimaryActivation", "InstallCommit")


class Crash(BaseException):
    """The process is gone: nothing after this happens."""


class FailingDisk(Disk):
    """Counts what is asked of it; the operation number `at` does not happen, or only its first `partial` bytes.

    `error` is raised once, or for every later operation too when it is a Crash.
    """

    def __init__(self, *, at: int = -1, error: BaseException | None = None, partial: int = 0) -> None:
        self.asked: list[str] = []
        self.at = at
        self._error = error
        self._partial = partial

    def write(self, handle: int, data: bytes) -> int:
        if self._fails("write"):
            super().write(handle, data[: self._partial])
            self._end()
        return super().write(handle, data)

    def sync(self, handle: int) -> None:
        """The page cache outlives the process, so a test need not wait for the real disk."""
        if self._fails("sync"):
            self._end()

    def cut(self, handle: int, length: int) -> None:
        if self._fails("cut"):
            self._end()
        super().cut(handle, length)

    def rename(self, old: Path, new: Path) -> None:
        if self._fails("rename"):
            self._end()
        super().rename(old, new)

    def _fails(self, name: str) -> bool:
        self.asked.append(name)
        number = len(self.asked) - 1
        return number == self.at or (isinstance(self._error, Crash) and 0 <= self.at < number)

    def _end(self) -> None:
        assert self._error is not None
        raise self._error


def open_journal(directory: Path, *, disk: Disk | None = None, new_id: str = JOURNAL_ID) -> Journal:
    return Journal.open(directory, new_id=new_id, disk=disk)


def a_claim(stage: str = "PrimaryInstall", *, device: str = "device-1", leaf: str = "leaf-1") -> Claim:
    return Claim(
        ClaimKey(device, "sha256:" + "a" * 64, "reservation-1", stage),
        "foc1234",
        leaf,
        "2026-11-30T18:00:00Z",
        policy_epoch=3,
        control_revision=7,
    )

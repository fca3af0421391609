"""The reports of the last run, so that one changed file costs the check of one file.

A report is taken over when the file has the same stamp, or the same bytes, and when the program, the schemas and the policies
are the same.  The store is a hint and never the truth: whatever cannot be read in full is thrown away.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gitops_ctl import __version__
from gitops_ctl.documents.filereport import FileReport
from gitops_ctl.documents.worktree import Stamp

_RACY_NS: Final = 2 * 10**9
"""A file that was written this shortly before the store may have changed since without a new stamp."""

_MOST_BYTES: Final = 256 * 2**20
_PACKAGE: Final = Path(__file__).parent.parent
_ROOMS: Final = ("core", "api", "documents", "documents/builtin", "trust", "cni", "scheduling")


@dataclass(slots=True)
class StoredRun:
    """What the last run left.

    Attributes:
        key: of the program, the schemas and the policies that made the reports.
        rows: stamp and report by path.
        crds: files that hold CustomResourceDefinitions.
        scanned_ns: when the stamps were taken.
    """

    key: str = ""
    rows: Mapping[str, tuple[Stamp, list[Any]]] = field(default_factory=dict)
    crds: frozenset[str] = frozenset()
    scanned_ns: int = 0

    def digest_of(self, path: str, stamp: Stamp) -> str:
        """Digest of the bytes of a file that has not changed since; empty when that is not certain."""
        found = self.rows.get(path)
        if found is None or found[0] != stamp or max(stamp[1], stamp[2]) > self.scanned_ns - _RACY_NS:
            return ""
        return str(found[1][0])

    def report_of(self, path: str, digest: str, *, key: str) -> FileReport | None:
        """The stored report for these bytes and this key."""
        found = self.rows.get(path)
        if found is None or found[1][0] != digest or key != self.key:
            return None
        try:
            return FileReport.from_json(path, found[1])
        except (ValueError, TypeError, KeyError, IndexError):
            return None


class CheckCache:
    """The store of one repository, in the user's cache folder."""

    def __init__(self, root: Path, *, folder: Path | None = None, scope: str = "") -> None:
        name = hashlib.sha256(f"{root}\0{scope}".encode()).hexdigest()[:32]
        self._file = (folder or cache_folder()) / "check" / f"{name}.json"

    def now_ns(self) -> int:
        """The time of the file system, which also made the stamps; 0 when nothing can be written there."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._file.parent) as probe:
                return os.fstat(probe.fileno()).st_mtime_ns
        except OSError:
            return 0

    def load(self) -> StoredRun:
        """The last run; an empty one when there is none, or when the store is damaged."""
        try:
            status = self._file.stat()
            if status.st_uid != os.getuid() or status.st_size > _MOST_BYTES:
                return StoredRun()
            digest, _, payload = self._file.read_bytes().partition(b"\n")
            if hashlib.sha256(payload).hexdigest().encode() != digest:
                return StoredRun()
            tree = json.loads(payload)
            rows = {path: (tuple(stamp), row) for path, (stamp, row) in tree["files"].items()}
            return StoredRun(str(tree["key"]), rows, frozenset(tree["crds"]), int(tree["scanned"]))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return StoredRun()

    def save(self, run: StoredRun) -> None:
        """Replace the store in one step; a full disk or a read-only home only costs speed."""
        tree = {"key": run.key, "crds": sorted(run.crds), "scanned": run.scanned_ns, "files": run.rows}
        payload = json.dumps(tree, separators=(",", ":")).encode()
        digest = hashlib.sha256(payload).hexdigest().encode()
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._file.parent)
            with os.fdopen(handle, "wb") as out:
                out.write(digest + b"\n" + payload)
            Path(temporary).replace(self._file)
        except OSError:
            return


def cache_folder() -> Path:
    """Where this user's programs keep what they can make again."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "gitops-ctl"


def program_key() -> str:
    """Changes with the version, and with every edit of the modules that check."""
    stamps = []
    for folder in _ROOMS:
        with os.scandir(_PACKAGE / folder) as entries:
            found = [(entry.name, entry.stat()) for entry in entries if not entry.is_dir()]
        stamps += [
            f"{folder} {name} {status.st_size} {status.st_mtime_ns}"
            for name, status in sorted(found, key=lambda one: one[0])
        ]
    return hashlib.sha256("\n".join([__version__, *stamps]).encode()).hexdigest()


def digest_of(data: bytes) -> str:
    """Of the bytes of a file; short, it is no security boundary."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()

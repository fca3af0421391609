"""The copies that the manager keeps: one per tenant and address, shared by all sources that name it.

Rules (gitops.md, section 2.1; faults G08, G09, G11, G17 and G20):
  * Two tenants never share a copy, so nobody reads what only the other one's credentials can fetch.
  * A copy lives in numbered generations.  Collecting or discarding makes a new one; a reader keeps the one that it started
    with, and an old generation goes with its last reader.
  * After a restart the highest generation counts; everything unfinished is removed.
"""

import hashlib
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound
from gitops_ctl.git.collect import collect_garbage, is_due
from gitops_ctl.git.failures import own_machine
from gitops_ctl.git.fetching import FetchRequest
from gitops_ctl.git.layout import exclusive, is_sound, prepare_repository
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.url import GitUrl

__all__ = ["CloneCache", "Collector", "Snapshot", "collect_garbage", "prepare_repository"]

GENERATION: Final = "generation-"
BUILDING: Final = "building"


class Collector(Protocol):
    """What builds the next generation: `transport.ChildTransport` does it in a child process."""

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], into: Path) -> None: ...


class CloneCache:
    """All copies below `root`.  Methods may be called from any thread."""

    def __init__(self, root: Path) -> None:
        """Removes what an earlier process left unfinished."""
        self.root = root
        self._lock = threading.Lock()
        self._readers: dict[Path, int] = {}
        self._retired: set[Path] = set()
        root.mkdir(parents=True, exist_ok=True)
        for clone in root.iterdir():
            _recover(clone)

    def path_for(self, url: GitUrl, *, tenant: str) -> Path:
        """The repository to fetch into and to read from, now.

        Args:
            url: its normalised form counts.
            tenant: whose credentials fetch into it, for example namespace and Secret; copies are never shared across it.

        Raises:
            TransientError: FETCH_FAILED, the disk cannot be worked on; `lease` raises it too.
        """
        with self._lock:
            return self._newest(self._clone(url, tenant))

    def lease(self, url: GitUrl, *, tenant: str) -> "Snapshot":
        """A snapshot of what `path_for` gives now, without a gap between the two."""
        with self._lock:
            return self._take(self._newest(self._clone(url, tenant)))

    def snapshot(self, path: Path) -> "Snapshot":
        """A lease on a generation that `path_for` gave: it stays on disk until the lease is closed.

        Raises:
            NotFound: REPOSITORY_DAMAGED, the generation is gone already; ask for the present one.
        """
        with self._lock:
            if not path.exists():
                raise NotFound(f"the copy {path.name} has been replaced", code=ErrorCode.REPOSITORY_DAMAGED)
            return self._take(path)

    def release(self, path: Path) -> None:
        """Give one lease back; `Snapshot.close` calls it."""
        with self._lock:
            left = self._readers.get(path, 0) - 1
            if left > 0:
                self._readers[path] = left
                return
            self._readers.pop(path, None)
            if path in self._retired:
                self._remove(path)

    def discard(self, path: Path) -> None:
        """Start anew: the next `path_for` gives an empty generation; for a copy that turned out to be damaged.

        While the disk does not let us nothing happens, and the copy is found to be damaged once more.
        """
        with self._lock, suppress(OSError):
            _next_generation(path).mkdir(exist_ok=True)
            self._retire(path)

    def forget(self, url: GitUrl, *, tenant: str) -> None:
        """No source names the address any more: the copy goes, with its last reader."""
        with self._lock:
            clone = self._clone(url, tenant)
            for path in list(_generations(clone)):
                self._retire(path)

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], collector: Collector) -> Path:
        """Make a new, smaller generation when the present one has grown; the path to use from now on.

        Args:
            request: the last fetch; its `repository` is the present generation.
            keep: commits and tags that stay although no ref of the server names them (root, last accepted commit).
            collector: builds the generation.

        Raises:
            TransientError, Refused: the copy could not be packed; it stays in use.
        """
        path = request.repository
        with own_machine():
            if not is_due(path):
                return path
        building = path.parent / BUILDING
        shutil.rmtree(building, ignore_errors=True)
        await collector.collect(replace(request, repository=path), keep=keep, into=building)
        with self._lock, own_machine():
            fresh = building.rename(_next_generation(path))
            self._retire(path)
        return fresh

    def _take(self, path: Path) -> "Snapshot":
        self._readers[path] = self._readers.get(path, 0) + 1
        return Snapshot(path, self)

    def _clone(self, url: GitUrl, tenant: str) -> Path:
        return self.root / hashlib.sha256(f"{tenant}\0{url.normalised}".encode()).hexdigest()[:40]

    def _newest(self, clone: Path) -> Path:
        newest = max(_generations(clone), key=_number, default=clone / f"{GENERATION}1")
        if not (newest / "HEAD").exists():
            with own_machine(), exclusive(newest):
                prepare_repository(newest)
        return newest

    def _retire(self, path: Path) -> None:
        self._retired.add(path)
        if not self._readers.get(path):
            self._remove(path)

    def _remove(self, path: Path) -> None:
        self._retired.discard(path)
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A reader's lease on one generation; use it as a context manager, or close it."""

    path: Path
    cache: CloneCache

    def open(self) -> ObjectStore:
        """A store over the generation; one per thread."""
        return ObjectStore.open(self.path)

    def close(self) -> None:
        self.cache.release(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _recover(clone: Path) -> None:
    shutil.rmtree(clone / BUILDING, ignore_errors=True)
    newest = max(_generations(clone), key=_number, default=None)
    for path in list(_generations(clone)):
        if path != newest or not is_sound(path):
            shutil.rmtree(path, ignore_errors=True)


def _generations(clone: Path) -> list[Path]:
    return [path for path in clone.glob(f"{GENERATION}*") if path.name.removeprefix(GENERATION).isdecimal()]


def _number(path: Path) -> int:
    return int(path.name.removeprefix(GENERATION))


def _next_generation(path: Path) -> Path:
    return path.with_name(f"{GENERATION}{max(map(_number, _generations(path.parent)), default=0) + 1}")

"""One bare repository on disk: who may write it, what it remembers, how it is repaired.

Rules (gitops.md, section 2.1; faults G05, G10 and G17):
  * The refs of a copy keep objects alive and tell libgit2 what it has.  They are never read as an answer to where a branch
    is: that comes from the server, each time.
  * Who writes holds the lock file; it is released by the kernel when the writer dies.
  * What a killed writer left behind is removed by the next one, before anything else.
"""

import errno
import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import RepositoryInitFlag

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, TransientError
from gitops_ctl.git.fetching import Ref
from gitops_ctl.git.history import reachable
from gitops_ctl.git.objects import object_id_of
from gitops_ctl.git.store import ObjectStore

LOCK_FILE: Final = "in-use"
UNFINISHED_FILE: Final = "unfinished"
INCOMING: Final = "refs/incoming/tip"
KEPT: Final = "refs/kept/"
REDIRECTS: Final = "http.followRedirects"

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_LEFTOVERS: Final = ("objects/**/tmp_*", "objects/**/*_git2_*", "objects/**/*.lock", "refs/**/*.lock", "*.lock")


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Be the only writer of the repository at `path`; waits for the one before."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / LOCK_FILE).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare_repository(path: Path) -> None:
    """Make the repository, or repair what a killed fetch left: the caller is its only writer.

    Raises:
        TransientError: REPOSITORY_DAMAGED, it cannot be repaired; fetch into a new one.
        OSError, pygit2.GitError: the disk cannot be written; the next call goes on from there.
    """
    if not _is_made(path):
        flags = RepositoryInitFlag.BARE | RepositoryInitFlag.MKPATH | RepositoryInitFlag.NO_DOTGIT_DIR
        repository = pygit2.init_repository(path, flags=flags)
        # Redirects are refused: credentials would go along to a place that nobody named.
        repository.config[REDIRECTS] = False
        repository.free()
    if not (path / UNFINISHED_FILE).exists():
        return
    _remove_leftovers(path)
    try:
        with ObjectStore.open(path) as store:
            _drop_dangling_refs(store)
            _write_shallow_edges(store)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise  # that damages nothing: what is unfinished stays marked
        what = f"the local copy at {path.name} is damaged and is fetched anew"
        raise TransientError(what, code=ErrorCode.REPOSITORY_DAMAGED) from error
    (path / UNFINISHED_FILE).unlink()


def _is_made(path: Path) -> bool:
    """Whether the repository was made to its end: its setting about redirects is the last thing that is written."""
    if not (path / "HEAD").exists() or not (path / "objects").is_dir():
        return False
    config = path / "config"
    return config.exists() and REDIRECTS.partition(".")[2].lower() in config.read_text(errors="replace").lower()


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Marks the repository as being written; the mark stays when the writer dies or fails."""
    (path / UNFINISHED_FILE).touch()
    yield
    (path / UNFINISHED_FILE).unlink(missing_ok=True)


def kept_ref(ref: Ref) -> str:
    """Where a copy remembers what it fetched for a ref of the server."""
    return KEPT + hashlib.sha256(ref.full.encode()).hexdigest()[:32]


def read_ref(store: ObjectStore, name: str) -> str | None:
    """Target of a ref of the copy."""
    found = store.repository.references.get(name)
    return str(found.target) if found is not None else None


def pack_files(path: Path) -> list[Path]:
    """Packs of the copy, largest first."""
    packs = (path / "objects" / "pack").glob("pack-*.pack")
    return sorted(packs, key=lambda pack: pack.stat().st_size, reverse=True)


def size_bytes(path: Path) -> int:
    """Bytes of all files of the copy."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _remove_leftovers(path: Path) -> None:
    for pattern in _LEFTOVERS:
        for file in path.glob(pattern):
            file.unlink(missing_ok=True)
    pack = path / "objects" / "pack"
    for file in pack.glob("pack-*"):
        other = {".pack": ".idx", ".idx": ".pack"}.get(file.suffix)
        if other and not file.with_suffix(other).exists():
            file.unlink(missing_ok=True)
    (path / INCOMING).unlink(missing_ok=True)


def _drop_dangling_refs(store: ObjectStore) -> None:
    for name in list(store.repository.references):
        target = read_ref(store, name)
        if target is None or not store.contains(target):
            store.repository.references.delete(name)


def _write_shallow_edges(store: ObjectStore) -> None:
    """Tell libgit2 where the copy really ends: a fetch that died in between may have written it wrongly.

    Without this the server would be told that we have everything below our refs, and would never send it.
    """
    tips = []
    for name in store.repository.references:
        target = read_ref(store, name)
        if target is not None:
            found = store.read(target)
            tips.append(store.tag(target).target if found.kind == "tag" else target)
    edges = sorted(
        commit
        for commit in reachable(store, tips)
        if any(not store.contains(parent) for parent in store.links(commit).parents)
    )
    file = store.path / "shallow"
    if edges:
        file.write_text("".join(f"{commit}\n" for commit in edges))
    else:
        file.unlink(missing_ok=True)


def is_sound(path: Path) -> bool:
    """Whether the copy opens and each of its refs names an object that can be read."""
    try:
        with ObjectStore.open(path) as store:
            for name in store.repository.references:
                target = read_ref(store, name)
                if target is None or object_id_of((found := store.read(target)).kind, found.data) != target:
                    return False
    except (GitopsError, pygit2.GitError, OSError, ValueError):
        return False
    return True

"""The files of a folder on this machine, for `gitops-ctl check` in a checkout.  Symlinks are not followed."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from gitops_ctl.documents.tree import CONTROL_FOLDER, has_ignore_name, is_document_name

_MARKS: Final = (CONTROL_FOLDER, ".git")

Stamp: TypeAlias = tuple[int, int, int, int]
"""Size, times of last change of content and of state in ns, number of the inode: what Git's own index looks at."""


@dataclass(frozen=True, slots=True)
class WorkFile:
    """One entry; `path` is relative to the root, with `/`."""

    path: str
    mode: int
    stamp: Stamp


def scan(root: Path, *, path: str = "") -> Iterator[WorkFile]:
    """Documents, ignore files and links below `root/path`, in no order; other names that begin with a dot are left out.

    Raises:
        OSError: a folder cannot be read.
    """
    stack = [path]
    while stack:
        folder = stack.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        stack.append(name)
                elif entry.is_symlink() or is_document_name(name) or has_ignore_name(name):
                    yield _work_file(name, entry.stat(follow_symlinks=False))


def control_files(root: Path) -> tuple[WorkFile, ...]:
    """The documents in `.gitops-ctl`, the trust policy and the consents, by path."""
    found = []
    for path in (root / CONTROL_FOLDER).rglob("*"):
        name = path.relative_to(root).as_posix()
        if is_document_name(name) and path.is_file() and not path.is_symlink():
            found.append(_work_file(name, path.lstat()))
    return tuple(sorted(found, key=lambda one: one.path))


def repository_root(path: Path) -> Path:
    """The nearest folder at or above `path` with a `.gitops-ctl` or a `.git`; else the folder of `path` itself."""
    start = path.resolve()
    if not start.is_dir():
        start = start.parent
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return start


def _work_file(path: str, status: os.stat_result) -> WorkFile:
    stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return WorkFile(path, stat.S_IFMT(status.st_mode), stamp)

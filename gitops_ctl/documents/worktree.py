"""The files of a folder on this machine, for `gitops-ctl check` in a checkout.  Symlinks are not followed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gitops_ctl.documents.tree import CONTROL_FOLDER, TreeFile, is_document_name, is_ignore_file

_NEVER: Final = ".git"


def scan(root: Path, *, path: str = "") -> Iterator[os.DirEntry[str]]:
    """Documents, ignore files and links below `root/path`, in no order; other names that begin with a dot are left out."""
    stack = [root / path if path else root]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        stack.append(Path(entry.path))
                elif entry.is_symlink() or is_document_name(entry.name) or is_ignore_file(entry.name):
                    yield entry


def tree_file(root: Path, entry: os.DirEntry[str]) -> TreeFile:
    """The entry as a tree would list it; paths have `/` and are relative to `root`."""
    mode = stat.S_IFLNK if entry.is_symlink() else stat.S_IFREG
    return TreeFile(os.path.relpath(entry.path, root).replace(os.sep, "/"), mode)


def control_files(root: Path) -> tuple[TreeFile, ...]:
    """The documents in `.gitops-ctl`, the trust policy and the consents, by path."""
    folder = root / CONTROL_FOLDER
    if not folder.is_dir():
        return ()
    paths = (
        path.relative_to(root).as_posix() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
    )
    return tuple(TreeFile(path, stat.S_IFREG) for path in sorted(paths) if is_document_name(path))


def repository_root(path: Path) -> Path:
    """The nearest folder above with a `.git`; `path` itself when there is none."""
    start = path.resolve()
    for folder in (start, *start.parents):
        if (folder / _NEVER).exists():
            return folder
    return start if start.is_dir() else start.parent

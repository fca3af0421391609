"""The files of a checkout, read as a whole for a search; a folder that is no checkout is refused before anything of it is read."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.splicetext import LARGEST_BYTES

MOST_ENTRIES: Final = 50_000
MOST_BYTES: Final = 2**29
_LEFT_OUT: Final = frozenset({".git", ".terraform", "node_modules", ".venv", "__pycache__"})
_HINT: Final = "name a checkout of the repository, or a folder in one"


def files_below(root: Path) -> dict[str, bytes]:
    """Regular files of a checkout that could be edited, by path; links are left out.

    Raises:
        Refused: USAGE; more than a search reads.
        OSError: a file cannot be read.
    """
    require_checkout(root)
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    for entry in _entries(root):
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
            continue
        left -= status.st_size
        if left < 0:
            raise _too_much(root, f"files of more than {MOST_BYTES // 2**20} MiB")
        file = Path(entry.path)
        found[file.relative_to(root).as_posix()] = file.read_bytes()
    return found


def require_checkout(root: Path) -> None:
    """Refuse a folder with more in it than a search looks at.

    Raises:
        Refused: USAGE.
    """
    for number, _ in enumerate(_entries(root), start=1):
        if number > MOST_ENTRIES:
            raise _too_much(root, f"more than {MOST_ENTRIES} files and folders")


def _entries(root: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below, folders too, in one order; what other programs keep in a checkout is left out."""
    stack = [str(root)]
    while stack:
        try:
            with os.scandir(stack.pop()) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue  # it may not be looked into, or went meanwhile
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif entry.name not in _LEFT_OUT:
                yield entry
                stack.append(entry.path)


def _too_much(root: Path, what: str) -> Refused:
    return Refused(f"the folder holds {what}", code=ErrorCode.USAGE, subject=str(root), hint=_HINT)

"""What this machine has left: disk and memory, asked before a long build and not in the middle of it."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError

_GIB = 1024**3


def free_disk(path: Path) -> int:
    """Free bytes where `path` is or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def free_memory(*, meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that a process could still take, also under the memory limit of a container."""
    available = next(
        (int(line.split()[1]) * 1024 for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:")),
        os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    )
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return available
    return available if limit == "max" else min(available, int(limit) - used)


def require_disk(places: Iterable[Path], *, needed: int) -> None:
    """Check each place.

    Raises:
        BlockedError: one has less than `needed` bytes (DISK_SHORT).
    """
    for place in places:
        free = free_disk(place)
        if free < needed:
            raise BlockedError(
                f"the build needs {needed / _GIB:.0f} GB of disk, {free / _GIB:.1f} GB are free",
                code=ErrorCode.DISK_SHORT,
                subject=str(place),
                hint="free disk space, or point XDG_CACHE_HOME, GOCACHE and GOMODCACHE to a larger disk",
            )


def require_memory(free: int, *, needed: int) -> None:
    """Check the memory.

    Raises:
        BlockedError: less than `needed` bytes are free (MEMORY_SHORT).
    """
    if free < needed:
        raise BlockedError(
            f"the build needs {needed / _GIB:.1f} GB of memory, {free / _GIB:.1f} GB are free",
            code=ErrorCode.MEMORY_SHORT,
            hint="close other programs, or point KUBEBUILDER_ASSETS to binaries built elsewhere",
        )

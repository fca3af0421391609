"""Processes that hold keys, tokens and configurations leave none of it on a disk when they die (cni-switch.md, section 21; forges.md, 21)."""

import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

_FILTER: Final = Path("/proc/self/coredump_filter")
"""What a core dump contains; the kernel's own choice includes everything that a process wrote."""


def forbid_core_dumps() -> None:
    """No core file is written for this process and those that it starts; it cannot be allowed again.

    A collector that the kernel pipes core dumps to is not bound by the limit: it is given no memory.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # there is none on other systems than Linux
        _FILTER.write_text("0")

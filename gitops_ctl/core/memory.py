"""Processes that hold keys, tokens and configurations leave none of it on a disk when they die (cni-switch.md, section 21; forges.md, 21)."""

import resource


def forbid_core_dumps() -> None:
    """No core file is written for this process and those that it starts; it cannot be allowed again."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

"""With whom a process and its children have connections, as the kernel says."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

Place = tuple[str, int]
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_LISTENS = "0A"


def family(pid: int) -> set[int]:
    """A process and everything that it started."""
    found, parents = {pid}, dict(_parents())
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def remote_ends(pids: set[int]) -> set[Place]:
    """Address and port at the other end of each TCP connection of these processes; of one that is being opened, too."""
    inodes = {inode for pid in pids for inode in _inodes(pid)}
    return {place for name in ("tcp", "tcp6") for place in _ends(Path("/proc/net") / name, inodes)}


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def _inodes(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if found := _SOCKET.fullmatch(os.readlink(handle)):
                    yield found[1]


def _ends(table: Path, inodes: set[str]) -> Iterator[Place]:
    with suppress(OSError):
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and fields[3] != _LISTENS:
                yield _place(fields[2])


def _place(text: str) -> Place:
    """The kernel writes each word of an address in the order of its bytes in memory."""
    words, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(words[start : start + 8])[::-1] for start in range(0, len(words), 8))
    address = ip_address(raw)
    return str(getattr(address, "ipv4_mapped", None) or address), int(port, 16)

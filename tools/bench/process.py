"""What the kernel says about a process, and what the API server's audit log says about its requests."""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(value) for value in fields[11:15]) / _TICKS


def rss_mib(pid: int, *, peak: bool = False) -> float:
    """Resident memory now, or the most that it ever was."""
    name = "VmHWM:" if peak else "VmRSS:"
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise LookupError(f"{name} of process {pid}")


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@dataclass
class Audit:
    """Requests since the last `mark`."""

    path: Path
    offset: int = 0

    def mark(self) -> None:
        self.offset = self.path.stat().st_size

    def entries(self, agent: str) -> list[dict[str, object]]:
        """Entries of one user agent, complete lines only."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            data = stream.read()
        found = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines() if agent.encode() in line]
        return [entry for entry in found if str(entry.get("userAgent", "")).startswith(agent)]

    def counts(self, agent: str, *, by: Callable[[dict[str, object]], str] | None = None) -> dict[str, int]:
        """How many requests of each verb and resource."""
        return dict(sorted(Counter((by or verb_and_resource)(entry) for entry in self.entries(agent)).items()))


def verb_and_resource(entry: dict[str, object]) -> str:
    reference = entry.get("objectRef")
    resource = str(reference.get("resource", "")) if isinstance(reference, dict) else str(entry.get("requestURI", ""))
    subresource = str(reference.get("subresource", "")) if isinstance(reference, dict) else ""
    return f"{entry.get('verb')} {resource}{'/' if subresource else ''}{subresource}"

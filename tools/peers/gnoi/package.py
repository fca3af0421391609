"""The packages that the peer installs: one line that says what follows, then filler.

The filler is zeros, so that a large package takes no room on a file system with holes.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"PEER-PACKAGE "
_LONGEST_HEADER = 4096
_BLOCK = 2**20


@dataclass(frozen=True)
class Package:
    """A file, as a plan names it."""

    path: Path
    version: str
    size: int
    sha256: str


class PackageError(Exception):
    """What an InstallError says: its type and detail."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def write_package(path: Path, version: str, *, filler: int = 1000, **members: Any) -> Package:
    """Make a package.

    Args:
        path: of the file.
        version: what it installs.
        filler: bytes after the header.
        members: of the header, also wrong ones: platform, size, sha256, incompatible, fail_activation.
    """
    digest = hashlib.sha256()
    for begin in range(0, filler, _BLOCK):
        digest.update(bytes(min(_BLOCK, filler - begin)))
    tree = {"version": version, "platform": "C9300", "size": filler, "sha256": digest.hexdigest(), **members}
    header = MAGIC + json.dumps(tree).encode() + b"\n"
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + filler)
    whole = hashlib.sha256(header)
    for begin in range(0, filler, _BLOCK):
        whole.update(bytes(min(_BLOCK, filler - begin)))
    return Package(path, version, len(header) + filler, whole.hexdigest())


class Received:
    """A package while it comes in; of its content only the digest is kept."""

    def __init__(self) -> None:
        self.size = 0
        self._begin = bytearray()
        self._members: dict[str, Any] | None = None
        self._digest = hashlib.sha256()
        self._filler = 0

    def feed(self, content: bytes) -> None:
        self.size += len(content)
        if self._members is None:
            self._begin += content
            line, end, content = bytes(self._begin).partition(b"\n")
            if not end or not line.startswith(MAGIC):
                return
            self._members = json.loads(line.removeprefix(MAGIC))
            self._begin.clear()
        self._filler += len(content)
        self._digest.update(content)

    def judged(self, platform: str) -> dict[str, Any]:
        """The header of a good package.

        Raises:
            PackageError: it is not one for this platform.
        """
        members = self._members
        if members is None or len(self._begin) > _LONGEST_HEADER:
            raise PackageError("PARSE_FAIL", "this is no package")
        if (members["size"], members["sha256"]) != (self._filler, self._digest.hexdigest()):
            raise PackageError("INTEGRITY_FAIL", "the digest of the package is another one")
        if members.get("incompatible") or not platform.startswith(members["platform"]):
            raise PackageError("INCOMPATIBLE", f"the package is for {members['platform']}, not for {platform}")
        return members

"""Cuts a watch stream into lines.  Pure.

aiohttp's own line reader refuses lines over half a megabyte, and one custom resource may be three times as large.
"""

from typing import Final

from gitops_ctl.core.errors import Unavailable

LINE_LIMIT_BYTES: Final = 8 * 1024 * 1024


class ProtocolFailed(Unavailable):
    """The stream holds something that no API server sends; it is opened again."""


class LineSplitter:
    """Complete lines out of chunks of any size.

    What is left when the stream ends is a cut-off line: nobody asks for it, because the stream is resumed from the last
    version and the event comes again.
    """

    def __init__(self, *, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newline; empty lines are left out.

        Raises:
            ProtocolFailed: a line is longer than the limit.
        """
        *complete, rest = chunk.split(b"\n")
        lines: list[bytes] = []
        for piece in complete:
            line = b"".join((*self._parts, piece)) if self._parts else piece
            self._parts.clear()
            self._held_bytes = 0
            self._require_short(len(line))
            if line:
                lines.append(line)
        if rest:
            self._parts.append(rest)
            self._held_bytes += len(rest)
            self._require_short(self._held_bytes)
        return lines

    def _require_short(self, length: int) -> None:
        if length > self._limit_bytes:
            raise ProtocolFailed(f"a watch line is longer than {self._limit_bytes} bytes")

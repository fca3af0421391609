"""Both framings of RFC 6242 on two byte streams, written apart from any client."""

import re
from typing import BinaryIO

END = b"]]>]]>"
_HEADER = re.compile(rb"\n#([1-9][0-9]*|#)\n")


class Wire:
    """Messages in and out; `chunked` is set once both sides said base:1.1."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._in = incoming
        self._out = outgoing
        self.chunked = False

    def receive(self) -> bytes | None:
        """The next message, None when the client has gone."""
        return self._chunks() if self.chunked else self._until_end()

    def send(self, message: bytes) -> None:
        """The message, as one chunk or up to the end mark."""
        framed = b"\n#%d\n%s\n##\n" % (len(message), message) if self.chunked else message + END
        self.write(framed)

    def write(self, raw: bytes) -> None:
        """These very bytes, whatever they are."""
        self._out.write(raw)
        self._out.flush()

    def _until_end(self) -> bytes | None:
        found = bytearray()
        while not found.endswith(END):
            byte = self._in.read(1)
            if not byte:
                return None
            found += byte
        return bytes(found[: -len(END)])

    def _chunks(self) -> bytes | None:
        message = b""
        while True:
            header = self._header()
            if header is None or header == b"#":
                return None if header is None else message
            message += self._in.read(int(header))

    def _header(self) -> bytes | None:
        line = b""
        while not (match := _HEADER.fullmatch(line)):
            byte = self._in.read(1)
            if not byte or len(line) > 12:
                return None
            line += byte
        return match.group(1)

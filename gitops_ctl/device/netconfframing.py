"""Messages of NETCONF cut out of a byte stream, in both framings (devices.md, section 6; RFC 6242).

The library's own parser looks at everything that it has again with each packet, which takes minutes for a large reply, and knows
no limit.  This one looks at each byte once and refuses what is too large, misframed or no UTF-8, and every document type
declaration, which NETCONF forbids and XML parsers obey.  Pure.
"""

import re
from typing import Final

LARGEST_REPLY: Final = 32 * 1024 * 1024
"""Bytes of one message (devices.md, section 6)."""

END: Final = b"]]>]]>"
_HEADER: Final = re.compile(rb"\n#([1-9][0-9]{0,9}|#)\n")
_BEGUN: Final = re.compile(rb"\n?|\n#[1-9]?[0-9]{0,9}|\n##")
"""What may still become the header of a chunk."""


class Misframed(Exception):
    """The stream can no longer be cut into messages; the session has to end."""


class Framing:
    """Collects what arrives.  It begins with the end marks of base:1.0; `chunked` is set after the hellos."""

    def __init__(self, *, largest: int = LARGEST_REPLY) -> None:
        self.chunked = False
        self._largest = largest
        self._pending = bytearray()
        self._message = bytearray()
        self._missing = 0
        self._searched = 0

    def feed(self, data: bytes) -> tuple[str, ...]:
        """The messages that are complete with `data`, in their order.

        Raises:
            Misframed: too large, not framed as agreed, not UTF-8, or with a document type declaration.
        """
        self._pending += data
        messages = []
        while (message := self._chunks() if self.chunked else self._up_to_end()) is not None:
            messages.append(_text(message))
        return tuple(messages)

    def frame(self, message: str) -> bytes:
        """`message` as it goes over the wire."""
        data = message.encode()
        return b"\n#%d\n%s\n##\n" % (len(data), data) if self.chunked else data + END

    def _up_to_end(self) -> bytes | None:
        at = self._pending.find(END, max(0, self._searched - len(END)))
        if max(at, len(self._pending) - len(END)) > self._largest:
            raise Misframed(f"a message of more than {self._largest} bytes")
        if at < 0:
            self._searched = len(self._pending)
            return None
        message = bytes(self._pending[:at])
        del self._pending[: at + len(END)]
        self._searched = 0
        return message

    def _chunks(self) -> bytes | None:
        while self._pending:
            if self._missing:
                part = self._pending[: self._missing]
                self._message += part
                self._missing -= len(part)
                del self._pending[: len(part)]
                continue
            size = self._header()
            if size is None:
                return None
            if size == 0:
                message, self._message = bytes(self._message), bytearray()
                return message
            if len(self._message) + size > self._largest:
                raise Misframed(f"a message of more than {self._largest} bytes")
            self._missing = size
        return None

    def _header(self) -> int | None:
        """Length of the next chunk, 0 for the end of the message, None until it has arrived."""
        match = _HEADER.match(self._pending)
        if match is not None:
            size = bytes(match.group(1))
            del self._pending[: match.end()]
            return 0 if size == b"#" else int(size)
        if not _BEGUN.fullmatch(self._pending):
            raise Misframed("no chunk begins where one has to")
        return None


def _text(message: bytes) -> str:
    try:
        text = message.decode()
    except UnicodeDecodeError as error:
        raise Misframed(f"byte {error.start} is not UTF-8") from error
    if "<!DOCTYPE" in text:
        raise Misframed("a document type declaration, which NETCONF forbids")
    return text.strip()

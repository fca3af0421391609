r"""Strict parser of raw trees.

Rules (gitops.md, sections 2.4 and 3.4; faults X12 and X14):
  * Only the five modes that Git writes; no entry twice, also not once as file and once as folder; Git's order.
  * No name that some file system takes for `.git`, for a parent folder, or for a path of several parts.  A name is refused
    for what it could become in any checkout, although this product makes none.
  * A name that is not UTF-8, or holds control characters, is legal in Git; it is shown with `\xNN` and `\uNNNN` escapes, so that no
    message can move a cursor or turn the direction of a line.  That is unambiguous, because a backslash in a name is refused.

Checks run over whole trees at a time, in C: judging a long history reads far more entries than it reports.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused

DIRECTORY: Final = 0o40000
FILE: Final = 0o100644
EXECUTABLE: Final = 0o100755
SYMLINK: Final = 0o120000
GITLINK: Final = 0o160000
"""A submodule: the id is a commit of another repository."""

RawEntry: TypeAlias = tuple[bytes, bytes, bytes]
"""Mode in octal digits, name, binary object id; as in the tree."""

_ENTRY: Final = rb"(100644|40000|100755|120000|160000) ([^\0/\\]+)\0([\s\S]{20})"
_ENTRIES: Final = re.compile(_ENTRY)
_WHOLE: Final = re.compile(rb"(?:(?:100644|40000|100755|120000|160000) [^\0/\\]+\0[\s\S]{20})*+")
_TREE: Final = b"40000"
_RESERVED: Final = frozenset((b".", b".."))
_DOT_GIT: Final = re.compile(r"(?i)(?:\.git|git~\d+)[ .]*(?::.*)?")
_IGNORED_BY_HFS: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_CONTROL: Final = re.compile(r"[\0-\x1f\x7f]")
_MISLEADING: Final = re.compile("[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters of the second block, marks of direction, and ends of lines.  Bytes that are no UTF-8 have the short escape."""
_MODES: Final = {b"40000": DIRECTORY, b"100644": FILE, b"100755": EXECUTABLE, b"120000": SYMLINK, b"160000": GITLINK}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree; `name` is one path segment, readable (see the module docstring)."""

    name: str
    mode: int
    id: str

    @property
    def is_directory(self) -> bool:
        return self.mode == DIRECTORY

    @property
    def is_file(self) -> bool:
        """A regular file, executable or not: neither symlink nor submodule."""
        return self.mode in (FILE, EXECUTABLE)


def scan_tree(object_id: str, data: bytes) -> tuple[RawEntry, ...]:
    """Entries of a tree, checked, in stored order, still in Git's own terms.

    Raises:
        Refused: MALFORMED_OBJECT.
    """
    entries = tuple(_ENTRIES.findall(data))
    if not entries and not data:
        return ()
    modes, names, _ = zip(*entries, strict=True) if entries else ((), (), ())
    joined = b"\0".join(names)
    # Mode, space, NUL and id of each entry; less than the whole when the pattern had to pass over something.
    if len(joined) + len(b"".join(modes)) + len(entries) * 21 + 1 != len(data):
        raise _malformed(object_id, _what_is_wrong(data))
    distinct = set(names)
    if len(distinct) != len(names):
        raise _malformed(object_id, "a name stands in it twice")
    lowered = b"\0" + joined.lower()
    if not joined.isascii() or not _RESERVED.isdisjoint(distinct) or b"\0.g" in lowered or b"git~" in lowered:
        for name in names:
            _require_plain(object_id, name)
    keys = [name + b"/" if mode == _TREE else name for mode, name, _ in entries] if _TREE in modes else list(names)
    if keys != sorted(keys):
        raise _malformed(object_id, "its entries are not in Git's order")
    return entries


def parse_tree(object_id: str, data: bytes) -> tuple[TreeEntry, ...]:
    """Entries of a tree, checked, in stored order.

    Raises:
        Refused: MALFORMED_OBJECT.
    """
    return tuple(to_entry(raw) for raw in scan_tree(object_id, data))


def to_entry(raw: RawEntry) -> TreeEntry:
    """The readable form of an entry that `scan_tree` let pass."""
    mode, name, binary_id = raw
    return TreeEntry(to_name(name), _MODES[mode], binary_id.hex())


def to_name(name: bytes) -> str:
    """The readable form of a file name."""
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    readable = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return _MISLEADING.sub(lambda found: f"\\u{ord(found[0]):04x}", readable)


def _require_plain(object_id: str, name: bytes) -> None:
    text = name.decode("utf-8", "backslashreplace")
    if text in (".", ".."):
        raise _malformed(object_id, f"an entry is named {text!r}")
    if _DOT_GIT.fullmatch(_IGNORED_BY_HFS.sub("", text)):
        raise _malformed(object_id, f"an entry is named {text!r}, which a file system can take for .git")


def _what_is_wrong(data: bytes) -> str:
    """One sentence about the first entry that the pattern does not match."""
    found = _WHOLE.match(data)
    rest = data[found.end() :] if found else data
    mode, _, tail = rest[:300].partition(b" ")
    name = tail.partition(b"\0")[0]
    shown = to_name(name)[:100]
    if mode not in _MODES:
        return f"the entry {shown!r} has the mode {mode[:10].decode('ascii', 'backslashreplace')!r}"
    if not name or b"/" in name or b"\\" in name:
        return f"an entry is named {shown!r}: a name is one path segment without slash and backslash"
    return f"it ends within the entry {shown!r}"


def _malformed(object_id: str, what: str) -> Refused:
    return Refused(f"the tree {object_id} is malformed: {what}", code=ErrorCode.MALFORMED_OBJECT, subject=object_id)

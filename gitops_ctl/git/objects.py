"""Strict parser of raw commits and tags; trees are in `entries`.

Rules (gitops.md, sections 2.4, 3.4 and 4.1, A1 and A9):
  * The object id is computed again from the bytes: what is parsed is what was asked for.
  * `tree`, `parent` (two at most), `author` and `committer` come first, once, in this order; no header stands twice.
  * One signature at most, in one block.  A commit's is in `gpgsig`, a tag's is the end of its message.
  * The payload is the object's own bytes without the signature; nothing is ever written again from parsed parts.
  * NUL bytes and objects above 64 KiB are refused.

Pure: bytes in, values out.
"""

import codecs
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.entries import TreeEntry, parse_tree

__all__ = [
    "MAX_OBJECT_BYTES",
    "Links",
    "RawCommit",
    "RawTag",
    "Stamp",
    "TreeEntry",
    "object_id_of",
    "parse_commit",
    "parse_links",
    "parse_tag",
    "parse_tree",
]

MAX_OBJECT_BYTES: Final = 64 * 1024
"""Largest commit or tag."""

_NUMBERS: Final = rb"(0|[1-9][0-9]{0,11}) ([+-][0-9]{4})"
_PERSON: Final = rb"((?:[^<>\n]* )?)<([^<>\n]*)> " + _NUMBERS
_COMMIT_HEAD: Final = re.compile(
    rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)author " + _PERSON + rb"\ncommitter " + _PERSON + rb"\n"
)
_TAG_HEAD: Final = re.compile(
    rb"object ([0-9a-f]{40})\ntype (commit|tree|blob|tag)\ntag ([^\n]+)\ntagger " + _PERSON + rb"\n"
)
_HEADER: Final = re.compile(rb"([A-Za-z0-9][A-Za-z0-9:._-]*) ([^\n]*(?:\n [^\n]*)*)\n")
_LINKS: Final = re.compile(rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)")
_COMMITTED: Final = re.compile(rb"\ncommitter [^\n]*> ([0-9]{1,12}) ")
_BEGIN: Final = re.compile(
    rb"^-----BEGIN (?:PGP SIGNATURE|PGP MESSAGE|SSH SIGNATURE|SIGNED MESSAGE)-----", re.MULTILINE
)
"""What git takes for the start of a signature, at the start of a line."""
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z ]+)-----[ \t\r]*\n(?:(?!-----)[^\n]*\n)+-----END \1-----\s*")
_ORDERED: Final = (b"tree", b"parent", b"author", b"committer")
_SECOND_SIGNATURE: Final = (b"gpgsig-sha256",)
_ENCODINGS: Final = re.compile(
    r"(utf-8|us-ascii|iso-?8859-?\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|euc-(jp|kr)|shift_jis|gbk|gb18030|big5)"
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Author, committer or tagger line.  The writer of the object chose all of it: it proves nothing."""

    name: str
    email: str
    time: datetime


@dataclass(frozen=True, slots=True)
class RawCommit:
    """A commit whose form is in order.  Whether anybody may have made it is for the trust room to say.

    Attributes:
        parents: in the order of the object; none for a root, two for a merge.
        signature: the armored block of `gpgsig`, its lines unfolded, or None.
        payload: the bytes that the signature covers; the whole object when there is none.
        raw: the object as stored.
    """

    id: str
    tree: str
    parents: tuple[str, ...]
    author: Stamp
    committer: Stamp
    message: str
    signature: bytes | None
    payload: bytes
    raw: bytes

    @property
    def subject(self) -> str:
        """First line of the message."""
        return self.message.split("\n", 1)[0]

    @property
    def committer_name(self) -> str:
        return self.committer.name

    @property
    def committer_email(self) -> str:
        return self.committer.email

    @property
    def committer_time(self) -> datetime:
        return self.committer.time


@dataclass(frozen=True, slots=True)
class RawTag:
    """An annotated tag whose form is in order.

    Attributes:
        target: object id that the tag names.
        target_kind: `commit`, `tree`, `blob` or `tag`.
        name: name inside the object, without `refs/tags/`.
        signature: the armored block at the end of the message, or None.
        payload: the bytes before it.
    """

    id: str
    target: str
    target_kind: str
    name: str
    tagger: Stamp
    message: str
    signature: bytes | None
    payload: bytes
    raw: bytes

    @property
    def tagger_email(self) -> str:
        return self.tagger.email


@dataclass(frozen=True, slots=True)
class Links:
    """What a walk through history needs of a commit, read without any check of its form.

    Attributes:
        parents: as the raw bytes name them, also where a shallow copy ends.
        time: committer seconds, 0 when unreadable; only ever used to walk in a good order.
    """

    tree: str
    parents: tuple[str, ...]
    time: int


def parse_commit(object_id: str, data: bytes) -> RawCommit:
    """The commit behind `object_id`.

    Raises:
        Refused: MALFORMED_OBJECT or OBJECT_TOO_LARGE.
    """
    _require_sound(object_id, "commit", data)
    found = _COMMIT_HEAD.match(data)
    end = data.find(b"\n\n")
    if found is None or end < 0:
        raise _malformed(object_id, _what_is_wrong(data))
    parents = tuple(line[7:].decode() for line in found[2].splitlines())
    if len(parents) > 2:
        raise _malformed(object_id, f"it has {len(parents)} parents, a merge may have two")
    if len(set(parents)) != len(parents):
        raise _malformed(object_id, "both parents are the same commit")
    headers = _extra_headers(object_id, data, found.end(), end + 1)
    signature, payload = _split_signature(object_id, data, headers.get(b"gpgsig"))
    encoding = _encoding_of(data, headers.get(b"encoding"))
    return RawCommit(
        id=object_id,
        tree=found[1].decode(),
        parents=parents,
        author=_stamp(object_id, found.groups()[2:6], encoding),
        committer=_stamp(object_id, found.groups()[6:10], encoding),
        message=_text(data[end + 2 :], encoding),
        signature=signature,
        payload=payload,
        raw=data,
    )


def parse_tag(object_id: str, data: bytes) -> RawTag:
    """The annotated tag behind `object_id`.

    Raises:
        Refused: MALFORMED_OBJECT or OBJECT_TOO_LARGE.
    """
    _require_sound(object_id, "tag", data)
    found = _TAG_HEAD.match(data)
    if found is None or data[found.end() : found.end() + 1] != b"\n":
        raise _malformed(object_id, "its headers are not object, type, tag and tagger, once each and in this order")
    body = found.end() + 1
    begins = [match.start() for match in _BEGIN.finditer(data, body)]
    if len(begins) > 1:
        raise _malformed(object_id, "it holds more than one signature block")
    cut = begins[0] if begins else len(data)
    if begins:
        _require_one_block(object_id, data[cut:])
    return RawTag(
        id=object_id,
        target=found[1].decode(),
        target_kind=found[2].decode(),
        name=_text(found[3], "utf-8"),
        tagger=_stamp(object_id, found.groups()[3:7], "utf-8"),
        message=_text(data[body:cut], "utf-8"),
        signature=data[cut:] if begins else None,
        payload=data[:cut],
        raw=data,
    )


def parse_links(object_id: str, data: bytes) -> Links:
    """Tree, parents and committer time of a commit, for walks that may pass through old, odd history.

    Raises:
        Refused: MALFORMED_OBJECT when it does not even start as a commit.
    """
    found = _LINKS.match(data)
    if found is None:
        raise _malformed(object_id, "it does not start with a tree")
    parents = tuple(line[7:].decode() for line in found[2].splitlines()) if found[2] else ()
    when = _COMMITTED.search(data)
    return Links(found[1].decode(), parents, int(when[1]) if when else 0)


def object_id_of(kind: str, data: bytes) -> str:
    """The name that Git gives these bytes."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def _require_sound(object_id: str, kind: str, data: bytes) -> None:
    if len(data) > MAX_OBJECT_BYTES:
        raise Refused(
            f"the {kind} {object_id} has {len(data)} bytes, the limit is {MAX_OBJECT_BYTES}",
            code=ErrorCode.OBJECT_TOO_LARGE,
            subject=object_id,
        )
    if object_id_of(kind, data) != object_id:
        raise _malformed(object_id, f"its bytes are not those of the {kind} with this id")
    if b"\0" in data:
        raise _malformed(object_id, "it holds a NUL byte")


def _extra_headers(object_id: str, data: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """Place of each header after `committer`: name to the offsets of its first byte and of the byte after its last."""
    headers: dict[bytes, tuple[int, int]] = {}
    while start < end:
        found = _HEADER.match(data, start, end)
        if found is None:
            raise _malformed(object_id, "a line after the committer is no header")
        name = found[1]
        if name in headers or name in _ORDERED:
            raise _malformed(object_id, f"the header {name.decode()} stands twice or out of place")
        if name in _SECOND_SIGNATURE:
            raise _malformed(object_id, f"it has the header {name.decode()}; one signature, in gpgsig, is allowed")
        headers[name] = found.span()
        start = found.end()
    return headers


def _split_signature(object_id: str, data: bytes, span: tuple[int, int] | None) -> tuple[bytes | None, bytes]:
    """Signature and payload, as git splits them: folded lines lose their one leading space."""
    if span is None:
        return None, data
    start, end = span
    signature = data[start + len(b"gpgsig ") : end].replace(b"\n ", b"\n")
    _require_one_block(object_id, signature)
    return signature, data[:start] + data[end:]


def _require_one_block(object_id: str, signature: bytes) -> None:
    if len(_BEGIN.findall(signature)) > 1:
        raise _malformed(object_id, "it holds more than one signature block")
    if not _BLOCK.fullmatch(signature):
        raise _malformed(object_id, "its signature is not one armored block")


def _encoding_of(data: bytes, span: tuple[int, int] | None) -> str:
    """Codec of names and message.  Only plain text encodings: an unknown one is read as UTF-8, which hides no byte."""
    if span is None:
        return "utf-8"
    name = data[span[0] + len(b"encoding ") : span[1] - 1].decode("ascii", "replace").lower()
    if not _ENCODINGS.fullmatch(name):
        return "utf-8"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "utf-8"


def _stamp(object_id: str, fields: tuple[bytes, ...], encoding: str) -> Stamp:
    name, email, seconds, _ = fields
    try:
        moment = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        raise _malformed(object_id, f"the time {seconds.decode()} is beyond the year 9999") from None
    # The address is compared with the policy, so no header of the object may choose how it is read.
    return Stamp(_text(name[:-1], encoding), _text(email, "utf-8"), moment)


def _text(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")


def _what_is_wrong(data: bytes) -> str:
    """One sentence about a commit that the head pattern did not match."""
    head, separator, _ = data.partition(b"\n\n")
    if not separator:
        return "no empty line ends its headers"
    names = [line.split(b" ", 1)[0] for line in head.split(b"\n") if not line.startswith(b" ")]
    for name in (b"tree", b"author", b"committer"):
        if names.count(name) != 1:
            return f"it has {names.count(name)} {name.decode()} headers, one is needed"
    order = [name for name in names if name in _ORDERED]
    if names[: len(order)] != sorted(order, key=_ORDERED.index):
        return "its headers are not in the order tree, parent, author, committer"
    return "a tree, parent, author or committer line is not as Git writes it"


def _malformed(object_id: str, what: str) -> Refused:
    return Refused(f"the object {object_id} is malformed: {what}", code=ErrorCode.MALFORMED_OBJECT, subject=object_id)

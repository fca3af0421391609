"""What we write into the body of a pull request to find it again, and how people's own words around it stay (forges.md, section 3).

The block between two comments is ours and is rewritten; everything outside stays.  The marker at its end is one JSON object in an
HTML comment.  One that does not read exactly as we write it was edited by somebody: nothing is concluded from it.
"""

import enum
import json
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.jsonvalue import JsonObject

BEGIN: Final = "<!-- gitops-ctl:begin -->"
_START: Final = "<!-- gitops-ctl {"
_MARKER: Final = re.compile(r"^<!-- gitops-ctl (\{.*\}) -->$", re.MULTILINE)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_MEMBERS: Final = ("base", "closedFor", "content", "head", "op", "purpose", "v")
MOST_CLOSED: Final = 20


class MarkerState(enum.Enum):
    """A body without a marker of ours, or with one that was edited."""

    ABSENT = "absent"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Marker:
    """What a pull request of ours is about.

    Attributes:
        op: UID of the operation that asks.
        content: digest of the files as they will be.
        base, head: commits that our commit stands on, and itself.
        closed_for: digests that a person closed an earlier one for, oldest first.
    """

    purpose: str
    op: str
    content: str
    base: str
    head: str
    closed_for: tuple[str, ...] = ()


Found: TypeAlias = Marker | MarkerState


def marker_line(marker: Marker) -> str:
    """The comment; two hyphens in a row never stand inside it."""
    tree: JsonObject = {
        "v": 1,
        "purpose": marker.purpose,
        "op": marker.op,
        "content": marker.content,
        "base": marker.base,
        "head": marker.head,
        "closedFor": list(marker.closed_for[-MOST_CLOSED:]),
    }
    return f"<!-- gitops-ctl {_escaped(canonical_json(tree).decode())} -->"


def search_text(purpose: str) -> str:
    """A piece of the marker that every pull request of this purpose holds."""
    return _escaped(f'"purpose":{json.dumps(purpose)}')


def _escaped(text: str) -> str:
    return text.replace("--", "-\\u002d").replace("--", "-\\u002d").replace(">", "\\u003e")


def read_marker(body: str) -> Found:
    """The marker of a body."""
    text = _with_newlines(body)
    if text.count(_START) != 1:
        return MarkerState.DAMAGED if _START in text or BEGIN in text else MarkerState.ABSENT
    found = _MARKER.search(text)
    try:
        tree = json.loads(found[1]) if found else None
    except ValueError:
        tree = None
    if not isinstance(tree, dict) or tuple(sorted(tree)) != _MEMBERS or tree["v"] != 1:
        return MarkerState.DAMAGED
    closed = tree["closedFor"]
    texts = [tree[name] for name in ("purpose", "op", "content", "base", "head")]
    if not all(isinstance(value, str) for value in texts) or not isinstance(closed, list):
        return MarkerState.DAMAGED
    purpose, op, content, base, head = texts
    digests = all(isinstance(value, str) and _DIGEST.fullmatch(value) for value in (content, *closed))
    if not digests or not _COMMIT.fullmatch(base) or not _COMMIT.fullmatch(head):
        return MarkerState.DAMAGED
    return Marker(purpose, op, content, base, head, tuple(closed))


def with_block(body: str, *, text: str, marker: Marker) -> str:
    """The body with our block in its place; a body without one gets it at its end."""
    block = f"{BEGIN}\n{text.strip()}\n\n{marker_line(marker)}"
    old = _with_newlines(body)
    began = old.find(BEGIN)
    ended = _MARKER.search(old, began + len(BEGIN)) if began >= 0 else None
    if ended is not None:
        return old[:began] + block + old[ended.end() :]
    return f"{old.rstrip()}\n\n{block}\n" if old.strip() else f"{block}\n"


def same_body(one: str, other: str) -> bool:
    """Whether two bodies are the same to a reader: forges change line ends and white space at the end."""
    return [line.rstrip() for line in _with_newlines(one).strip().split("\n")] == [
        line.rstrip() for line in _with_newlines(other).strip().split("\n")
    ]


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

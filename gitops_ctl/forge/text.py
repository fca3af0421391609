"""What people read: title and body of a pull request, the commit message, and how to do it by hand (forges.md, sections 10 and 14; fault P15).

Everything that comes from objects or files is foreign: it stands inside code, so that it can neither format, mention, link nor close
anything; it is cut; and what looks like a secret is not shown.
"""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.redact import REDACTED, redact_object, redact_text
from gitops_ctl.core.secretnames import is_secret_name
from gitops_ctl.documents.pointer import steps_of
from gitops_ctl.documents.splice import Absent, Edit
from gitops_ctl.forge.content import Edited, FileEdit

MAX_BODY: Final = 60_000
"""Characters: forges cut or refuse more."""

MAX_TITLE: Final = 120
MAX_DIFF: Final = 1200
MAX_VALUE: Final = 200
MAX_LINE: Final = 500
MAX_WHY: Final = 200
"""Lines of what the controller that asks says: a plan names up to a hundred devices."""

MAX_SHOWN: Final = 40
"""Changes, notes and lines that a body lists before it says how many more there are."""

_TITLE: Final = re.compile(r"[^A-Za-z0-9 .,=+()'/_:-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


@dataclass(frozen=True, slots=True)
class Told:
    """What a text is made of.

    Attributes:
        why: what the controller that asks says; several lines.
        notes: lines of files that stay and that a person should look at.
    """

    subject: ObjectId
    purpose: str
    why: str
    edits: tuple[FileEdit, ...]
    notes: tuple[str, ...]
    branch: str
    base: str
    expires: datetime | None


def code(text: str, *, limit: int = MAX_VALUE) -> str:
    """A code span around one line, whatever is in it, without a secret."""
    line = plain(text, limit=limit)
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    room = " " if longest or line != line.strip() or not line else ""
    return f"{fence}{room}{line}{room}{fence}"


def plain(text: str, *, limit: int = MAX_LINE) -> str:
    """One line without markup and without a secret, for conditions and commit messages."""
    # A comment that looks like our marker would make the real one unreadable.
    return cut(_CONTROL.sub(" ", redact_text(text)).replace("<!--", "<! --").strip(), limit=limit)


def shown(edit: Edit, value: object) -> str:
    """A value as JSON; hidden when its place is named like a secret."""
    steps = steps_of(edit.inner[-1].pointer if edit.inner else edit.pointer)
    if isinstance(value, Absent):
        return "(absent)"
    if any(is_secret_name(step) for step in steps):
        return REDACTED
    return json.dumps(redact_object({"value": value})["value"] if isinstance(value, dict | list) else value)


def place_of(edit: FileEdit) -> str:
    """`file`, document and pointer, and the way on inside of text."""
    file, one = edit
    inner = "".join(f" → {place.pointer}" for place in one.inner)
    number = f" (document {one.document})" if one.document else ""
    return f"{file}{number} {one.pointer}{inner}"


def title_of(told: Told) -> str:
    """A title that no forge reads anything into."""
    first = told.why.strip().split("\n", 1)[0] or f"Change asked for by {told.subject.kind} {told.subject.name}"
    words = " ".join(_TITLE.sub(" ", _CONTROL.sub(" ", redact_text(first))).split())
    return cut(f"gitops-ctl: {words}" if words else f"gitops-ctl: {told.purpose}", limit=MAX_TITLE)


def body_of(told: Told) -> str:
    """Our block: what waits, which values, where, until when, by hand, and what happens next."""
    lines = [
        f"**What waits:** {code(str(told.subject))} waits for this change (purpose {code(told.purpose)}).",
        "",
        *_fenced(told.why),
        "",
        "**The exact values:**",
        "",
        *_listed([_change_line(edit) for edit in told.edits]),
        "",
    ]
    if told.notes:
        lines += [
            "**Lines to look at,** they stay as they are:",
            "",
            *_listed([f"- {code(note, limit=MAX_LINE)}" for note in told.notes]),
            "",
        ]
    until = f"until {to_rfc3339(told.expires)}; after that this pull request is closed" if told.expires else "no limit"
    lines += [
        f"**Time:** {until}.",
        "",
        "**By hand:** make the same edits in your own commit; this pull request is then closed by itself.",
        "",
        *merge_lines(told),
        "",
        "**What happens next:** once the base branch holds the values, the waiting object goes on by itself. Nothing is merged by "
        "gitops-ctl. Closing this pull request is remembered: the same change is not proposed again unless somebody asks for it.",
    ]
    return cut("\n".join(lines), limit=MAX_BODY)


def merge_lines(told: Told) -> list[str]:
    """Why not to fast-forward, and the command for a signed merge."""
    return [
        "**Merging:** the commit is signed by the controller's proposer key, which authorises nothing. Merge it with a **merge commit**, or "
        "squash and sign it yourself; a fast-forward to it is refused.",
        "",
        "```sh",
        f"git fetch origin {told.branch}",
        f"git merge --no-ff -S FETCH_HEAD   # on {told.base if _is_plain_ref(told.base) else 'the base branch'}",
        "```",
    ]


def by_hand(edits: Sequence[FileEdit]) -> str:
    """The edits as one line of instructions."""
    parts = [_instruction(edit) for edit in edits[:MAX_SHOWN]]
    return "; ".join(parts) + (f"; and {len(edits) - MAX_SHOWN} more" if len(edits) > MAX_SHOWN else "")


def diff_of(edited: Edited) -> str:
    """The unified diff, without a secret, for where no forge shows it."""
    lines: list[str] = []
    for path in sorted(edited.changed):
        sides = (edited.before[path], edited.files[path][1])
        old, new = (side.decode(errors="replace").splitlines() for side in sides)
        lines += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="", n=1)
    return cut("\n".join(redact_text(line) for line in lines), limit=MAX_DIFF)


def commit_message(told: Told, *, operation: str, content: str) -> str:
    """Subject, what changes, and the trailers that name operation and content."""
    lines = [title_of(told), "", *(f"- {plain(_instruction(edit))}" for edit in told.edits[:MAX_SHOWN]), ""]
    lines += [
        f"Gitops-Ctl-Purpose: {told.purpose}",
        f"Gitops-Ctl-Operation: {operation}",
        f"Gitops-Ctl-Content: {content}",
    ]
    return "\n".join(lines) + "\n"


def _change_line(edit: FileEdit) -> str:
    file, one = edit
    where = f"- {code(file)}, {code(place_of(edit).removeprefix(file).strip())}: "
    match one.op:
        case "add":
            return where + f"add {code(shown(one, one.after))}"
        case "remove":
            return where + f"remove (now {code(shown(one, one.before))})"
        case _:
            return where + f"{code(shown(one, one.before))} becomes {code(shown(one, one.after))}"


def _instruction(edit: FileEdit) -> str:
    _, one = edit
    place = plain(place_of(edit))
    if one.op == "remove":
        return f"in {place} remove the key"
    value = plain(shown(one, one.after), limit=MAX_VALUE)
    return f"in {place} {'add' if one.op == 'add' else 'set'} {value}"


def _fenced(text: str) -> list[str]:
    """Lines in a code block that nothing in them can end."""
    lines = [plain(line) for line in text.strip().splitlines() if line.strip()][:MAX_WHY]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence] if lines else []


def _listed(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_SHOWN
    return lines[:MAX_SHOWN] + ([f"- and {more} more"] if more > 0 else [])


def _is_plain_ref(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9._/-]+", name) is not None

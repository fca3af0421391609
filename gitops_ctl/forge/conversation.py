"""One comment of ours per marker, and other texts that we write into a forge (forges.md, sections 2 and 11.3)."""

from collections.abc import Iterable
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, text_at
from gitops_ctl.forge.neutral import Account, Comment

CLOSE_MARKER: Final = "<!-- gitops-ctl:closed -->"
"""Of the comment that says why one of ours was closed."""

OPEN_MARKER: Final = "<!-- gitops-ctl:open -->"
"""In that comment once the pull request is taken up again."""

LABEL_COLOUR: Final = "0b7285"
LABEL_TEXT: Final = "Opened by gitops-ctl"

_STATUS_CHARACTERS: Final = 140


def with_marker(text: str, marker: str) -> str:
    """The comment as it is stored."""
    return text if marker in text else f"{text.rstrip()}\n\n{marker}"


def own_comment(comments: Iterable[Comment], *, own: str, marker: str) -> Comment | None:
    """The first of the account `own` with the marker: a person who copies the marker does not become us."""
    for comment in comments:
        if comment.author.login.lower() == own.lower() and marker in comment.text:
            return comment
    return None


def status_text(text: str) -> str:
    """One line that every forge takes; GitHub takes the fewest characters."""
    line = " ".join(text.split())
    return line if len(line) <= _STATUS_CHARACTERS else f"{line[: _STATUS_CHARACTERS - 1]}…"


def account_at(tree: JsonObject, *path: str, login: str = "login") -> Account:
    """The account at `path`; the empty one for a deleted account."""
    found = object_at(tree, *path)
    return Account(text_at(found, login), int_at(found, "id"))


def account_or_none(tree: JsonObject, *path: str, login: str = "login") -> Account | None:
    """The account at `path`, None when there is none."""
    found = account_at(tree, *path, login=login)
    return found if found.login else None

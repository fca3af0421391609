"""Addresses of repositories: what may be fetched at all.

Rules (gitops.md, sections 2.4 and 22.1; fault X13):
  * https and ssh; file only where the caller allows it.  Everything else is refused before anything is started.
  * No password in the address, no query, no fragment, no part that a program could take for an option.
  * The form is checked by this parser alone, so no other one gets to see an odd address.
"""

import re
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused

MAX_URL_CHARACTERS: Final = 2048

_PORTS: Final = {"https": 443, "ssh": 22, "file": 0}
_FORM: Final = re.compile(
    r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?:(?P<user>[^@/]*)@)?"
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:/@\[\]]*)(?::(?P<port>[^/]*))?(?P<path>/.*)?"
)
_HOST: Final = re.compile(r"\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?")
_USER: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._+-]*")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~+@=:,%-]+)+/?")
_SHORT_FORM: Final = re.compile(r"[\w.-]+@[\w.-]+:\S+")


@dataclass(frozen=True, slots=True)
class GitUrl:
    """An address that passed.

    Attributes:
        user: only for ssh.
        port: the scheme's own when the address names none; 0 for file.
        path: with its leading slash.
        normalised: the form to compare with; two addresses of one repository that differ only in case of the host, in the
            default port or in a trailing slash are equal.
    """

    scheme: str
    user: str
    host: str
    port: int
    path: str
    normalised: str

    @property
    def display(self) -> str:
        """For messages: without user and default port."""
        return self.normalised.replace(f"//{self.user}@", "//", 1) if self.user else self.normalised

    def __str__(self) -> str:
        return self.display


def parse_url(text: str, *, allow_file: bool = False) -> GitUrl:
    """The parts of an address.

    Raises:
        Refused: URL_REFUSED, with what is wrong; never with a password that the text holds.
    """
    if len(text) > MAX_URL_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
        raise _refused("the address is too long, or holds other characters than visible ASCII")
    if _SHORT_FORM.fullmatch(text):
        raise _refused("the short form user@host:path is not read", hint="write ssh://user@host/path")
    found = _FORM.fullmatch(text)
    scheme = found["scheme"].lower() if found else ""
    if found is None or scheme not in _PORTS or (scheme == "file" and not allow_file):
        raise _refused("only https://host/path and ssh://user@host/path are allowed")
    user, host, path = found["user"] or "", found["host"].lower(), (found["path"] or "").rstrip("/")
    _require_path(path)
    if scheme == "file":
        if user or host or found["port"]:
            raise _refused("a file address has three slashes and no host")
        return GitUrl(scheme, "", "", 0, path, f"file://{path}")
    if not _HOST.fullmatch(host):
        raise _refused("the host is no host name and no address")
    _require_user(scheme, user)
    port = _port(found["port"], _PORTS[scheme])
    place = host if port == _PORTS[scheme] else f"{host}:{port}"
    return GitUrl(
        scheme, user, host, port, path, f"{scheme}://{user}@{place}{path}" if user else f"{scheme}://{place}{path}"
    )


def _require_path(path: str) -> None:
    if not _PATH.fullmatch(path):
        raise _refused("the path is missing, or holds a character that an address may not hold unescaped")
    for part in path.split("/")[1:]:
        if part in (".", "..") or part.startswith("-"):
            raise _refused("a part of the path is a dot, two dots, or starts with a hyphen")
    if re.search(r"%(?![2-7][0-9a-fA-F])|%2[fF]|%5[cC]|%7[fF]", path):
        raise _refused("the path has an escape that is no visible character of a name")


def _require_user(scheme: str, user: str) -> None:
    if scheme == "https" and user:
        raise _refused("the address names a user", hint="leave it out; credentials come from the Secret")
    if scheme == "ssh" and ":" in user:
        raise _refused("the address holds a password", hint="leave it out; credentials come from the Secret")
    if scheme == "ssh" and not _USER.fullmatch(user):
        raise _refused("an ssh address names its user", hint="write ssh://git@host/path")


def _port(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or int(text) > 65535:
        raise _refused("the port is no number from 1 to 65535")
    return int(text)


def _refused(what: str, *, hint: str = "") -> Refused:
    return Refused(f"the repository address is refused: {what}", code=ErrorCode.URL_REFUSED, hint=hint)

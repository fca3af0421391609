"""Which URL an inventory may have (topology-scheduling.md, 3.2, D8).

Written out, because the URL readers of the standard library repair what has to be refused.
"""

import re
from typing import Final

from gitops_ctl.core.jsonvalue import JsonValue

_PARTS: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?P<fragment>#.*)?"
)
_HOST: Final = re.compile(
    r"(?P<name>\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~-]+)?\]|[^:\[\]\\<>\"^`{|}]*)(?::(?P<port>[0-9]*))?"
)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def url_problem(url: JsonValue) -> str:
    """Why `url` cannot be the address of an inventory; empty when it can."""
    if not isinstance(url, str) or not url:
        return "must be an https URL"
    if any(character.isspace() or not character.isprintable() for character in url):
        return "must hold neither spaces nor control characters"
    parts = _PARTS.fullmatch(url)
    if parts is None or _BAD_ESCAPE.search(url):
        return "cannot be read as a URL"
    if parts["scheme"].lower() != "https":
        return "must begin with https://"
    return "must hold no fragment" if parts["fragment"] is not None else _authority_problem(parts["authority"])


def _authority_problem(authority: str) -> str:
    if "@" in authority:
        return "must hold no user info"
    host = _HOST.fullmatch(authority)
    if host is None:
        return "cannot be read as a URL"
    if not host["name"]:
        return "must name a host"
    if host["port"] and int(host["port"][:6]) > 65535:
        return "must have a port up to 65535"
    return ""

"""Credentials inside running text: error messages of servers and tools, log lines, fragments of YAML and JSON.

Each rule knows one form.  Names decide about `name: value` and `name=value`; shapes decide about the rest.  Every pattern
takes linear time: the text is foreign.
"""

import base64
import binascii
import re
from typing import Final

from gitops_ctl.core.secretnames import is_secret_name

MARK: Final = "[redacted]"

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_PEM_TAIL = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_BASE64_OF_PEM = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*+")
_PEM_BODY = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\ \t\r\n")

_SHAPES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    # User info: up to the last @ of the authority; a colon without a port behind it may be followed by unencoded slashes.
    (re.compile(r'(?i)\b([a-z][a-z0-9+.-]{0,20}+://)[^/?#\s"<>]*@'), r"\1"),
    (re.compile(r'(?i)\b([a-z][a-z0-9+.-]{0,20}+://)[^/?#\s"<>:@]*+:(?![0-9]*+[/?#\s])[^\s"<>@]{0,256}+@'), r"\1"),
    (re.compile(r'(?<![\w:])(//)[^/?#\s"<>:@]++:[^/?#\s"<>@]*+@'), r"\1"),
    # A scheme word and something that is no plain word: prose says "bearer token" and "basic authentication".
    (
        re.compile(r"(?i)\b(bearer|basic|negotiate)(\s+)(?!(?-i:[A-Z]?[a-z]+)\b(?![+/=_~.-]\S))[\w.~+/=-]{6,}+"),
        rf"\1\2{MARK}",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_+/=-]{12,}+(?:\.[A-Za-z0-9_-]++)*+"), MARK),
    (
        re.compile(r"\b(?:gh[pousr]_|glpat-|gldt-|github_pat_|xox[abeoprs]-|hvs\.|npm_|AGE-SECRET-KEY-)[\w-]{16,}+"),
        MARK,
    ),
    (re.compile(r"\$(?:1|2[aby]|5|6|7|8|9|y|apr1|argon2id?)\$[./A-Za-z0-9$=,+-]{8,}+"), MARK),
    (re.compile(r"(?i)([?&](?:sig|x-amz-signature|x-amz-credential)=)[^&\s\"']++"), rf"\1{MARK}"),
    # Lines of devices: a type number stands between the word and the secret.
    (re.compile(r"(?i)\b(secret|password|key|key-string)(\s+[05-9]\s+)\S++"), rf"\1\2{MARK}"),
    (re.compile(r"(?i)\b(snmp(?:-server)?\s+community\s+)(?!\[redacted)\S++"), rf"\1{MARK}"),
    (re.compile(r"(?i)\b(password|passphrase)(\s+)(\"[^\"]*+\"|'[^']*+')"), rf"\1\2{MARK}"),
    (re.compile(r"(\"auth\"\s*+:\s*+)\"[A-Za-z0-9+/=_-]{8,}+\""), rf"\1{MARK}"),
)

_PAIR = re.compile(
    r"""(?<![\w.-])(?P<key>[\w.-]++)(?P<close>\\*["'])?\]?[ \t]*+(?P<sign>:=|=>|:|=|%3[dD])(?!=)[ \t]*+"""
)
_NAMED_VALUE = re.compile(
    r"""(?P<open>\bname\\*["']?\s*+[:=]\s*+\\*["']?)(?P<name>[\w.-]++)\\*["']?\s*+,?\s*+(?:-\s)?\\*["']?value\\*["']?\s*+[:=][ \t]*+"""
)
_PREFIX = re.compile(r"(?:(?:Invalid|Unsupported|Duplicate) value:[ \t]*+)?+")
_QUOTED = re.compile(
    r"""(?P<slashes>\\++)(?P<mark>["']).*?(?:(?<!\\)(?P=slashes)(?P=mark)|\Z)"""
    r"""|[bru]{0,2}"(?:[^"\\]|\\.)*+(?:"|\Z)"""
    r"""|[bru]{0,2}'(?:[^'\\]|\\.|'')*+(?:'|\Z)""",
    re.DOTALL,
)
_LIST = re.compile(r"\[[^\[\]{}]*+(?:\]|\Z)")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]*+[ \t]*+(?:#[^\n]*+)?\r?\n")
_NEXT_LINE = re.compile(r"""\r?\n[ \t]++(?![-{\[#])[^\n:]++(?=\r?\n|\Z)""")
_NOTHING = re.compile(r"(?i)(?:true|false|null|none|nil|<nil>|~)(?![\w-])")
_IN_JSON = re.compile(r"[^\s,;}\]]++")
_WORD = re.compile(r"\S++")
_LINE = re.compile(r"[^\r\n]++")
_LINE_START = re.compile(r"""[ \t>+-]*+["']?""")
_WHOLE_LINE = ("authorization", "cookie")

_ABOUT_SECRETS = re.compile(r"(?i)\bsecrets?\b")
_JSON_DATA = re.compile(
    r"""((?:["']|\b)(?:data|stringData)\\*["']?\s*+:\s*+(?:map\[string\][\[\]a-z0-9]*+)?)\{.*|\b(Data:map)\[.*""",
    re.DOTALL,
)
_YAML_DATA = re.compile(r"^(?P<indent>[ \t]*+)(?:data|stringData):[ \t]*+\r?\n", re.MULTILINE)
_QUOTED_VALUE = re.compile(
    r"""((?:Invalid|Unsupported|Duplicate) value:\s*+)(?!\[redacted)(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|\S++)"""
)
_FRAGMENT = re.compile(r"(byte of|bigger context) \.\.\.\|.*?(?:\|\.\.\.|\Z)", re.DOTALL)


def without_credentials(text: str) -> str:
    """`text` with a mark in place of everything that looks like a credential."""
    text = _without_keys(text)
    if _ABOUT_SECRETS.search(text):
        text = _without_secret_data(text)
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return _without_values(_without_values(text, _NAMED_VALUE, "name"), _PAIR, "key")


def _without_keys(text: str) -> str:
    """Private keys: whole ones, ones that were cut at either end, and base64 of one."""
    text = _PEM.sub(MARK, text)
    found = _PEM_TAIL.search(text)
    while found:
        start = found.start()
        while start and text[start - 1] in _PEM_BODY:
            start -= 1
        text = f"{text[:start]}{MARK}{text[found.end() :]}"
        found = _PEM_TAIL.search(text)
    return _BASE64_OF_PEM.sub(_unless_public, text)


def _unless_public(found: re.Match[str]) -> str:
    """A certificate is no secret."""
    encoded = found[0].rstrip("=")
    try:
        head = base64.b64decode(encoded[: len(encoded) // 4 * 4][:64])
    except binascii.Error:
        return MARK
    return MARK if b"PRIVATE" in head or len(encoded) < 40 else found[0]


def _without_secret_data(text: str) -> str:
    """A text about a Secret without any value: everything behind the brace, and every line of the block."""
    text = _FRAGMENT.sub(rf"\1 ...|{MARK}|...", text)
    text = _QUOTED_VALUE.sub(rf"\1{MARK}", text)
    text = _JSON_DATA.sub(lambda found: f"{found[1] or found[2]}{MARK}", text)
    found = _YAML_DATA.search(text)
    while found:
        end = _end_of_block(text, found.end(), indent=len(found["indent"]))
        text = f"{text[: found.start()]}{found[0].rstrip()} {MARK}{text[end:]}"
        found = _YAML_DATA.search(text, found.start() + len(found[0]))
    return text


def _without_values(text: str, pattern: re.Pattern[str], group: str) -> str:
    """Replace what follows each match whose name is that of a secret."""
    parts: list[str] = []
    done = place = 0
    while found := pattern.search(text, place):
        place = found.end()
        if not is_secret_name(found[group]):
            continue
        start = _start_of_value(text, found)
        end = _end_of_value(text, start, found=found, name=found[group])
        if end > start:
            parts += (text[done:start], MARK)
            done = place = end
    return "".join((*parts, text[done:]))


def _start_of_value(text: str, found: re.Match[str]) -> int:
    prefix = _PREFIX.match(text, found.end())
    return prefix.end() if prefix else found.end()


def _end_of_value(text: str, start: int, *, found: re.Match[str], name: str) -> int:
    """Where the value that starts at `start` ends; `start` itself when nothing there is a value."""
    if text.startswith(MARK, start):
        return start + len(MARK)
    line = text.rfind("\n", 0, found.start()) + 1
    for pattern in (_QUOTED, _LIST):
        if matched := pattern.match(text, start):
            return matched.end()
    if matched := _BLOCK_SCALAR.match(text, start):
        return _end_of_block(text, matched.end(), indent=_indent(text[line : found.start()]))
    if matched := _NEXT_LINE.match(text, start):
        return matched.end()
    if start >= len(text) or text[start] in "\r\n{[" or _NOTHING.match(text, start):
        return start
    return _end_of_plain(text, start, found=found, alone=_is_alone(text, line, found, name=name))


def _is_alone(text: str, line: int, found: re.Match[str], *, name: str) -> bool:
    """Whether the value goes on to the end of its line, as in YAML and in headers."""
    begin = _LINE_START.match(text, line)
    starts_line = begin is not None and begin.end() >= found.start()
    named = found.re is _NAMED_VALUE or name.lower().endswith(_WHOLE_LINE)
    return named or (starts_line and ":" in found.group()[-3:])


def _end_of_plain(text: str, start: int, *, found: re.Match[str], alone: bool) -> int:
    in_json = found.re is _PAIR and bool(found["close"])
    behind_slash = found.start() > 0 and text[found.start() - 1] == "/"
    if behind_slash and found.end() == start and not in_json:
        return start  # Secret/team-network/git-token: what is said about it
    pattern = _IN_JSON if in_json else _LINE if alone else _WORD
    matched = pattern.match(text, start)
    if matched is None:
        return start
    return matched.end() if in_json else start + len(matched[0].rstrip(" \t,;)}"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _end_of_block(text: str, start: int, *, indent: int) -> int:
    """The end of the lines from `start` on that are indented further, or empty."""
    begin = start
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        line = text[start:end]
        if line.strip() and _indent(line) <= indent:
            break
        start = end
    return begin + len(text[begin:start].rstrip("\r\n"))

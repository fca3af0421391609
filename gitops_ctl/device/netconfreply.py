"""What a NETCONF reply says (devices.md, sections 6 and 7.1).

Every `rpc-error` of a reply is kept, with the command and the answer of the device's own parser where it gives them.  Warnings are
no errors.  A reply without data, `ok` or error proves nothing: a session that dies in a reload ends with one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TerminalError
from gitops_ctl.core.redact import REDACTED, redact_text

BASE: Final = "{urn:ietf:params:xml:ns:netconf:base:1.0}"
_MOST_ERRORS: Final = 32
_LONGEST_TEXT: Final = 500
_SHORTEST: Final = 6
_TOLD: Final = ("error-message", "error-path", "error-tag", "error-type", "bad-command", "parser-response")
"""Members of an error, which are texts for people."""


class AnswerUnusable(BlockedError):
    """The other side does not speak NETCONF as it has to."""

    code = ErrorCode.NETCONF_ANSWER_UNUSABLE


@dataclass(frozen=True, slots=True)
class RpcError:
    """One `rpc-error`; texts are empty where the device gave none."""

    type: str
    tag: str
    severity: str
    path: str
    message: str
    bad_commands: tuple[str, ...] = ()
    """`command: answer` of the device's command parser."""

    def __str__(self) -> str:
        words = [self.tag, self.message, f"at {self.path}" if self.path else "", *self.bad_commands]
        return "; ".join(word for word in words if word) or "an error without a text"


class NetconfRefused(TerminalError):
    """The device answered with errors; `errors` has all of them, in its order, without warnings."""

    code = ErrorCode.NETCONF_REFUSED

    def __init__(self, errors: tuple[RpcError, ...], *, subject: str = "") -> None:
        super().__init__("; ".join(str(error) for error in errors), subject=subject)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: the trees below `data`, whether it says `ok`, and its warnings."""

    data: tuple[etree._Element, ...]
    has_data: bool
    ok: bool
    warnings: tuple[RpcError, ...]


def read_reply(text: str, *, subject: str = "", known: tuple[str, ...] = ()) -> Reply:
    """What the reply says.

    Args:
        known: secrets that are taken out of its texts wherever they stand, because names and states of a device are shown to people.

    Raises:
        NetconfRefused: it holds errors.
        AnswerUnusable: it is not XML, not a reply, or empty.
    """
    root = parse_xml(text, subject=subject)
    _hide(root, known)
    if root.tag != f"{BASE}rpc-reply":
        raise AnswerUnusable(f"the answer is no rpc-reply but {etree.QName(root).localname}", subject=subject)
    told = tuple(_error(element) for element in list(root.iterfind(f"{BASE}rpc-error"))[:_MOST_ERRORS])
    errors = tuple(error for error in told if error.severity != "warning")
    if errors:
        raise NetconfRefused(errors, subject=subject)
    data = root.find(f"{BASE}data")
    ok = root.find(f"{BASE}ok") is not None
    if data is None and not ok:
        raise AnswerUnusable("the reply is empty: it has neither data nor ok nor an error", subject=subject)
    trees = tuple(data) if data is not None else ()
    return Reply(trees, has_data=data is not None, ok=ok, warnings=told)


def _hide(root: etree._Element, known: tuple[str, ...]) -> None:
    """Short secrets would take ordinary data with them; of those only the texts for people are cleaned."""
    for element in root.iter() if known else ():
        text = element.text or ""
        is_told = etree.QName(element).localname in _TOLD
        for value in known:
            if value in text and (is_told or len(value) >= _SHORTEST):
                text = element.text = text.replace(value, REDACTED)


def parse_xml(text: str, *, subject: str = "") -> etree._Element:
    """The root element; nothing outside of the text is ever read, and no entity is replaced.

    Raises:
        AnswerUnusable: not well-formed, or larger in depth or text than the parser allows.
    """
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode(), parser=parser)
    except etree.XMLSyntaxError as error:
        raise AnswerUnusable(f"the answer is not well-formed XML: {error.msg}", subject=subject) from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise AnswerUnusable("the answer declares a document type, which NETCONF forbids", subject=subject)
    return root


def _error(element: etree._Element) -> RpcError:
    def member(name: str) -> str:
        return _shown(element.findtext(f"{BASE}error-{name}"))

    severity = member("severity") or "error"
    info = element.find(f"{BASE}error-info")
    commands = tuple(_bad_commands(info)) if info is not None else ()
    return RpcError(member("type"), member("tag"), severity, member("path"), member("message"), commands)


def _bad_commands(info: etree._Element) -> Iterator[str]:
    for entry in info.iter("{*}bad-cli"):
        parts = (_shown(entry.findtext(f"{{*}}{name}")) for name in ("bad-command", "parser-response"))
        yield ": ".join(part for part in parts if part)


def _shown(text: str | None) -> str:
    """One line, bounded, without what looks like a credential: devices repeat the command that they refuse."""
    return redact_text(" ".join((text or "").split())[:_LONGEST_TEXT])

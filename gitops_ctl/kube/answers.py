"""What an answer of the API server means for us.  Pure: status and body in, one of our errors out.

The table behind `classify` was verified on a real server.  Three traps: a wrong field in an apply comes back as 500 and is
final (S05); a kind that is not served answers 404 in plain text, not with a `Status`; 409 and 422 have several meanings,
which only `details.causes` tells apart.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import cut, listed
from gitops_ctl.core.errors import (
    BlockedError,
    Conflict,
    Forbidden,
    GitopsError,
    InternalError,
    NotFound,
    RateLimited,
    Refused,
    TransientError,
    Unavailable,
)
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.core.redact import redact_text

MESSAGE_LIMIT: Final = 1000
"""Characters of a server's text that we pass on."""

_CONFLICT_MANAGER = re.compile(r'conflict with "([^"]*)"')
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_IMMUTABLE = re.compile(
    r"immutable|may not change (?:once set|fields other than)|can ?not (?:be changed|change)|may not be changed"
    r"|updates to .* are forbidden"
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
"""Values and names in the text of a cause; they say nothing about why it is refused."""
_TYPED_PATCH = "failed to create typed patch object"
_NOT_CONVERTED = "failed to convert new object"
_DROPPED_VERSION = re.compile(r"to an invalid group/version: (\S+)")
"""The managers' entries of the stored object name a version that is gone (S11); no repetition cures that."""
_VALUE_FREE = (
    _TYPED_PATCH,
    _NOT_CONVERTED,
    "illegal base64 data",
    "field not declared in schema",
    "unknown field",
    "expected string",
    "immutable",
    "must be no more than",
    "already exists",
)
_NEVER_QUOTES = (401, 403, 404, 409, 410, 429)
"""Answers whose text names objects, accounts and fields, and no values."""
_UNDECLARED = re.compile(r"(?:^|\s)(\.[^\s:]+): ")
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
_ADMISSION = ("admission webhook", "violates PodSecurity", "ValidatingAdmissionPolicy")


class FieldCause(NamedTuple):
    """One field that another manager owns; `manager` is empty when the server did not name it."""

    manager: str
    field: str


class FieldConflict(Conflict):
    """An apply would take fields from other managers.  Nothing was written.

    Attributes:
        causes: manager and field path of each conflict, in the server's order.
    """

    code = ErrorCode.FIELD_CONFLICT

    def __init__(self, message: str, *, causes: tuple[FieldCause, ...], subject: str = "") -> None:
        super().__init__(message, subject=subject)
        self.causes = causes


class AlreadyExists(Conflict):
    """A create met an object of that name: look whether it is ours."""


class ObjectReplaced(Conflict):
    """The object has another uid than the write named: it was deleted and made again."""


class Gone(TransientError):
    """The version or the continue token is no longer known: read the list again."""

    code = ErrorCode.GONE


class KindNotServed(NotFound):
    """The path does not exist: the server has no such kind (now)."""

    code = ErrorCode.KIND_NOT_SERVED


class NamespaceMissing(NotFound):
    """The namespace is not there, or is being deleted."""


class Unauthenticated(BlockedError):
    """The credential was refused, also after it was read again."""

    code = ErrorCode.UNAUTHENTICATED


class ServerRefused(Refused):
    """The server says no to this content.

    Attributes:
        fields: paths that the server named, in its order; empty when it named none.
        immutable_fields: those of `fields` that may not change in place.
        status: HTTP code of the answer.
        dropped_version: the `apiVersion` that an entry in the object's `managedFields` names and that is not served any more; else empty.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        fields: tuple[str, ...] = (),
        immutable_fields: tuple[str, ...] = (),
        dropped_version: str = "",
        subject: str = "",
    ) -> None:
        super().__init__(message, subject=subject)
        self.status = status
        self.fields = fields
        self.immutable_fields = immutable_fields
        self.dropped_version = dropped_version


def classify(status: int, body: bytes, *, subject: str = "", retry_after_s: float | None = None) -> GitopsError:
    """The error that an answer other than 2xx stands for.

    Args:
        status: HTTP code, or the `code` of an ERROR event.
        body: the whole answer; a `Status` object or plain text.
        subject: what was asked, for people: verb and path.
        retry_after_s: of the header `Retry-After`; `details.retryAfterSeconds` counts as well, the longer one wins.
    """
    tree = _status_of(body)
    wait_s = _longer(retry_after_s, int_at(tree, "details", "retryAfterSeconds"))
    answer = _Answer(status, tree, _message(status, tree, body, subject=subject), subject, wait_s)
    if status >= 500:
        return _failed(answer)
    return _BY_STATUS.get(status, _unexpected)(answer)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    tree: JsonObject
    message: str
    subject: str
    retry_after_s: float | None

    @property
    def causes(self) -> Sequence[JsonObject]:
        return objects_at(self.tree, "details", "causes")

    def refused(
        self, *, fields: tuple[str, ...] = (), immutable: tuple[str, ...] = (), dropped_version: str = ""
    ) -> ServerRefused:
        return ServerRefused(
            self.message,
            status=self.status,
            fields=fields,
            immutable_fields=immutable,
            dropped_version=dropped_version,
            subject=self.subject,
        )


def _status_of(body: bytes) -> JsonObject:
    try:
        tree = json.loads(body)
    except ValueError:
        return EMPTY
    return tree if isinstance(tree, dict) and tree.get("kind") == "Status" else EMPTY


def _message(status: int, answer: JsonObject, body: bytes, *, subject: str) -> str:
    details = object_at(answer, "details")
    text = text_at(answer, "message") or ("" if answer else body[:MESSAGE_LIMIT].decode(errors="replace").strip())
    about_secret = text_at(details, "kind").lower() in ("secret", "secrets") or "/secrets" in subject
    if about_secret and status not in _NEVER_QUOTES:
        # The text may quote the refused value (H22): of a Secret only the fields and what is wrong are shown.
        fields = [text_at(cause, "field") for cause in objects_at(details, "causes") if text_at(cause, "field")]
        said = [phrase for phrase in _VALUE_FREE if phrase in text] or [text_at(answer, "reason") or f"status {status}"]
        where = listed([*fields, *_UNDECLARED.findall(text)])
        return f"the Secret is refused: {', '.join(said)}{f' at {where}' if where else ''}"
    return cut(redact_text(text or f"HTTP status {status}"), limit=MESSAGE_LIMIT)


def _longer(header_s: float | None, detail_s: int) -> float | None:
    if header_s is None:
        return float(detail_s) if detail_s > 0 else None
    return max(header_s, float(detail_s))


def _failed(answer: _Answer) -> GitopsError:
    if any(text in answer.message for text in (_TYPED_PATCH, _NOT_CONVERTED)):
        return answer.refused(fields=tuple(_UNDECLARED.findall(answer.message)))
    if dropped := _DROPPED_VERSION.search(answer.message):
        return answer.refused(dropped_version=dropped[1])
    if answer.status == 501 or any(text in answer.message for text in _TOO_LARGE):
        return answer.refused()
    return Unavailable(answer.message, subject=answer.subject, retry_after_s=answer.retry_after_s)


def _unexpected(answer: _Answer) -> GitopsError:
    return InternalError(f"unexpected answer {answer.status}: {answer.message}", subject=answer.subject)


def _refused(answer: _Answer) -> GitopsError:
    named = [cause for cause in answer.causes if text_at(cause, "field")]
    fields = tuple(text_at(cause, "field") for cause in named)
    if "metadata.uid" in fields:
        # "Field is immutable" about the uid says that another object has the name now, nothing about the content.
        return ObjectReplaced(answer.message, subject=answer.subject)
    return answer.refused(
        fields=fields or tuple(_UNKNOWN.findall(answer.message)),
        immutable=tuple(text_at(cause, "field") for cause in named if _is_immutable(text_at(cause, "message"))),
    )


def _is_immutable(said: str) -> bool:
    """Whether a cause says that its field may not change; a value that holds such words does not count (S08)."""
    return _IMMUTABLE.search(_QUOTED.sub('""', said)) is not None


def _forbidden(answer: _Answer) -> GitopsError:
    if any(text_at(cause, "reason") == "NamespaceTerminating" for cause in answer.causes):
        return NamespaceMissing(answer.message, subject=answer.subject)
    if "exceeded quota" in answer.message:
        return BlockedError(answer.message, subject=answer.subject)
    if any(text in answer.message for text in _ADMISSION):
        return answer.refused()
    return Forbidden(answer.message, subject=answer.subject)


def _not_found(answer: _Answer) -> GitopsError:
    if not answer.tree:
        return KindNotServed(f"the server does not serve this kind ({answer.message})", subject=answer.subject)
    if text_at(answer.tree, "details", "kind") == "namespaces" and "/namespaces/" in answer.subject:
        return NamespaceMissing(answer.message, subject=answer.subject)
    return NotFound(answer.message, subject=answer.subject)


def _conflict(answer: _Answer) -> GitopsError:
    if text_at(answer.tree, "reason") == "AlreadyExists":
        return AlreadyExists(answer.message, subject=answer.subject)
    causes = tuple(
        FieldCause(_manager_of(text_at(cause, "message")), text_at(cause, "field"))
        for cause in answer.causes
        if text_at(cause, "reason") == "FieldManagerConflict"
    )
    if causes:
        return FieldConflict(answer.message, causes=causes, subject=answer.subject)
    return Conflict(answer.message, subject=answer.subject)


def _manager_of(text: str) -> str:
    found = _CONFLICT_MANAGER.search(text)
    return found.group(1) if found else ""


def _unauthenticated(answer: _Answer) -> GitopsError:
    return Unauthenticated(answer.message, subject=answer.subject)


def _gone(answer: _Answer) -> GitopsError:
    return Gone(answer.message, subject=answer.subject)


def _rate_limited(answer: _Answer) -> GitopsError:
    return RateLimited(answer.message, subject=answer.subject, retry_after_s=answer.retry_after_s)


_BY_STATUS: Final[Mapping[int, Callable[[_Answer], GitopsError]]] = {
    **dict.fromkeys((400, 405, 406, 413, 415, 422), _refused),
    401: _unauthenticated,
    403: _forbidden,
    404: _not_found,
    409: _conflict,
    410: _gone,
    429: _rate_limited,
}

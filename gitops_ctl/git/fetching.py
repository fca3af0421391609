"""Words of a fetch: what is asked, what comes back, and both as JSON between the manager and its child process.

Rules (gitops.md, sections 2.1 and 2.4): secrets travel on standard input only, never as argument or in the environment, and
no representation of a value shows them.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import (
    BlockedError,
    GitopsError,
    InternalError,
    NotFound,
    RateLimited,
    Refused,
    TransientError,
    Unavailable,
)
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, text_at
from gitops_ctl.git.url import GitUrl, parse_url

MIB: Final = 1024 * 1024
MAX_REF_CHARACTERS: Final = 250

_FOLDERS: Final[dict[str, str]] = {"branch": "heads/", "tag": "tags/", "pull": ""}
_NOT_IN_A_REF: Final = re.compile(r"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|^@$")

_ERRORS: Final[dict[str, type[GitopsError]]] = {
    kind.__name__: kind
    for kind in (TransientError, Unavailable, RateLimited, BlockedError, NotFound, Refused, InternalError)
}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one fetch with all its rounds.

    Attributes:
        objects: objects received.
        bytes: bytes received; also the largest file that the child may write.
        memory_bytes: address space of the child.
        timeout_s: wall time from the start of the child to its answer.
        commits: commits that the copy may hold between the tip and the commit that is looked for.
    """

    objects: int = 2_000_000
    bytes: int = 2048 * MIB
    memory_bytes: int = 1024 * MIB
    timeout_s: float = 60.0
    commits: int = 1_000_000


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """One kind of credential: user and password, a bearer token, or an ssh key.  Shows nothing of itself."""

    username: str = ""
    password: str = ""
    bearer_token: str = ""
    ssh_private_key: str = ""
    passphrase: str = ""

    def __repr__(self) -> str:
        return "Credentials(…)"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no text may show."""
        values = (self.password, self.bearer_token, self.ssh_private_key, self.passphrase)
        basic = base64.b64encode(f"{self.username}:{self.password}".encode()).decode() if self.password else ""
        return tuple(value for value in (*values, basic) if value)


@dataclass(frozen=True, slots=True)
class Ref:
    """One branch or one tag, by its short name; or the head of a pull request, by the name that the forge gives it (`pull/7/head`).

    Raises:
        Refused: REF_NOT_FOUND, no server can have a ref of this name; globs and revision expressions are such names.
    """

    kind: Literal["branch", "tag", "pull"]
    name: str

    def __post_init__(self) -> None:
        bad_part = any(
            part.startswith((".", "-")) or part.endswith((".", ".lock")) or not part for part in self.name.split("/")
        )
        if bad_part or _NOT_IN_A_REF.search(self.name) or len(self.name) > MAX_REF_CHARACTERS:
            raise Refused(f"{self.name!r} cannot be the name of a {self.kind}", code=ErrorCode.REF_NOT_FOUND)

    @property
    def full(self) -> str:
        return f"refs/{_FOLDERS[self.kind]}{self.name}"


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What one source wants of its server.

    Attributes:
        repository: bare repository that takes the objects; made when absent.
        known: commit from which the tip will be judged (last accepted, or root): history is fetched back to it, with all
            parents and merge bases that the judgement needs.  None: the tip alone.
        ca: PEM certificates that replace the system's, for https.
        known_hosts: in OpenSSH's format, needed for ssh.
        shallow_only: the tip alone, also when `known` is given.
    """

    url: GitUrl
    repository: Path
    ref: Ref
    known: str | None = None
    credentials: Credentials | None = None
    ca: bytes | None = None
    known_hosts: bytes | None = None
    limits: FetchLimits = field(default_factory=FetchLimits)
    shallow_only: bool = False

    def to_json(self) -> JsonObject:
        """For the child; holds secrets."""
        credentials = self.credentials
        return {
            "url": self.url.normalised,
            "allowFile": self.url.scheme == "file",
            "repository": str(self.repository),
            "ref": {"kind": self.ref.kind, "name": self.ref.name},
            "known": self.known,
            "credentials": {name: getattr(credentials, name) for name in Credentials.__slots__}
            if credentials
            else None,
            "ca": self.ca.decode(errors="replace") if self.ca else None,
            "knownHosts": self.known_hosts.decode(errors="replace") if self.known_hosts else None,
            "limits": {name: getattr(self.limits, name) for name in FetchLimits.__slots__},
            "shallowOnly": self.shallow_only,
        }

    @classmethod
    def from_json(cls, tree: JsonObject) -> Self:
        """The request, in the child."""
        limits, credentials = object_at(tree, "limits"), object_at(tree, "credentials")
        timeout = limits.get("timeout_s")
        return cls(
            url=parse_url(text_at(tree, "url"), allow_file=bool_at(tree, "allowFile")),
            repository=Path(text_at(tree, "repository")),
            ref=_ref(text_at(tree, "ref", "kind"), text_at(tree, "ref", "name")),
            known=text_at(tree, "known") or None,
            credentials=Credentials(**{name: text_at(credentials, name) for name in Credentials.__slots__})
            if credentials
            else None,
            ca=text_at(tree, "ca").encode() or None,
            known_hosts=text_at(tree, "knownHosts").encode() or None,
            limits=FetchLimits(
                objects=int_at(limits, "objects"),
                bytes=int_at(limits, "bytes"),
                memory_bytes=int_at(limits, "memory_bytes"),
                timeout_s=float(timeout) if isinstance(timeout, (int, float)) else 0.0,
                commits=int_at(limits, "commits"),
            ),
            shallow_only=bool_at(tree, "shallowOnly"),
        )


def _ref(kind: str, name: str) -> Ref:
    match kind:
        case "tag" | "pull":
            return Ref(kind, name)
        case _:
            return Ref("branch", name)


@dataclass(frozen=True, slots=True)
class RemoteTip:
    """What the server names for the ref; None for nothing.  `tag` is the annotated tag's own id (X08)."""

    commit: str | None
    tag: str | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The copy after a fetch.

    Attributes:
        tip: commit that the ref names.
        tag: id of the annotated tag, None for a branch and for a lightweight tag.
        changed: the ref named something else at the last fetch into this copy, or there was none.
        shallow: the copy ends somewhere.
        received_bytes: over all rounds; 0 when nothing was fetched.
        complete: the copy holds all that judging `tip` from `known` needs.  False: the server does not give it.
    """

    tip: str
    tag: str | None
    changed: bool
    shallow: bool
    received_bytes: int
    complete: bool


def error_to_json(error: GitopsError) -> JsonObject:
    """An error on its way out of the child."""
    kind = next((name for name in (type(error).__name__,) if name in _ERRORS), "TransientError")
    return {
        "kind": kind,
        "code": error.code.name,
        "message": error.message,
        "subject": error.subject,
        "hint": error.hint,
        "retryAfter": getattr(error, "retry_after_s", None),
    }


def error_from_json(tree: JsonObject) -> GitopsError:
    """The same error in the manager."""
    kind = _ERRORS.get(text_at(tree, "kind"), InternalError)
    code = ErrorCode.__members__.get(text_at(tree, "code"), ErrorCode.FETCH_FAILED)
    message, subject, hint = text_at(tree, "message"), text_at(tree, "subject"), text_at(tree, "hint")
    if issubclass(kind, TransientError):
        wait: JsonValue = tree.get("retryAfter")
        seconds = float(wait) if isinstance(wait, (int, float)) else None
        return kind(message, code=code, subject=subject, hint=hint, retry_after_s=seconds)
    return kind(message, code=code, subject=subject, hint=hint)


def to_line(tree: JsonObject) -> bytes:
    """One JSON document."""
    return json.dumps(tree).encode()

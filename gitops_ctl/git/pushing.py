"""Words of a push: what is sent where, what the remote must hold before, and what came of it (forges.md, section 9.7).

Rules (faults P02, P03 and P09):
  * One commit goes to one branch.  A refspec with `+`, without a source, or with the base branch as target is refused.
  * The remote's branch must be where it is expected, at the moment of the push; else nothing is sent.
  * The commit stands on the base that was fetched and differs from it in the named files only.
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol, Self

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Conflict, InternalError, Refused
from gitops_ctl.core.jsonvalue import JsonObject, list_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.git.failures import printable
from gitops_ctl.git.fetching import FetchRequest, Ref

ZERO: Final = "0" * 40
"""The id of nothing: what a remote says of a branch that it does not have."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class LeaseLost(Conflict):
    """The branch moved since it was looked at; nothing was written.  `found` is empty when there is no such branch."""

    code = ErrorCode.LEASE_LOST

    def __init__(self, message: str, *, found: str = "", subject: str = "") -> None:
        super().__init__(message, subject=subject)
        self.found = found


class PushRefused(BlockedError):
    """The server does not take it: protection, a hook, or a missing right."""

    code = ErrorCode.PUSH_REFUSED


@dataclass(frozen=True, slots=True)
class PushRequest:
    """One push.

    Attributes:
        remote: where to, with which credentials and limits; `repository` holds the commit, `ref` is the base branch.
        refspec: `<commit>:refs/heads/<branch>`.
        expected: what the remote's branch must be, None for no such branch.
        base: the commit that the pushed one stands on.
        files: the only paths in which they may differ.
    """

    remote: FetchRequest
    refspec: str
    expected: str | None
    base: str
    files: tuple[str, ...]

    @property
    def commit(self) -> str:
        return self.refspec.partition(":")[0]

    @property
    def target(self) -> str:
        return self.refspec.partition(":")[2]

    def require_safe(self) -> None:
        """Whether this may be sent at all.

        Raises:
            Refused: REFSPEC_REFUSED.
        """
        why = _wrong_with(self.refspec, base=self.remote.ref)
        if why:
            raise Refused(f"the refspec {self.refspec!r} is refused: {why}", code=ErrorCode.REFSPEC_REFUSED)

    def to_json(self) -> JsonObject:
        """Everything but `remote`."""
        return {
            "refspec": self.refspec,
            "expected": self.expected,
            "base": self.base,
            "files": list(self.files),
        }

    @classmethod
    def from_json(cls, tree: JsonObject, remote: FetchRequest) -> Self:
        """The request, in the child."""
        return cls(
            remote=remote,
            refspec=text_at(tree, "refspec"),
            expected=text_at(tree, "expected") or None,
            base=text_at(tree, "base"),
            files=tuple(path for path in list_at(tree, "files") if isinstance(path, str)),
        )


def _wrong_with(refspec: str, *, base: Ref) -> str:
    """Why a refspec may not be used; empty when it may."""
    source, colon, target = refspec.partition(":")
    rules = (
        (refspec.startswith("+"), "it would force; a branch is only ever moved under a lease"),
        (not source or not colon, "without a source it would delete the branch"),
        (not _COMMIT.fullmatch(source), "its source is not one whole commit id"),
        (not target.startswith("refs/heads/"), "its target is no branch"),
        (target == base.full, "its target is the base branch; what goes there is merged by people"),
    )
    found = next((why for broken, why in rules if broken), "")
    if not found:
        try:
            Ref("branch", target.removeprefix("refs/heads/"))
        except Refused as error:
            return error.message
    return found


@dataclass(frozen=True, slots=True)
class Pushed:
    """The remote's branch holds `commit` now."""

    commit: str
    branch: str


class GitPusher(Protocol):
    """How proposals reach a server."""

    async def push(self, request: PushRequest) -> Pushed:
        """As `ChildTransport.push`."""
        ...


def lost(found: str) -> JsonObject:
    """The child's answer when the remote was not as expected."""
    return {"lost": found}


def refused(text: str) -> JsonObject:
    """The child's answer when the server said no."""
    return {"refused": text}


def done(commit: str) -> JsonObject:
    """The child's answer when all went well."""
    return {"pushed": commit}


def result_of(answer: JsonObject, request: PushRequest) -> Pushed:
    """What the child's answer means.

    Raises:
        LeaseLost, PushRefused: see there.
        InternalError: the answer is none of ours.
    """
    url, branch = request.remote.url.display, request.target.removeprefix("refs/heads/")
    if "lost" in answer:
        found = text_at(answer, "lost").replace(ZERO, "")
        what = f"the branch {branch} of {url} is at {found or 'nothing'}, not at {request.expected or 'nothing'}"
        raise LeaseLost(f"{what}; nothing was pushed", found=found, subject=url)
    if "refused" in answer:
        secrets = request.remote.credentials.secrets if request.remote.credentials else ()
        said = printable(redact_text(text_at(answer, "refused"), known=secrets))
        raise PushRefused(f"{url} does not take the branch {branch}: {said}", subject=url)
    if text_at(answer, "pushed") != request.commit:
        raise InternalError("the push process answered with something that cannot be read", subject=url)
    return Pushed(request.commit, branch)

"""Brings the head of a pull request onto this machine, apart from everything that the manager relies on (forges.md, sections 11.3 and 14).

The head goes into a repository of its own that borrows the objects of the source's copy and is gone after the check: a stranger's objects
never enter the copy that the source judges and the Syncs read.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pygit2

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TransientError
from gitops_ctl.git.fetching import FetchLimits, FetchRequest, Ref
from gitops_ctl.git.layout import KEPT
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import GitTransport
from gitops_ctl.git.writing import borrow_objects

HEAD_LIMITS: Final = FetchLimits(objects=500_000, bytes=500 * 2**20, timeout_s=120.0, commits=50_000)
"""Of what a stranger may make us fetch; those of the source count where they are smaller."""

_REFS: Final = {"gitea": "pull/{}/head", "github": "pull/{}/head", "gitlab": "merge-requests/{}/head"}


@dataclass(frozen=True, slots=True)
class HeadWanted:
    """A head as the forge lists it.

    Attributes:
        request: how the source is fetched.
        copy: where the accepted commit `base` is.
        root: the pinned start: the head's history is fetched back to it.
    """

    request: FetchRequest
    copy: Path
    base: str
    root: str
    provider: str
    number: int
    head: str


@asynccontextmanager
async def fetched_head(wanted: HeadWanted, *, git: GitTransport, clones: CloneCache) -> AsyncIterator[Path]:
    """A repository that has base and head, until the end of the block.

    Raises:
        TransientError: the server names another head by now, or cannot be reached; FETCH_TOO_LARGE when it is beyond the limits.
        NotFound, Refused: the forge offers no such ref, or gives objects that are not acceptable.
    """
    lease = clones.snapshot(wanted.copy)
    place = Path(tempfile.mkdtemp(prefix="gitops-ctl-head-"))
    try:
        repository = await asyncio.to_thread(_borrowing, place, wanted)
        request = replace(
            wanted.request,
            repository=repository,
            ref=head_ref(wanted.provider, wanted.number),
            known=wanted.root,
            shallow_only=False,
            limits=_smaller(wanted.request.limits),
        )
        tip = (await git.fetch(request)).tip
        if tip != wanted.head:
            what = f"pull request {wanted.number} is at {tip}, the forge lists {wanted.head}; it is looked at again"
            raise TransientError(what, code=ErrorCode.FETCH_FAILED)
        yield repository
    finally:
        lease.close()
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def head_ref(provider: str, number: int) -> Ref:
    """The ref under which a forge offers the head, forks included.

    Raises:
        BlockedError: plain Git has no pull requests.
    """
    if provider not in _REFS:
        raise BlockedError(f"{provider} has no pull requests", code=ErrorCode.NOT_OFFERED)
    return Ref("pull", _REFS[provider].format(number))


def _borrowing(place: Path, wanted: HeadWanted) -> Path:
    repository = borrow_objects(place / "objects.git", of=wanted.copy)
    opened = pygit2.Repository(str(repository))
    # The server learns from it what need not be sent.
    opened.references.create(f"{KEPT}base", wanted.base)
    opened.free()
    return repository


def _smaller(limits: FetchLimits) -> FetchLimits:
    return replace(
        HEAD_LIMITS,
        objects=min(limits.objects, HEAD_LIMITS.objects),
        bytes=min(limits.bytes, HEAD_LIMITS.bytes),
    )

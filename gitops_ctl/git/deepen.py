"""How far a fetch goes: the tip, then deeper and deeper until the tip can be judged, then no further.

Rules (gitops.md, section 2.2):
  * Needed are all commits between `known` and the tip, every parent of one of them, and the merge bases of its merges.
  * A copy that has what is needed is asked for nothing.  One that has a part gets the rest.
  * The copy's own ref moves only after the objects are there.
"""

from typing import Final, Protocol

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused, TransientError
from gitops_ctl.git.fetching import Fetched, FetchRequest, RemoteTip
from gitops_ctl.git.history import commits_between, is_ancestor, merge_bases, missing_parents, reachable
from gitops_ctl.git.layout import INCOMING, kept_ref, read_ref, unfinished
from gitops_ctl.git.store import ObjectStore

ALL_HISTORY: Final = 0
"""Depth that asks for everything below the tip that we do not have."""

TIP_ALONE: Final = 1
FIRST_DEPTH: Final = 32
GROWTH: Final = 2
MAX_DEPTH: Final = 2**31 - 2


class Download(Protocol):
    """One round of a fetch into `INCOMING`, and what the rounds have brought so far."""

    received_bytes: int

    def run(self, depth: int) -> None: ...


def update(request: FetchRequest, named: RemoteTip, download: Download) -> Fetched:
    """Bring the copy to what the server names, deep enough.

    Args:
        request: as asked.
        named: what the server has just named for the ref; its commit is not None.
        download: the rounds.

    Raises:
        NotFound: REF_NOT_FOUND, the ref vanished meanwhile.
        TransientError, Refused: with the 30xx codes.
    """
    path = request.repository
    with ObjectStore.open(path) as store:
        before = read_ref(store, kept_ref(request.ref))
        wanted = named.tag or named.commit or ""
        if before == wanted and is_sufficient(store, request, named.commit or ""):
            return Fetched(named.commit or "", named.tag, False, _is_shallow(store), 0, True)
    with unfinished(path):
        tip, tag = _rounds(request, download)
        with ObjectStore.open(path) as store:
            complete = is_sufficient(store, request, tip)
            store.repository.references.create(kept_ref(request.ref), tag or tip, force=True)
            store.repository.references.delete(INCOMING)
            shallow = _is_shallow(store)
    return Fetched(tip, tag, before != (tag or tip), shallow, download.received_bytes, complete)


def is_sufficient(store: ObjectStore, request: FetchRequest, tip: str) -> bool:
    """Whether the copy has what judging `tip` needs; also when the answer will be that history was rewritten."""
    if not store.contains(tip):
        return False
    known = None if request.shallow_only else request.known
    if known is None or known == tip:
        return True
    return _has_range(store, known, tip) or not ends_early(store, tip)


def _has_range(store: ObjectStore, known: str, tip: str) -> bool:
    try:
        commits = commits_between(store, known, tip)
        if missing_parents(store, commits) or not is_ancestor(store, known, tip):
            return False
        for commit in commits:
            parents = store.links(commit).parents
            if len(parents) == 2:
                merge_bases(store, parents[0], parents[1])
    except NotFound:
        return False
    return True


def ends_early(store: ObjectStore, tip: str) -> bool:
    """Whether a part of the tip's history is missing."""
    return bool(missing_parents(store, reachable(store, (tip,))))


def _rounds(request: FetchRequest, download: Download) -> tuple[str, str | None]:
    """Fetch, deeper each time, until it suffices or there is no more; the commit and the tag that arrived."""
    depth = _first_depth(request)
    while True:
        with ObjectStore.open(request.repository) as store:
            # Only this round may write it: what is there afterwards was named by the server now (G05).
            if INCOMING in store.repository.references:
                store.repository.references.delete(INCOMING)
        download.run(depth)
        with ObjectStore.open(request.repository) as store:
            tip, tag = _arrived(store, request)
            if is_sufficient(store, request, tip) or request.url.scheme == "file" or not ends_early(store, tip):
                return tip, tag
            held, reached = len(reachable(store, (tip,))), _depth_of(store, tip)
        if held > request.limits.commits:
            what = f"the history of {request.url.display} has more than {request.limits.commits} commits to judge"
            raise TransientError(what, code=ErrorCode.FETCH_TOO_LARGE, subject=request.url.display)
        if depth >= MAX_DEPTH or (depth > reached and depth > FIRST_DEPTH):
            # The server was asked for more generations than it has given: there is no more.
            return tip, tag
        depth = min(max(FIRST_DEPTH, depth, reached) * GROWTH, MAX_DEPTH)


def _first_depth(request: FetchRequest) -> int:
    if request.url.scheme == "file":
        return ALL_HISTORY
    if request.shallow_only or request.known is None:
        return TIP_ALONE
    with ObjectStore.open(request.repository) as store:
        # With the last accepted commit at hand only what came after it is missing.
        return ALL_HISTORY if store.contains(request.known) else FIRST_DEPTH


def _arrived(store: ObjectStore, request: FetchRequest) -> tuple[str, str | None]:
    found = read_ref(store, INCOMING)
    if found is None:
        what = f"{request.url.display} has no {request.ref.kind} {request.ref.name!r} any more"
        raise NotFound(what, code=ErrorCode.REF_NOT_FOUND, subject=request.url.display)
    kind = store.read(found).kind
    if kind == "tag":
        tag = store.tag(found)
        if tag.target_kind != "commit":
            what = f"the tag {request.ref.name!r} names a {tag.target_kind}, not a commit"
            raise Refused(what, code=ErrorCode.MALFORMED_OBJECT, subject=found)
        return tag.target, found
    if kind != "commit":
        raise Refused(f"{request.ref.full} names a {kind}", code=ErrorCode.MALFORMED_OBJECT, subject=found)
    return found, None


def _depth_of(store: ObjectStore, tip: str) -> int:
    """Generations between the tip and the farthest commit that the copy has."""
    depth, seen, level = 0, {tip}, [tip]
    while level:
        depth += 1
        parents = {parent for commit in level for parent in store.links(commit).parents}
        level = [parent for parent in parents - seen if store.contains(parent)]
        seen.update(level)
    return depth


def _is_shallow(store: ObjectStore) -> bool:
    return (store.path / "shallow").exists()

"""One push, in a process of its own: `python -m gitops_ctl.git.push_child` (engineering.md, section 4.5).

The same frame as a fetch: request on standard input, answer on standard output, settings and limits of one source.  The lease is
checked in the negotiation: libgit2 tells what the remote's branch is now, and raising there ends the push before anything is sent.
"""

import json
import sys
from pathlib import Path
from typing import Final

import pygit2
from pygit2.remotes import PushUpdate

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, InternalError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.git.failures import from_library, printable
from gitops_ctl.git.fetch_child import (
    StrictCallbacks,
    die_with_parent,
    finish,
    object_tree,
    out_of_memory,
    set_library,
    set_limits,
)
from gitops_ctl.git.fetching import FetchRequest, error_to_json
from gitops_ctl.git.pushing import ZERO, PushRequest, done, lost, refused
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import tree_changes

MAX_REMOTE_CHARACTERS: Final = 2000
_REFUSALS: Final = ("pre-receive hook declined", "protected", "denied", "not allowed", "forbidden", "declined", "hook")


class _Stop(Exception):
    """Ends the push in its negotiation; `found` is what the remote's branch is."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class _PushCallbacks(StrictCallbacks):
    """Holds the lease, and keeps what the server says."""

    def __init__(self, request: PushRequest) -> None:
        super().__init__(request.remote)
        self.said = ""
        self.refusals: list[str] = []
        self.lost: str | None = None
        self._push = request

    def push_negotiation(self, updates: list[PushUpdate]) -> None:
        """Go on only when the one update is ours and the remote's branch is where we expect it."""
        wanted = [(self._push.target, self._push.commit)]
        if [(update.dst_refname, str(update.dst)) for update in updates] != wanted:
            raise InternalError("the push would change something else than its branch")
        found = str(updates[0].src)
        if found != (self._push.expected or ZERO):
            self.lost = found
            raise _Stop(found)

    def push_update_reference(self, refname: str, message: str | None) -> None:
        """What became of the branch, as the server says."""
        if message is not None:
            self.refusals.append(message)

    def sideband_progress(self, string: str) -> None:
        """Lines that git shows after `remote:`."""
        self.said = (self.said + string)[:MAX_REMOTE_CHARACTERS]


def push(request: PushRequest) -> JsonObject:
    """Send it, or say why not; libgit2's settings are those of the request.

    Raises:
        Refused: REFSPEC_REFUSED.  InternalError: the commit is not the small change that was announced.
        TransientError: with 30xx codes.
    """
    request.require_safe()
    _require_small(request)
    repository = pygit2.Repository(str(request.remote.repository))
    remote = repository.remotes.create_anonymous(request.remote.url.normalised)
    callbacks = _PushCallbacks(request)
    # The plus lets our own branch be rebuilt; the lease above is what guards it.
    specs = [f"+{request.refspec}" if request.expected else request.refspec]
    try:
        remote.push(specs, callbacks=callbacks)
    except _Stop as stop:
        return lost(stop.found)
    except (pygit2.GitError, KeyError, ValueError) as error:
        return _failed(request, error, callbacks)
    if callbacks.refusals:
        return refused(_words(callbacks))
    return done(request.commit)


def _require_small(request: PushRequest) -> None:
    """One commit on the base that was fetched, and nothing in it but the named files (fault P02)."""
    with ObjectStore.open(request.remote.repository) as store:
        commit = store.commit(request.commit)
        if commit.parents != (request.base,):
            raise InternalError(f"{request.commit} does not stand on {request.base} alone")
        changed = {change.path for change in tree_changes(store, store.links(request.base).tree, commit.tree)}
        if not changed or not changed <= set(request.files):
            raise InternalError(f"{request.commit} changes {sorted(changed - set(request.files))[:5] or 'nothing'}")


def _failed(request: PushRequest, error: Exception, callbacks: _PushCallbacks) -> JsonObject:
    if callbacks.lost is not None:
        return lost(callbacks.lost)
    if callbacks.refusals or any(word in f"{error} {callbacks.said}".lower() for word in _REFUSALS):
        return refused(_words(callbacks) or str(error))
    if "status code: 403" in str(error):
        return refused("the account may not write to this repository (HTTP status 403)")
    raise from_library(
        str(error),
        url=request.remote.url.display,
        has_credentials=request.remote.credentials is not None,
        certificate_refused=callbacks.host_refused,
        secure_shell=request.remote.url.scheme == "ssh",
        task="push to",
    ) from error


def _words(callbacks: _PushCallbacks) -> str:
    return "; ".join(part for part in (*callbacks.refusals, " ".join(callbacks.said.split())) if part)


def main() -> None:
    """Read the request, do it, write the answer.  The exit code is 0 whenever there is an answer."""
    die_with_parent()
    tree: JsonObject = json.load(sys.stdin.buffer)
    remote = FetchRequest.from_json(object_tree(tree))
    try:
        set_limits(remote)
        set_library(remote, Path(text_at(tree, "scratch")))
        answer: JsonObject = {"ok": push(PushRequest.from_json(object_at(tree, "push"), remote))}
    except GitopsError as error:
        answer = {"error": error_to_json(error)}
    except MemoryError:
        answer = {"error": error_to_json(out_of_memory(remote))}
    except (pygit2.GitError, OSError) as error:
        what = f"the commit for {remote.url.display} cannot be pushed: {printable(str(error))}"
        answer = {"error": error_to_json(TransientError(what, code=ErrorCode.PUSH_FAILED))}
    finish(answer)


if __name__ == "__main__":
    main()

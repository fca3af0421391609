"""One fetch, in a process of its own: `python -m gitops_ctl.git.fetch_child`.

Rules (gitops.md, section 2.4; engineering.md, sections 4.2, 4.5 and 29):
  * The request is one JSON document on standard input, the answer one on standard output.
  * libgit2's settings are global to a process; here they belong to one source: its CA file, its known hosts, its limits.
  * The process lives in its own session, dies with its parent, and has bounded memory, processor time and file sizes.
  * A host is accepted only if libgit2 accepts it, and credentials are handed out once.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

import pygit2
from pygit2.enums import ConfigLevel, CredentialType
from pygit2.remotes import TransferProgress

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, InternalError, NotFound, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, list_at, text_at
from gitops_ctl.git.collect import collect_garbage
from gitops_ctl.git.deepen import Download, update
from gitops_ctl.git.discovery import USER_AGENT, authorization, discover, tip_of
from gitops_ctl.git.failures import from_library, host_refused, printable
from gitops_ctl.git.fetching import Credentials, FetchRequest, RemoteTip, error_to_json, to_line
from gitops_ctl.git.layout import INCOMING, exclusive, prepare_repository

PROCESSOR_SHARE: Final = 1.0
"""Processor seconds per second of the deadline."""

MAX_FILES: Final = 256
WINDOW_BYTES: Final = 32 * 1024 * 1024
MAPPED_BYTES: Final = 256 * 1024 * 1024
MILLISECONDS: Final = 1000


class StrictCallbacks(pygit2.RemoteCallbacks):
    """Callbacks that accept a host only if libgit2 does, and stop after one try or one budget.

    pygit2 answers "ok" for every SSH host key unless `certificate_check` is overridden.
    """

    def __init__(self, request: FetchRequest, *, received_bytes: int = 0) -> None:
        super().__init__()
        self.host_refused = False
        self._request = request
        self._before = received_bytes
        self._asked = 0

    def custom_headers(self) -> list[str]:
        """The https credentials: sent with each request of this remote, and never asked for again."""
        value = authorization(self._request.credentials) if self._request.url.scheme == "https" else ""
        return [f"Authorization: {value}"] if value else []

    def certificate_check(self, certificate: None, valid: bool, host: bytes) -> bool:
        self.host_refused = not valid
        return valid

    def credentials(
        self, url: str, username_from_url: str | None, allowed_types: CredentialType
    ) -> pygit2.KeypairFromMemory:
        self._asked += 1
        key = self._request.credentials
        # libgit2 would ask 15 times.
        if self._asked > 1 or key is None or not key.ssh_private_key:
            raise TransientError(
                f"{self._request.url.display} refuses the credentials",
                code=ErrorCode.AUTHENTICATION_FAILED,
                subject=self._request.url.display,
            )
        return pygit2.KeypairFromMemory(self._request.url.user, "", key.ssh_private_key, key.passphrase)

    def transfer_progress(self, stats: TransferProgress) -> None:
        limits = self._request.limits
        for what, seen, limit in (
            ("objects", stats.total_objects, limits.objects),
            ("bytes", self._before + stats.received_bytes, limits.bytes),
        ):
            if seen > limit:
                raise TransientError(
                    f"the fetch from {self._request.url.display} brings more than {limit} {what}",
                    code=ErrorCode.FETCH_TOO_LARGE,
                    subject=self._request.url.display,
                )


class LibraryDownload(Download):
    """Rounds of libgit2's fetch from one server into one repository."""

    def __init__(self, request: FetchRequest, repository: pygit2.Repository) -> None:
        self.received_bytes = 0
        self._request = request
        self._remote = repository.remotes.create_anonymous(request.url.normalised)

    def list_refs(self) -> RemoteTip:
        callbacks = StrictCallbacks(self._request)
        try:
            heads = self._remote.list_heads(callbacks=callbacks)
        except (pygit2.GitError, KeyError, ValueError) as error:
            raise self._failure(error, callbacks) from error
        return tip_of({head.name or "": str(head.oid) for head in heads}, self._request.ref.full)

    def run(self, depth: int) -> None:
        callbacks = StrictCallbacks(self._request, received_bytes=self.received_bytes)
        try:
            stats = self._remote.fetch([f"+{self._request.ref.full}:{INCOMING}"], callbacks=callbacks, depth=depth)
        except (pygit2.GitError, KeyError, ValueError, MemoryError) as error:
            raise self._failure(error, callbacks) from error
        self.received_bytes += stats.received_bytes

    def _failure(self, error: Exception, callbacks: StrictCallbacks) -> GitopsError:
        return from_library(
            "out of memory" if isinstance(error, MemoryError) else str(error),
            url=self._request.url.display,
            has_credentials=self._request.credentials is not None,
            certificate_refused=callbacks.host_refused,
            secure_shell=self._request.url.scheme == "ssh",
        )


def main() -> None:
    """Read the request, do it, write the answer.  The exit code is 0 whenever there is an answer."""
    die_with_parent()
    tree: JsonObject = json.load(sys.stdin.buffer)
    request = FetchRequest.from_json(object_tree(tree))
    try:
        set_limits(request)
        answer: JsonObject = {"ok": carry_out(tree, request)}
    except GitopsError as error:
        answer = {"error": error_to_json(error)}
    except MemoryError:
        answer = {"error": error_to_json(out_of_memory(request))}
    except (pygit2.GitError, OSError) as error:
        what = f"the local copy of {request.url.display} cannot be used: {printable(str(error))}"
        answer = {"error": error_to_json(TransientError(what, code=ErrorCode.FETCH_FAILED))}
    finish(answer)


def finish(answer: JsonObject) -> NoReturn:
    """Write the answer and end at once: to take the interpreter apart is a tenth of the time of a small fetch, and leaves nothing behind."""
    sys.stdout.buffer.write(to_line(answer))
    sys.stdout.buffer.flush()
    os._exit(0)


def object_tree(tree: JsonObject) -> JsonObject:
    """The request inside the document."""
    inner = tree.get("request")
    return inner if isinstance(inner, dict) else {}


def carry_out(tree: JsonObject, request: FetchRequest) -> JsonObject:
    """Do the task of the document; libgit2's settings are those of the request from here on."""
    match text_at(tree, "task"):
        case "resolve":
            set_library(request, Path(text_at(tree, "scratch")))
            tip = _resolve(request, Path(text_at(tree, "scratch")))
            return {"commit": tip.commit, "tag": tip.tag}
        case "fetch":
            set_library(request, Path(text_at(tree, "scratch")))
            with exclusive(request.repository):
                prepare_repository(request.repository)
                return fetch(request)
        case "collect":
            keep = tuple(oid for oid in list_at(tree, "keep") if isinstance(oid, str))
            with exclusive(request.repository):
                collect_garbage(request.repository, keep=keep, into=Path(text_at(tree, "into")))
            return {}
        case task:
            raise InternalError(f"no task {task!r}")


def _resolve(request: FetchRequest, scratch: Path) -> RemoteTip:
    if request.url.scheme == "https":
        return discover(request)
    empty = pygit2.init_repository(scratch / "empty.git", bare=True)
    return LibraryDownload(request, empty).list_refs()


def fetch(request: FetchRequest) -> JsonObject:
    """One fetch, with libgit2's settings as they are; the caller is the repository's only writer and has prepared it.

    Raises:
        NotFound, TransientError, Refused: with the 30xx codes.
    """
    repository = pygit2.Repository(str(request.repository))
    download = LibraryDownload(request, repository)
    named = discover(request) if request.url.scheme == "https" else download.list_refs()
    if named.commit is None:
        raise _no_such_ref(request)
    result = update(request, named, download)
    return {
        "tip": result.tip,
        "tag": result.tag,
        "changed": result.changed,
        "shallow": result.shallow,
        "receivedBytes": result.received_bytes,
        "complete": result.complete,
    }


def set_library(request: FetchRequest, scratch: Path) -> None:
    """Global settings of libgit2, from files that live as long as this process."""
    _require_host_proof(request)
    home = scratch / ".ssh"
    home.mkdir(mode=0o700)
    (home / "known_hosts").write_bytes(request.known_hosts or b"")
    settings = pygit2.settings
    settings.homedir = str(scratch)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
        settings.search_path[level] = str(scratch)
    if request.ca:
        authority = scratch / "ca.pem"
        authority.write_bytes(request.ca)
        try:
            settings.set_ssl_cert_locations(str(authority), None)
        except pygit2.GitError as error:
            raise host_refused(request.url.display, secure_shell=False, why="ca.crt holds no certificate") from error
    settings.user_agent = USER_AGENT
    settings.user_agent_product = USER_AGENT
    settings.server_timeout = int(request.limits.timeout_s * MILLISECONDS)
    settings.server_connect_timeout = int(request.limits.timeout_s * MILLISECONDS)
    settings.mwindow_size = WINDOW_BYTES
    settings.mwindow_mapped_limit = MAPPED_BYTES


def _require_host_proof(request: FetchRequest) -> None:
    if request.url.scheme != "ssh":
        return
    if not request.known_hosts:
        raise NotFound(
            f"no known_hosts are given for {request.url.display}",
            code=ErrorCode.HOST_KEY_REFUSED,
            subject=request.url.display,
        )
    if not (request.credentials or Credentials()).ssh_private_key:
        raise NotFound(
            f"no ssh key is given for {request.url.display}",
            code=ErrorCode.CREDENTIALS_MISSING,
            subject=request.url.display,
        )


def set_limits(request: FetchRequest) -> None:
    """Bounds of this process, from here on."""
    limits = request.limits
    seconds = max(int(limits.timeout_s * PROCESSOR_SHARE), 1) + 1
    for what, bound in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NOFILE, MAX_FILES),
        (resource.RLIMIT_FSIZE, limits.bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        within = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(what, (within, within))


def die_with_parent() -> None:
    """Linux: be killed when the manager is, however it ends."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _no_such_ref(request: FetchRequest) -> NotFound:
    what = f"{request.url.display} has no {request.ref.kind} {request.ref.name!r}"
    return NotFound(what, code=ErrorCode.REF_NOT_FOUND, subject=request.url.display)


def out_of_memory(request: FetchRequest) -> TransientError:
    """The error of a process that was given too little."""
    return TransientError(
        f"the fetch from {request.url.display} needs more than {request.limits.memory_bytes} bytes of memory",
        code=ErrorCode.FETCH_TOO_LARGE,
        subject=request.url.display,
    )


if __name__ == "__main__":
    main()

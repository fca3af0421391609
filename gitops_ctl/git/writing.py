"""Makes one commit out of a base commit and the files that change (forges.md, sections 9.6 and 10; faults P02 and P16).

Rules:
  * Work on objects: no work tree, no filter, no hook.  What is not named stays as it is, with its mode.
  * All files or none: the commit object is written last, and nothing refers to it before.
  * The same input gives the same bytes: no clock, no configuration of the machine.
  * The signature covers exactly the bytes that are stored; the result is read back in strict form and compared.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import pygit2
from pygit2.enums import ObjectType, RepositoryInitFlag

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import InternalError, Refused
from gitops_ctl.git.entries import DIRECTORY, FILE, TreeEntry
from gitops_ctl.git.store import EMPTY_TREE, ObjectStore
from gitops_ctl.git.tree import entry_at, tree_changes

MAX_FILE_BYTES: Final = 1024 * 1024
"""Of one file that is written (forges.md, section 14)."""

_NOT_IN_A_PERSON: Final = re.compile(r"[<>\n\0]")


@dataclass(frozen=True, slots=True)
class Identity:
    """Author and committer."""

    name: str
    email: str

    def line(self, at: datetime) -> bytes:
        """As a commit holds it.

        Raises:
            Refused: a character that would end the line early.
        """
        if _NOT_IN_A_PERSON.search(self.name + self.email) or not self.name or not self.email:
            raise Refused(f"{self.name!r} <{self.email!r}> cannot stand in a commit")
        return f"{self.name} <{self.email}> {int(at.astimezone(UTC).timestamp())} +0000".encode()


class Signs(Protocol):
    """A key that makes signatures.

    Attributes:
        repeats: the same payload gives the same signature.
    """

    @property
    def repeats(self) -> bool: ...

    def sign(self, payload: bytes) -> bytes:
        """The armored signature over `payload`, as it stands in `gpgsig`."""
        ...

    def made(self, payload: bytes, signature: bytes) -> bool:
        """Whether that armored signature over `payload` is one of this key."""
        ...


def borrow_objects(place: Path, *, of: Path) -> Path:
    """A new bare repository at `place` that reads the objects of the repository `of` and writes its own."""
    flags = RepositoryInitFlag.BARE | RepositoryInitFlag.MKPATH | RepositoryInitFlag.NO_DOTGIT_DIR
    repository = pygit2.init_repository(place, flags=flags)
    # Credentials would go along to a place that nobody named.
    repository.config["http.followRedirects"] = False
    repository.free()
    (place / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (place / "objects" / "info" / "alternates").write_text(f"{(of / 'objects').resolve()}\n")
    edges = of / "shallow"
    if edges.exists():
        (place / "shallow").write_bytes(edges.read_bytes())
    return place


def content_hash(files: Mapping[str, tuple[int, bytes]]) -> str:
    """Digest over path, mode and bytes of files, in the order of their paths (forges.md, section 3)."""
    whole = hashlib.sha256()
    for path, (mode, data) in sorted(files.items()):
        whole.update(f"{len(path.encode())} {path} {mode:o} {len(data)} ".encode() + data)
    return f"sha256:{whole.hexdigest()}"


def file_at(store: ObjectStore, tree: str, path: str) -> TreeEntry | None:
    """The regular file at `path`, None when nothing is there.

    Raises:
        Refused: PATH_REFUSED, a symlink, submodule or folder is there, or on the way.
    """
    parts = path.split("/")
    for count in range(1, len(parts)):
        above = entry_at(store, tree, "/".join(parts[:count]))
        if above is None:
            return None
        if not above.is_directory:
            raise _no_file("/".join(parts[:count]))
    found = entry_at(store, tree, path)
    if found is not None and not found.is_file:
        raise _no_file(path)
    return found


def read_file(store: ObjectStore, tree: str, path: str) -> tuple[int, bytes] | None:
    """Mode and bytes of the file at `path`, None when nothing is there.

    Raises:
        Refused: as `file_at`; TREE_LIMIT when it is larger than 1 MiB.
    """
    entry = file_at(store, tree, path)
    if entry is None:
        return None
    if store.size(entry.id) > MAX_FILE_BYTES:
        raise Refused(f"the file is larger than {MAX_FILE_BYTES} bytes", code=ErrorCode.TREE_LIMIT, subject=path)
    return entry.mode, store.blob(entry.id)


def write_tree(store: ObjectStore, base_tree: str, changes: Mapping[str, bytes | None]) -> str:
    """Id of the tree that is `base_tree` with the files of `changes`; None removes a file, and folders that it leaves empty.

    Raises:
        Refused: PATH_REFUSED, something else than a regular file stands at a path; or a path that no tree can hold.
    """
    for path in changes:
        file_at(store, base_tree, path)
    tree = _with(store, base_tree, {tuple(path.split("/")): data for path, data in changes.items()}, "")
    made = {change.path for change in tree_changes(store, base_tree, tree)}
    if not made <= set(changes):
        raise InternalError(f"the tree differs from its base at {sorted(made - set(changes))[:5]}")
    return tree


def _with(store: ObjectStore, tree: str, changes: Mapping[tuple[str, ...], bytes | None], prefix: str) -> str:
    builder = store.repository.TreeBuilder(tree) if tree != EMPTY_TREE else store.repository.TreeBuilder()
    for name in sorted({path[0] for path in changes}):
        old = entry_at(store, tree, name)
        below = {path[1:]: data for path, data in changes.items() if path[0] == name}
        if () in below:
            if len(below) > 1:
                raise Refused(f"{prefix}{name} would be a file and a folder", code=ErrorCode.PATH_REFUSED)
            _put(store, builder, name, old, below[()])
            continue
        folder = _with(store, old.id if old else EMPTY_TREE, below, f"{prefix}{name}/")
        if folder != EMPTY_TREE:
            builder.insert(name, folder, DIRECTORY)
        elif old is not None:
            builder.remove(name)
    return str(builder.write())


def _put(store: ObjectStore, builder: pygit2.TreeBuilder, name: str, old: TreeEntry | None, data: bytes | None) -> None:
    if data is not None:
        blob = store.repository.create_blob(data)
        builder.insert(name, blob, old.mode if old else FILE)
    elif old is not None:
        builder.remove(name)


def commit_files(  # noqa: PLR0913  each is a part of the commit
    store: ObjectStore,
    *,
    base: str,
    changes: Mapping[str, bytes | None],
    message: str,
    author: Identity,
    at: datetime,
    signer: Signs | None,
) -> str:
    """Id of one new commit on `base` that changes these files and nothing else.

    Args:
        store: takes the objects.
        base: the only parent.
        changes: path to new bytes; None removes the file.
        message: whole text.
        author: also the committer.
        at: author and committer date, whole seconds, UTC.
        signer: None leaves the commit unsigned.

    Raises:
        Refused: a path or an identity that cannot be.
        InternalError: nothing would change, or the commit that came out is not the one that was meant.
    """
    base_tree = store.links(base).tree
    tree = write_tree(store, base_tree, changes)
    if tree == base_tree:
        raise InternalError("a commit without a change is never made")
    person = author.line(at)
    head = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n" % (tree.encode(), base.encode(), person, person)
    body = b"\n" + message.encode()
    signature = b""
    if signer is not None:
        block = signer.sign(head + body).rstrip(b"\n").replace(b"\n", b"\n ")
        signature = b"gpgsig " + block + b"\n"
    commit = str(store.repository.odb.write(ObjectType.COMMIT, head + signature + body))
    made = store.commit(commit)
    if made.tree != tree or made.parents != (base,) or made.payload != head + body:
        raise InternalError("the commit that was written is not the one that was meant")
    return commit


def _no_file(path: str) -> Refused:
    return Refused(
        "a symlink, a submodule or a folder is where a file is needed",
        code=ErrorCode.PATH_REFUSED,
        subject=path,
        hint="name the file itself",
    )

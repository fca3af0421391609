"""`gitops-ctl consent`: prepares consent in a checkout; signing and committing stay with the person (gitops.md, section 4.4)."""

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Final, get_args

import click
import yaml

from gitops_ctl.api.names import (
    ANNOTATION_ALLOW_DRAIN,
    ANNOTATION_ALLOW_NODE_DROP,
    ANNOTATION_ALLOW_PRUNE,
    ANNOTATION_CONFIRM_SWITCH,
    ANNOTATION_RECREATE,
    API_VERSION,
)
from gitops_ctl.api.trust_policy import ConsentVerb, parse_consent
from gitops_ctl.cli.preparing import (
    CHANGED,
    SAME,
    Place,
    annotation_edits,
    carry_out,
    document_in,
    plain_file,
    replace_file,
    say_what_to_sign,
    show_change,
)
from gitops_ctl.core.clock import SystemClock, to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.documents.annotations import known_annotations
from gitops_ctl.documents.rules import CONSENT_FOLDER
from gitops_ctl.documents.worktree import repository_root

GONE: Final = "0" * 40
"""The blob of a file that goes."""

_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_NAME = click.option("--name", default="", metavar="NAME", help="Name of the object, where the file declares several.")


@click.group()
def consent() -> None:
    """Prepare consent in this checkout: an annotation, or a Consent document.

    Nothing is committed and nothing is sent.  Exit code 2: the checkout was changed; 0: it says so already; 1: refused.
    """


@consent.command()
@click.argument("mode", type=click.Choice(("enabled", "replaced")))
@_FILE
@_NAME
def switch(mode: str, file: Path, *, name: str) -> int:
    """Consent to a switch of kube-proxy to MODE on the TalosCluster in FILE."""
    place = document_in(file, kind="TalosCluster", name=name)
    edits = annotation_edits(place, name=ANNOTATION_CONFIRM_SWITCH, value=mode)
    known = (
        f"{place.id} names {mode} already.  A consent that was spent is given anew by taking it out in one commit and "
        "writing it again in a later one"
    )
    return carry_out(place, edits, meaning=f"This consents to the switch of {place.id} to {mode}.", known=known)


@consent.command()
@click.argument("uid")
@_FILE
@_NAME
def recreate(uid: str, file: Path, *, name: str) -> int:
    """Consent to deleting and creating again the object in FILE whose UID in the cluster is UID."""
    place = document_in(file, kind="", name=name)
    _require(ANNOTATION_RECREATE, uid, place)
    edits = annotation_edits(place, name=ANNOTATION_RECREATE, value=uid)
    meaning = f"This consents to deleting {place.id} with the UID {uid}, and creating it again."
    return carry_out(place, edits, meaning=meaning, known=f"{place.id} names {uid} already")


@consent.command()
@click.argument("digest")
@_FILE
@_NAME
def prune(digest: str, file: Path, *, name: str) -> int:
    """Consent to removing exactly the set DIGEST by the Sync in FILE."""
    place = document_in(file, kind="Sync", name=name)
    _require(ANNOTATION_ALLOW_PRUNE, digest, place)
    edits = annotation_edits(place, name=ANNOTATION_ALLOW_PRUNE, value=digest)
    meaning = f"This consents to removing the set {digest} by {place.id}."
    return carry_out(place, edits, meaning=meaning, known=f"{place.id} names {digest} already")


@consent.command()
@click.argument("digest")
@_FILE
@_NAME
def drain(digest: str, file: Path, *, name: str) -> int:
    """Consent to one drain of the ClusterQueue in FILE: the change DIGEST, as `plan topology` and `explain queue` name it."""
    return _digest_consent(
        document_in(file, kind="ClusterQueue", name=name),
        ANNOTATION_ALLOW_DRAIN,
        digest,
        meaning="This consents to one drain of {object}, and to the eviction of whatever holds quota in it, for the change {digest}.",
    )


@consent.command("node-drop")
@click.argument("digest")
@_FILE
@_NAME
def node_drop(digest: str, file: Path, *, name: str) -> int:
    """Consent to a revision that takes the Nodes of the set DIGEST out of the TopologySource in FILE, past the drop guard."""
    return _digest_consent(
        document_in(file, kind="TopologySource", name=name),
        ANNOTATION_ALLOW_NODE_DROP,
        digest,
        meaning="This consents to taking the labels of {object} from the Nodes of the set {digest}.",
    )


def _digest_consent(place: Place, annotation: str, digest: str, *, meaning: str) -> int:
    import gitops_ctl.scheduling.documentrules  # noqa: F401, PLC0415 - knows these annotations

    _require(annotation, digest, place)
    edits = annotation_edits(place, name=annotation, value=digest)
    known = f"{place.id} names {digest} already"
    return carry_out(place, edits, meaning=meaning.format(object=place.id, digest=digest), known=known)


def _require(annotation: str, value: str, place: Place) -> None:
    wrong = known_annotations()[annotation](value, place.id)
    if wrong:
        raise Refused(f"{annotation} {wrong}", code=ErrorCode.ANNOTATION_INVALID, subject=str(place.file))


@consent.command()
@click.option("--verb", required=True, type=click.Choice(get_args(ConsentVerb)), help="What the change is.")
@click.option("--path", required=True, metavar="PATH", help="File that will change, from the root of the repository.")
@click.option(
    "--result",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file as it will be; left out: as it is in this checkout.",
)
@click.option("--delete", "is_gone", is_flag=True, help="The file goes.")
@click.option(
    "--days", type=click.IntRange(1, 365), default=14, show_default=True, help="How long the consent can be used."
)
def change(*, verb: str, path: str, result: Path | None, is_gone: bool, days: int) -> int:
    """Agree to one change that somebody else makes later: write a Consent document."""
    if is_gone and result is not None:
        raise click.UsageError("a file that goes has no --result")
    root = repository_root(Path())
    blob = GONE if is_gone else _blob(result or root / path)
    return agree(root, verb=verb, path=path, blob=blob, days=days)


def agree(root: Path, *, verb: str, path: str, blob: str, days: int) -> int:
    """Write the Consent document for one change and say what to sign; the exit code.

    Args:
        blob: the content that the path will have, as Git names it; GONE when the file goes.
        days: how long the consent can be used.

    Raises:
        Refused: the path has this content already, or the folder of consents cannot be used.
    """
    _require_new(root, path, blob=blob)
    target = _place(root / CONSENT_FOLDER, verb=verb, path=path, blob=blob)
    before = plain_file(target) if target.exists() else b""
    if before and _is_same(before, verb=verb, path=path, blob=blob):
        click.echo(f"nothing to do: {_shown(target)} agrees to it until {_until(before)}")
        return SAME
    until = to_rfc3339(SystemClock().wall() + timedelta(days=days))
    tree: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "Consent",
        "verb": verb,
        "path": path,
        "blob": blob,
        "notAfter": until,
    }
    parse_consent(tree)
    text = yaml.safe_dump(dict(tree), sort_keys=False).encode()
    replace_file(target, text)
    show_change(_shown(target), before=before, after=text)
    what = f"that {path} goes" if blob == GONE else f"that {path} becomes the blob {blob}"
    meaning = (
        f"This agrees to the verb {verb}: {what}.  It counts once, for a change that is first seen before {until}."
    )
    say_what_to_sign(_shown(target), meaning=meaning)
    return CHANGED


def _require_new(root: Path, path: str, *, blob: str) -> None:
    """A content that the path has already would spend the consent with its own commit.

    Raises:
        Refused: it has, or Git cannot say.
    """
    import pygit2  # noqa: PLC0415 - only this command needs Git

    try:
        present = _present(root, path)
    except (pygit2.GitError, ValueError, KeyError) as error:
        raise Refused(
            f"the last commit cannot be read: {error}", code=ErrorCode.USAGE, subject=str(root), hint="see git status"
        ) from error
    if present == blob:
        raise Refused(
            f"{path} has this content already" if blob != GONE else f"there is no {path} in the last commit",
            code=ErrorCode.USAGE,
            subject=path,
            hint="name the file as it will be with --result",
        )


def _present(root: Path, path: str) -> str:
    """The blob that the last commit has at a path; empty without a commit."""
    import pygit2  # noqa: PLC0415 - only this command needs Git

    found = pygit2.discover_repository(str(root))
    repository = pygit2.Repository(found) if found else None
    if repository is None or repository.head_is_unborn:
        return ""
    tree = repository.head.peel(pygit2.Tree)
    base = Path(repository.workdir or root).resolve()
    inside = path if base == root.resolve() else f"{root.resolve().relative_to(base).as_posix()}/{path}"
    return str(tree[inside].id) if inside in tree else GONE


def blob_id(data: bytes) -> str:
    """The id that Git gives to a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _blob(file: Path) -> str:
    """The id that Git gives to the content of a file."""
    try:
        data = plain_file(file)
    except Refused as error:
        raise Refused(
            error.message,
            code=ErrorCode.USAGE,
            subject=str(file),
            hint="name the file as it will be with --result, or use --delete when it goes",
        ) from error
    return blob_id(data)


def _place(folder: Path, *, verb: str, path: str, blob: str) -> Path:
    """Where the document goes; a consent to a change of another path that reads alike keeps its file.

    Raises:
        Refused: the folder is a link.
    """
    for place in (folder, folder.parent):
        if place.is_symlink():
            raise Refused("is a symbolic link", code=ErrorCode.USAGE, subject=str(place), hint="make it a folder")
    name = f"{verb}-{blob[:12]}-{_slug(path)}"
    first = folder / f"{name}.yaml"
    if not first.exists() or text_at(_read(plain_file(first)), "path") == path:
        return first
    return folder / f"{name}-{hashlib.sha256(path.encode()).hexdigest()[:8]}.yaml"


def _slug(path: str) -> str:
    """A path as a part of a file name."""
    return "".join(sign if sign.isalnum() else "-" for sign in path).strip("-")[-64:].strip("-")


def _is_same(data: bytes, *, verb: str, path: str, blob: str) -> bool:
    tree = _read(data)
    return (tree.get("verb"), tree.get("path"), tree.get("blob")) == (verb, path, blob) and _until(data) > to_rfc3339(
        SystemClock().wall()
    )


def _read(data: bytes) -> JsonObject:
    from gitops_ctl.documents.loader import load  # noqa: PLC0415 - only where a file is there already

    found = load(data, file="consent.yaml").documents
    return found[0].tree if found else {}


def _until(data: bytes) -> str:
    return text_at(_read(data), "notAfter")


def _shown(file: Path) -> Path:
    """The path from the current folder, where it lies below it."""
    here = Path.cwd()
    return file.relative_to(here) if here in file.parents else file

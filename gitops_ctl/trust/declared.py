"""What the accepted revision declares about an object of the cluster: its document, and the provenance that goes with it (gitops.md, 4.6).

The mark on the object says which Sync it belongs to; it counts only when the inventory of that Sync has the object.  Every value that
authorises something is read from Git, and what stands in the cluster is compared with it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, GROUP, VERSION
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, objects_at, text_at
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import Document
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

_API: Final = f"/apis/{GROUP}/{VERSION}"

Read = Callable[[AcceptedRevision, str], DocumentSet]
"""The documents of a revision below a folder; called from a thread."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The Sync that a mark names, and the source that it follows."""

    cluster: str
    namespace: str
    source: str
    sync: str


@dataclass(frozen=True, slots=True)
class Declared:
    """What stands behind an object.

    Attributes:
        document: its document in the accepted revision; None where there is none, for `why`.
        revision: the accepted revision that declares it; None where nothing may be concluded from one.
        sync: the Sync that applies it.
        why: why there is no document; empty when there is one, or when nobody looked at the source yet.
        is_refused: the accepted commit itself is refused now, for example because a key was revoked: nothing new may have effects.
    """

    document: Document | None = None
    revision: AcceptedRevision | None = None
    sync: JsonObject = field(default_factory=lambda: EMPTY)
    why: str = ""
    is_refused: bool = False

    @property
    def is_known(self) -> bool:
        """False while nobody has looked at the source yet: nothing may be concluded."""
        return self.document is not None or bool(self.why)


class DeclaredReader:
    """Answers about objects; remembers the document of the newest revision of each."""

    def __init__(self, client: KubeClient, *, revisions: AcceptedRevisions, read: Read) -> None:
        self._client = client
        self._revisions = revisions
        self._read = read
        self._found: dict[tuple[str, str], Document | None] = {}
        self._listed: set[tuple[str, str]] = set()

    async def of(self, tree: JsonObject) -> Declared:
        """What stands behind an object as it is in the cluster.

        Raises:
            TransientError, BlockedError: its Sync cannot be read; nothing is known then.
        """
        owner = owner_of(tree)
        if owner is None:
            return Declared(why=f"no Sync applied this {text_at(tree, 'kind') or 'object'}")
        sync = await self._client.find(f"{_API}/namespaces/{owner.namespace}/syncs/{owner.sync}") or EMPTY
        if why := await self._why_not_its(sync, owner, tree):
            return Declared(why=f"the Sync that its mark names {why}")
        source = NamespacedName(owner.namespace, owner.source)
        revision, why = self._revision(source)
        if revision is None:
            known = self._revisions.get(source)
            return Declared(why=why, is_refused=known is not None and known.trusted and not known.effects_allowed)
        try:
            document = await self._document(revision, sync, tree)
        except GitopsError as error:
            return Declared(why=f"the accepted revision cannot be read: {error.message}")
        if document is None:
            return Declared(why=f"the accepted revision {revision.commit[:12]} does not declare it")
        return Declared(document, revision, sync)

    def _revision(self, source: NamespacedName) -> tuple[AcceptedRevision | None, str]:
        """The revision whose effects are allowed, or why there is none; an empty reason: nobody looked yet."""
        revision = self._revisions.get(source)
        if revision is None:
            return None, self._revisions.state(source)
        if not revision.trusted:
            return None, f"{source} has no trust"
        return (revision, "") if revision.effects_allowed else (None, "the accepted commit itself is refused now")

    async def _document(self, revision: AcceptedRevision, sync: JsonObject, tree: JsonObject) -> Document | None:
        path, target = text_at(sync, "spec", "path"), text_at(sync, "spec", "targetNamespace")
        # Keyed by all that decides which document it is: the same commit has others under another path (fault P08).
        seen = "\n".join((revision.commit, text_at(sync, "metadata", "uid"), path, target))
        place = (text_at(tree, "metadata", "uid"), seen)
        if place not in self._found:
            found = await asyncio.to_thread(self._read, revision, path)
            self._found = {known: document for known, document in self._found.items() if known[0] != place[0]}
            self._found[place] = declared(found, ObjectId.of(tree), target=target)
        return self._found[place]

    async def _why_not_its(self, sync: JsonObject, owner: Owner, tree: JsonObject) -> str:
        """Why a Sync does not stand behind the object; empty when it does."""
        if object_at(sync, "spec", "kubeConfigSecretRef"):
            return "applies to another cluster"
        is_its = text_at(sync, "spec", "sourceRef", "name") == owner.source and await self._is_listed(tree, sync)
        return "" if is_its else "does not have it"

    async def _is_listed(self, tree: JsonObject, sync: JsonObject) -> bool:
        """Whether the inventory of the Sync has the object: a mark alone can be written by anybody who may edit it."""
        uid, sync_uid = text_at(tree, "metadata", "uid"), text_at(sync, "metadata", "uid")
        if not sync_uid or (uid, sync_uid) in self._listed:
            return bool(sync_uid)
        name, namespace = text_at(sync, "metadata", "name"), text_at(sync, "metadata", "namespace")
        number = 0
        while shard := await self._client.find(f"{_API}/namespaces/{namespace}/inventories/{name}-{number}"):
            if text_at(shard, "spec", "owner", "uid") == sync_uid and _lists(shard, tree):
                self._listed.add((uid, sync_uid))
                return True
            number += 1
        return False


def owner_of(tree: JsonObject) -> Owner | None:
    """The Sync that the mark names; a mark that names another object than the one it sits on is ignored."""
    identity = ObjectId.of(tree)
    owner, _, named = text_at(tree, "metadata", "annotations", ANNOTATION_OWNER_ID).partition(":")
    parts = owner.split("/")
    if len(parts) != 4 or named != f"{identity.group}/{identity.kind}:{identity.namespace}/{identity.name}":
        return None
    return Owner(*parts)


def declared(found: DocumentSet, wanted: ObjectId, *, target: str) -> Document | None:
    """The document of an object: it may leave out the namespace that the Sync gives it."""
    bare = ObjectId(wanted.group, wanted.kind, "", wanted.name)
    return found.by_id.get(wanted) or (found.by_id.get(bare) if wanted.namespace == target else None)


def _lists(shard: JsonObject, tree: JsonObject) -> bool:
    identity, uid = ObjectId.of(tree), text_at(tree, "metadata", "uid")
    return any(
        text_at(entry, "group") == identity.group
        and text_at(entry, "kind") == identity.kind
        and text_at(entry, "namespace") == identity.namespace
        and text_at(entry, "name") == identity.name
        and text_at(entry, "uid") in ("", uid)
        for entry in objects_at(shard, "spec", "entries")
    )


def held_by(sync: JsonObject, tree: JsonObject) -> str:
    """Why the Sync keeps the object back, from its status."""
    name = str(ObjectId.of(tree))
    for entry in objects_at(sync, "status", "held"):
        if text_at(entry, "object") == name:
            return f"{text_at(entry, 'reason')}: {text_at(entry, 'message')}"
    return ""

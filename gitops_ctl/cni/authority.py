"""Asks the accepted revision what it says about a cluster, and who stands behind it (cni-switch.md, section 4; gitops.md, section 4.6).

The mark on the object says which Sync it belongs to; it counts only when the inventory of that Sync has the object.  Every value that
authorises something is read from Git, and what stands in the cluster is compared with it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ANNOTATION_OWNER_ID, GROUP, VERSION
from gitops_ctl.cni.model import Authority, Cluster, Introduction, Steering
from gitops_ctl.cni.reading import cluster_of
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, objects_at, text_at
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

CONSENT: Final = pointer_of(("metadata", "annotations", ANNOTATION_CONFIRM_SWITCH))
_STEERING: Final = "/spec/cni/operation"
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


class AuthorityReader:
    """Answers about clusters; remembers the documents of the newest revision of each."""

    def __init__(self, client: KubeClient, *, revisions: AcceptedRevisions, read: Read) -> None:
        self._client = client
        self._revisions = revisions
        self._read = read
        self._found: dict[tuple[str, str], Document | None] = {}
        self._listed: set[tuple[str, str]] = set()

    async def of(self, tree: JsonObject) -> Authority:
        """What stands behind a TalosCluster as it is in the cluster.

        Raises:
            TransientError, BlockedError: its Sync cannot be read; nothing is known then.
        """
        owner = owner_of(tree)
        if owner is None:
            return Authority(why="no Sync applied this TalosCluster")
        sync = await self._client.find(f"{_API}/namespaces/{owner.namespace}/syncs/{owner.sync}") or EMPTY
        if why := await self._why_not_its(sync, owner, tree):
            return Authority(why=f"the Sync that its mark names {why}")
        revision, why = self._revision(NamespacedName(owner.namespace, owner.source))
        if revision is None:
            return Authority(why=why)
        try:
            document = await self._document(revision, sync, tree)
        except GitopsError as error:
            return Authority(why=f"the accepted revision cannot be read: {error.message}")
        if document is None:
            return Authority(why=f"the accepted revision {revision.commit[:12]} does not declare it")
        return answer(document, revision=revision, live=cluster_of(tree), held=_held(sync, tree))

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


def answer(document: Document, *, revision: AcceptedRevision, live: Cluster, held: str) -> Authority:
    """What a document of an accepted revision says, beside what is in the cluster.  Pure."""
    declared_cluster = cluster_of(document.tree)
    introduced = revision.provenance.of(document.id, CONSENT)
    counts = introduced is not None and introduced.verb == "consent"
    return Authority(
        revision=revision.commit,
        mode=declared_cluster.mode,
        consent=declared_cluster.consent,
        introduced=Introduction(introduced.commit, introduced.person) if introduced is not None and counts else None,
        why_void=revision.provenance.why_void(document.id, CONSENT),
        steering=_steering(document, revision=revision, live=live.steering),
        source=revision.source.name,
        file=document.file if not document.base else "",
        held=held,
    )


def _steering(document: Document, *, revision: AcceptedRevision, live: Steering) -> Steering:
    """Values that are the same in Git and in the cluster, and that somebody with the verb `control` introduced."""

    def counts(member: str) -> bool:
        introduced = revision.provenance.of(document.id, f"{_STEERING}/{member}")
        return introduced is not None and introduced.verb == "control"

    asked = cluster_of(document.tree).steering
    return Steering(
        resume=asked.resume if asked.resume == live.resume and counts("resume") else 0,
        cancel=asked.cancel and live.cancel and counts("cancel"),
        break_lock=asked.break_lock and live.break_lock and counts("breakLock"),
    )


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


def _held(sync: JsonObject, tree: JsonObject) -> str:
    """Why the Sync keeps the object back, from its status."""
    name = str(ObjectId.of(tree))
    for entry in objects_at(sync, "status", "held"):
        if text_at(entry, "object") == name:
            return f"{text_at(entry, 'reason')}: {text_at(entry, 'message')}"
    return ""

"""Asks the accepted revision what it says about a cluster, and who stands behind it (cni-switch.md, section 4; gitops.md, section 4.6)."""

from typing import Final

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH
from gitops_ctl.cni.model import Authority, Cluster, Introduction, Steering
from gitops_ctl.cni.reading import cluster_of
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.declared import DeclaredReader, Read, held_by, owner_of
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

__all__ = ["CONSENT", "AuthorityReader", "Read", "answer", "owner_of"]

CONSENT: Final = pointer_of(("metadata", "annotations", ANNOTATION_CONFIRM_SWITCH))
_STEERING: Final = "/spec/cni/operation"


class AuthorityReader:
    """Answers about clusters."""

    def __init__(self, client: KubeClient, *, revisions: AcceptedRevisions, read: Read) -> None:
        self._declared = DeclaredReader(client, revisions=revisions, read=read)

    async def of(self, tree: JsonObject) -> Authority:
        """What stands behind a TalosCluster as it is in the cluster.

        Raises:
            TransientError, BlockedError: its Sync cannot be read; nothing is known then.
        """
        found = await self._declared.of(tree)
        if found.document is None or found.revision is None:
            return Authority(why=found.why)
        held = held_by(found.sync, tree)
        return answer(found.document, revision=found.revision, live=cluster_of(tree), held=held)


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
    """Values that are the same in Git and in the cluster, and that somebody with the verb `control` introduced.

    To cancel, Git alone is enough: it touches nothing, and the commit that asks for it may be one that is held (section 6.6).
    """

    def counts(member: str) -> bool:
        introduced = revision.provenance.of(document.id, f"{_STEERING}/{member}")
        return introduced is not None and introduced.verb == "control"

    asked = cluster_of(document.tree).steering
    return Steering(
        resume=asked.resume if asked.resume == live.resume and counts("resume") else 0,
        cancel=asked.cancel and counts("cancel"),
        break_lock=asked.break_lock and live.break_lock and counts("breakLock"),
    )

"""What an operation asks to be changed in Git, and when that is wanted no more (cni-switch.md, sections 4 and 11; forges.md, section 3.1).

Pure.  A proposal is no write: it takes effect when a person merges it and the owner's own tool rolls it out.  The operation looks at the
live cluster, never at whether a pull request was merged.
"""

from datetime import datetime

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ICHOR_API_VERSION
from gitops_ctl.cni.announcement import announcement
from gitops_ctl.cni.authority import CONSENT
from gitops_ctl.cni.messages import Place
from gitops_ctl.cni.model import Authority, Cluster, Operation, Phase
from gitops_ctl.cni.writing import cluster_reference, operation_reference
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, text_at
from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.content import FileEdit
from gitops_ctl.forge.wanted import WantedProposal


def values_name(operation: Operation) -> str:
    """Name of the proposal that carries an operation's values: one per operation."""
    return f"{operation.key.name}-values"


def cleanup_name(operation: Operation) -> str:
    """Name of the proposal that removes the consent which the operation spent."""
    return f"{operation.key.name}-consent"


def values_proposal(
    cluster: Cluster, operation: Operation, *, source: str, edits: tuple[FileEdit, ...], why: str, expires: datetime
) -> tuple[WantedProposal, JsonObject]:
    """The change of the values that the target needs, with its owner reference."""
    machines = sorted(operation.observed.machines) if operation.observed is not None else []
    told = announcement(cluster.key.name, before=operation.target.other, after=operation.target, machines=machines)
    reason = (
        f"The switch of cluster {cluster.key.name} to {operation.target} waits for this change.\n{why}\n"
        "It takes effect when it is merged and the owner's own tool rolls it out; the switch looks at the live cluster, "
        f"so that a change made by hand ends the wait too.\n{told}"
    )
    wanted = WantedProposal(
        namespace=cluster.key.namespace,
        name=values_name(operation),
        source=source,
        subject={**_subject(cluster), "uid": operation.uid},
        purpose=f"cni/{cluster.key.name}/{operation.target}",
        reason=reason,
        changes=edits,
        expires=expires,
    )
    return wanted, operation_reference(operation)


def cleanup_proposal(
    cluster: Cluster, operation: Operation, *, authority: Authority, document: int
) -> tuple[WantedProposal, JsonObject]:
    """The removal of a consent that is spent; whoever may edit the file may merge it."""
    edit = Edit(document=document, pointer=CONSENT, op="remove", before=authority.consent)
    reason = (
        f"The switch of cluster {cluster.key.name} to {operation.target} has succeeded and its consent is spent.\n"
        f"This takes the annotation {ANNOTATION_CONFIRM_SWITCH} away. A left-over annotation is harmless."
    )
    wanted = WantedProposal(
        namespace=cluster.key.namespace,
        name=cleanup_name(operation),
        source=authority.source,
        subject={**_subject(cluster), "uid": operation.uid},
        purpose=f"cni-consent/{cluster.key.name}",
        reason=reason,
        changes=((authority.file, edit),),
    )
    return wanted, cluster_reference(cluster)


def wants_cleanup(cluster: Cluster, operation: Operation, authority: Authority) -> bool:
    """Whether the consent of a finished operation still stands in Git, as the one that it spent."""
    consumed, introduced = cluster.record.consumed, authority.introduced
    return (
        cluster.cleanup
        and operation.state.phase is Phase.SUCCEEDED
        and consumed is not None
        and consumed.uid == operation.uid
        and introduced is not None
        and introduced.commit == consumed.commit
        and authority.consent == consumed.target.value
        and bool(authority.file)
    )


def pull_request_of(proposal: JsonObject) -> JsonObject:
    """`status.pullRequest` of the operation: a copy for people, nothing is decided by it."""
    status = object_at(proposal, "status")
    members: dict[str, str | int] = {
        "url": text_at(status, "url"),
        "number": int_at(status, "number"),
        "state": text_at(status, "phase", default="Pending"),
        "headSha": text_at(status, "headCommit"),
        "valuesHash": text_at(status, "contentHash"),
    }
    return {name: value for name, value in members.items() if value}


def with_link(place: Place, proposal: JsonObject) -> Place:
    """The place with the address of its pull request, once there is one."""
    url = text_at(proposal, "status", "url")
    return Place(place.where, place.why, url) if url else place


def _subject(cluster: Cluster) -> dict[str, str]:
    return {
        "apiVersion": ICHOR_API_VERSION,
        "kind": "TalosCluster",
        "namespace": cluster.key.namespace,
        "name": cluster.key.name,
    }

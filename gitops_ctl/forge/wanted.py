"""How a domain asks for a change in Git: as a Proposal object that it applies (forges.md, section 3.1).  Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.api.names import ANNOTATION_WHY, API_VERSION
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.forge.content import FileEdit, change_of

_ENDED: Final = frozenset({"Closed", "Superseded", "Expired"})


@dataclass(frozen=True, slots=True)
class WantedProposal:
    """One change.

    Attributes:
        source: GitSource of the same namespace.
        subject: {apiVersion, kind, namespace?, name, uid?}: what it is for; `uid` names the operation that asks.
        purpose: for example `cni/<cluster>/<target>`; with the subject it names the branch.
        reason: for people: what waits, and what happens after the merge; lines are kept.
        changes: none means that nothing is wanted any more: an open pull request that nobody changed is closed.
        expires: when an open pull request is closed.
    """

    namespace: str
    name: str
    source: str
    subject: JsonObject
    purpose: str
    reason: str
    changes: tuple[FileEdit, ...]
    expires: datetime | None = None


def proposal_tree(wanted: WantedProposal, *, owner: JsonObject | None = None) -> JsonObject:
    """The object to apply; `owner` is an owner reference, so that the Proposal goes with the object that asked."""
    metadata: dict[str, JsonValue] = {"name": wanted.name, "namespace": wanted.namespace}
    if wanted.reason:
        metadata["annotations"] = {ANNOTATION_WHY: wanted.reason}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    spec: dict[str, JsonValue] = {
        "sourceRef": {"name": wanted.source},
        "subject": wanted.subject,
        "reason": wanted.purpose,
        "changes": [change_of(edit) for edit in wanted.changes],
    }
    if wanted.expires is not None:
        spec["expires"] = to_rfc3339(wanted.expires)
    return {"apiVersion": API_VERSION, "kind": "Proposal", "metadata": metadata, "spec": spec}


def is_watched(proposal: JsonObject) -> bool:
    """Whether a proposal may still have, or get, a pull request, or is watched after its merge lest somebody reverts it."""
    return text_at(proposal, "status", "phase") not in _ENDED and bool(objects_at(proposal, "spec", "changes"))


def withdrawn(proposal: JsonObject) -> JsonObject:
    """A proposal as it is applied when nothing is wanted any more: an unchanged pull request is closed."""
    return {**asked_of(proposal), "spec": {**object_at(proposal, "spec"), "changes": []}}


def asked_of(proposal: JsonObject) -> JsonObject:
    """What we asked for in a stored proposal, for a comparison."""
    metadata = object_at(proposal, "metadata")
    kept = {name: metadata[name] for name in ("name", "namespace", "ownerReferences") if name in metadata}
    why = text_at(metadata, "annotations", ANNOTATION_WHY)
    return {
        "apiVersion": text_at(proposal, "apiVersion"),
        "kind": text_at(proposal, "kind"),
        "metadata": {**kept, "annotations": {ANNOTATION_WHY: why}} if why else kept,
        "spec": object_at(proposal, "spec"),
    }

"""Managed ClusterQueues in Git: what they may not say, and how their stop policy is carried (topology-scheduling.md, 1.4, D5).

A policy in Git is a wish: the transform makes an annotation of it, so that whatever happens to `spec.stopPolicy` is no drift.
"""

from collections.abc import Iterator
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.scheduling.names import RESOURCE_TYPE, TOPOLOGY
from gitops_ctl.scheduling.queue import (
    APPLIED_POLICY,
    EMPTY_HOLD,
    HOLD,
    POLICIES,
    WANTED_POLICY,
    is_managed,
)

_GROUP: Final = "kueue.x-k8s.io"
_WRITTEN_FOR_IT: Final = ("resourceGroups", "admissionChecksStrategy", "cohortName", "admissionChecks", "cohort")
"""The last two are the spellings of v1beta1."""
_TAKEN_ALONG: Final = ("stopPolicy", "resourceGroups", "admissionChecksStrategy", "admissionChecks")


def is_managed_queue(tree: JsonObject) -> bool:
    """Whether a document is a managed ClusterQueue."""
    return (
        text_at(tree, "apiVersion").startswith(f"{_GROUP}/")
        and text_at(tree, "kind") == "ClusterQueue"
        and is_managed(tree)
    )


def queue_flaws(tree: JsonObject, live: JsonObject | None) -> Iterator[Flaw]:
    """What holds a ClusterQueue document as it is in the cluster.

    Args:
        tree: the document as it stands in Git, before the transform.
        live: the object in the cluster; None when there is none.
    """
    if not is_managed_queue(tree):
        if live is not None and is_managed_queue(live):
            message = "the queue is managed: its mark and its discriminator labels stay; delete the queue instead"
            yield Flaw(ErrorCode.RULE, message, pointer_of(("metadata", "labels", RESOURCE_TYPE)))
        return
    spec = object_at(tree, "spec")
    for name in _WRITTEN_FOR_IT:
        if name in spec:
            message = f"spec.{name} of a managed queue is written by the controller"
            yield Flaw(ErrorCode.RULE, message, f"/spec/{name}", hint="remove the field")
    for key in object_at(tree, "metadata", "annotations"):
        if key.startswith(f"{TOPOLOGY}/"):
            message = f"annotation {key} of a managed queue is written by the controller"
            yield Flaw(ErrorCode.RULE, message, pointer_of(("metadata", "annotations", key)), hint="remove it")
    policy = spec.get("stopPolicy")
    if policy is not None and policy not in POLICIES:
        message = f"spec.stopPolicy must be one of {', '.join(sorted(POLICIES))}"
        yield Flaw(ErrorCode.RULE, message, "/spec/stopPolicy")


def carried(tree: JsonObject) -> JsonObject:
    """A managed queue as it is applied: its stop policy is taken out of the spec and written as an annotation.

    Other documents come back as they are.
    """
    policy = text_at(tree, "spec", "stopPolicy")
    if not is_managed_queue(tree) or not policy:
        return tree
    metadata = object_at(tree, "metadata")
    spec = {name: value for name, value in object_at(tree, "spec").items() if name != "stopPolicy"}
    annotations = {**object_at(metadata, "annotations"), WANTED_POLICY: policy}
    return {**tree, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def first_apply(tree: JsonObject) -> JsonObject:
    """The first of the two applies that create a managed queue (D6): held and marked, and nothing else."""
    annotations: JsonObject = {EMPTY_HOLD: "true"}
    return {**_identity(tree), "metadata": {**_name(tree), "annotations": annotations}, "spec": {"stopPolicy": HOLD}}


def give_back(tree: JsonObject) -> JsonObject:
    """The apply under the same manager that gives both fields back: somebody else created the queue in between."""
    return {**_identity(tree), "metadata": _name(tree)}


def take_along(live: JsonObject, ours: JsonObject, theirs: JsonObject) -> JsonObject | None:
    """The apply that keeps what a queue has when it becomes managed; None when its document lets go of nothing.

    What stood there stays as it is: a queue that is held does not open for the moment until its policy is carried out, and groups that
    serve do not vanish under what runs.  Only a policy of Git counts as carried out; one of an administrator stays theirs.

    Args:
        ours: fields of the document as Git had it before.
        theirs: fields that somebody wrote with a client-side tool.
    """
    spec, from_git = object_at(live, "spec"), object_at(ours, "f:spec")
    owned = from_git.keys() | object_at(theirs, "f:spec").keys()
    kept = {name: spec[name] for name in _TAKEN_ALONG if f"f:{name}" in owned and name in spec}
    if not kept:
        return None
    metadata: dict[str, JsonValue] = {**_name(live), "uid": text_at(live, "metadata", "uid")}
    if "f:stopPolicy" in from_git and "stopPolicy" in kept:
        metadata["annotations"] = {APPLIED_POLICY: kept["stopPolicy"]}
    return {**_identity(live), "metadata": metadata, "spec": kept}


def _identity(tree: JsonObject) -> JsonObject:
    """In the version of the document: it is sent to the same address."""
    return {"apiVersion": text_at(tree, "apiVersion"), "kind": "ClusterQueue"}


def _name(tree: JsonObject) -> JsonObject:
    return {"name": text_at(tree, "metadata", "name")}

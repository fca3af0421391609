"""What a controller keeps of one of our own objects, and which of its changes a person made."""

from gitops_ctl.api.names import ANNOTATION_REQUESTED_AT
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at

LONGEST_REQUEST = 256
"""Characters of a request that a status can answer; what a person writes beyond them is not looked at."""


def without_managers(tree: JsonObject) -> JsonObject:
    """The object without its managedFields: what an informer of our kinds keeps."""
    metadata = {key: value for key, value in object_at(tree, "metadata").items() if key != "managedFields"}
    return {**tree, "metadata": metadata}


def request_of(tree: JsonObject) -> str:
    """The value of the `requested-at` annotation as it is answered; empty when nobody asked."""
    return text_at(tree, "metadata", "annotations", ANNOTATION_REQUESTED_AT)[:LONGEST_REQUEST]


def asked_of(tree: JsonObject) -> tuple[object, ...]:
    """The parts that a person changes; two versions with equal parts differ in what we wrote ourselves at most."""
    metadata = object_at(tree, "metadata")
    return (
        text_at(metadata, "uid"),
        metadata.get("generation"),
        text_at(metadata, "deletionTimestamp"),
        request_of(tree),
    )

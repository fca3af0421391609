"""What is kept of each object that the room watches: as little as its planners ask for.

Clusters have thousands of Nodes, so of a Node its labels and its deletion mark are all there is, and texts that many Nodes share are
held once.  Of ConfigMaps and Secrets nothing is kept but that they changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from sys import intern

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, objects_at, text_at
from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.scheduling.names import SOURCE_UID
from gitops_ctl.scheduling.nodefeature import node_of
from gitops_ctl.scheduling.selectors import Labels

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SeenNode:
    """One Node.  Its name is the key under which it is kept."""

    labels: Labels
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class SeenFeature:
    """One NodeFeature of the worker namespace.

    Attributes:
        tree: the object without its managers.
        node: the Node that it is about.
        source: the UID of its controller, of the source that it names where it has none.
        labels: the labels that it asks for.
        awaited_until_s: until when its labels are waited for, on the boot clock.
    """

    tree: JsonObject
    node: str
    source: str
    labels: Labels
    awaited_until_s: float


def seen_node(tree: JsonObject) -> SeenNode:
    """From a Node, or from its metadata alone."""
    labels = object_at(tree, "metadata", "labels")
    kept = {intern(key): intern(value) for key, value in labels.items() if isinstance(value, str)}
    return SeenNode(kept, bool(text_at(tree, "metadata", "deletionTimestamp")))


def seen_feature(tree: JsonObject, *, awaited_until_s: float) -> SeenFeature:
    """From a NodeFeature."""
    owner = next((one for one in objects_at(tree, "metadata", "ownerReferences") if bool_at(one, "controller")), None)
    source = text_at(tree, "metadata", "labels", SOURCE_UID) if owner is None else text_at(owner, "uid")
    asked = object_at(tree, "spec", "labels")
    labels = {intern(key): intern(value) for key, value in asked.items() if isinstance(value, str)}
    return SeenFeature(without_managers(tree), intern(node_of(tree)), intern(source), labels, awaited_until_s)


def written_at(tree: JsonObject) -> datetime:
    """When anybody wrote an object last, by the clock of the server."""
    times = [text_at(entry, "time") for entry in objects_at(tree, "metadata", "managedFields")]
    return max(_moment(text) for text in (*times, text_at(tree, "metadata", "creationTimestamp")))


def seen_change(_tree: JsonObject) -> None:
    """Of an object that is read anew whenever it changes nothing is kept."""
    return


def node_tree(seen: SeenNode | None) -> JsonObject | None:
    """As much of the object as a planner reads that takes whole ones."""
    if seen is None:
        return None
    metadata: Mapping[str, Labels] = {"labels": seen.labels}
    return {"metadata": metadata}


def _moment(text: str) -> datetime:
    try:
        return from_rfc3339(text)
    except ValueError:
        return _NEVER

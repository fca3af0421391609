"""Kueue Topologies: one for each profile, never rewritten, retired when nobody needs it (topology-scheduling.md, 7.1)."""

import re
from collections.abc import Iterable
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.scheduling.names import PROFILE, RESOURCE_TYPE
from gitops_ctl.scheduling.profile import profile_name
from gitops_ctl.scheduling.selectors import Labels

KUEUE_API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
MARK: Final = "topology"
_SUFFIX: Final = re.compile(r".*-(fnv64-[0-9a-f]{16})")


def topology_name(profile: str) -> str:
    """The name of the Topology of a profile."""
    return f"gpustack-{profile}"


def topology_object(levels: tuple[str, ...]) -> JsonObject:
    """The whole Topology for these level keys, host name included."""
    return {
        "apiVersion": KUEUE_API_VERSION,
        "kind": "Topology",
        "metadata": {"name": topology_name(profile_name(levels)), "labels": {RESOURCE_TYPE: MARK}},
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }


def levels_of(topology: JsonObject) -> tuple[str, ...]:
    """The level keys of a Topology."""
    return tuple(text_at(level, "nodeLabel") for level in objects_at(topology, "spec", "levels"))


def drift(live: JsonObject, levels: tuple[str, ...]) -> str:
    """Why the live Topology cannot serve these levels; empty when it does.  It is never rewritten."""
    found = levels_of(live)
    if found == levels:
        return ""
    name = text_at(live, "metadata", "name")
    return f"immutable level drift: Topology {name} has the levels {', '.join(found)}, due are {', '.join(levels)}"


def profile_in_flavor_name(flavor: str) -> str:
    """The profile that the name of a flavor ends in; empty when it ends in none."""
    found = _SUFFIX.fullmatch(flavor)
    return found[1] if found is not None else ""


def is_marked(item: JsonObject, mark: str) -> bool:
    """Whether an object carries our mark of that type."""
    return object_at(item, "metadata", "labels").get(RESOURCE_TYPE) == mark


def is_terminating(item: JsonObject) -> bool:
    """Whether an object has a deletion mark."""
    return bool(text_at(item, "metadata", "deletionTimestamp"))


def retirement_blocked(topology: JsonObject, *, nodes: Iterable[Labels], flavors: Iterable[JsonObject]) -> str:
    """Why a Topology stays although a flavor of its profile has gone; empty when it can go.

    Args:
        nodes: labels of all Nodes, read from the API server.
        flavors: all ResourceFlavors, read from the API server; a terminating one still refers to the Topology.
    """
    name = text_at(topology, "metadata", "name")
    if not is_marked(topology, MARK):
        return "it does not carry our mark"
    if is_terminating(topology):
        return "it is terminating already"
    if any(topology_name(labels[PROFILE]) == name for labels in nodes if PROFILE in labels):
        return "a Node carries its profile"
    user = next((item for item in flavors if text_at(item, "spec", "topologyName") == name), None)
    return f"ResourceFlavor {text_at(user, 'metadata', 'name')} refers to it" if user is not None else ""

"""ResourceFlavors: their content, what keeps them, and what a change of the Nodes does to them (topology-scheduling.md, 7.3).

Flavors are immutable: a spec that differs is an error, never rewritten.  The only exception is the selector of the mixing
setting, for which the flavor is deleted and made anew once the old object has gone.
"""

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at
from gitops_ctl.scheduling.hardware import CAPACITY, COUNT, Identity, fed_by
from gitops_ctl.scheduling.names import (
    ACCELERATABLE,
    ARCH,
    CPU_ONLY,
    GENERAL,
    NOTE,
    OS,
    PROFILE,
    RESOURCE_TYPE,
)
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.topology import KUEUE_API_VERSION, is_marked, is_terminating, profile_in_flavor_name

MARK: Final = "nodes"
LOST_PROFILE_S: Final = 10.0
"""Seconds until the next look at a flavor whose Nodes have lost their profile label."""
LOST_HARDWARE_S: Final = 60.0
"""Seconds for which a flavor outlives the hardware labels of its Nodes: labels that NFD owes are waited for as long."""
_NOTED: Final = ("product", "family", "memory", "cores")


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor as it should be.

    Attributes:
        contributors: names of the Nodes that feed it, sorted.
        notes: text by name, without the prefix.
    """

    identity: Identity
    contributors: tuple[str, ...]
    notes: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def capacity(self) -> int:
        """Cores or devices of all contributors."""
        return len(self.contributors) * self.identity.count


class Action(enum.Enum):
    """What happens to the live object."""

    CREATE = "create"
    UPDATE = "update"
    NOTHING = "nothing"
    DELETE = "delete"
    RECREATE = "recreate"
    """Delete now; create when the old object has gone."""
    WAIT = "wait"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True)
class FlavorStep:
    """One step for one flavor.

    Attributes:
        object: what to write, for CREATE and UPDATE.
        why: for WAIT and DRIFT, one sentence.
        requeue_s: seconds until it is looked at again.
    """

    action: Action
    object: JsonObject | None = None
    why: str = ""
    requeue_s: float | None = None


def flavors_of(nodes: Mapping[str, Labels], *, options: Options) -> Mapping[str, Flavor]:
    """The flavors of these Nodes, by name.  A Node in deletion still counts: the caller leaves it in."""
    contributors: dict[Identity, list[str]] = {}
    for node in sorted(nodes):
        for identity in fed_by(nodes[node], options=options).flavors:
            contributors.setdefault(identity, []).append(node)
    return {
        identity.name: Flavor(identity, tuple(names), _notes(identity, nodes[names[0]]))
        for identity, names in contributors.items()
    }


def flavor_object(flavor: Flavor) -> JsonObject:
    """The whole ResourceFlavor."""
    return {
        "apiVersion": KUEUE_API_VERSION,
        "kind": "ResourceFlavor",
        "metadata": {
            "name": flavor.name,
            "labels": _labels(flavor),
            "annotations": {f"{NOTE}{key}": value for key, value in flavor.notes.items()},
        },
        "spec": {
            "nodeLabels": flavor.identity.node_labels,
            # Whether a Node takes part is said by its labels, never by its taints.
            "tolerations": [{"operator": "Exists"}],
            "topologyName": flavor.identity.topology,
        },
    }


def step_for(flavor: Flavor, live: JsonObject | None) -> FlavorStep:
    """From the live object to a flavor with contributors."""
    if live is None:
        return FlavorStep(Action.CREATE, flavor_object(flavor))
    if is_terminating(live):
        return FlavorStep(Action.NOTHING)
    difference = _spec_difference(live, flavor)
    if difference:
        return FlavorStep(Action.RECREATE if difference == _MIXING else Action.DRIFT, why=difference)
    wanted = _merged(live, flavor)
    return FlavorStep(Action.NOTHING) if wanted == live else FlavorStep(Action.UPDATE, wanted)


def step_without_contributors(live: JsonObject, nodes: Iterable[Labels], *, is_missed: bool = False) -> FlavorStep:
    """What happens to a marked flavor that no Node feeds any more.

    Args:
        is_missed: a Node that fed it has lost its hardware labels, not long ago.
    """
    if is_terminating(live) or not is_marked(live, MARK):
        return FlavorStep(Action.NOTHING)
    selector = {key: value for key, value in node_labels(live).items() if key != PROFILE}
    if any(PROFILE not in labels and selector.items() <= labels.items() for labels in nodes):
        why = "a Node of this flavor has lost its profile label"
        return FlavorStep(Action.WAIT, why=why, requeue_s=LOST_PROFILE_S)
    if is_missed:
        # They go and come back with whoever writes them; NFD sets its own anew when it starts.
        why = "a Node of this flavor has lost its hardware labels"
        return FlavorStep(Action.WAIT, why=why, requeue_s=LOST_PROFILE_S)
    return FlavorStep(Action.DELETE)


def retiring_siblings(name: str, live: Iterable[JsonObject], wanted: Collection[str]) -> tuple[str, ...]:
    """Marked flavors with the same hardware, another profile and no contributor, by name.

    They go after `name` has been synced: replacement first, retirement after.
    """
    base = name.removesuffix(f"-{profile_in_flavor_name(name)}")
    names = [text_at(item, "metadata", "name") for item in live if is_marked(item, MARK) and not is_terminating(item)]
    siblings = (
        one
        for one in names
        if one not in wanted and (profile := profile_in_flavor_name(one)) and one == f"{base}-{profile}"
    )
    return tuple(sorted(siblings))


def node_labels(flavor: JsonObject) -> Labels:
    """What a live flavor selects Nodes by."""
    return {key: value for key, value in object_at(flavor, "spec", "nodeLabels").items() if isinstance(value, str)}


_MIXING: Final = "only the selector of the mixing setting differs"


def _labels(flavor: Flavor) -> dict[str, str]:
    identity = flavor.identity
    labels = {
        identity.key: "true",
        OS: identity.os,
        ARCH: identity.arch,
        PROFILE: identity.profile,
        ACCELERATABLE: "true" if identity.is_accelerated else "false",
        f"{identity.key}{COUNT}": str(identity.count),
        f"{identity.key}{CAPACITY}": str(flavor.capacity),
        RESOURCE_TYPE: MARK,
    }
    return {**labels, f"{GENERAL}{identity.general}": "true"} if identity.is_accelerated else labels


def _notes(identity: Identity, labels: Labels) -> dict[str, str]:
    """All notes but `cpuDetail` (D22); those of the product come from the first contributor."""
    notes = {
        "acceleratable": "true" if identity.is_accelerated else "false",
        "generalGroup": identity.general,
        "acceleratorGroup": identity.accelerator,
        "manufacturer": identity.manufacturer,
        "topologyProfile": identity.profile,
    }
    if not identity.is_accelerated:
        return notes
    return {
        **notes,
        **{name: labels[f"{identity.key}.{name}"] for name in _NOTED if f"{identity.key}.{name}" in labels},
    }


def _spec_difference(live: JsonObject, flavor: Flavor) -> str:
    found, wanted = dict(node_labels(live)), dict(flavor.identity.node_labels)
    rest = (text_at(live, "spec", "topologyName"), _tolerations(live), list(list_at(live, "spec", "nodeTaints")))
    is_rest_same = rest == (flavor.identity.topology, [("Exists", "", "", "")], [])
    if is_rest_same and found == wanted:
        return ""
    for labels in (found, wanted):
        labels.pop(CPU_ONLY, None)
    if found.get(ACCELERATABLE) == "false":  # written by older versions for the same purpose
        del found[ACCELERATABLE]
    if is_rest_same and found == wanted and not flavor.identity.is_accelerated:
        return _MIXING
    return f"immutable topology drift: the spec of ResourceFlavor {flavor.name} is not the one of its Nodes"


def _tolerations(live: JsonObject) -> list[tuple[str, str, str, str]]:
    return [
        (text_at(one, "operator"), text_at(one, "key"), text_at(one, "value"), text_at(one, "effect"))
        for one in list_at(live, "spec", "tolerations")
        if isinstance(one, Mapping)
    ]


def _merged(live: JsonObject, flavor: Flavor) -> JsonObject:
    """The live object with our labels and notes; our notes replace the present ones wholesale."""
    metadata = object_at(live, "metadata")
    foreign = {key: value for key, value in object_at(metadata, "annotations").items() if not key.startswith(NOTE)}
    notes = {f"{NOTE}{key}": value for key, value in flavor.notes.items()}
    wanted: dict[str, JsonValue] = {
        **metadata,
        "labels": {**object_at(metadata, "labels"), **_labels(flavor)},
        "annotations": {**foreign, **notes},
    }
    return {**live, "metadata": wanted}

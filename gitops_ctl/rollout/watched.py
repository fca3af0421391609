"""What the rollout room keeps of rollouts and leaves: whom a change wakes, and nothing that a pass decides by.  Pure.

A pass reads its campaign from the server.
"""

from typing import NamedTuple

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.trust.declared import owner_of

ENDED = frozenset({"Succeeded", "Cancelled"})
_MOVING = frozenset({"Executing", "Soaking", "Cancelling"})


class SeenRollout(NamedTuple):
    """A rollout.

    Attributes:
        is_planned: it has a frozen plan.
        is_ended: Succeeded or Cancelled; only what a person asks for changes it.
        is_moving: it waits for evidence of health, too.
        devices: names of its targets.
        secrets: Secrets that its image sources name.
        source: the source whose commits stand behind it; None when no Sync applied it.
    """

    is_planned: bool
    is_ended: bool
    is_moving: bool
    devices: frozenset[str]
    secrets: frozenset[str]
    source: NamespacedName | None


def seen_rollout(tree: JsonObject) -> SeenRollout:
    """Trim a rollout."""
    status, owner = object_at(tree, "status"), owner_of(tree)
    targets = objects_at(status, "frozenPlan", "targets")
    return SeenRollout(
        is_planned=bool(object_at(status, "frozenPlan")),
        is_ended=text_at(status, "phase") in ENDED,
        is_moving=text_at(status, "phase") in _MOVING,
        devices=frozenset(text_at(target, "deviceName") for target in targets),
        secrets=frozenset(secrets_of(tree)),
        source=None if owner is None else NamespacedName(owner.namespace, owner.source),
    )


def secrets_of(rollout: JsonObject) -> list[str]:
    """Names of the Secrets that the image sources of a plan name, in order."""
    sources = objects_at(rollout, "spec", "plan", "image", "sources")
    return sorted({name for source in sources if (name := text_at(source, "urlSecretRef", "name"))})


def campaign_of_leaf(leaf: JsonObject) -> NamespacedName:
    """The campaign that a leaf names."""
    annotations = object_at(leaf, "metadata", "annotations")
    return NamespacedName(text_at(annotations, names.CAMPAIGN_NAMESPACE), text_at(annotations, names.CAMPAIGN_NAME))

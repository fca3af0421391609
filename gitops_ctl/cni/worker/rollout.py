"""How far the roll-out of a DaemonSet or Deployment is (cni-switch.md, sections 9.1 and 9.2).  Pure."""

from typing import Final

from gitops_ctl.api.talos_observed import RollOut
from gitops_ctl.core.jsonvalue import JsonObject, int_at, objects_at, text_at

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""Annotation in which the API server counts the changes of a DaemonSet's pod template."""

NAMES: Final = 20
"""How many pods or nodes a status names."""

_POD_GENERATION: Final = "pod-template-generation"


def rollout_of_daemonset(tree: JsonObject) -> RollOut:
    """The counts of a DaemonSet as it is stored."""
    return RollOut(
        generation=int_at(tree, "metadata", "generation"),
        observed_generation=int_at(tree, "status", "observedGeneration"),
        desired=int_at(tree, "status", "desiredNumberScheduled"),
        current=int_at(tree, "status", "currentNumberScheduled"),
        updated=int_at(tree, "status", "updatedNumberScheduled"),
        ready=int_at(tree, "status", "numberReady"),
        available=int_at(tree, "status", "numberAvailable"),
    )


def rollout_of_deployment(tree: JsonObject) -> RollOut:
    """The counts of a Deployment as it is stored."""
    return RollOut(
        generation=int_at(tree, "metadata", "generation"),
        observed_generation=int_at(tree, "status", "observedGeneration"),
        desired=int_at(tree, "spec", "replicas", default=1),
        current=int_at(tree, "status", "replicas"),
        updated=int_at(tree, "status", "updatedReplicas"),
        ready=int_at(tree, "status", "readyReplicas"),
        available=int_at(tree, "status", "availableReplicas"),
    )


def template_generation(daemonset: JsonObject) -> int:
    """How often the pod template was changed; the generation of the whole spec where the server does not tell."""
    text = text_at(daemonset, "metadata", "annotations", TEMPLATE_GENERATION)
    return int(text) if text.isdigit() else int_at(daemonset, "metadata", "generation")


def is_ready(pod: JsonObject) -> bool:
    """Whether a pod serves: its condition Ready is True and it is not being deleted."""
    if text_at(pod, "metadata", "deletionTimestamp"):
        return False
    return any(
        text_at(item, "type") == "Ready" and text_at(item, "status") == "True"
        for item in objects_at(pod, "status", "conditions")
    )


def is_of_template(pod: JsonObject, generation: int) -> bool:
    """Whether a pod was made from the template of that generation; True when the pod does not say."""
    text = text_at(pod, "metadata", "labels", _POD_GENERATION)
    return not text or text == str(generation)

"""Documents of a kind that has a plan and approvals."""

import json

from gitops_ctl.trust.kindverbs import ROLLOUT

__all__ = ["ROLLOUT", "rollout"]


def rollout(name: str = "r", **spec: object) -> str:
    """A rollout with any members in its spec."""
    tree = {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareRollout",
        "metadata": {"name": name, "namespace": "demo"},
        "spec": spec,
    }
    return json.dumps(tree, indent=1) + "\n"

"""Verbs of a test kind that has a plan and approvals, registered for one test at a time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.verbs import Fields, forget_verbs, register_verbs, same, value_at

ROLLOUT = GroupKind("ops.cisco.vk", "IOSXESoftwareRollout")
BLOCKS = (("approve", "/spec/approval"), ("activate", "/spec/activationApproval"), ("recover", "/spec/recovery"))


def rollout(name: str = "r", **spec: object) -> str:
    """A document of the test kind."""
    tree = {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareRollout",
        "metadata": {"name": name, "namespace": "demo"},
        "spec": spec,
    }
    return json.dumps(tree, indent=1) + "\n"


@contextmanager
def rollout_verbs() -> Iterator[None]:
    """`plan` for a new one and for `spec.plan`, one verb per approval block."""
    register_verbs(
        ROLLOUT,
        _verbs_of,
        authorises={verb: ("/spec/plan",) for verb, _ in BLOCKS},
        fields=BLOCKS,
    )
    try:
        yield
    finally:
        forget_verbs(ROLLOUT)


def _verbs_of(old: JsonObject | None, new: JsonObject | None) -> Fields:
    if new is None:
        return {"delete": ("",), "control": ("",)}
    found: dict[str, tuple[str, ...]] = {}
    if old is None:
        found["plan"] = ("",)
    elif not same(value_at(old, "/spec/plan"), value_at(new, "/spec/plan")):
        found["plan"] = ("/spec/plan",)
    for verb, pointer in BLOCKS:
        if not same(value_at(old, pointer), value_at(new, pointer)):
            found[verb] = (pointer,)
    return found

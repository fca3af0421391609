"""The ConfigMaps of policy and ledger in Git, judged by `gitops-ctl check` and by a Sync alike (rollouts.md, 2.6, 6.2 and 7).

A policy that breaks a rule holds its object: the one in the cluster goes on, and nothing is planned by a text that nobody can read.
"""

from collections.abc import Iterator
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.rules import register_check
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.fleet import names

CONFIG_MAP: Final = GroupKind("", "ConfigMap")


def policy_flaws(document: Document) -> Iterator[Flaw]:
    """What is wrong with a policy; nothing about other ConfigMaps, also those that happen to have the key."""
    data = object_at(document.tree, "data")
    if names.LEDGER_KEY in data and _is_marked(document.tree, names.MANAGED_LEDGER, names.COMPONENT_LEDGER):
        message = "the ledger is written by the manager alone: in Git it would bring back old reservations"
        hint = f"leave out data.{names.LEDGER_KEY}"
        yield Flaw(ErrorCode.LEDGER_INVALID, message, f"/data/{names.LEDGER_KEY}", hint)
    if not _is_marked(document.tree, names.MANAGED_POLICY, names.COMPONENT_POLICY):
        return
    # The client of the cluster comes in with the first policy, not with every ConfigMap.
    from gitops_ctl.rollout.bootstrap import policy_record  # noqa: PLC0415

    try:
        policy_record(document.tree)
    except Refused as error:
        if not error.subject.startswith(names.POLICY_KEY):
            yield Flaw(error.code, error.message, "/metadata")
            return
        place = f"/data/{names.POLICY_KEY}" if names.POLICY_KEY in data else ""
        yield Flaw(error.code, f"{error.subject}: {error.message}", place)


def _is_marked(tree: JsonObject, annotation: str, component: str) -> bool:
    is_component = text_at(tree, "metadata", "labels", names.COMPONENT) == component
    return is_component or annotation in object_at(tree, "metadata", "annotations")


register_check(CONFIG_MAP, policy_flaws)

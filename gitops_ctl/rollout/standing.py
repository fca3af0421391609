"""When a rollout counts as done for whoever waits for it (rollouts.md, section 3.5)."""

from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, text_at

FAILED: Final = "Failed"
_CURRENT: Final = frozenset(
    {"AwaitingApproval", "Paused", "Executing", "Soaking", "Cancelling", "Succeeded", "Cancelled"}
)
"""A campaign takes days and waits for people: what Git asks for is there once it is planned."""


def is_current(tree: JsonObject) -> bool:
    """Whether the manager has taken the campaign up and nothing of it failed."""
    return text_at(tree, "status", "phase") in _CURRENT


def failure_of(tree: JsonObject) -> str:
    """Why the campaign failed; empty when it did not."""
    if text_at(tree, "status", "phase") != FAILED:
        return ""
    return text_at(tree, "status", "message") or "the campaign failed"

"""One rule of our kinds: an object that keeps it and objects that break it."""

from dataclasses import dataclass, field
from typing import Any

SHOULD_MATCH = "should match"
"""What the API server says of a pattern."""


@dataclass(frozen=True)
class Case:
    """`good` is accepted; `bad` is refused with `told` in the server's answer."""

    name: str
    good: dict[str, Any]
    bad: dict[str, Any]
    told: str
    cel: bool = False
    extra_bad: tuple[dict[str, Any], ...] = field(default=())

    @property
    def in_status(self) -> bool:
        return "status" in self.good


_ANSWERS = ("approval", "activationApproval", "preparationInvalidation", "recovery")


def born(tree: dict[str, Any]) -> dict[str, Any]:
    """The object as it is created: without status, and without the blocks that answer to a status."""
    spec = {key: value for key, value in tree["spec"].items() if key not in _ANSWERS}
    return {**{key: value for key, value in tree.items() if key != "status"}, "spec": spec}


def answers(tree: dict[str, Any]) -> bool:
    """Whether the object has blocks that answer to a status."""
    return any(name in tree["spec"] for name in _ANSWERS)

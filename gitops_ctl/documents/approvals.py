"""Blocks of a document that approve something, and what a person writes into them (gitops.md, section 4.4, verbs).

Names and times of people are left out: they are filled in from whoever signs.  The kinds are registered here as pure data, known
before their controllers are.
"""

import re
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.ids import GroupKind

_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Approval:
    """One block.

    Attributes:
        verb: what a change of it needs.
        pointer: where it stands.
        hashes: members that name what is approved, each `sha256:` and 64 hex digits.
    """

    verb: str
    pointer: str
    hashes: tuple[str, ...]

    def flaw(self, values: dict[str, str]) -> str:
        """What is wrong with the values for the block; empty when nothing is."""
        missing = [name for name in self.hashes if name not in values]
        unknown = sorted(set(values) - set(self.hashes))
        if missing or unknown:
            return f"the block {self.pointer} takes {', '.join(self.hashes)}"
        wrong = [name for name, value in values.items() if not _HASH.fullmatch(value)]
        return f"{', '.join(wrong)} must be sha256: and 64 hex digits" if wrong else ""


_REGISTRY: Final[dict[GroupKind, dict[str, Approval]]] = {}


def register_approval(group_kind: GroupKind, approval: Approval) -> None:
    """Teach one block of a kind.

    Raises:
        RuntimeError: the kind has one for this verb.
    """
    known = _REGISTRY.setdefault(group_kind, {})
    if approval.verb in known:
        raise RuntimeError(f"the block for {approval.verb} of {group_kind} is registered twice")
    known[approval.verb] = approval


def approvals_of(group_kind: GroupKind) -> dict[str, Approval]:
    """The blocks of a kind by verb; empty when it has none."""
    return dict(_REGISTRY.get(group_kind, {}))


register_approval(
    GroupKind("ops.cisco.vk", "IOSXESoftwareRollout"), Approval("approve", "/spec/approval", ("planHash",))
)

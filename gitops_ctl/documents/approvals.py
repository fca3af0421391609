"""Blocks of a document that approve something, and what a person writes into them (gitops.md, section 4.4, verbs).

Names and times of people are left out: they are filled in from whoever signs.  The kinds are registered here as pure data, known
before their controllers are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonValue

_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TIME: Final = re.compile(r"[0-9-]{10}T[0-9:]{8}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9:]{5})")


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a block, as text.

    Attributes:
        form: what it must be: `hash` (`sha256:` and 64 hex digits), `time` (RFC 3339) or `text`.
        longest: characters of a text.
        among: the texts that are allowed; empty for any.
    """

    name: str
    form: str = "text"
    longest: int = 253
    among: tuple[str, ...] = ()

    def flaw(self, value: str) -> str:
        """What is wrong with a value; empty when nothing is."""
        if self.form == "hash":
            return "" if _HASH.fullmatch(value) else f"{self.name} must be sha256: and 64 hex digits"
        if self.form == "time":
            return "" if _is_time(value) else f"{self.name} must be a time such as 2026-12-01T08:00:00Z"
        if self.among:
            return "" if value in self.among else f"{self.name} must be {' or '.join(self.among)}"
        fits = 0 < len(value) <= self.longest and value.isprintable()
        return "" if fits else f"{self.name} must be text of 1 to {self.longest} characters"


@dataclass(frozen=True, slots=True)
class Entries:
    """A list in a block; each entry is written with slashes between its members.

    Attributes:
        least, most: how many.
    """

    name: str
    members: tuple[Member, ...]
    least: int
    most: int

    @property
    def form(self) -> str:
        """How one is written."""
        return "/".join(member.name for member in self.members)

    def parsed(self, values: Sequence[str]) -> tuple[tuple[dict[str, JsonValue], ...], str]:
        """The entries, and what is wrong with them; empty when nothing is.  They are keyed by their first member."""
        if not self.least <= len(values) <= self.most:
            return (), f"{self.name} takes {self.least} to {self.most} entries"
        entries: list[dict[str, JsonValue]] = []
        for value in values:
            parts = value.split("/")
            if len(parts) != len(self.members):
                return (), f"{self.name} must be written as {self.form}"
            for member, part in zip(self.members, parts, strict=True):
                if flaw := member.flaw(part):
                    return (), f"{self.name}: {flaw}"
            entries.append({member.name: part for member, part in zip(self.members, parts, strict=True)})
        keys = {entry[self.members[0].name] for entry in entries}
        return tuple(entries), "" if len(keys) == len(
            entries
        ) else f"{self.name} names one {self.members[0].name} twice"


@dataclass(frozen=True, slots=True)
class Approval:
    """One block.

    Attributes:
        verb: what a change of it needs.
        pointer: where it stands.
        members: texts, each given once.
        entries: a list beside them, None where there is none.
        ordered: two times, of which the first must be the earlier one; empty where there are none.
    """

    verb: str
    pointer: str
    members: tuple[Member, ...]
    entries: Entries | None = None
    ordered: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last step of its pointer, by which a person chooses it."""
        return self.pointer.rpartition("/")[2]

    def block(self, given: Mapping[str, Sequence[str]]) -> tuple[dict[str, JsonValue], str]:
        """The block for the values that a person gave, and what is wrong with them; empty when nothing is."""
        listed = (self.entries,) if self.entries is not None else ()
        names = [*(member.name for member in self.members), *(one.name for one in listed)]
        optional = {one.name for one in listed if one.least == 0}
        if set(given) - set(names) or set(names) - set(given) - optional:
            shown = [*names[: len(self.members)], *(f"{one.name} ({one.form}, repeated)" for one in listed)]
            return {}, f"the block {self.pointer} takes {', '.join(shown)}"
        found: dict[str, JsonValue] = {}
        for member in self.members:
            if len(given[member.name]) != 1:
                return {}, f"{member.name} is given once"
            (value,) = given[member.name]
            if flaw := member.flaw(value):
                return {}, flaw
            found[member.name] = value
        for one in listed:
            entries, flaw = one.parsed(given.get(one.name, ()))
            if flaw:
                return {}, flaw
            found[one.name] = list(entries)
        return found, self._disorder(given)

    def _disorder(self, given: Mapping[str, Sequence[str]]) -> str:
        times = [from_rfc3339(given[name][0]) for name in self.ordered]
        return f"{self.ordered[0]} must be before {self.ordered[1]}" if times and times[0] >= times[1] else ""


def _is_time(value: str) -> bool:
    if not _TIME.fullmatch(value):
        return False
    try:
        from_rfc3339(value)
    except ValueError:
        return False
    return True


_REGISTRY: Final[dict[GroupKind, dict[str, Approval]]] = {}


def register_approval(group_kind: GroupKind, approval: Approval) -> None:
    """Teach one block of a kind.

    Raises:
        RuntimeError: the kind has one of this name.
    """
    known = _REGISTRY.setdefault(group_kind, {})
    if approval.name in known:
        raise RuntimeError(f"the block {approval.name} of {group_kind} is registered twice")
    known[approval.name] = approval


def approvals_of(group_kind: GroupKind) -> dict[str, Approval]:
    """The blocks of a kind by their names; empty when it has none."""
    return dict(_REGISTRY.get(group_kind, {}))


_ROLLOUT: Final = GroupKind("ops.cisco.vk", "IOSXESoftwareRollout")
_PLAN: Final = Member("planHash", "hash")
_REASON: Final = Member("reason", longest=256)
_RECEIPT: Final = (Member("deviceUID", longest=128), Member("upgradeUID", longest=128), Member("receiptHash", "hash"))
_RECEIPTS: Final = Entries("receipts", _RECEIPT, 1, 100)
_CLAIMS: Final = Entries("claims", (Member("stage"), Member("claimedAt", "time")), 0, 6)
_OUTCOME: Final = Member("outcome", among=("DeviceRetired", "OutcomeVerifiedByHand"))
_WINDOW: Final = ("notBefore", "notAfter")

for _approval in (
    Approval("approve", "/spec/approval", (_PLAN,)),
    Approval(
        "activate",
        "/spec/activationApproval",
        (_PLAN, *(Member(name, "time") for name in _WINDOW)),
        _RECEIPTS,
        _WINDOW,
    ),
    Approval("recover", "/spec/preparationInvalidation", (_PLAN, _REASON), _RECEIPTS),
    Approval("recover", "/spec/recovery", (Member("leafUID", longest=128), _OUTCOME, _REASON), _CLAIMS),
):
    register_approval(_ROLLOUT, _approval)

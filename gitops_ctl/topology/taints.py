"""Taints of a Node: the guards, those that a device asks for, and everybody else's, which stay (rollouts.md, 6.3 and 16)."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, objects_at, text_at
from gitops_ctl.fleet import names


class Taint(NamedTuple):
    """One taint; a Node has at most one for each key and effect."""

    key: str
    value: str
    effect: str

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        return cls(text_at(tree, "key"), text_at(tree, "value"), text_at(tree, "effect"))

    @property
    def slot(self) -> tuple[str, str]:
        """What makes it one taint."""
        return self.key, self.effect

    def tree(self) -> dict[str, JsonValue]:
        """As the API has it; an empty value is left out."""
        return {name: text for name, text in self._asdict().items() if text}


GUARD: Final = Taint(names.UNINITIALIZED, names.UNINITIALIZED_VALUE, names.NO_SCHEDULE)
MAINTENANCE: Final = Taint(names.DEVICE_MAINTENANCE, names.DEVICE_MAINTENANCE_VALUE, names.NO_SCHEDULE)


def has_taint(node: JsonObject, taint: Taint) -> bool:
    """Whether the Node has it, whatever its value."""
    return any(Taint.of(tree).slot == taint.slot for tree in objects_at(node, "spec", "taints"))


def static_taints(device: JsonObject) -> tuple[Taint, ...]:
    """What the device asks for, sorted."""
    return tuple(sorted({Taint.of(tree) for tree in objects_at(device, "spec", "taints")}))


def managed_text(taints: Iterable[Taint]) -> str:
    """Value of the annotation that names the static taints which are ours."""
    return ",".join(f"{taint.key}|{taint.effect}" for taint in sorted(taints))


def taints_after(node: JsonObject, *, wanted: Sequence[Taint], managed: str) -> list[JsonValue]:
    """The taints that the Node has to have.

    Args:
        wanted: ours: guards that stand now, and static ones.
        managed: the annotation as it is: the static taints of an earlier pass, which go when they are not wanted any more.
    """
    ours = {GUARD.slot, MAINTENANCE.slot, *(tuple(text.split("|", 1)) for text in managed.split(",") if "|" in text)}
    by_slot = {taint.slot: taint for taint in wanted}
    kept: list[JsonValue] = []
    for tree in objects_at(node, "spec", "taints"):
        seen = Taint.of(tree)
        want = by_slot.pop(seen.slot, None)
        if want is not None:
            kept.append(tree if seen == want else want.tree())
        elif seen.slot not in ours:
            kept.append(tree)
    return [*kept, *(taint.tree() for taint in wanted if taint.slot in by_slot)]

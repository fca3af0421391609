"""Who owns which field: `metadata.managedFields` for applies and for every other write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.doubles.apiserver import structure
from tests.doubles.apiserver.answers import ApiError, Cause, Tree, apply_conflict
from tests.doubles.apiserver.fieldset import EMPTY, FieldSet, Path, decode, encode, text
from tests.doubles.apiserver.shapes import Shape

STRIPPED = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in ("name", "namespace", "creationTimestamp", "uid", "generation", "managedFields", "resourceVersion")
    }
)


class Manager(NamedTuple):
    """Identity of an entry.  `version` is empty for an applier: it has one entry, whatever version it applied."""

    name: str
    operation: str
    version: str
    subresource: str

    def shown(self) -> str:
        result = f'"{self.name}"'
        if self.subresource:
            result += f' with subresource "{self.subresource}"'
        return f"{result} using {self.version}" if self.operation == "Update" else result


@dataclass(frozen=True, slots=True)
class Entry:
    """What a manager owns, in the words of one API version."""

    fields: FieldSet
    version: str
    time: str


Managed = dict[Manager, Entry]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, where and when; `hidden` are members that this endpoint cannot change, `only` the one that it can."""

    name: str
    version: str
    subresource: str
    time: str
    served: frozenset[str]
    hidden: frozenset[Path] = frozenset()
    only: str = ""

    def manager(self, operation: str) -> Manager:
        return Manager(self.name, operation, "" if operation == "Apply" else self.version, self.subresource)

    def visible(self, paths: FieldSet | set[Path]) -> FieldSet:
        if self.only:
            return frozenset(path for path in paths if path and path[0] == self.only)
        return frozenset(path for path in paths if path and path[:1] not in self.hidden and path[:2] not in self.hidden)


def read(entries: Sequence[Mapping[str, Any]]) -> Managed:
    """The entries of an object."""
    managed: Managed = {}
    for entry in entries:
        operation, version = entry["operation"], entry["apiVersion"]
        key = Manager(
            entry.get("manager", ""), operation, "" if operation == "Apply" else version, entry.get("subresource", "")
        )
        managed[key] = Entry(decode(entry.get("fieldsV1", {})), version, entry.get("time", ""))
    return managed


def write(managed: Managed) -> list[Tree]:
    """The entries in the order in which a server lists them."""

    def order(item: tuple[Manager, Entry]) -> tuple[str, ...]:
        manager, entry = item
        return (manager.operation, entry.time, manager.name, entry.version, manager.subresource)

    result = []
    for manager, entry in sorted(managed.items(), key=order):
        tree: Tree = {"manager": manager.name, "operation": manager.operation, "apiVersion": entry.version}
        if entry.time:
            tree["time"] = entry.time
        tree |= {"fieldsType": "FieldsV1", "fieldsV1": encode(entry.fields)}
        if manager.subresource:
            tree["subresource"] = manager.subresource
        result.append(tree)
    return result


def update(shape: Shape, *, live: Tree, new: Tree, managed: Managed, writer: Writer) -> Managed:
    """Entries after a write that is not an apply: who changes a field owns it."""
    managed, changes = _take(shape, live, new, managed, writer=writer, mine=None, force=True)
    changed = writer.visible(changes.added | changes.modified) - STRIPPED
    if changed:
        me = writer.manager("Update")
        before = managed[me].fields if me in managed else EMPTY
        managed[me] = Entry((before - writer.visible(changes.removed)) | changed, writer.version, writer.time)
    return managed


def apply(
    shape: Shape, *, live: Tree, config: Tree, managed: Managed, writer: Writer, force: bool
) -> tuple[Tree, Managed]:
    """The object and the entries after a server-side apply.

    Raises:
        ApiError: 409 with causes when a field belongs to another manager and `force` is off.
    """
    me = writer.manager("Apply")
    last = managed.get(me)
    merged = structure.merge(shape, live, config)
    claimed = writer.visible(structure.fields_of(shape, config))
    managed = {**managed, me: Entry(claimed, writer.version, writer.time)}
    if last is not None and last.fields and last.version in writer.served:
        merged = _prune(shape, merged, managed, last.fields)
    managed, _ = _take(shape, live, merged, managed, writer=writer, mine=me, force=force)
    own = claimed - STRIPPED
    if not own:
        managed.pop(me, None)
    else:
        idle = structure.same(live, merged)
        time = writer.time if not idle else last.time if last is not None else ""
        managed[me] = Entry(own, writer.version, time)
    return merged, managed


def _prune(shape: Shape, merged: Tree, managed: Managed, last: FieldSet) -> Tree:
    """Take away what the manager applied last time and neither it nor anybody else claims now."""
    lost = structure.named_members(shape, last)
    pruned = structure.remove(shape, merged, lost) or {}
    owned = frozenset[Path]().union(*(entry.fields for entry in managed.values()))
    everything = structure.named_members(shape, structure.fields_of(shape, merged))

    kept = structure.named_members(shape, structure.fields_of(shape, pruned) | owned)
    if everything <= kept:
        return merged
    pruned = structure.remove(shape, merged, everything - kept) or {}
    dangling = (everything - structure.named_members(shape, structure.fields_of(shape, pruned))) & lost
    return structure.remove(shape, merged, dangling) or {}


def _take(
    shape: Shape, live: Tree, new: Tree, managed: Managed, *, writer: Writer, mine: Manager | None, force: bool
) -> tuple[Managed, structure.Comparison]:
    """Compare, refuse on conflict unless forced, and take changed fields away from the others."""
    changes = structure.compare(shape, live, new)
    changed = writer.visible(changes.added | changes.modified)
    removed = writer.visible(changes.removed)
    kept: Managed = {}
    conflicts: list[tuple[Manager, Path]] = []
    for manager, entry in managed.items():
        if manager == mine:
            kept[manager] = entry
        elif entry.version in writer.served:
            conflicts += [(manager, path) for path in sorted(entry.fields & changed)]
            fields = entry.fields - changed - removed
            if fields:
                kept[manager] = replace(entry, fields=fields)
    if conflicts and not force:
        raise _refusal(conflicts)
    return kept, changes


def _refusal(conflicts: list[tuple[Manager, Path]]) -> ApiError:
    conflicts.sort(key=lambda item: (item[0].shown(), item[1]))
    causes = [Cause("FieldManagerConflict", f"conflict with {who.shown()}", text(path)) for who, path in conflicts]
    if len(conflicts) == 1:
        who, path = conflicts[0]
        return apply_conflict(f"Apply failed with 1 conflict: conflict with {who.shown()}: {text(path)}", causes)
    lines: list[str] = []
    for manager in dict.fromkeys(who for who, _ in conflicts):
        lines.append(f"conflicts with {manager.shown()}:")
        lines += [f"- {text(path)}" for who, path in conflicts if who == manager]
    return apply_conflict(f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines), causes)

"""The operations of structured merge: check, field set, merge, compare, remove.  Pure functions over JSON trees."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.apiserver.fieldset import FieldSet, Path, Trie, compact, text
from tests.doubles.apiserver.shapes import MissingKey, Shape, anything

_ABSENT: Any = object()


class NotTyped(ValueError):
    """The value does not fit its type; the text starts with the path."""


@dataclass(slots=True)
class Comparison:
    """Paths that differ between two values."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def check(shape: Shape, value: Any) -> None:
    """Raise NotTyped when `value` does not fit.  Null fits everywhere."""
    found = list(_misfits(shape, value, ()))
    if len(found) == 1:
        raise NotTyped(found[0])
    if found:
        raise NotTyped("errors:\n" + "\n".join(f"  {line}" for line in found))


def _misfits(shape: Shape, value: Any, path: Path) -> Iterator[str]:
    if value is None:
        return
    shape = shape.resolved(value)
    if shape.kind == "map":
        yield from _misfits_of_map(shape, value, path)
    elif shape.kind == "list":
        yield from _misfits_of_list(shape, value, path)
    elif not scalar_fits(shape.scalar, value):
        if shape.scalar in ("integer", "number"):
            yield f"{text(path)}: expected numeric (int or float), got {_GO_TYPES[type(value)]}"
        else:
            yield f"{text(path)}: expected {shape.scalar or 'scalar'}, got {_go_value(value)}"


_GO_TYPES = {str: "string", bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}


def scalar_fits(scalar: str, value: Any) -> bool:
    """Whether a scalar of that type may hold the value."""
    if isinstance(value, (Mapping, list)):
        return False
    if scalar == "string":
        return isinstance(value, str)
    if scalar == "boolean":
        return isinstance(value, bool)
    if scalar in ("integer", "number"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return True


def _go_value(value: Any) -> str:
    """A value as the server prints it in such messages."""
    if isinstance(value, list):
        return "&{[" + " ".join(str(item) for item in value) + "]}"
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"&value.valueUnstructured{{Value:{compact(value) if isinstance(value, str) else shown}}}"


def _misfits_of_map(shape: Shape, value: Any, path: Path) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{text(path)}: expected map, got {_go_value(value)}"
        return
    for name, item in value.items():
        child = shape.child(name)
        where = (*path, f"f:{name}")
        if child is None:
            yield f"{text(where)}: field not declared in schema"
        else:
            yield from _misfits(child, item, where)


def _misfits_of_list(shape: Shape, value: Any, path: Path) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{text(path)}: expected list, got {_go_value(value)}"
        return
    seen: set[str] = set()
    for number, item in enumerate(value):
        step = f"i:{number}"
        if not shape.atomic:
            try:
                step = shape.step_of(item)
            except MissingKey as error:
                yield f"{text(path)}: element {number}: {error}"
                continue
            if step in seen:
                yield f"{text(path)}: duplicate entries for key {text((step,))}"
                continue
            seen.add(step)
        yield from _misfits(shape.item, item, (*path, step))


def fields_of(shape: Shape, value: Any) -> FieldSet:
    """The paths that an applied configuration claims."""
    found: set[Path] = set()
    _fields(shape, value, (), found)
    return frozenset(found)


def _fields(shape: Shape, value: Any, path: Path, found: set[Path]) -> None:
    shape = shape.resolved(value)
    if shape.kind in ("scalar", "untyped") or shape.atomic:
        found.add(path)
    elif shape.kind == "map":
        for name, item in (value or {}).items():
            child, where = shape.child(name), (*path, f"f:{name}")
            if child is not None:
                _fields(child, item, where, found)
            if item is None or item == {} or name not in shape.fields:
                found.add(where)
    else:
        for item in value or ():
            where = (*path, shape.step_of(item))
            _fields(shape.item, item, where, found)
            found.add(where)


def merge(shape: Shape, live: Any, config: Any) -> Any:
    """`live` with `config` laid over it; what only one side has stays."""
    if config is _ABSENT:
        return live
    if live is _ABSENT:
        live = None
    shape = shape.resolved(config if config is not None else live)
    if shape.kind == "map" and not shape.atomic and isinstance(config, Mapping) and (config or live):
        base = live if isinstance(live, Mapping) else {}
        merged = {}
        for name in (*base, *(name for name in config if name not in base)):
            child = shape.child(name)
            if child is not None:
                merged[name] = merge(child, base.get(name, _ABSENT), config.get(name, _ABSENT))
        return merged
    if shape.kind == "list" and not shape.atomic and isinstance(config, list) and (config or live):
        return _merge_lists(shape, live if isinstance(live, list) else [], config)
    return config


def _merge_lists(shape: Shape, live: list[Any], config: list[Any]) -> list[Any]:
    """Keyed lists and sets: the order of the configuration, with foreign items left where they stood."""
    mine = _by_step(shape, config)
    theirs = _by_step(shape, live)
    left, right = list(theirs), list(mine)
    shared = [step for step in right if step in theirs]
    result: list[Any] = []
    done: set[str] = set()
    at_left = at_right = at_shared = 0

    def take(step: str) -> None:
        result.append(merge(shape.item, theirs.get(step, _ABSENT), mine.get(step, _ABSENT)))
        done.add(step)

    while at_left < len(left) or at_right < len(right):
        following = shared[at_shared] if at_shared < len(shared) else None
        step = left[at_left] if at_left < len(left) else None
        if step is not None and at_right < len(right):
            if step == right[at_right]:
                take(step)
                at_left, at_right, at_shared = at_left + 1, at_right + 1, at_shared + 1
                continue
            if step in mine and following is not None and following != step:
                at_left += 1
                continue
        if step is not None and step not in mine:
            take(step)
            at_left += 1
            continue
        if step is not None and step in done:
            at_left += 1
        if at_right < len(right):
            take(right[at_right])
            at_shared += right[at_right] == following
            at_right += 1
    return result


def _by_step(shape: Shape, items: list[Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for item in items:
        result.setdefault(shape.step_of(item), item)
    return result


def compare(shape: Shape, old: Any, new: Any) -> Comparison:
    """What changes from `old` to `new`; both are whole objects."""
    result = Comparison()
    _compare(shape, old, new, (), result)
    return result


def _compare(shape: Shape, old: Any, new: Any, path: Path, result: Comparison) -> None:
    if shape.kind == "untyped" and old is not _ABSENT and new is not _ABSENT:
        before, after = shape.resolved(old), shape.resolved(new)
        if before.kind != after.kind and old is not None and new is not None:
            _compare_forms(before, after, old, new, path, result)
            return
    shape = shape.resolved(old if new is None or new is _ABSENT else new)
    left = () if old in (_ABSENT, None) else old
    right = () if new in (_ABSENT, None) else new
    whole = shape.kind in ("scalar", "untyped") or shape.atomic or (not left and not right)
    whole = whole or not all(isinstance(side, (dict, list, tuple)) for side in (left, right))
    if whole:
        if old is _ABSENT:
            result.added.add(path)
        elif new is _ABSENT:
            result.removed.add(path)
        elif not same(old, new):
            result.modified.add(path)
        return
    if shape.kind == "map":
        _compare_maps(shape, dict(left), dict(right), path, result)
    else:
        _compare_lists(shape, list(left), list(right), path, result)
    if old is _ABSENT:
        result.added.add(path)
    elif new is _ABSENT:
        result.removed.add(path)


def _compare_forms(  # a value of one form became one of another: the members of the old go, those of the new come
    before: Shape, after: Shape, old: Any, new: Any, path: Path, result: Comparison
) -> None:
    result.modified.add(path)
    if before.kind == "map" and not before.atomic:
        _compare_maps(before, old, {}, path, result)
    if after.kind == "map" and not after.atomic:
        _compare_maps(after, {}, new, path, result)


def _compare_maps(shape: Shape, old: dict[str, Any], new: dict[str, Any], path: Path, result: Comparison) -> None:
    for name in (*old, *(name for name in new if name not in old)):
        child = shape.child(name)
        if child is not None:
            _compare(child, old.get(name, _ABSENT), new.get(name, _ABSENT), (*path, f"f:{name}"), result)


def _compare_lists(shape: Shape, old: list[Any], new: list[Any], path: Path, result: Comparison) -> None:
    left, right = _by_step(shape, old), _by_step(shape, new)
    for step in (*left, *(step for step in right if step not in left)):
        _compare(shape.item, left.get(step, _ABSENT), right.get(step, _ABSENT), (*path, step), result)


def copied(value: Any) -> Any:
    """A JSON tree of its own; many times faster than a copy of anything."""
    if isinstance(value, dict):
        return {name: copied(item) if isinstance(item, (dict, list)) else item for name, item in value.items()}
    if isinstance(value, list):
        return [copied(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def same(one: Any, other: Any) -> bool:
    """JSON equality: true is not 1."""
    if one is other:
        return True
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if one != other:
        return False
    if isinstance(one, dict):
        for key, item in one.items():
            if not (isinstance(item, str) or same(item, other[key])):
                return False
    elif isinstance(one, list):
        for mine, theirs in zip(one, other, strict=True):
            if not (isinstance(mine, str) or same(mine, theirs)):
                return False
    return True


def named_members(shape: Shape, paths: FieldSet) -> FieldSet:
    """`paths` and every declared field on the way to them."""
    found = set(paths)

    def walk(node: Trie, at: Shape, path: Path) -> None:
        for step, child in node.children.items():
            where = (*path, step)
            if not child.children:
                continue
            if step.startswith("f:"):
                if step[2:] in at.fields:
                    found.add(where)
                below = at.child(step[2:])
            else:
                below = at.item
            walk(child, below or anything(at.types), where)

    walk(Trie(paths), shape, ())
    return frozenset(found)


def remove(shape: Shape, value: Any, paths: FieldSet) -> Any:
    """`value` without what `paths` names; None when nothing is left."""
    return _remove(shape, value, Trie(paths))


def _remove(shape: Shape, value: Any, node: Trie) -> Any:
    shape = shape.resolved(value)
    if shape.kind in ("scalar", "untyped"):
        return value
    if shape.atomic or not value:
        return None
    if shape.kind == "map":
        kept: dict[str, Any] = {}
        for name, item in value.items():
            below = node.children.get(f"f:{name}")
            if below is not None and below.member:
                continue
            child = shape.child(name)
            kept[name] = item if below is None or child is None else _remove(child, item, below)
        return kept or None
    items = []
    for item in value:
        below = node.children.get(shape.step_of(item))
        if below is None:
            items.append(item)
        elif not below.member:
            items.append(_remove(shape.item, item, below))
    return items or None

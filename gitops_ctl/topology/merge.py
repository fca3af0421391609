"""Merge patches that say no more than what differs, so that an object as it should be costs no write (rollouts.md, section 8.5)."""

from collections.abc import Collection, Mapping

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue


def changes(old: JsonObject, new: JsonObject, *, keep: Collection[str] = ()) -> dict[str, JsonValue]:
    """The merge patch that turns `old` into `new`; empty when they are equal.

    Args:
        keep: members of `old` that are left alone although `new` lacks them: somebody else writes them.
    """
    patch: dict[str, JsonValue] = {name: None for name in old if name not in new and name not in keep}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := changes(before, value):
                patch[name] = inner
        elif name not in old or before != value:
            patch[name] = value
    return patch


def covers(live: JsonValue, wanted: JsonValue) -> bool:
    """Whether everything that `wanted` says stands in `live`; what the server or somebody else added does not count."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(covers(live.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(live, (list, tuple))
            and len(live) == len(wanted)
            and all(covers(one, other) for one, other in zip(live, wanted, strict=True))
        )
    return live == wanted

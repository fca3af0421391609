"""What differs in a drifted object, and who made the difference: read only when somebody is told (gitops.md, section 11)."""

import asyncio
from collections.abc import Callable

from gitops_ctl.api.names import FIELD_MANAGER
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.sync.apply import Target, encoded_body
from gitops_ctl.sync.diff import Difference, differences, last_writer, secret_keys_changed
from gitops_ctl.sync.drift import Heat
from gitops_ctl.sync.holding import with_names
from gitops_ctl.sync.model import Desired, Seen, Unseen
from gitops_ctl.sync.plan import Drift
from gitops_ctl.sync.remove import Remover
from gitops_ctl.sync.summarise import Drifted
from gitops_ctl.sync.unit import Memory


async def describe(
    target: Target,
    item: Drift,
    *,
    memory: Memory,
    see: Callable[[ObjectId, GroupVersionKind], Seen],
) -> Drifted:
    """One drifted object for the status; asked from the server once per version of the object."""
    desired = item.desired
    seen = see(desired.id, desired.gvk)
    version = "" if seen is None or isinstance(seen, Unseen) else seen.version
    known = memory.notes.get(desired.id)
    if known is not None and known[0] == version:
        return known[1]
    found = Drifted(desired.id, item.missing)
    if version:
        try:
            live, wanted = await dry_run(desired, target=target)
        except GitopsError:
            return found  # that it differs is known all the same
        if live is not None:
            found = Drifted(desired.id, item.missing, _pointers(live, wanted), last_writer(live, but=FIELD_MANAGER))
    memory.notes[desired.id] = (version, found)
    return found


async def dry_run(desired: Desired, *, target: Target) -> tuple[JsonObject | None, JsonObject]:
    """The live object (None when there is none) and what it would be after an apply, both from the server.

    Raises:
        GitopsError: the server refuses the object, or cannot be asked.
    """
    resource = await target.mapper.resource(desired.gvk)
    path = resource.path(desired.id.namespace, desired.id.name)
    live = await target.client.find(path, account=target.account)
    filled = with_names(desired, live=live)
    wanted = await target.client.apply(
        path, encoded_body(filled), manager=FIELD_MANAGER, force=True, dry_run=True, account=target.account
    )
    return live, wanted


def compared(live: JsonObject, wanted: JsonObject) -> tuple[Difference, ...]:
    """Everything that differs; of a Secret the keys only, without values."""
    if live.get("kind") == "Secret":
        return tuple(Difference(pointer, None, None) for pointer in secret_keys_changed(live, wanted))
    return differences(live, wanted)


def _pointers(live: JsonObject, wanted: JsonObject) -> tuple[str, ...]:
    return tuple(item.pointer for item in compared(live, wanted))


async def name_opponents(remover: Remover, memory: Memory) -> None:
    """Give a fight whose other side is not known yet its name, by one reading of the object."""
    unnamed = [item for item, heat in memory.heats.items() if heat.fighting and not heat.manager]

    async def name(item: ObjectId) -> None:
        entry = memory.entries.get(item)
        if entry is None:
            return
        try:
            resource = await remover.cluster.mapper.resource(remover.cluster.served_as(entry.gvk))
            tree = await remover.cluster.client.find(resource.path(item.namespace, item.name), account=remover.account)
        except GitopsError:
            return
        if tree is not None:
            heat = memory.heats[item]
            memory.heats[item] = Heat(heat.value, heat.at_s, last_writer(tree, but=FIELD_MANAGER), heat.fighting)

    await asyncio.gather(*(name(item) for item in unnamed))

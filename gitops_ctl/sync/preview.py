"""What applying a set of documents would change in a cluster: asked from the server by dry runs, nothing is written.

Used by drift reports for single objects and by `gitops-ctl diff` for a whole checkout, so that both show the same.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gitops_ctl.api.names import FIELD_MANAGER
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import ServerRefused
from gitops_ctl.sync.apply import WIDTH, Target, encoded_body
from gitops_ctl.sync.diff import Difference, differences, secret_keys_changed
from gitops_ctl.sync.model import Desired, DesiredState, Entry, Mode
from gitops_ctl.sync.prune import candidates

Kind = Literal["create", "change", "recreate", "remove", "same", "held"]


@dataclass(frozen=True, slots=True)
class Preview:
    """What would become of one object.

    Attributes:
        differences: of a change; values of Secrets are never among them, only the keys.
        reason: why it is held, or what a person has to do.
    """

    id: ObjectId
    kind: Kind
    differences: tuple[Difference, ...] = ()
    reason: str = ""
    file: str = ""
    line: int = 0


async def dry_run(desired: Desired, *, target: Target) -> tuple[JsonObject | None, JsonObject]:
    """The live object (None when there is none) and what it would be after an apply, both from the server.

    Raises:
        GitopsError: the server refuses the object, or cannot be asked.
    """
    resource = await target.mapper.resource(desired.gvk)
    path = resource.path(desired.id.namespace, desired.id.name)
    live = await target.client.find(path, account=target.account)
    wanted = await target.client.apply(
        path, encoded_body(desired), manager=FIELD_MANAGER, force=True, dry_run=True, account=target.account
    )
    return live, wanted


def compared(live: JsonObject, wanted: JsonObject) -> tuple[Difference, ...]:
    """Everything that differs; of a Secret the keys only, without values."""
    if live.get("kind") == "Secret":
        return tuple(Difference(pointer, None, None) for pointer in secret_keys_changed(live, wanted))
    return differences(live, wanted)


async def preview_unit(
    state: DesiredState, entries: Mapping[ObjectId, Entry], *, target: Target, width: int = WIDTH
) -> tuple[Preview, ...]:
    """What an apply of `state` would do, by identity; `entries` is the inventory, for what would go."""
    found = [
        Preview(item.id, "held", reason=f"{item.why}: {item.message}", file=item.file, line=item.line)
        for item in (*state.held, *state.broken_files.values())
    ]
    if state.complete:
        found += [
            Preview(entry.id, "remove", reason="no document declares it any more", file=entry.file)
            for entry in candidates(state, entries.values())
        ]
    waiting = iter(state.objects.values())

    async def ask() -> None:
        for desired in waiting:
            found.append(await _preview_one(desired, target))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(width, len(state.objects))):
            group.create_task(ask())
    return tuple(sorted(found, key=lambda item: item.id))


async def _preview_one(desired: Desired, target: Target) -> Preview:
    kind, found, reason = await _ask(desired, target)
    return Preview(desired.id, kind, found, reason, desired.file, desired.line)


async def _ask(desired: Desired, target: Target) -> tuple[Kind, tuple[Difference, ...], str]:
    if desired.mode is Mode.IGNORE:
        return "same", (), "its mode is Ignore"
    try:
        live, wanted = await dry_run(desired, target=target)
    except ServerRefused as error:
        return "recreate" if error.immutable_fields else "held", (), error.message
    except GitopsError as error:
        return "held", (), error.message
    if live is None:
        return "create", (), ""
    if desired.mode is Mode.IF_NOT_PRESENT:
        return "same", (), "its mode is IfNotPresent"
    found = compared(live, wanted)
    return "change" if found else "same", found, ""


def would_change(found: Iterable[Preview]) -> bool:
    """Whether an apply would change anything; what is held changes nothing."""
    return any(item.kind in ("create", "change", "recreate", "remove") for item in found)

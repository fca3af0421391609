"""The forecast of `plan topology` for people and for programs.  Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gitops_ctl.cli.output import Result, Table
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.documents.loader import Document
from gitops_ctl.scheduling.drain import ALLOW_DRAIN
from gitops_ctl.scheduling.forecast import Change, Forecast, SourceChange
from gitops_ctl.scheduling.preview import Fate, QueueChange
from gitops_ctl.scheduling.quantity import text_of
from gitops_ctl.scheduling.required_documents import local_queue_of, requirements_of
from gitops_ctl.scheduling.topology import profile_in_flavor_name
from gitops_ctl.scheduling.workload import local_queues_of

_COLUMNS = ("KIND", "NAME", "CHANGE", "DETAIL")
_NO_PROFILE = "no profile"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A document that requires a level which no flavor of its queue would have."""

    object: str
    place: str
    level: str
    queue: str


def unmet_levels(
    documents: Iterable[Document], local_queues: Iterable[JsonObject], found: Forecast, *, namespace: str
) -> tuple[Unmet, ...]:
    """Levels that documents require in vain, as far as their queue is known.

    Args:
        namespace: of documents that name none.
    """
    behind = local_queues_of(local_queues)
    changes = {change.queue: change for change in found.preview.queues}
    return tuple(
        Unmet(str(document.id), f"{document.file}:{document.where(requirement.pointer)[0]}", requirement.level, queue)
        for document in documents
        if (queue := behind.get(_sent_to(document, namespace), "")) in changes
        for requirement in requirements_of(document.tree)
        if requirement.level not in _levels(changes[queue], found)
    )


def forecast_result(found: Forecast, unmet: tuple[Unmet, ...]) -> Result:
    """One row for each thing that changes or needs a look; all of it in JSON."""
    rows = (
        *_source_rows(found),
        *_node_rows(found),
        *_flavor_rows(found),
        *_queue_rows(found),
        *_warning_rows(found, unmet),
    )
    names = tuple(node for node, _, _ in found.preview.profiles)
    return Result("TopologyPlan", _data(found, unmet), Table(_COLUMNS, rows), names)


def summary_of(found: Forecast) -> str:
    """The last line: what it comes to, in numbers."""
    if not found.changes:
        return "\nNothing would change."
    shown = found.preview
    drained = [change.queue for change in shown.drained]
    return (
        f"\n{_counted(len(shown.profiles), 'Node')} would change the profile; "
        f"{_counted(len(shown.new_flavors), 'flavor')} would come and {len(shown.gone_flavors)} go; "
        f"{_counted(len(drained), 'queue')} would drain; {_counted(len(found.evicted), 'Workload')} would be evicted."
    )


def _sent_to(document: Document, namespace: str) -> str:
    found = local_queue_of(document.tree)
    return f"{namespace}{found}" if found.startswith("/") else found


def _levels(change: QueueChange, found: Forecast) -> set[str]:
    return {level for name in change.after for level in found.preview.levels.get(profile_in_flavor_name(name), ())}


def _source_rows(found: Forecast) -> Iterator[tuple[str, ...]]:
    for source in found.sources:
        if source.change is not Change.ELSEWHERE or source.message:
            yield "TopologySource", source.name, source.change.value, _source_text(source)


def _source_text(source: SourceChange) -> str:
    if source.change is Change.GOES:
        return "the labels that it published go"
    parts = [f"revision {source.revision}, {_counted(source.described, 'Node')} described"] if source.revision else []
    if source.reason and source.reason != "Observed":
        parts.append(f"would be {source.reason}")
    return "; ".join([*parts, *([source.message] if source.message else [])])


def _node_rows(found: Forecast) -> Iterator[tuple[str, ...]]:
    """One row for all Nodes with the same change."""
    groups: dict[tuple[str, str], list[str]] = {}
    for node, before, after in found.preview.profiles:
        groups.setdefault((before, after), []).append(node)
    for (before, after), nodes in groups.items():
        yield "Node", listed(nodes), "profile", f"{before or _NO_PROFILE} -> {after}"
    for profile in sorted({after for _, after in groups}):
        yield "Topology", f"gpustack-{profile}", "needed", ", ".join(found.preview.levels[profile])


def _flavor_rows(found: Forecast) -> Iterator[tuple[str, ...]]:
    for name in found.preview.new_flavors:
        yield "ResourceFlavor", name, "new", ""
    for name in found.preview.gone_flavors:
        yield "ResourceFlavor", name, "goes", "once no queue refers to it"


def _queue_rows(found: Forecast) -> Iterator[tuple[str, ...]]:
    changes = dict(found.queues)
    for name, change in changes.items():
        if change is Change.GOES:
            yield "ClusterQueue", name, "goes", "it is drained, whatever runs in it"
    for queue in found.preview.queues:
        changed = changes.get(queue.queue, Change.SAME)
        if queue.fate is not Fate.SAME or changed in (Change.NEW, Change.CHANGED):
            yield "ClusterQueue", queue.queue, _fate(queue, changed), _queue_text(queue)
    for one in found.evicted:
        flavors = f" from {listed(sorted(one.workload.flavors))}" if one.workload.flavors else ""
        yield "Workload", one.workload.name, "evicted", f"{one.why}{flavors}"


def _fate(queue: QueueChange, changed: Change) -> str:
    if queue.fate is Fate.SAME:
        return changed.value
    return "new" if changed is Change.NEW and queue.fate is Fate.IN_PLACE else queue.fate.value


def _queue_text(queue: QueueChange) -> str:
    if queue.refusal is not None:
        return f"{queue.refusal.reason}: {queue.refusal.message}; the last plan keeps serving"
    if queue.fate is Fate.KEPT:
        reserved = _counted(queue.workloads, "Workload")
        return f"the pool loses all its flavors; the last plan serves while anything is reserved, {reserved} now (drain-when-no-flavors)"
    parts = [_quotas(queue.before, queue.after)]
    if queue.fate is Fate.DRAIN:
        parts.append(f"in use: {listed(queue.busy)}" if queue.busy else "the pool loses all its flavors")
        parts.append(f"{_counted(queue.workloads, 'Workload')} reserved")
        parts.append("consent is given" if queue.is_consented else f"consent: {ALLOW_DRAIN}: {queue.digest}")
    if queue.is_migrating:
        parts.append("a drain runs already and would end in this plan")
    return "; ".join(part for part in parts if part)


def _quotas(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    came, went = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    same = "" if came or went or before == after else "quotas change"
    return same or f"{len(before)} -> {len(after)} flavors"


def _warning_rows(found: Forecast, unmet: tuple[Unmet, ...]) -> Iterator[tuple[str, ...]]:
    for workload, level in found.stranded:
        yield "Workload", workload.name, "stranded", f"requires {level}, which no flavor of its queue would have"
    for one in unmet:
        yield (
            "Document",
            one.object,
            "stranded",
            f"{one.place} requires {one.level}, which no flavor of queue {one.queue} would have",
        )


def _data(found: Forecast, unmet: tuple[Unmet, ...]) -> JsonObject:
    changes = dict(found.queues)
    return {
        "sources": [
            {
                "name": one.name,
                "change": one.change.value,
                "ready": one.reason,
                "message": one.message,
                "revision": one.revision,
                "describedNodes": one.described,
            }
            for one in found.sources
        ],
        "nodes": [{"name": name, "before": old, "after": new} for name, old, new in found.preview.profiles],
        "profiles": {name: list(levels) for name, levels in sorted(found.preview.levels.items())},
        "newFlavors": list(found.preview.new_flavors),
        "goneFlavors": list(found.preview.gone_flavors),
        "queues": [_queue_data(queue, changes.get(queue.queue, Change.SAME)) for queue in found.preview.queues],
        "goneQueues": [name for name, change in found.queues if change is Change.GOES],
        "evicted": [
            {"workload": one.workload.name, "queue": one.workload.queue, "why": one.why} for one in found.evicted
        ],
        "stranded": [{"workload": one.name, "level": level} for one, level in found.stranded],
        "unmetLevels": [
            {"object": one.object, "place": one.place, "level": one.level, "queue": one.queue} for one in unmet
        ],
    }


def _queue_data(queue: QueueChange, change: Change) -> JsonObject:
    data: dict[str, JsonValue] = {
        "name": queue.queue,
        "document": change.value,
        "fate": queue.fate.value,
        "before": {name: text_of(quota) for name, quota in queue.before.items()},
        "after": {name: text_of(quota) for name, quota in queue.after.items()},
        "going": list(queue.going),
        "busy": list(queue.busy),
        "reservingWorkloads": queue.workloads,
        "isMigrating": queue.is_migrating,
    }
    if queue.digest:
        data |= {"digest": queue.digest, "isConsented": queue.is_consented}
    if queue.refusal is not None:
        data["refusal"] = {"reason": queue.refusal.reason, "message": queue.refusal.message}
    return data


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"

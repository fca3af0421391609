"""Workloads as people ask about them: what holds quota in a queue, and what waits there for something that never comes.

They are Kueue's: nothing here writes one (topology-scheduling.md, 8.3, 11 and 12: B10).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from gitops_ctl.core.conditions import condition_of, is_true
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, objects_at, text_at
from gitops_ctl.scheduling.queue import Queue

_PODS: Final = "pods"
"""Kueue counts them itself where a flavor has a quota for them; a workload never requests them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One Workload.

    Attributes:
        name: with its namespace.
        queue: the ClusterQueue in which it holds quota; empty while it holds none.
        local_queue: the LocalQueue that it is sent to, with its namespace.
        flavors: those of its reservation.
        required: the levels that its PodSets require.
        requests: resources that its Pods request, sorted.
        since: when it got its reservation.
        evicted_since: since when it is to give the reservation back; empty when it is not.
    """

    name: str
    queue: str = ""
    local_queue: str = ""
    flavors: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    requests: tuple[str, ...] = ()
    since: str = ""
    evicted_since: str = ""
    is_finished: bool = False

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        """From the object."""
        namespace, status = text_at(tree, "metadata", "namespace"), object_at(tree, "status")
        pod_sets = objects_at(tree, "spec", "podSets")
        assigned = objects_at(status, "admission", "podSetAssignments")
        reserved, evicted = (condition_of(status, kind) or EMPTY for kind in ("QuotaReserved", "Evicted"))
        required = {text_at(one, "topologyRequest", "required") for one in pod_sets}
        return cls(
            name=f"{namespace}/{text_at(tree, 'metadata', 'name')}",
            queue=text_at(status, "admission", "clusterQueue"),
            local_queue=f"{namespace}/{text_at(tree, 'spec', 'queueName')}",
            flavors=frozenset(
                flavor for one in assigned for flavor in object_at(one, "flavors").values() if isinstance(flavor, str)
            ),
            required=frozenset(required - {""}),
            requests=tuple(sorted({name for one in pod_sets for name in _requested(one)} - {_PODS})),
            since=text_at(reserved, "lastTransitionTime"),
            evicted_since=text_at(evicted, "lastTransitionTime") if is_true(status, "Evicted") else "",
            is_finished=is_true(status, "Finished"),
        )


def holding(workloads: Iterable[Workload], queue: str) -> tuple[Workload, ...]:
    """Those that hold quota in a queue, the oldest first."""
    found = (one for one in workloads if one.queue == queue and not one.is_finished)
    return tuple(sorted(found, key=lambda one: (one.since, one.name)))


def with_counted(queue: Queue, workloads: Iterable[Workload]) -> Queue:
    """The queue with everything that holds quota in it counted: Kueue's own counters come after an admission."""
    holders = holding(workloads, queue.name)
    usage = queue.usage
    reserved = {**usage.reserved, **dict.fromkeys((name for one in holders for name in one.flavors), True)}
    return replace(queue, usage=replace(usage, reserving=max(usage.reserving, len(holders)), reserved=reserved))


def waiting(workloads: Iterable[Workload], queue: str, local_queues: Mapping[str, str]) -> tuple[Workload, ...]:
    """Those that wait for quota of a queue, by name.

    Args:
        local_queues: the ClusterQueue behind each LocalQueue.
    """
    found = (one for one in workloads if not one.queue and not one.is_finished)
    return tuple(sorted((one for one in found if local_queues.get(one.local_queue) == queue), key=lambda one: one.name))


def local_queues_of(trees: Iterable[JsonObject]) -> Mapping[str, str]:
    """The ClusterQueue behind each LocalQueue, by namespace and name."""
    return {
        f"{text_at(tree, 'metadata', 'namespace')}/{text_at(tree, 'metadata', 'name')}": text_at(
            tree, "spec", "clusterQueue"
        )
        for tree in trees
    }


def uncovered(workloads: Iterable[Workload], queue: Queue) -> Mapping[str, tuple[str, ...]]:
    """Resources that no group of the queue covers, each with the Workloads that request it.

    Kueue refuses such a Workload, unless its configuration leaves the resource out.
    """
    covered = {resource for group in queue.managed.groups for resource in group.resources}
    found: dict[str, list[str]] = {}
    for one in workloads:
        for resource in one.requests:
            if resource not in covered:
                found.setdefault(resource, []).append(one.name)
    return {resource: tuple(found[resource]) for resource in sorted(found)}


def _requested(pod_set: JsonObject) -> Iterator[str]:
    spec = object_at(pod_set, "template", "spec")
    for member in ("containers", "initContainers"):
        for container in objects_at(spec, member):
            yield from object_at(container, "resources", "requests")

"""Joins topology-aware scheduling to Syncs: domains do not know each other, a process that runs both does (topology-scheduling.md, 1.4, 9).

Beside the document rules a Sync needs three things of it: how a managed queue is carried and created, and when an object is current.
"""

from functools import cache

import gitops_ctl.scheduling.required_documents  # noqa: F401 - required levels are judged in documents of every kind
from gitops_ctl.api.names import FIELD_MANAGER_SCHEDULING
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.scheduling import documentrules
from gitops_ctl.scheduling.documentrules import CLUSTER_QUEUE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue_documents import carried, first_apply, give_back, is_managed_queue, take_along
from gitops_ctl.scheduling.snapshot_documents import SOURCE
from gitops_ctl.scheduling.standing import queue_waits_for, source_waits_for
from gitops_ctl.sync.creation import Creation, register_creation
from gitops_ctl.sync.health import generic_health, register_health
from gitops_ctl.sync.model import CURRENT, Health, HealthStatus
from gitops_ctl.sync.transform import register_transform


def register_scheduling(options: Options) -> None:
    """Teach Syncs of this process about topology documents; once, and again only for other options."""
    documentrules.register(options)
    _register_kinds()


@cache
def _register_kinds() -> None:
    register_transform(CLUSTER_QUEUE, carried)
    creation = Creation(FIELD_MANAGER_SCHEDULING, is_managed_queue, first_apply, give_back, take_along)
    register_creation(CLUSTER_QUEUE, creation)
    register_health(CLUSTER_QUEUE, _queue)
    register_health(SOURCE, _source)


def _source(tree: JsonObject) -> Health:
    return _health(source_waits_for(tree))


def _queue(tree: JsonObject) -> Health:
    return _health(queue_waits_for(tree)) if is_managed_queue(tree) else generic_health(tree)


def _health(waits_for: str) -> Health:
    return Health(HealthStatus.IN_PROGRESS, waits_for) if waits_for else CURRENT

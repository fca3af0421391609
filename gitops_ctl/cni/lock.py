"""The lock of a cluster and who may take it (cni-switch.md, sections 6.1 and 6.6).

It is one for the whole cluster, has no expiry, and is written with a compare-and-swap on the TalosCluster.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from gitops_ctl.cni.model import KIND, Cluster, Lock, Operation, Record
from gitops_ctl.core.moment import to_rfc3339


def taken(record: Record, operation: Operation, *, now: datetime) -> Record:
    """The record with the lock in the hands of an operation."""
    return replace(record, lock=Lock(operation.key.name, operation.uid, KIND, to_rfc3339(now)))


def is_held_by(record: Record, operation: Operation) -> bool:
    """Whether this operation, and not one of its name before it, holds the lock."""
    return record.lock is not None and record.lock.uid == operation.uid


def is_left_over(cluster: Cluster, operations: Sequence[Operation], *, break_lock: bool) -> bool:
    """Whether the lock has to be freed: its operation is over, or was deleted and a person asks for it."""
    lock = cluster.record.lock
    if lock is None or lock.kind != KIND:
        return False
    holder = next((operation for operation in operations if operation.uid == lock.uid), None)
    return break_lock if holder is None else holder.is_over


def turn(cluster: Cluster, operations: Sequence[Operation]) -> Operation | None:
    """The operation whose turn it is: the holder of the lock, else the oldest that is not over."""
    waiting = sorted((one for one in operations if not one.is_over), key=lambda one: (one.created, one.key.name))
    holder = next((one for one in waiting if is_held_by(cluster.record, one)), None)
    return holder or next(iter(waiting), None)

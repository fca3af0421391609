"""Puts the looks at machines and target together, as the status of an operation shows them (cni-switch.md, section 3.3).  Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gitops_ctl.api.talos_observed import Observed, ServiceObservation
from gitops_ctl.cni.model import Action, Mode, Operation
from gitops_ctl.cni.worker.cilium import see_cilium
from gitops_ctl.cni.worker.machine import Look
from gitops_ctl.cni.worker.target import TargetLook
from gitops_ctl.cni.worker.wanted import VERSION, Question, operation_machine
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue

_TIMES: Final = frozenset({"at"})


def observed_tree(
    target: TargetLook,
    looks: Sequence[Look],
    *,
    question: Question,
    request: str,
    service: ServiceObservation | None,
    at: str,
) -> JsonObject:
    """`status.observed`; `request` is the question that all the looks answer, empty for none."""
    rendered = [look.rendered for look in looks if look.rendered is not None]
    known = next((item for item in rendered if item), rendered[0] if rendered else None)
    return Observed(
        at=at,
        request=request or None,
        cilium=see_cilium(target.cilium) if target.cilium is not None else None,
        kube_proxy=target.kube_proxy.seen(known) if target.kube_proxy is not None else None,
        machines=tuple(operation_machine(look, question=question, looks=looks, nodes=target.nodes) for look in looks),
        service=service,
        kubernetes_version=cut(target.version, limit=VERSION),
        problems=(target.problem,) if target.problem is not None else (),
    ).to_tree()


def is_same(old: JsonObject, new: JsonObject) -> bool:
    """Whether two observations differ in nothing but the times at which they were made."""
    return _timeless(old) == _timeless(new)


def chosen_operation(operations: Collection[Operation], *, lock: str) -> Operation | None:
    """The operation that is observed: the one that holds the cluster, else the oldest that runs, else the newest that is over.

    `lock` is the uid that the cluster's lock names.
    """
    ordered = sorted(operations, key=lambda item: (item.created, item.key.name))
    running = [item for item in ordered if not item.is_over]
    holding = [item for item in running if item.uid == lock]
    return next(iter([*holding, *running, *reversed(ordered)]), None)


def asked_mode(operation: Operation) -> Mode:
    """The mode that the standing question is about."""
    request = operation.state.request(Action.OBSERVE)
    return request.mode if request is not None else operation.target


def _timeless(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _timeless(member) for name, member in value.items() if name not in _TIMES}
    if isinstance(value, (list, tuple)):
        return [_timeless(item) for item in value]
    return value

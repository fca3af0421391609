"""Documents of software rollouts in Git, judged by `gitops-ctl check` and by a Sync alike (rollouts.md, 2.6, 3.2 and 5).

Content refuses no commit: a finding holds its object as it is in the cluster.  What needs a policy, devices or a status is
judged where these are: by the planner, by a Sync (holds.py), by the API server.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from gitops_ctl.api.names import CISCO_GROUP, OPS_GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.problem import Problem
from gitops_ctl.documents.rules import register_check
from gitops_ctl.documents.setrules import SetRule, register_set_rule
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.identity import canonical_identity
from gitops_ctl.fleet.projection import identity_labels, label_conflicts
from gitops_ctl.fleet.strict import Malformed
from gitops_ctl.rollout.planned import plan_of
from gitops_ctl.rollout.sources import endpoint_of
from gitops_ctl.rollout.warnings import plan_warnings

ROLLOUT: Final = GroupKind(OPS_GROUP, "IOSXESoftwareRollout")
UPGRADE: Final = GroupKind(OPS_GROUP, "IOSXESoftwareUpgrade")
DEVICE: Final = GroupKind(CISCO_GROUP, "CiscoDevice")

STRICTEST_FRESHNESS_S: Final = 3600
"""The largest healthFreshnessSeconds that a fleet policy can have."""

_PLAN: Final = "/spec/plan"
_MOST_PODS: Final = 110
_QUANTITY: Final = re.compile(r"(-?[0-9]+(?:\.[0-9]*)?|-?\.[0-9]+)(|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)")
_TENS: Final = {"m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_TWOS: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def _rollout(document: Document) -> Iterator[Flaw]:
    plan = object_at(document.tree, "spec", "plan")
    yield from unsupported(plan)
    yield from _canaries(plan)
    yield from _endpoints(plan)
    try:
        warnings = [str(item) for item in plan_warnings(plan_of(plan), policy_freshness_s=STRICTEST_FRESHNESS_S)]
    except Malformed:
        return  # the schema says what is wrong
    for warning in warnings:
        yield Flaw(ErrorCode.RULE, warning, f"{_PLAN}/health", severity="warning")


def unsupported(plan: JsonObject) -> Iterator[Flaw]:
    """What a plan asks for and no campaign of ours does."""
    if text_at(plan, "workloads", "policy") == "Drain":
        message = "a campaign that drains workloads is not run: the plan is stored, and never planned"
        yield Flaw(ErrorCode.WORKLOAD_POLICY_UNSUPPORTED, message, f"{_PLAN}/workloads/policy")
    for place, source in enumerate(objects_at(plan, "image", "sources")):
        if "catalystCenter" in source:
            message = f"source {text_at(source, 'name')}: images of a Catalyst Center are not fetched"
            pointer = f"{_PLAN}/image/sources/{place}/catalystCenter"
            yield Flaw(ErrorCode.SOURCE_KIND_UNSUPPORTED, message, pointer)


def _canaries(plan: JsonObject) -> Iterator[Flaw]:
    cohort_of: dict[str, str] = {}
    for place, cohort in enumerate(objects_at(plan, "canaries")):
        name = text_at(cohort, "name")
        for device in map(str, list_at(cohort, "devices")):
            other = cohort_of.setdefault(device, name)
            if other != name:
                message = f"device {device} is a canary of {other} and of {name}; it has one cohort"
                yield Flaw(ErrorCode.RULE, message, f"{_PLAN}/canaries/{place}/devices")
    limit = int_at(plan, "targets", "maxTargets", default=100)
    if len(cohort_of) > limit:
        message = f"{len(cohort_of)} canaries, and maxTargets is {limit}: canaries are targets"
        yield Flaw(ErrorCode.RULE, message, f"{_PLAN}/targets/maxTargets")


def _endpoints(plan: JsonObject) -> Iterator[Flaw]:
    for place, source in enumerate(objects_at(plan, "image", "sources")):
        url = source.get("url")
        if isinstance(url, str) and endpoint_of(url) is None:
            message = f"source {text_at(source, 'name')}: the url names no host, or no port that exists"
            yield Flaw(ErrorCode.RULE, message, f"{_PLAN}/image/sources/{place}/url")


def _upgrade(document: Document) -> Iterator[Flaw]:
    message = "leaves are made by the manager alone: one from Git is refused by the cluster and run by no worker"
    yield Flaw(ErrorCode.RULE, message, hint="request an IOSXESoftwareRollout")


def _device(document: Document) -> Iterator[Flaw]:
    tree = document.tree
    identity = text_at(tree, "spec", "physicalIdentity")
    if identity and _canonical(identity) is None:
        message = f"{identity!r} is no physical identity, and it is written once: letters, digits and . _ : / - inside"
        yield Flaw(ErrorCode.PHYSICAL_IDENTITY_INVALID, message, "/spec/physicalIdentity")
    device = device_of(tree)
    for conflict in label_conflicts(device, identity_labels(device.node_name)):
        yield Flaw(ErrorCode.RULE, f"{conflict}: the device would not be projected", "/spec")
    pods = int_at(tree, "spec", "maxPods", default=16)
    if not 1 <= pods <= _MOST_PODS and device.labels.get(names.MANAGED) == "true":
        message = f"maxPods is {pods}, and a managed device needs 1 to {_MOST_PODS}"
        yield Flaw(ErrorCode.RULE, message, "/spec/maxPods")
    yield from _worker(object_at(tree, "spec", "worker"))


def _worker(worker: JsonObject) -> Iterator[Flaw]:
    at = ("spec", "worker")
    limits, requests = (object_at(worker, "resources", part) for part in ("limits", "requests"))
    for part, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            pointer = pointer_of((*at, "resources", part, name))
            amount = quantity(value)
            if name not in _RESOURCES:
                yield Flaw(ErrorCode.RULE, f"{name}: only {', '.join(_RESOURCES)} can be given", pointer)
            elif amount is None or amount < 0:
                yield Flaw(ErrorCode.RULE, f"{name}: {value!r} is no quantity of zero or more", pointer)
            elif part == "requests" and (limit := quantity(limits.get(name))) is not None and amount > limit:
                yield Flaw(ErrorCode.RULE, f"{name}: the request {value} is above its limit {limits[name]}", pointer)
    size = worker.get("tmpSizeLimit")
    if size is not None and not (quantity(size) or 0) > 0:
        message = f"tmpSizeLimit: {size!r} is no quantity above zero"
        yield Flaw(ErrorCode.RULE, message, pointer_of((*at, "tmpSizeLimit")))


def quantity(value: object) -> Fraction | None:
    """A quantity of Kubernetes as an exact number; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    unit = match[2]
    factor = Fraction(1024) ** _TWOS[unit] if unit in _TWOS else Fraction(1000) ** _TENS[unit]
    return Fraction(match[1]) * factor


def _canonical(text: str) -> str | None:
    try:
        return canonical_identity(text)
    except Refused:
        return None


def _same_chassis(documents: Sequence[Document], namespace: str) -> Iterator[Problem]:
    """Two devices with one chassis; right only while one of them is retired, which Git does not say."""
    first: dict[str, Document] = {}
    for document in documents:
        if document.id.group_kind != DEVICE:
            continue
        identity = _canonical(text_at(document.tree, "spec", "physicalIdentity"))
        other = first.setdefault(identity, document) if identity else document
        if other is not document:
            message = (
                f"{other.id} has the physical identity {identity} too: neither takes part in a campaign, "
                "unless one of them is retired"
            )
            flaw = Flaw(ErrorCode.PHYSICAL_IDENTITY_INVALID, message, "/spec/physicalIdentity", severity="warning")
            yield document.problem(flaw)


def _nothing_else(_documents: Sequence[Document]) -> frozenset[ObjectId]:
    return frozenset()


register_check(ROLLOUT, _rollout)
register_check(UPGRADE, _upgrade)
register_check(DEVICE, _device)
register_set_rule("chassis", SetRule(DEVICE, _nothing_else, _same_chassis))

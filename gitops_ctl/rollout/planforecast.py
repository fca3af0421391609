"""What a rollout would be planned as, said before it exists: who is in and from where, who is out, who blocks, and why.

The same functions as for freezing, with every problem of every device in place of the first one (rollouts.md, section 22).  What nobody looked at is left out and said to be.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.names import COHORT
from gitops_ctl.fleet.policy import matches_fleet, risk_groups_of, semantic_hash, transfer_rate
from gitops_ctl.rollout.freeze import Considered, FreezeInput, Frozen, consider, freeze
from gitops_ctl.rollout.intent import intent_hash
from gitops_ctl.rollout.problem import Problem
from gitops_ctl.rollout.snapshot import PolicySnapshot, snapshot_of
from gitops_ctl.rollout.warnings import PlanWarning, plan_warnings


class Place(enum.StrEnum):
    """Where a device stands in a plan."""

    IN = "In"
    BLOCKED = "Blocked"
    OUT = "Out"


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """One device of the namespace.

    Attributes:
        wave: None for devices that are out.
        source: "" where none could be chosen.
        running: the version that it runs now, as far as it is known.
        problems: why it blocks, the deciding one first.
        why: for a device that is out, why.
    """

    name: str
    place: Place
    cohort: str
    wave: int | None = None
    source: str = ""
    running: str = ""
    risk_groups: tuple[str, ...] = ()
    max_bytes_per_s: int = 0
    problems: tuple[Problem, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """A plan as it would be now.

    Attributes:
        devices: those of the plan in name order, then those that are out.
        problems: what blocks the plan as a whole, or devices of other namespaces.
        intent_hash: "" while a device has no UID yet, or nothing is selected.
        frozen: the plan as it would be published; None where something blocks it, or not everything was looked at.
        unseen: what was not looked at, in words.
        snapshot: the fleet policy, whose numbers bound those of the plan.
    """

    devices: tuple[DevicePlace, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[PlanWarning, ...]
    intent_hash: str
    frozen: Frozen | None
    unseen: tuple[str, ...]
    snapshot: PolicySnapshot

    @property
    def is_blocked(self) -> bool:
        return bool(self.problems) or any(one.place is Place.BLOCKED for one in self.devices)

    @property
    def first_problem(self) -> Problem | None:
        """What decides: the plan's own problem, then the first blocking device in name order."""
        found = (*self.problems, *(problem for one in self.devices for problem in one.problems))
        return found[0] if found else None


def plan_forecast(
    given: FreezeInput, *, observed: bool = True, secrets: bool = True, unseen: tuple[str, ...] = ()
) -> PlanForecast:
    """The forecast of a plan.

    Args:
        observed: False where devices are documents, whose state in a cluster is not known.
        secrets: False where source Secrets could not be read.
        unseen: what else was not looked at, in words.
    """
    unseen = (*_unseen(observed=observed, secrets=secrets), *unseen)
    considered = consider(given, observed=observed, secrets=secrets)
    if isinstance(considered, Problem):
        return PlanForecast((), (considered,), (), "", None, unseen, snapshot_of(given.policy))
    by_device: dict[str, list[Problem]] = {}
    for problem in considered.problems:
        by_device.setdefault(problem.device, []).append(problem)
    selected = {device.name for device in considered.selection.devices}
    inside = tuple(_inside(given, considered, device, by_device) for device in considered.selection.devices)
    places = {f"{given.namespace}/{name}" for name in selected}
    problems = [one for name, found in by_device.items() if name not in places for one in found]
    frozen = freeze(given) if observed and secrets and not considered.problems else None
    repeated = () if frozen is None or isinstance(frozen, Frozen) else frozen.problems
    return PlanForecast(
        devices=(*_with(inside, repeated, given.namespace), *_outside(given, selected)),
        problems=tuple(problems),
        warnings=_warnings(given, considered, frozen if isinstance(frozen, Frozen) else None),
        intent_hash=_intent(given, considered),
        frozen=frozen if isinstance(frozen, Frozen) else None,
        unseen=unseen,
        snapshot=snapshot_of(given.policy),
    )


def _unseen(*, observed: bool, secrets: bool) -> Iterator[str]:
    if not observed:
        yield "the state of the devices and of their Nodes in a cluster"
    if not secrets:
        yield "the Secrets of the sources"


def _inside(
    given: FreezeInput, considered: Considered, device: Device, by_device: Mapping[str, list[Problem]]
) -> DevicePlace:
    problems = tuple(by_device.get(f"{device.namespace}/{device.name}", ()))
    chosen, policy = considered.chosen.get(device.name), given.policy.policy
    return DevicePlace(
        name=device.name,
        place=Place.BLOCKED if problems else Place.IN,
        cohort=device.labels.get(COHORT, ""),
        wave=considered.selection.wave_of(device),
        source=chosen.name if chosen is not None else "",
        running=_running(given, device),
        risk_groups=risk_groups_of(policy, device.labels),
        max_bytes_per_s=transfer_rate(policy, device.labels),
        problems=problems,
    )


def _with(devices: Iterable[DevicePlace], repeated: tuple[Problem, ...], namespace: str) -> Iterator[DevicePlace]:
    """The devices, blocked where they are one chassis with another."""
    for one in devices:
        mine = tuple(problem for problem in repeated if problem.device == f"{namespace}/{one.name}")
        yield replace(one, place=Place.BLOCKED, problems=(*one.problems, *mine)) if mine else one


def _running(given: FreezeInput, device: Device) -> str:
    node = given.nodes.get(device.node_name)
    return node.kernel_version if node is not None else ""


def _outside(given: FreezeInput, selected: set[str]) -> Iterator[DevicePlace]:
    for device in sorted(given.devices, key=lambda one: one.name):
        if device.namespace != given.namespace or device.name in selected:
            continue
        if device.retired is not None:
            why = f"it was retired by rollout {device.retired.rollout_name}"
        elif matches_fleet(given.policy.policy, device.labels):
            why = "the selector of the plan does not take it"
        else:
            why = "neither the plan nor the fleet policy takes it"
        yield DevicePlace(
            device.name, Place.OUT, device.labels.get(COHORT, ""), running=_running(given, device), why=why
        )


def _warnings(given: FreezeInput, considered: Considered, frozen: Frozen | None) -> tuple[PlanWarning, ...]:
    if frozen is not None:
        return frozen.warnings
    return tuple(plan_warnings(considered.plan, policy_freshness_s=given.policy.policy.health_freshness_s))


def _intent(given: FreezeInput, considered: Considered) -> str:
    devices = [(device.uid, device.generation) for device in considered.selection.devices]
    if not devices or not all(uid for uid, _ in devices):
        return ""
    meaning = semantic_hash(given.policy.policy)
    try:
        return intent_hash(considered.plan.tree, semantic_hash=meaning, devices=devices)
    except ValueError:
        return ""


def is_published(tree: JsonObject) -> bool:
    """Whether an object has a UID, so that its plan hash can be told."""
    return bool(text_at(tree, "metadata", "uid"))

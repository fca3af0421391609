"""Which devices a plan takes, how many it may take, and which of them go first (rollouts.md, section 9.2, steps 3 to 5)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gitops_ctl.core.conditions import listed
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.names import COHORT
from gitops_ctl.rollout.planned import MOST_TARGETS, Plan
from gitops_ctl.rollout.problem import Problem, Reason


@dataclass(frozen=True, slots=True)
class Selection:
    """The devices of a plan in name order.

    Attributes:
        canaries: device name to the canary that names it; all others are of the second wave.
        problems: what keeps these devices from being a plan, in the order of the checks.
    """

    devices: tuple[Device, ...]
    canaries: Mapping[str, str]
    problems: tuple[Problem, ...]

    def wave_of(self, device: Device) -> int:
        """0 for canaries, 1 for all others (S4 of section 22)."""
        return 0 if device.name in self.canaries else 1


def target_cap(plan: Plan, policy_cap: int) -> int:
    """The most targets of a campaign; 0 stands for the default in both places."""
    return min(plan.max_targets or MOST_TARGETS, policy_cap or MOST_TARGETS, MOST_TARGETS)


def select(devices: Iterable[Device], *, plan: Plan, namespace: str, policy_cap: int) -> Selection:
    """The selection of `plan` among `devices`; those of other namespaces and retired ones are never taken."""
    found = sorted(
        (one for one in devices if one.namespace == namespace and one.retired is None and _takes(plan, one)),
        key=lambda one: one.name,
    )
    problems = (*_selector_problems(plan), *_count_problems(found, target_cap(plan, policy_cap)))
    canaries = {name: canary.name for canary in plan.canaries for name in canary.devices}
    return Selection(
        tuple(found), canaries, (*problems, *(() if problems else _canary_problems(found, plan, namespace)))
    )


def _takes(plan: Plan, device: Device) -> bool:
    return plan.allow_all if plan.selector.is_empty else plan.selector.matches(device.labels)


def _selector_problems(plan: Plan) -> Iterator[Problem]:
    if plan.allow_all and not plan.selector.is_empty:
        yield Problem(Reason.SELECTOR_INVALID, "targets.allowAll needs an empty selector")
    if not plan.allow_all and plan.selector.is_empty:
        yield Problem(Reason.SELECTOR_INVALID, "an empty targets.selector needs allowAll")


def _count_problems(found: list[Device], cap: int) -> Iterator[Problem]:
    if not found:
        yield Problem(Reason.NO_TARGETS, "the selector takes no device of this namespace")
    if len(found) > cap:
        yield Problem(Reason.TOO_MANY_TARGETS, f"the selector takes {len(found)} devices, {cap} are allowed")


def _canary_problems(found: list[Device], plan: Plan, namespace: str) -> Iterator[Problem]:
    def problem(message: str, name: str = "") -> Problem:
        return Problem(Reason.CANARIES_INVALID, message, device=f"{namespace}/{name}" if name else "")

    if not any(canary.devices for canary in plan.canaries):
        yield problem("a plan needs at least one canary")
        return
    names = [canary.name for canary in plan.canaries]
    yield from (problem(f"canary {name} stands twice") for name in _repeated(names))
    cohorts = {one.name: one.labels.get(COHORT, "") for one in found}
    yield from (problem("it carries no qualification cohort", name) for name, cohort in cohorts.items() if not cohort)
    named = [name for canary in plan.canaries for name in canary.devices]
    yield from (problem("it is named as a canary twice", name) for name in _repeated(named))
    for canary in plan.canaries:
        for name in canary.devices:
            if name not in cohorts:
                yield problem(f"canary {canary.name} names it, and the selector does not take it", name)
            elif cohorts[name] != canary.name:
                yield problem(f"canary {canary.name} names it, and its cohort is {cohorts[name] or 'none'}", name)
    uncovered = sorted(
        {cohort for cohort in cohorts.values() if cohort} - {canary.name for canary in plan.canaries if canary.devices}
    )
    if uncovered:
        yield problem(f"no canary for cohort {listed(uncovered)}")


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    twice = []
    for name in names:
        if name in seen and name not in twice:
            twice.append(name)
        seen.add(name)
    return twice

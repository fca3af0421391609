"""What a plan allows itself, in sentences for those who approve it: budgets, window, rollback, gates, risk groups (rollouts.md, section 11.7).

Pure.  One line for each thing, and none for what the plan does not have.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import bool_at, int_at, object_at, text_at
from gitops_ctl.fleet.evidence import Rules
from gitops_ctl.rollout.campaignstate import CampaignState

_MOST_NAMES = 10


def plan_lines(campaign: CampaignState, allowed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Everything about the plan as a whole.

    Args:
        allowed: networks that the worker of a device takes images from although they are not public, by name of the device.
    """
    yield from _budgets(campaign)
    yield from _times(campaign)
    yield from _gates(campaign)
    yield from _risk_groups(campaign)
    yield from _networks(allowed)


def _budgets(campaign: CampaignState) -> Iterator[str]:
    plan, policy = campaign.plan, campaign.effective.policy
    transfers, unavailable = min(plan.transfers, policy.transfers), min(plan.unavailable, policy.unavailable)
    yield f"Budgets of this campaign: at most {_numbers(transfers, unavailable)} at a time"
    yield f"Budgets of all campaigns of the fleet together: at most {_numbers(policy.transfers, policy.unavailable)}, unhealthy ones counted"
    for domain in plan.domains:
        yield f"Budget of this campaign in each {domain.key}: {_numbers(domain.transfers or None, domain.unavailable or None)}"
    for limit in policy.domains:
        yield f"Budget of all campaigns in each {limit.key}: {_numbers(limit.transfers, limit.unavailable)}"


def _numbers(transfers: int | None, unavailable: int | None) -> str:
    parts = (
        (transfers, "transfer", ""),
        (unavailable, "device", " unavailable"),
    )
    return " and ".join(f"{number} {word}{'' if number == 1 else 's'}{more}" for number, word, more in parts if number)


def _times(campaign: CampaignState) -> Iterator[str]:
    plan = campaign.plan
    pauses = bool_at(plan.tree, "pauseAfterCanary", default=True)
    after = "it stops after the canaries until it is resumed" if pauses else "it goes on after the canaries"
    yield (
        f"Health is watched for {plan.effective_canary_soak_s} s after a canary and {plan.effective_wave_soak_s} s after any "
        f"other device; {after}"
    )
    window = object_at(plan.tree, "maintenanceWindow")
    begins, ends = text_at(window, "notBefore"), text_at(window, "notAfter")
    if begins or ends:
        yield f"Maintenance window: {' '.join(filter(None, (begins and f'from {begins}', ends and f'until {ends}')))}; no device is changed outside it"
    else:
        yield "Maintenance window: none; the first device is changed right after the approval"
    yield (
        "Rollback: a device that comes up with another version is brought back to the former one"
        if bool_at(plan.tree, "rollbackOnFailure", default=True)
        else "Rollback: off; a device that comes up with another version stays as it is and the campaign stops"
    )
    reboot_s = int_at(plan.tree, "rebootTimeoutSeconds", default=1800)
    yield f"Timeouts: {plan.install_timeout_s} s for the installation, {reboot_s} s for the reboot"


def _gates(campaign: CampaignState) -> Iterator[str]:
    plan = campaign.plan
    if not plan.network_is_on or plan.network is None:
        yield "Network gate: off; no evidence about interfaces and neighbors is asked for"
        return
    rules = Rules.of(plan.network)
    wanted = [
        "complete evidence" if rules.require_complete else "evidence that may be incomplete",
        _named("interfaces", rules.required_interfaces),
        _named("neighbors", rules.required_neighbors),
        "these interfaces up" if rules.interfaces_up else "",
        "these neighbors full" if rules.neighbors_full else "",
        f"{rules.minimum_headroom} % headroom" if rules.minimum_headroom is not None else "",
    ]
    yield f"Network gate, before and after each device: {', '.join(filter(None, wanted))}"


def _named(word: str, found: Sequence[str]) -> str:
    return f"{word} {listed(list(found), limit=_MOST_NAMES)}" if found else ""


def _risk_groups(campaign: CampaignState) -> Iterator[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for target in campaign.targets:
        for group in target.risk_groups:
            groups[group].append(target.device_name)
    for group in sorted(groups):
        yield f"Risk group {group}: {listed(groups[group], limit=_MOST_NAMES)}"


def _networks(allowed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    devices: dict[str, list[str]] = defaultdict(list)
    for device, networks in allowed.items():
        for network in networks:
            devices[network].append(device)
    for network in sorted(devices):
        yield (
            f"Image servers in {network} are accepted although that is not public, by the worker of "
            f"{listed(sorted(devices[network]), limit=_MOST_NAMES)}"
        )

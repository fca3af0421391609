"""What people read before they approve, activate or give up: the whole plan in a few lines, and how to do it by hand (rollouts.md, section 11.7).

Pure.  The text says the same while nothing that it tells has changed, and it holds no secret: of an address only scheme, host and path.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from gitops_ctl.core.conditions import listed
from gitops_ctl.fleet.device import Preflight
from gitops_ctl.rollout.campaignstate import CampaignState, Control
from gitops_ctl.rollout.proposalplan import plan_lines
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.warnings import campaign_warnings

_NO_CHECK: Final = "not done yet"
_BAD: Final = frozenset({"Fail", "Unknown"})


def approval_text(
    campaign: CampaignState, preflights: Mapping[str, Preflight], allowed: Mapping[str, Sequence[str]]
) -> str:
    """The plan as it is put before its approvers.

    Args:
        preflights: of this plan, by name of the device.
        allowed: networks that the worker of a device takes images from although they are not public, by name of the device.
    """
    name = f"{campaign.namespace}/{campaign.name}"
    lines = [
        f"Approve rollout {name}: {campaign.plan.target_version} on {len(campaign.targets)} devices",
        "Nothing begins before this is merged; then devices begin one by one, inside the budgets, canaries first.",
        f"Plan hash: {campaign.plan_hash}",
        f"Image: sha256 {campaign.plan.sha256}, family {campaign.plan.image_family}, strategy {campaign.plan.strategy}",
        f"Policy: {campaign.frozen.namespace}/{campaign.frozen.name}, epoch {campaign.effective.number}",
        *plan_lines(campaign, allowed),
        *(f"Warning: {warning}" for warning in campaign_warnings(campaign, preflights)),
        "Targets in the order in which they begin: wave, device, running version -> target, source, preflight",
        *(_target_line(campaign, target, preflights.get(target.device_name)) for target in ordered(campaign.targets)),
        f"By hand: add `approval: {{planHash: {campaign.plan_hash}}}` below spec of the rollout, in a commit signed by somebody "
        f"with the verb approve; `gitops-ctl approve` prepares it.",
    ]
    return "\n".join(lines)


def activation_text(campaign: CampaignState, receipts: int) -> str:
    """What is asked of whoever activates what was prepared."""
    name = f"{campaign.namespace}/{campaign.name}"
    return "\n".join(
        (
            f"Activate rollout {name}: {campaign.plan.target_version} is prepared on {receipts} devices",
            "Every device reboots into it, one by one inside the budgets, once the window is open.",
            "The window is left to you: add notBefore and notAfter to activationApproval, in a signed commit of your own on this "
            "branch, before you merge. Merged without them the rollout is held.",
            f"Plan hash: {campaign.plan_hash}",
            f"Policy: {campaign.frozen.namespace}/{campaign.frozen.name}, epoch {campaign.effective.number}",
            f"Devices: {listed([target.device_name for target in ordered(campaign.targets)], limit=100)}",
            f"By hand: `gitops-ctl rollout activate {name}` prepares the same block with your window.",
        )
    )


def invalidation_text(campaign: CampaignState, devices: Sequence[str]) -> str:
    """What is asked of whoever gives up what was prepared."""
    name = f"{campaign.namespace}/{campaign.name}"
    return "\n".join(
        (
            f"Give up what rollout {name} prepared on {len(devices)} devices",
            "The rollout was cancelled and never activated, and its devices are kept from every other rollout until this is merged.",
            "Nothing is deleted on a device. Write your own reason before you merge.",
            f"Plan hash: {campaign.plan_hash}",
            f"Devices: {listed(list(devices), limit=100)}",
            f"By hand: `gitops-ctl rollout invalidate {name}` prepares the same block.",
        )
    )


def control_text(campaign: CampaignState, control: Control) -> str:
    """What somebody asked for in the cluster, brought back to Git."""
    name = f"{campaign.namespace}/{campaign.name}"
    asked = "cancelled" if control.cancel else "paused"
    return "\n".join(
        (
            f"Rollout {name} was {asked} in the cluster: revision {control.revision}",
            "It is in force already, and stays in force. This writes it to Git, so that a later commit begins from it.",
            "Names and times of people are left out: those in the cluster are kept.",
            f"By hand: `gitops-ctl rollout {'cancel' if control.cancel else 'pause'} {name}` prepares the same block.",
        )
    )


def ordered(targets: Sequence[Target]) -> Sequence[Target]:
    """The targets in the order in which they may begin."""
    return sorted(targets, key=lambda target: (target.wave, target.device_name))


def _target_line(campaign: CampaignState, target: Target, preflight: Preflight | None) -> str:
    running = (preflight.running_version if preflight is not None else "") or "unknown"
    source = f"{target.source.name} ({_place(target.source.url)})" if target.source.url else target.source.name
    wave = "canary" if target.wave == 0 else f"wave {target.wave}"
    return f"{wave}: {target.device_name} {running} -> {campaign.plan.target_version}, source {source}, preflight {told(preflight)}"


def told(preflight: Preflight | None) -> str:
    """A preflight in a few words: what is not good in it is named."""
    if preflight is None:
        return _NO_CHECK
    wrong = [f"{one.name}: {one.message or one.status}" for one in preflight.checks if one.status in {*_BAD, "Warn"}]
    return f"{preflight.result} ({'; '.join(wrong)})" if wrong else preflight.result


def _place(url: str) -> str:
    """An address without what may be a secret in it."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return "an address that cannot be read"

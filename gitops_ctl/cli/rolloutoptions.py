"""The waits of software rollouts as flags of the manager (rollouts.md, section 11.8): every one is the latest time of the next look."""

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from gitops_ctl.rollout.controller import Intervals

R = TypeVar("R")
_DEFAULTS: Final = Intervals()
_SECONDS: Final = click.FloatRange(min=0.1)

_FLAGS: Final = {
    "rollout-resync": ("resync_s", "Seconds until a campaign under way is looked at again, at the latest."),
    "planning-retry": ("planning_retry_s", "Seconds until planning that waits for a device is tried again."),
    "activation-recheck": ("activation_recheck_s", "Most seconds between two looks at a window that is not open yet."),
    "preflight-interval": (
        "preflight_s",
        "Seconds after which a device is checked again before its upgrade, and after which a plan is put before its approvers even if a device "
        "was not checked yet.",
    ),
}


def rollout_options(function: Callable[..., R]) -> Callable[..., R]:
    """Flags whose values reach the function as `rollouts: Intervals`."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **given: Any) -> R:
        values = {member: given.pop(flag.replace("-", "_")) for flag, (member, _) in _FLAGS.items()}
        return function(*arguments, rollouts=Intervals(**values), **given)

    for flag, (member, text) in reversed(_FLAGS.items()):
        default = getattr(_DEFAULTS, member)
        wrapped = click.option(f"--{flag}", type=_SECONDS, default=default, show_default=True, help=text)(wrapped)
    return wrapped

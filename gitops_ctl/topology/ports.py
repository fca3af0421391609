"""What the controllers of the room share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gitops_ctl.core.clock import Clock
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.kube.events import Emit
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.topology.caches import Caches
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.workplaces import Workplaces

Bind = Callable[[str, str], Awaitable[FleetPolicy]]
"""Validates the policy in the ConfigMap of that namespace and name, and binds it to its ledger (rollouts.md, section 7.4)."""

Prove = Callable[[KubeClient, str], Awaitable[None]]
"""Raises as long as the admission policies are not proven to be in force; the namespace is the manager's (rollouts.md, section 18.3)."""


@dataclass(frozen=True, slots=True)
class Ports:
    """One room's things.

    Attributes:
        policy: the policy in force, None while there is none that can be used.
        require: raises when this process may not write; asked before the first write of a pass.
    """

    client: KubeClient
    caches: Caches
    workplaces: Workplaces
    clock: Clock
    emit: Emit
    policy: Callable[[], FleetPolicy | None]
    require: Callable[[], None]
    options: Options

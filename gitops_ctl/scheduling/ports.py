"""What the controllers of profiles, flavors and queues share: the server, the caches, and what was computed from them."""

from collections.abc import Callable
from dataclasses import dataclass

from gitops_ctl.core.clock import Clock
from gitops_ctl.kube.events import Emit
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.caches import Caches
from gitops_ctl.scheduling.contributions import Contributions
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profiles import Profiles


@dataclass(frozen=True, slots=True)
class Ports:
    """One room's things.

    Attributes:
        require: raises LeadershipLost when this process may not write any more; asked before every write.
    """

    client: KubeClient
    caches: Caches
    profiles: Profiles
    contributions: Contributions
    clock: Clock
    emit: Emit
    require: Callable[[], None]
    options: Options

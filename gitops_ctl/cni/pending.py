"""What a machine says while its supplied base is ahead of it (cni-switch.md, section 5.2).

A change that the switch itself will make must not look like a reason for a reboot: a node that is rebooted into the new mode comes up
past every check of the switch.  Pure.
"""

from dataclasses import dataclass
from typing import Final

from gitops_ctl.cni.model import Cluster, Machine, Pending
from gitops_ctl.cni.plan_start import is_pending
from gitops_ctl.core.conditions import Condition, listed

REBOOT: Final = frozenset({"reboot", "kube-proxy"})
"""Classes that take effect at a reboot only, unless the switch applies them."""

_API_SERVER: Final = "api-server"
"""The class of what restarts the API server: beside it the switch does not take its own part along (section 7.4)."""

_KEEP: Final = (
    "keep the kube-proxy part of the base at the current mode until the other paths are converged, then switch"
)


@dataclass(frozen=True, slots=True)
class MachineReport:
    """Condition and paths of one machine."""

    ready: Condition
    reboot_paths: tuple[str, ...] = ()


def report_of(cluster: Cluster, machine: Machine) -> MachineReport:
    """What a machine reports; paths are set only where a reboot is the way."""
    if machine.pending is None:
        return MachineReport(Condition("Ready", "Unknown", "NotObserved", "no cluster worker has looked at it yet"))
    waiting = [item for item in machine.pending if item.cls in REBOOT] if machine.has_base else []
    if not waiting:
        return MachineReport(Condition("Ready", "True", "Observed"))
    others = [item for item in waiting if not is_kube_proxy(item)]
    restarts = _restarts_api_server(machine)
    if is_pending(cluster) and not others and not restarts:
        return MachineReport(
            Condition(
                "Ready",
                "False",
                "KubeProxySwitchPending",
                f"the kube-proxy switch to {cluster.mode} applies it without a reboot; do not reboot the machine into it",
            )
        )
    paths = tuple(item.path for item in waiting)
    message = f"a reboot applies {listed(paths)}"
    if is_pending(cluster) and len(others) < len(waiting):
        also = f"; {listed(restarts)} restarts the API server" if restarts else ""
        message = f"{message}{also}; {_KEEP}"
    return MachineReport(Condition("Ready", "False", "RebootRequired", message), paths)


def _restarts_api_server(machine: Machine) -> tuple[str, ...]:
    """Paths beside which the switch refuses a control plane."""
    found = (machine.pending or ()) if machine.is_control_plane else ()
    return tuple(item.path for item in found if item.cls == _API_SERVER)


def is_kube_proxy(item: Pending) -> bool:
    """Whether the switch itself applies it; a change that restarts the API server has another class."""
    return item.cls == "kube-proxy"

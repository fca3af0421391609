"""Every kind of this product that an API server stores, whatever its group."""

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import kind_of
from gitops_ctl.api.gitops import KINDS
from gitops_ctl.api.model import Model
from gitops_ctl.api.names import CISCO_GROUP, GROUP, ICHOR_GROUP, OPS_GROUP, WORKER_GROUP
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.api.talos import TALOS_KINDS
from gitops_ctl.api.topologysource import TopologySource

OUR_GROUPS = (GROUP, ICHOR_GROUP, WORKER_GROUP, CISCO_GROUP, OPS_GROUP)
ALL_KINDS: tuple[type[Model], ...] = (
    *KINDS,
    *TALOS_KINDS,
    TopologySource,
    CiscoDevice,
    IOSXESoftwareRollout,
    IOSXESoftwareUpgrade,
)
"""In the order of their definitions."""


def definition_name(model: type[Model]) -> str:
    """Name of the CustomResourceDefinition of a kind."""
    kind = kind_of(model)
    return f"{kind.plural}.{kind.group}"

"""Options of the topology room (rollouts.md, 11.8, 13.8, 17.1 and 17.2)."""

import enum
from dataclasses import dataclass

from gitops_ctl.api.names import SYSTEM_NAMESPACE


class Access(enum.StrEnum):
    """What the account of one plane may do."""

    DISABLED = "disabled"
    READ_ONLY = "readOnly"
    READ_WRITE = "readWrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the manager may choose.

    Attributes:
        namespace: where the policy and its ledger are.
        policy: name of the policy's ConfigMap.
        app_hosting, network: what the accounts of the two planes may do, in every namespace.
        worker_image: of the workers' Pods; without one no worker is made.
        image_source_allow: networks that image sources may be in although they are not public.
        unsaved_blocks: whether a configuration of a device that is not saved blocks its upgrade, or only warns.
        resync_s: seconds after which what is not ready is looked at again, at the latest.
        worker_poll_s: the same of what a device worker waits for.
        preflight_s: seconds after which a worker makes the checks before an upgrade again.
    """

    namespace: str = SYSTEM_NAMESPACE
    policy: str = "gitops-ctl-topology-policy"
    app_hosting: Access = Access.READ_WRITE
    network: Access = Access.READ_WRITE
    worker_image: str = ""
    image_source_allow: tuple[str, ...] = ()
    unsaved_blocks: bool = True
    resync_s: float = 15.0
    worker_poll_s: float = 15.0
    preflight_s: float = 3600.0

"""kube-proxy that came back, or went, after a switch has ended: reported, never repaired (cni-switch.md, section 8.4)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gitops_ctl.cni.model import Cluster, Drift, Machine, Mode, Operation, Phase
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.moment import to_rfc3339

REASON: Final = "KubeProxyDrift"


def drift_of(
    cluster: Cluster, machines: Sequence[Machine], operations: Sequence[Operation], *, now: datetime
) -> Drift | None:
    """What differs from the mode that the newest operation reached; None when nothing does, or nobody looked.

    A look that saw nothing ends no drift: what is unknown is not fine (promise P6).
    """
    newest = max(operations, key=lambda one: (one.created, one.key.name), default=None)
    if newest is None or newest.state.phase is not Phase.SUCCEEDED or newest.target is not cluster.record.mode:
        return None
    proxy = newest.observed.proxy if newest.observed is not None else None
    if proxy is None:
        return cluster.record.drift
    if proxy.present is (newest.target is Mode.ENABLED):
        return None
    if newest.target is Mode.REPLACED:
        message = f"the DaemonSet kube-proxy is back although Cilium serves Services; {_renderers(machines)}"
    else:
        message = "the DaemonSet kube-proxy is gone although it serves Services"
    known = cluster.record.drift
    since = known.since if known is not None else to_rfc3339(now)
    return Drift(REASON, message, since)


def _renderers(machines: Sequence[Machine]) -> str:
    names = [
        machine.name for machine in machines if machine.is_control_plane and machine.proxy == Mode.ENABLED.proxy_word
    ]
    if not names:
        return "no control plane is known to render it"
    return f"rendered by {listed(names)}, where kube-proxy is enabled"

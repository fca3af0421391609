"""What a person reads before the switch is signed: on the terminal, and in a pull request (cni-switch.md, section 5.3)."""

from collections.abc import Sequence


def announcement(cluster: str, *, before: str, after: str, machines: Sequence[str]) -> str:
    """Three sentences about what the switch does to machines and connections."""
    return (
        f"Switch kube-proxy on cluster {cluster} from {before} to {after}. Configuration is applied without a reboot; the "
        "kubelet and control plane components restart on each machine. "
        f"{len(machines)} machine(s): {', '.join(machines) or 'none declared in this checkout'}\n"
        "Existing connections on a node break when Cilium changes mode. Old kube-proxy rules stay on each node until it "
        "reboots."
    )

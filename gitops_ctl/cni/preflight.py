"""The checks before a switch; all refusals are collected and shown together (cni-switch.md, section 6.4).

Pure.  What is unknown refuses as well: a check that cannot be made is not passed (promise P6).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gitops_ctl.cni.messages import prism_port
from gitops_ctl.cni.mode import Replacement, current_mode, is_proxy_gone, replacement_of
from gitops_ctl.cni.model import Cluster, Machine, MachineSeen, Mode, Observed, Problem, ProxySeen
from gitops_ctl.cni.versions import is_in, version_of
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed

_LOOPBACK: Final = frozenset({"", "localhost", "127.0.0.1", "::1", "[::1]"})
"""Where Cilium would look for the API server; an empty one becomes `localhost` (section 11)."""

_RIDES_ALONG: Final = frozenset({"safe", "kube-proxy"})
_DOCUMENTS_SINCE: Final = (1, 14, 0)


def refusals(cluster: Cluster, machines: Sequence[Machine], observed: Observed, *, target: Mode) -> list[Problem]:
    """Everything that keeps the switch from starting; empty when it may start."""
    found = [*observed.problems]
    if cluster.preset != "cilium":
        found.append(
            Problem(
                "PresetNotReadable", f"the CNI preset {cluster.preset} cannot be read, so its mode cannot be verified"
            )
        )
    found += _machines(machines, observed, target=target)
    found += _cilium(observed)
    if target is Mode.REPLACED:
        found += _kube_prism(machines, observed)
    found += _contract(cluster, machines, observed)
    found += _denied(cluster, observed)
    return list(dict.fromkeys(found))


def is_done_already(cluster: Cluster, machines: Sequence[Machine], observed: Observed, *, target: Mode) -> bool:
    """Whether the mode that runs (section 10), machines and kube-proxy objects are all the target's: there is nothing to do."""
    seen = [observed.machines.get(machine.name) for machine in machines]
    return (
        current_mode(cluster, observed) is target
        and _objects_match(observed.proxy, target)
        and all(one is not None and matches(one, target) for one in seen)
    )


def matches(seen: MachineSeen, target: Mode) -> bool:
    """Whether a machine has the target's configuration already; a worker without a document has nothing to change."""
    if not seen.reachable or seen.problem is not None or not seen.hash_active:
        return False
    return seen.hash_wanted == seen.hash_active or seen.proxy == target.proxy_word


def trouble_of(machine: Machine, seen: MachineSeen | None) -> Problem | None:
    """Why a machine may not be changed now, None when it may (sections 7.2 and 7.4); without what is only unreachable."""
    name = machine.name
    if seen is None or not seen.reachable:
        return None
    if seen.problem is not None:
        return Problem(seen.problem.reason, f"{name}: {seen.problem.message}")
    if seen.type != machine.role:
        return Problem(
            "WrongMachine", f"{name} is declared as {machine.role}, and the machine says {seen.type or 'nothing'}"
        )
    if not seen.hash_active or seen.hash_active != seen.hash_persistent:
        return Problem(
            "StagedConfigPending",
            f"{name}: the active and the persistent machine configuration differ; a staged or tried change is not finished",
        )
    unrelated = [item.path for item in seen.pending if item.cls not in _RIDES_ALONG]
    if unrelated:
        paths = listed(unrelated)
        return Problem(
            "UnrelatedPendingChange", f"{name}: unrelated pending configuration change at {paths}: converge it first"
        )
    return None if seen.hash_wanted else Problem("ConfigUnknown", f"{name}: its configuration was not computed")


def unreachable(machine: Machine) -> Problem:
    """Said of a machine that does not answer."""
    return Problem("MachineUnreachable", f"{machine.name}: the Talos API does not answer")


def on_hold(machines: Sequence[Machine]) -> Problem | None:
    """Control planes that are excluded still render kube-proxy, and would bring back what is removed (section 6.2)."""
    held = [machine.name for machine in machines if machine.held and machine.is_control_plane]
    if not held:
        return None
    return Problem(
        "ControlPlaneOnHold",
        f"on hold and still rendering kube-proxy: {listed(held)}; take the hold annotation off first",
    )


def _machines(machines: Sequence[Machine], observed: Observed, *, target: Mode) -> Iterator[Problem]:
    if not any(machine.is_control_plane for machine in machines):
        yield Problem("NoControlPlane", "no TalosMachine of this cluster is a control plane")
    held = on_hold(machines) if target is Mode.REPLACED else None
    if held is not None:
        yield held
    for machine in machines:
        seen = observed.machines.get(machine.name)
        if machine.held and not machine.is_control_plane:
            continue
        if seen is None or not seen.reachable:
            found = _unseen(machine, seen)
            if machine.is_control_plane or found.reason != ErrorCode.MACHINE_UNREACHABLE.reason:
                yield found  # a worker may be away; what no waiting cures is told of it too (section 2.1)
        elif trouble := trouble_of(machine, seen):
            yield trouble


def _unseen(machine: Machine, seen: MachineSeen | None) -> Problem:
    """Why nothing is known about a machine."""
    found = seen.problem if seen is not None else None
    return Problem(found.reason, f"{machine.name}: {found.message}") if found else unreachable(machine)


def _cilium(observed: Observed) -> Iterator[Problem]:
    cilium = observed.cilium
    if cilium is None or observed.proxy is None:
        if not observed.problems:
            yield Problem("ClusterNotReadable", "the CNI and the objects of kube-proxy were not read")
        return
    if cilium.present and replacement_of(cilium.value) is Replacement.MIXED:
        yield Problem(
            "CiliumModeMixed",
            f"kube-proxy-replacement is {cilium.value}, which is neither mode; set true or false first",
        )
    for override in cilium.overrides:
        nodes = listed(override.nodes) or "some nodes"
        yield Problem(
            "NodeOverridePresent",
            f"CiliumNodeConfig {override.object} sets kube-proxy-replacement: {override.value} for {nodes}; remove it first",
        )


def _objects_match(proxy: ProxySeen | None, target: Mode) -> bool:
    if target is Mode.REPLACED:
        return is_proxy_gone(proxy)
    return proxy is not None and proxy.present and not proxy.missing


def _kube_prism(machines: Sequence[Machine], observed: Observed) -> Iterator[Problem]:
    """On every node it must listen where Cilium will look for the API server (section 14.6); what is not known does not count."""
    host = observed.cilium.service_host if observed.cilium is not None else ""
    if host.lower() not in _LOOPBACK:
        return  # an address that works already is kept, and KubePrism is not asked
    port = _wanted_port(observed)
    for machine in machines:
        seen = observed.machines.get(machine.name)
        if seen is None or not seen.reachable or seen.problem is not None:
            yield _unseen(machine, seen)
        elif not seen.prism_healthy:
            yield _prism(machine, "does not answer")
        elif seen.prism_port != port:
            yield _prism(machine, f"listens on port {seen.prism_port or 'unknown'}, not on {port}")


def _prism(machine: Machine, what: str) -> Problem:
    return Problem("KubePrismNotHealthy", f"{machine.name}: KubePrism {what}, and Cilium would depend on it")


def _wanted_port(observed: Observed) -> int:
    """The port that stands in the values when the switch is over: with a host that is kept its port is kept too (section 11)."""
    cilium = observed.cilium
    kept = cilium.service_port if cilium is not None and cilium.service_host else ""
    return int(kept) if kept.isdecimal() else prism_port(observed)


def _contract(cluster: Cluster, machines: Sequence[Machine], observed: Observed) -> Iterator[Problem]:
    """Versions of all machines and the form that is written agree; a form that the cluster names replaces another one (section 7.3)."""
    known = [
        seen for machine in machines if (seen := observed.machines.get(machine.name)) is not None and seen.reachable
    ]
    forms = sorted({seen.contract for seen in known if seen.contract})
    # One machine with a document is enough: all get that form, also those that have none yet.
    written = cluster.contract or max(forms, default="")
    for seen in known:
        version = version_of(seen.version)
        if written == "v1.14" and (version is None or version < _DOCUMENTS_SINCE):
            yield Problem(
                "ContractMismatch",
                f"{seen.name} runs Talos {seen.version or 'unknown'}, which has no document KubeProxyConfig",
            )
    if len(forms) > 1 and not cluster.contract:
        yield Problem("ContractMismatch", f"the machines use different forms of configuration: {', '.join(forms)}")


def _denied(cluster: Cluster, observed: Observed) -> Iterator[Problem]:
    cilium = observed.cilium.version if observed.cilium is not None else ""
    talos = [(seen.version, name) for name, seen in sorted(observed.machines.items()) if seen.reachable]
    found = {"cilium": [(cilium, "")], "kubernetes": [(observed.kubernetes_version, "")], "talos": talos}
    for entry in cluster.denied:
        for text, machine in found.get(entry.component, []):
            version = version_of(text)
            where = f" on {machine}" if machine else ""
            verdict = is_in(version, entry.versions) if version is not None else None
            if verdict is None:
                yield Problem(
                    "VersionDenied",
                    f"{entry.component} {text or 'of unknown version'}{where} cannot be compared with {entry.versions}",
                )
            elif verdict:
                yield Problem("VersionDenied", f"{entry.component} {text}{where} is denied: {entry.reason}")

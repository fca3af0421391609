"""A fleet of CiscoDevices in namespaces, with its policy, for the benchmarks with a manager."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.fleet import names
from tests.support.rollout_world import COHORT, FAMILY, document
from tests.support.topology_devices import POLICY, policy_objects

Tree = dict[str, Any]
POLICY_NAME = "gitops-ctl-topology-policy"
MARK = {"example.net/campaign": "spring"}
"""What the targets of the rollout have in common."""
FRESHNESS_S, HEARTBEAT_S, LEASE_S = 300, 60, 10
"""Of evidence by the policy; of the node plane and of the Leases of Nodes, as the workers have them by themselves."""
_ZONES = 40


@dataclass(frozen=True)
class Site:
    """So many devices in each of so many namespaces; the targets are the first ones of the first namespace.

    Attributes:
        ports: where the switches of the first namespace answer NETCONF, if they are there.
        login: what their Secret holds.
    """

    namespaces: int
    each: int
    targets: int = 0
    ports: Sequence[int] = ()
    login: Mapping[str, str] = field(default_factory=lambda: {"username": "operator"})

    @property
    def count(self) -> int:
        return self.namespaces * self.each

    @property
    def spaces(self) -> list[str]:
        return [f"campus-{number:02d}" for number in range(self.namespaces)]

    def policy(self) -> tuple[Tree, Tree]:
        """The ConfigMaps of the policy and of its ledger."""
        limits = {"globalMaxConcurrentTransfers": 100, "globalMaxUnavailable": 100}
        domains = {"domainMaxConcurrentTransfers": {names.REGION: 100}, "domainMaxUnavailable": {names.ZONE: 100}}
        wide = {**limits, **domains, "healthFreshnessSeconds": FRESHNESS_S}
        return policy_objects(SYSTEM_NAMESPACE, name=POLICY_NAME, **{**POLICY, **wide})

    def secret(self, namespace: str) -> Tree:
        metadata = {"name": "login", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {**self.login}}

    def devices(self) -> Iterator[Tree]:
        for space, namespace in enumerate(self.spaces):
            for number in range(self.each):
                yield self._device(namespace, f"edge-{space:02d}-{number:04d}", number, is_first=not space)

    def _device(self, namespace: str, name: str, number: int, *, is_first: bool) -> Tree:
        labels = {names.MANAGED: "true", names.REGION: "north", names.ZONE: f"hall-{number % _ZONES}"}
        labels |= {COHORT: "c9300", FAMILY: "cat9k"}
        labels |= MARK if is_first and number < self.targets else {}
        there: Tree = {"address": "192.0.2.1"}
        if is_first and self.ports:
            there = {"address": "127.0.0.1", "netconfPort": self.ports[number]}
        spec = {
            **there,
            "driver": "XE",
            "physicalIdentity": serial(name),
            "credentialSecretRef": {"name": "login"},
        }
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": "cisco.vk/v1alpha1", "kind": "CiscoDevice", "metadata": metadata, "spec": spec}

    def rollout(self) -> Tree:
        """A rollout over all targets."""
        first = f"edge-00-{0:04d}"
        tree: Tree = document(canaries=(first,), targets={"selector": {"matchLabels": MARK}})
        tree["metadata"]["namespace"] = self.spaces[0]
        # As the Sync fills it in.
        tree["spec"]["plan"] |= {"requestedBy": "network-author", "requestedAt": "2026-01-01T00:00:00Z"}
        return tree


def serial(name: str) -> str:
    """What the chassis of a device says of itself."""
    return f"FOC-{name}"


def collection(tree: Tree) -> str:
    """Where the API server takes an object of that kind."""
    plural = {"CiscoDevice": "ciscodevices", "IOSXESoftwareRollout": "iosxesoftwarerollouts"}
    version, namespace = tree["apiVersion"], tree["metadata"].get("namespace", "")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{plural.get(tree['kind'], tree['kind'].lower() + 's')}"


def is_ready(device: Tree) -> bool:
    """Whether everything of a device is good, evidence included."""
    status = device.get("status", {})
    good = {one["type"] for one in status.get("conditions", ()) if one["status"] == "True"}
    told = {one["type"] for one in status.get("healthObservation", {}).get("conditionObservations", ())}
    return set(names.REQUIRED_CONDITIONS) <= good & told and names.MAINTENANCE_READY in good

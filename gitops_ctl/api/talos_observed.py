"""What the cluster worker sees while an operation runs: `TalosOperation.status.observed` (cni-switch.md, sections 3.3 and 9).

Plain facts without a judgement: the executor decides what they mean.  Times come from the API server and from kubelets.
"""

from typing import Annotated, Literal

from pydantic import Field

from gitops_ctl.api.fields import Count, DnsName, Generation, Keyed, Timestamp
from gitops_ctl.api.model import Model
from gitops_ctl.api.talos_fields import (
    Contract,
    Digest,
    LiveMode,
    Message,
    Pending,
    Problem,
    ProxyObject,
    Reason,
    RequestId,
    ShortText,
    Version,
)

Names = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=253)], ...], Field(max_length=20)]
Port = Annotated[int, Field(ge=1, le=65535)]


class RollOut(Model):
    """Counts of a DaemonSet or a Deployment.  A Deployment has its replicas as `desired` and `current`."""

    generation: Generation = 0
    observed_generation: Generation = 0
    desired: Count = 0
    current: Count = 0
    updated: Count = 0
    ready: Count = 0
    available: Count = 0


class NodeOverride(Model):
    """A CiliumNodeConfig that sets the mode for some nodes."""

    object: Annotated[str, Field(min_length=1, max_length=317)]
    """`<namespace>/<name>`."""
    value: ShortText = ""
    nodes: Names = ()


class CiliumObservation(Model):
    """The CNI side."""

    present: bool
    """True: the ConfigMap cilium-config exists."""
    value: ShortText | None = None
    """kube-proxy-replacement as it is written; left out: the key is missing."""
    mode: LiveMode
    """What the value means."""
    agents: RollOut | None = None
    """DaemonSet cilium; left out: it does not exist."""
    operator: RollOut | None = None
    """Deployment cilium-operator; left out: it does not exist."""
    checksum: ShortText | None = None
    """Annotation of the agents' pod template that changes with the configuration."""
    template_generation: Generation = 0
    """How often the agents' pod template was changed; a change of anything else of the DaemonSet does not count."""
    template_written_at: Timestamp | None = None
    """Last write to the agents' pod template."""
    config_written_at: Timestamp | None = None
    """Last write to cilium-config by a manager that owns the key."""
    oldest_agent_start: Timestamp | None = None
    """Start of the agent container that runs longest; left out: one of them does not run."""
    lagging: Names = ()
    """The first agents' pods that are old or not ready."""
    overrides: Annotated[tuple[NodeOverride, ...], Field(max_length=20)] = ()
    version: Version = ""
    """Version of the agents' image."""
    service_host: ShortText | None = None
    """KUBERNETES_SERVICE_HOST of the agents; left out: not set."""
    service_port: ShortText | None = None


class ProxyObservation(Model):
    """The objects of kube-proxy."""

    present: bool
    """True: the DaemonSet kube-proxy exists."""
    roll_out: RollOut | None = None
    pods: Count = 0
    """Pods with the labels of kube-proxy."""
    objects: Annotated[tuple[ProxyObject, ...], Field(max_length=50)] = ()
    """All that exist."""
    missing: Annotated[tuple[ProxyObject, ...], Field(max_length=50)] = ()
    """Objects that a control plane renders and that do not exist."""
    rendered: bool = False
    """True: a control plane renders them now."""
    lagging: Names = ()


class KubePrismObservation(Model):
    """The local load balancer for the API server."""

    healthy: bool
    port: Port | None = None


class Gate(Model):
    """One check after a machine was changed (section 7.6)."""

    name: Literal["api", "services", "proxy", "manifest", "static-pods", "node"]
    passed: bool
    message: Message = ""


class OperationMachine(Model):
    """One machine, seen for the operation."""

    name: DnsName
    reachable: bool
    """True: the Talos API answered."""
    problem: Problem | None = None
    version: Version = ""
    type: Annotated[str, Field(max_length=32)] = ""
    node_name: Annotated[str, Field(max_length=253)] = ""
    """What the machine itself says."""
    contract: Contract | None = None
    """Form of its kube-proxy part; left out: it has none."""
    kube_proxy: Literal["enabled", "disabled"] | None = None
    """What its active configuration says."""
    hash_active: Digest | None = None
    hash_persistent: Digest | None = None
    hash_wanted: Digest | None = None
    """Of the configuration that the running request would apply."""
    pending: Annotated[tuple[Pending, ...], Field(max_length=200)] = ()
    kube_prism: KubePrismObservation | None = None
    gates: Annotated[tuple[Gate, ...], Field(max_length=8), Keyed("name")] = ()


class ServiceObservation(Model):
    """Whether the Service `kubernetes` answers where the worker runs."""

    request: RequestId | None = None
    """The request that asked."""
    result: Literal["Answered", "NotAnswered", "NotPossible"]
    reason: Reason | None = None
    message: Message = ""
    at: Timestamp


class Observed(Model):
    """The live state of one cluster."""

    at: Timestamp
    request: RequestId | None = None
    """The newest request `observe` that was there before this look began; left out: none asked."""
    cilium: CiliumObservation | None = None
    kube_proxy: ProxyObservation | None = None
    machines: Annotated[tuple[OperationMachine, ...], Field(max_length=500), Keyed("name")] = ()
    service: ServiceObservation | None = None
    kubernetes_version: Version = ""
    """Version of the API server."""
    problems: Annotated[tuple[Problem, ...], Field(max_length=20)] = ()
    """What kept the worker from looking: credentials, the target cluster."""

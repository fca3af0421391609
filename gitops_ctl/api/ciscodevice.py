"""The kind CiscoDevice: one network device, as far as inventory and rollouts need it (rollouts.md, section 5).

Members that are not declared here are kept, so that a document for another release stays whole: they are part of the object and
of nothing that is decided.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from gitops_ctl.api.ciscodevice_status import DeviceStatus
from gitops_ctl.api.fields import ObjectMeta
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Transition, rule
from gitops_ctl.api.names import CISCO_GROUP
from gitops_ctl.api.rolloutfields import NameText, NodeName, OpenPart, Part, PhysicalIdentity, ShortKeys

Port = Annotated[int, Field(ge=1, le=65535)]
LegacyLabel = Annotated[str, Field(max_length=63)]


def _not_a_number(value: object) -> object:
    """A literal compares with `==`, and for Python 1 equals true; for the API server it does not."""
    return str(value) if type(value) in (int, float) else value


AlwaysTrue = Annotated[Literal[True], BeforeValidator(_not_a_number)]


class SecretName(OpenPart):
    """A Secret of the same namespace."""

    name: NameText


class OptionalSecretName(OpenPart):
    """A Secret of the same namespace; without a name there is none."""

    name: Annotated[str, Field(max_length=253)] = ""


class DeviceTls(OpenPart):
    """How the management connection is secured."""

    enabled: bool | None = None
    insecure_skip_verify: bool | None = None
    secret_ref: OptionalSecretName | None = None


class GnoiTls(OpenPart):
    """TLS of gNOI."""

    secret_ref: SecretName | None = None
    """Secret with `ca.crt` and, for mutual TLS, `tls.crt` and `tls.key`."""


class CertificateProvisioning(OpenPart):
    """Accepted and never run: a device that is not provisioned fails its preflight."""

    certificate_id: Annotated[str, Field(min_length=1, max_length=64)]
    secret_ref: SecretName
    replace_target_ca_bundle: Annotated[AlwaysTrue, Field(alias="replaceTargetCABundle")]


class Gnoi(OpenPart):
    """gNOI of the device."""

    port: Port | None = None
    """Left out: 9339 with TLS, 50052 without."""
    transport_security: Literal["auto", "tls", "plaintext"] | None = None
    """`auto`: TLS where a TLS member or a credential is given."""
    tls: GnoiTls | None = None
    certificate_provisioning: CertificateProvisioning | None = None

    @rule(
        "!has(self.certificateProvisioning) || (has(self.transportSecurity) && self.transportSecurity == 'tls')",
        message="certificateProvisioning needs transportSecurity: tls",
    )
    def _provisions_for_tls(self) -> bool:
        return self.certificate_provisioning is None or self.transport_security == "tls"


class XeOptions(OpenPart):
    """Options of the driver XE."""

    gnoi: "XeGnoi | None" = None


class XeGnoi(OpenPart):
    """gNOI of the driver XE."""

    certificate_provisioning: CertificateProvisioning | None = None


class DeviceTaint(OpenPart):
    """A taint of the Node."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    value: Annotated[str, Field(max_length=63)] = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

    @rule(
        "self.key != 'topology.cisco.vk/uninitialized'",
        message="topology.cisco.vk/uninitialized is a taint of the manager",
    )
    def _leaves_the_guard_alone(self) -> bool:
        return self.key != "topology.cisco.vk/uninitialized"


class DeviceSpec(OpenPart):
    """What the device is and how it is reached."""

    driver: Annotated[str, Field(min_length=1, max_length=63)]
    """`XE` for IOS-XE; rollouts take no other."""
    address: Annotated[str, Field(min_length=1, max_length=253)]
    port: Port | None = None
    username: Annotated[str, Field(max_length=253)] | None = None
    credential_secret_ref: OptionalSecretName | None = None
    """Secret with `username`, `password` and, for NETCONF, `known_hosts`."""
    tls: DeviceTls | None = None
    netconf_port: Port | None = None
    """Left out: 830."""
    gnoi: Gnoi | None = None
    xe: XeOptions | None = None
    physical_identity: PhysicalIdentity | None = None
    """Serial number or another stable identity of the chassis; written once."""
    node_name: NodeName | None = None
    """Name of the Node; left out: the name of this object."""
    max_pods: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = 16
    taints: Annotated[tuple[DeviceTaint, ...], Field(max_length=64)] = ()
    labels: Annotated[Mapping[str, LegacyLabel], Field(max_length=64), ShortKeys(317)] = Field(default_factory=dict)
    """Labels of the Node; they must agree with the labels of this object."""
    region: LegacyLabel | None = None
    """Must agree with the label topology.kubernetes.io/region."""
    zone: LegacyLabel | None = None
    """Must agree with the label topology.kubernetes.io/zone."""

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            "!has(oldSelf.physicalIdentity) || (has(self.physicalIdentity) && "
            "self.physicalIdentity == oldSelf.physicalIdentity)",
            "physicalIdentity is written once: another chassis is another CiscoDevice",
        ),
    )


_NODE_NAME: Final = "(has({0}.spec.nodeName) ? {0}.spec.nodeName : {0}.metadata.name)"


class CiscoDevice(Part):
    """One network device; in the managed mode it is also a Node."""

    api_version: Literal["cisco.vk/v1alpha1"]
    kind: Literal["CiscoDevice"]
    metadata: ObjectMeta
    spec: DeviceSpec
    status: DeviceStatus = DeviceStatus()

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition("!has(oldSelf.status) || has(self.status)", "the status must not be taken away"),
        Transition(
            f"{_NODE_NAME.format('self')} == {_NODE_NAME.format('oldSelf')}",
            "nodeName must not change: another Node is another CiscoDevice",
        ),
    )
    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="CiscoDevice",
        plural="ciscodevices",
        group=CISCO_GROUP,
        columns=(
            Column("Driver", ".spec.driver"),
            Column("Address", ".spec.address"),
            Column("Phase", ".status.phase"),
            Column("Node", ".status.nodeIdentity.nodeName"),
            condition_column("Topology", "TopologyReady", "status"),
            AGE,
            Column("Identity", ".spec.physicalIdentity", priority=1),
            Column(
                "Lock", ".status.topologyLock.campaignName", priority=1, description="Campaign that holds the device"
            ),
            condition_column("Message", "TopologyReady", "message", priority=1),
        ),
    )

    @rule(
        f"{_NODE_NAME.format('self')}.size() <= 63",
        message="the name of the Node must have at most 63 characters: give spec.nodeName",
    )
    def _names_a_node(self) -> bool:
        return len(self.spec.node_name or self.metadata.name) <= 63

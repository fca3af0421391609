"""`spec.plan` of a software rollout: the campaign that is frozen, hashed and approved (rollouts.md, section 3.2).

Defaults are part of what is hashed (section 10.1): a new one would change the hash of every plan that leaves the member out.
"""

from typing import Annotated, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import UNIQUE, DnsLabel, DnsName, Keyed, Timestamp
from gitops_ctl.api.model import rule
from gitops_ctl.api.rolloutfields import (
    DeviceSelector,
    Domains,
    Limit,
    NameText,
    OpenPart,
    Part,
    Percent,
    Sha256,
    SoftwareVersion,
    TimeoutSeconds,
    User,
    Window,
    is_empty_selector,
)

SoakSeconds = Annotated[int, Field(ge=0, le=604800)]
Strategy = Literal["Reload", "NoReboot", "PrepareOnly"]


class Targets(Part):
    """The devices of the campaign; always of its own namespace."""

    selector: DeviceSelector
    """Labels of CiscoDevices."""
    allow_all: bool = False
    """Says that an empty selector is meant."""
    max_targets: Limit = 100
    """More devices than this are an error; the fleet policy may lower it."""

    @rule(
        f"(has(self.allowAll) && self.allowAll) == ({is_empty_selector('self.selector')})",
        message="give a selector that is not empty, or an empty one together with allowAll: true",
    )
    def _means_every_device(self) -> bool:
        return self.allow_all == self.selector.is_empty


class SourceSecret(Part):
    """A Secret of the same namespace, bound to the endpoint of the source."""

    name: NameText


class CatalystCenterSource(OpenPart):
    """An image that a Catalyst Center keeps.  It is stored, and no campaign with it is planned."""


class ImageSource(Part):
    """One place that serves the image, for some devices or for those that no other place is for."""

    name: DnsLabel
    device_selector: DeviceSelector | None = None
    """Devices that this place is for; without it, or empty, it is for all that no other place is for."""
    priority: Annotated[int, Field(ge=0, le=10000)]
    """The lowest of the places that are for a device is used."""
    url: Annotated[str, Field(min_length=1, max_length=2048, pattern=patterns.IMAGE_URL)] | None = None
    """https or sftp, without user information, query and fragment."""
    url_secret_ref: SourceSecret | None = None
    """Account and host key of an sftp server; https has none."""
    catalyst_center: CatalystCenterSource | None = None

    @rule("has(self.url) != has(self.catalystCenter)", message="give exactly one of url and catalystCenter")
    def _is_one_place(self) -> bool:
        return (self.url is None) != (self.catalyst_center is None)

    @rule(
        "has(self.urlSecretRef) == (has(self.url) && self.url.startsWith('sftp://'))",
        message="an sftp source needs urlSecretRef, any other source must not have it",
    )
    def _has_a_secret_for_sftp(self) -> bool:
        return (self.url_secret_ref is not None) == (self.url is not None and self.url.startswith("sftp://"))

    @property
    def is_catch_all(self) -> bool:
        """Whether it is for every device that no other place is for."""
        return self.device_selector is None or self.device_selector.is_empty


class Image(Part):
    """One image, by its digest."""

    sha256: Sha256
    image_family: Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.IMAGE_FAMILY)]
    """Equal to the label operations.cisco.vk/image-family of every target."""
    sources: Annotated[tuple[ImageSource, ...], Field(min_length=1, max_length=16), Keyed("name")]

    @rule(
        "self.sources.exists_one(source, !has(source.deviceSelector) || "
        f"({is_empty_selector('source.deviceSelector')}))",
        message="exactly one source must be for all devices: without deviceSelector, or with an empty one",
    )
    def _has_one_catch_all(self) -> bool:
        return [source.is_catch_all for source in self.sources].count(True) == 1


class Canary(Part):
    """Devices of one cohort that go first."""

    name: DnsLabel
    """Value of the label operations.cisco.vk/qualification-cohort."""
    devices: Annotated[tuple[DnsName, ...], Field(min_length=1, max_length=100), UNIQUE]
    """Names of CiscoDevices."""


class Budgets(Part):
    """How much of the fleet the campaign may take at once; the fleet policy may only lower it."""

    max_concurrent_transfers: Limit = 1
    max_unavailable: Limit = 1
    domains: Domains = ()


class Drain(Part):
    """Bounds of a workload drain."""

    namespaces: Annotated[tuple[DnsLabel, ...], Field(min_length=1, max_length=16), UNIQUE]
    timeout_seconds: Annotated[int, Field(ge=300, le=7200)]
    max_pods: Annotated[int, Field(ge=1, le=32)]
    max_termination_grace_seconds: Annotated[int, Field(ge=30, le=600)]

    @rule(
        "self.timeoutSeconds >= self.maxTerminationGraceSeconds + 120",
        message="timeoutSeconds must be at least maxTerminationGraceSeconds + 120",
    )
    def _has_time_to_end(self) -> bool:
        return self.timeout_seconds >= self.max_termination_grace_seconds + 120


class Workloads(Part):
    """What happens to workloads that run on a target."""

    policy: Literal["BlockIfRunning", "Drain"] = "BlockIfRunning"
    """A plan with Drain is stored and not run."""
    drain: Drain | None = None

    @rule(
        "has(self.drain) == (has(self.policy) && self.policy == 'Drain')",
        message="drain is needed with policy: Drain, and with no other",
    )
    def _has_a_drain_if_it_drains(self) -> bool:
        return (self.drain is not None) == (self.policy == "Drain")


_Interfaces = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=256, pattern=patterns.ONE_LINE)], ...],
    Field(max_length=32),
    UNIQUE,
]
_Neighbors = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=512)], ...],
    Field(max_length=32),
    UNIQUE,
]


class NetworkGate(Part):
    """What the network around a target has to show before each change of it, and after the last."""

    enabled: bool
    require_complete_evidence: bool = True
    required_interfaces: _Interfaces = ()
    required_neighbors: _Neighbors = ()
    require_interfaces_up: bool | None = None
    require_neighbors_full: bool | None = None
    """A neighbor known through CDP alone is never full."""
    minimum_headroom_percent: Percent | None = None
    """Unused capacity of every required interface."""

    @rule(
        "!has(self.minimumHeadroomPercent) || (has(self.requiredInterfaces) && self.requiredInterfaces.size() > 0)",
        message="minimumHeadroomPercent needs at least one of requiredInterfaces",
    )
    def _measures_something(self) -> bool:
        return self.minimum_headroom_percent is None or bool(self.required_interfaces)


class HealthGates(Part):
    """How fresh evidence of health has to be, and how long a device has to stay healthy."""

    max_observation_age_seconds: Annotated[int, Field(ge=30, le=86400)] = 300
    canary_soak_seconds: SoakSeconds = 600
    wave_soak_seconds: SoakSeconds = 300
    network: NetworkGate | None = None


class Plan(Part):
    """The whole campaign.  It never changes: another campaign is another rollout."""

    requested_by: User
    """Filled in from the commit."""
    requested_at: Timestamp
    """Filled in from the commit."""
    targets: Targets
    image: Image
    target_version: Annotated[SoftwareVersion, Field(min_length=1)]
    """Version that the devices run afterwards."""
    strategy: Strategy = "Reload"
    """`PrepareOnly` installs and leaves the activation to a second approval."""
    rollback_on_failure: bool = True
    install_timeout_seconds: TimeoutSeconds = 3600
    reboot_timeout_seconds: TimeoutSeconds = 1800
    maintenance_window: Window | None = None
    """Gates the first change of a device and every activation."""
    canaries: Annotated[tuple[Canary, ...], Field(min_length=1, max_length=16), Keyed("name")]
    pause_after_canary: bool = True
    """The campaign waits for a resume once the canaries are healthy."""
    budgets: Budgets = Budgets()
    workloads: Workloads = Workloads()
    health: HealthGates = HealthGates()

"""What a plan asks for, read from the stored `spec.plan` (rollouts.md, section 3.2).

The CustomResourceDefinition has checked every bound; here the members get their names and their defaults, so that a plan from a
file is read like one of the cluster.
"""

from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.fleet.policy import Selector, selector_of

DRAIN: Final = "Drain"
MOST_TARGETS: Final = 100
DEFAULT_AGE_S: Final = 300
DEFAULT_CANARY_SOAK_S: Final = 600
DEFAULT_WAVE_SOAK_S: Final = 300


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One operator-provided place of the image.

    Attributes:
        selector: None when the source names none; an empty one means the same.
        secret: name of the Secret, "" without one.
        is_catalyst_center: it names a Catalyst Center in place of an address.
    """

    name: str
    priority: int
    url: str
    secret: str
    selector: Selector | None
    is_catalyst_center: bool

    @property
    def is_catch_all(self) -> bool:
        return self.selector is None or self.selector.is_empty


@dataclass(frozen=True, slots=True)
class Canary:
    """A cohort that goes first: its name is the value of the cohort label."""

    name: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DomainBudget:
    """Own limits of the campaign inside each value of one topology key; 0 where it sets none."""

    key: str
    transfers: int
    unavailable: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan.  `tree` is what it was read from; `network` is None when the plan names no network gate."""

    tree: JsonObject
    selector: Selector
    allow_all: bool
    max_targets: int
    sha256: str
    image_family: str
    sources: tuple[SourceSpec, ...]
    target_version: str
    strategy: str
    install_timeout_s: int
    canaries: tuple[Canary, ...]
    transfers: int
    unavailable: int
    domains: tuple[DomainBudget, ...]
    workload_policy: str
    max_age_s: int
    canary_soak_s: int
    wave_soak_s: int
    network: JsonObject | None

    @property
    def network_is_on(self) -> bool:
        return self.network is not None and bool_at(self.network, "enabled")

    @property
    def effective_canary_soak_s(self) -> int:
        """Zero counts as unset (S1 of section 22)."""
        return self.canary_soak_s or DEFAULT_CANARY_SOAK_S

    @property
    def effective_wave_soak_s(self) -> int:
        return self.wave_soak_s or DEFAULT_WAVE_SOAK_S


def plan_of(tree: JsonObject) -> Plan:
    """The plan of a rollout's `spec.plan`.

    Raises:
        Malformed: a selector breaks a rule of the schema.
    """
    targets, image, budgets = object_at(tree, "targets"), object_at(tree, "image"), object_at(tree, "budgets")
    health = object_at(tree, "health")
    return Plan(
        tree=tree,
        selector=selector_of(object_at(targets, "selector"), "/targets/selector"),
        allow_all=bool_at(targets, "allowAll"),
        max_targets=int_at(targets, "maxTargets", default=MOST_TARGETS),
        sha256=text_at(image, "sha256"),
        image_family=text_at(image, "imageFamily"),
        sources=tuple(_source(item) for item in objects_at(image, "sources")),
        target_version=text_at(tree, "targetVersion"),
        strategy=text_at(tree, "strategy", default="Reload"),
        install_timeout_s=int_at(tree, "installTimeoutSeconds", default=3600),
        canaries=tuple(
            Canary(text_at(item, "name"), tuple(str(name) for name in list_at(item, "devices")))
            for item in objects_at(tree, "canaries")
        ),
        transfers=int_at(budgets, "maxConcurrentTransfers", default=1),
        unavailable=int_at(budgets, "maxUnavailable", default=1),
        domains=tuple(
            DomainBudget(
                text_at(item, "topologyKey"), int_at(item, "maxConcurrentTransfers"), int_at(item, "maxUnavailable")
            )
            for item in objects_at(budgets, "domains")
        ),
        workload_policy=text_at(tree, "workloads", "policy", default="BlockIfRunning"),
        max_age_s=int_at(health, "maxObservationAgeSeconds", default=DEFAULT_AGE_S),
        canary_soak_s=int_at(health, "canarySoakSeconds", default=DEFAULT_CANARY_SOAK_S),
        wave_soak_s=int_at(health, "waveSoakSeconds", default=DEFAULT_WAVE_SOAK_S),
        network=object_at(health, "network") or None,
    )


def _source(tree: JsonObject) -> SourceSpec:
    selector = tree.get("deviceSelector")
    return SourceSpec(
        name=text_at(tree, "name"),
        priority=int_at(tree, "priority"),
        url=text_at(tree, "url"),
        secret=text_at(tree, "urlSecretRef", "name"),
        selector=None if selector is None else selector_of(selector, "/image/sources/deviceSelector"),
        is_catalyst_center=tree.get("catalystCenter") is not None,
    )

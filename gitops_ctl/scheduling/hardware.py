"""The hardware identity of a Node, read from labels that somebody else wrote (topology-scheduling.md, 7.2)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.fleet.forms import is_subdomain
from gitops_ctl.scheduling.names import (
    ACCELERATABLE,
    ACCELERATOR,
    ARCH,
    CPU_ONLY,
    GENERAL,
    LONGEST_LABEL,
    MANAGED,
    OS,
    PROFILE,
)
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.topology import topology_name

MANUFACTURERS: Final = frozenset(
    {"amd", "ascend", "cambricon", "hygon", "iluvatar", "metax", "mthreads", "nvidia", "thead"}
)
COUNT: Final = ".count"
CAPACITY: Final = ".capacity"
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Identity:
    """One flavor that a Node feeds.  Hardware and profile together are the identity: shapes are never mixed.

    Attributes:
        general: the CPU key.
        accelerator: the accelerator key; empty for the CPU flavor.
        count: cores or devices of one Node.
        cpu_only: whether the flavor also asks for Nodes without an accelerator.
    """

    general: str
    accelerator: str
    os: str
    arch: str
    count: int
    profile: str
    cpu_only: bool = False

    @property
    def key(self) -> str:
        """Its own feature key, with its prefix."""
        return f"{ACCELERATOR}{self.accelerator}" if self.accelerator else f"{GENERAL}{self.general}"

    @property
    def is_accelerated(self) -> bool:
        return bool(self.accelerator)

    @property
    def manufacturer(self) -> str:
        """That of its own key."""
        return (self.accelerator or self.general).partition("-")[0]

    @property
    def base(self) -> str:
        """The name without the profile."""
        middle = f"--{self.accelerator}" if self.accelerator else ""
        unit = "d" if self.accelerator else "c"
        return f"gpustack--{self.general}{middle}-{self.os}-{self.arch}-{self.count}{unit}"

    @property
    def name(self) -> str:
        """The name of the flavor."""
        return f"{self.base}-{self.profile}"

    @property
    def topology(self) -> str:
        """The name of its Topology."""
        return topology_name(self.profile)

    @property
    def node_labels(self) -> Labels:
        """What the flavor selects Nodes by: six to seven entries, Kueue allows eight."""
        labels = {MANAGED: "true", OS: self.os, ARCH: self.arch, f"{GENERAL}{self.general}": "true"}
        labels |= {self.key: "true", f"{self.key}{COUNT}": str(self.count), PROFILE: self.profile}
        return {**labels, CPU_ONLY: "true"} if self.cpu_only else labels


@dataclass(frozen=True, slots=True)
class Fed:
    """What a Node feeds, and why it does not feed more.

    Attributes:
        warnings: one sentence each, for a Warning event.
    """

    flavors: tuple[Identity, ...] = ()
    warnings: tuple[str, ...] = ()


def fed_by(labels: Labels, *, options: Options) -> Fed:
    """The flavors of a Node with these labels; without the managed mark or a profile there are none."""
    if labels.get(MANAGED) != "true" or not labels.get(PROFILE):
        return Fed()
    warnings: list[str] = []
    general = _general_key(labels, warnings)
    if general is None or not labels.get(OS) or not labels.get(ARCH):
        return Fed((), tuple(warnings))
    found = tuple(
        identity for identity in _identities(labels, general, options, warnings) if _is_usable(identity, warnings)
    )
    return Fed(found, tuple(warnings))


def count_of(labels: Labels, key: str) -> int | None:
    """The count beside a feature key; None when it is missing or not canonical (D20)."""
    text = labels.get(f"{key}{COUNT}", "")
    return int(text) if _COUNT.fullmatch(text) else None


def feature_keys(labels: Labels, prefix: str) -> list[str]:
    """The keys behind `prefix` whose value is true, sorted."""
    return sorted(key for key, value in labels.items() if key.startswith(prefix) and value == "true")


def _general_key(labels: Labels, warnings: list[str]) -> str | None:
    """The one CPU key with a valid count (D19); the bare key of a manufacturer has none and identifies nothing."""
    keys = [key for key in feature_keys(labels, GENERAL) if count_of(labels, key) is not None]
    if len(keys) == 1:
        return keys[0].removeprefix(GENERAL)
    names = ", ".join(keys) if keys else f"no label {GENERAL}<key>=true with a count"
    warnings.append(f"the Node feeds no flavor: exactly one general key with a count is needed, found: {names}")
    return None


def _identities(labels: Labels, general: str, options: Options, warnings: list[str]) -> Iterator[Identity]:
    cores = count_of(labels, f"{GENERAL}{general}") or 0
    base = Identity(general, "", labels[OS], labels[ARCH], cores, labels[PROFILE], not options.mixed_on_node)
    if options.mixed_on_node or labels.get(ACCELERATABLE) != "true":
        yield base
    for key in feature_keys(labels, ACCELERATOR):
        accelerator = key.removeprefix(ACCELERATOR)
        manufacturer, dash, _ = accelerator.partition("-")
        if manufacturer not in MANUFACTURERS or not dash:
            continue
        devices = count_of(labels, key)
        if devices is None:
            warnings.append(f"the Node feeds no flavor of {key}: its count is missing or no canonical number")
            continue
        yield replace(base, accelerator=accelerator, count=devices, cpu_only=False)


def _is_usable(identity: Identity, warnings: list[str]) -> bool:
    """Whether Kueue and Kubernetes can hold the name and the labels of this flavor (D21)."""
    longest = max(len(key.rpartition("/")[2]) for key in (f"{identity.key}{CAPACITY}", f"{identity.key}{COUNT}"))
    if is_subdomain(identity.name) and longest <= LONGEST_LABEL:
        return True
    warnings.append(f"the Node feeds no flavor of {identity.key}: {identity.name} is no usable name")
    return False

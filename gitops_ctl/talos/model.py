"""What is read from one machine."""

from dataclasses import dataclass
from typing import Literal

MachineType = Literal["controlplane", "worker", "init", "unknown"]
Role = Literal["controlplane", "worker"]
Mode = Literal["enabled", "replaced"]
Contract = Literal["v1.13", "v1.14"]


@dataclass(frozen=True, slots=True)
class Expected:
    """Which machine must be behind an address."""

    nodename: str
    machine_type: MachineType


@dataclass(frozen=True, slots=True)
class Identity:
    """Which machine is behind an address.  `version` is that of Talos, for example `v1.14.0`."""

    version: str
    nodename: str
    machine_type: MachineType


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One service of the machine.  `unknown`: it has no health check, or none has run yet."""

    running: bool
    healthy: bool
    unknown: bool


@dataclass(frozen=True, slots=True)
class KubePrism:
    """The load balancer of the machine for the API server."""

    host: str
    port: int
    healthy: bool


@dataclass(frozen=True, slots=True)
class StaticPod:
    """A pod that the kubelet runs from the machine's own configuration."""

    name: str
    ready: bool


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What the machine said about an accepted configuration; never a piece of it.

    Attributes:
        mode: the mode that was used, `NO_REBOOT`.
        mode_details: the first words of the machine, without its diff.
        changed: of a dry run, whether the machine found a difference; None when it was no dry run.
    """

    mode: str
    mode_details: str
    warnings: tuple[str, ...]
    changed: bool | None = None

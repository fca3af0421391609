"""What the execution of leaves needs from outside, as ports (rollouts.md, section 13).

A process hands in its clients; tests hand in a server and switches in memory, and a clock that they move.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from gitops_ctl.core.clock import Clock
from gitops_ctl.device.gnoi import SoftwareSessions
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.journal import Journal
from gitops_ctl.device.login import Endpoint
from gitops_ctl.device.netconf import NetconfSession
from gitops_ctl.device.spool import Opening, Spool
from gitops_ctl.fleet.gate import Runtime
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.kube.transport import KubeClient


class NetconfSessions(Protocol):
    """Opens NETCONF sessions."""

    def session(self, endpoint: Endpoint) -> AbstractAsyncContextManager[NetconfSession]: ...


class Maintenance(Protocol):
    """The session in which a device may be changed (rollouts.md, section 13.6)."""

    async def ask(self, leaf: Leaf) -> bool:
        """Hold the Lease for the leaf; whether its session is acknowledged."""
        ...

    async def let_go(self, leaf: Leaf) -> None:
        """Hold it no more; nothing when somebody else holds it."""
        ...


class Trust(NamedTuple):
    """resourceVersions of the Secrets that the device is reached with; empty where there is none."""

    credential: str = ""
    tls: str = ""
    provisioning: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """How one device is reached in one pass.

    Attributes:
        runtime: what the worker knows about itself, for the gate.
        gnoi: None, as `netconf`, when the material for it cannot be used; `problem` says why.
        opening: begins a download of the image; None for a leaf without one.
        chassis: the declared one, in canonical form; a session with any other is refused.
        maintenance: of this device.
        turn: held during sessions with the device, except for a transfer.
    """

    runtime: Runtime
    gnoi: GnoiTarget | None
    netconf: Endpoint | None
    trust: Trust
    chassis: str
    maintenance: Maintenance
    opening: Opening | None = None
    problem: str = ""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


Accesses: TypeAlias = Callable[[Leaf], Awaitable[Access]]
"""How the device of a leaf is reached now; asked in every round."""


@dataclass(frozen=True, slots=True)
class LeafPorts:
    """What all leaves of a worker share.

    Attributes:
        new_id: a random UUID.
        poll_s: the longest time between two looks (rollouts.md, section 11.8).
        still_s: for how long looks have to say the same before what they do not show counts as not there: a switch that accepted a request
            shows its effect later, and may not say meanwhile that it is at work.
        unsaved_blocks: whether configuration that a reload loses blocks an upgrade, or only warns.
    """

    client: KubeClient
    clock: Clock
    journal: Journal
    gnoi: SoftwareSessions
    netconf: NetconfSessions
    spool: Spool
    new_id: Callable[[], str]
    poll_s: float = 15.0
    still_s: float = 600.0
    unsaved_blocks: bool = True

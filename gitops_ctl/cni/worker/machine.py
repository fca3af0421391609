"""Looks at one Talos machine: who it is, what configuration it has, whether it works (cni-switch.md, sections 7.2, 7.6, 14.6 and 15.1).

Identity comes first: nothing that another machine says counts for this one.  Configurations stay in memory, and out of every text.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

from gitops_ctl.api.talos_fields import Problem
from gitops_ctl.cni.worker.proxyset import rendered_set
from gitops_ctl.core.conditions import MESSAGE_LIMIT, cut
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.talos.errors import MachineUnreachable, WrongMachine
from gitops_ctl.talos.machineconfig import KubeProxyPart, config_hash, kube_proxy_part
from gitops_ctl.talos.model import (
    ApplyResult,
    Expected,
    Identity,
    KubePrism,
    MachineType,
    Role,
    ServiceState,
    StaticPod,
)

LOOK_S: Final = 45.0
"""A look that takes longer is given up; the other machines do not wait for it."""

EVERYWHERE: Final = ("kubelet",)
ON_CONTROL_PLANES: Final = ("kubelet", "etcd", "apid", "machined")


class MachineLink(Protocol):
    """A connection to one machine, as `talos.client.TalosClient`."""

    async def require_identity(self) -> Identity: ...
    async def machine_config(self, which: Literal["v1alpha1", "persistent"]) -> bytes: ...
    async def apply_configuration(self, data: bytes, *, dry_run: bool) -> ApplyResult: ...
    async def services(self) -> Mapping[str, ServiceState]: ...
    async def kube_prism(self) -> KubePrism | None: ...
    async def bootstrap_proxy_enabled(self) -> bool | None: ...
    async def kube_proxy_manifests(self) -> tuple[JsonObject, ...] | None: ...
    async def static_pods(self) -> tuple[StaticPod, ...]: ...
    async def kubeconfig(self) -> bytes: ...


Connect = Callable[[str, bytes, Expected], AbstractAsyncContextManager[MachineLink]]
"""Opens a connection: address, text of the talosconfig, and which machine must be there."""


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """What a TalosMachine says."""

    name: str
    address: str
    node: str
    role: Role

    @staticmethod
    def of(tree: JsonObject) -> "MachineSpec":
        """The spec of a TalosMachine; its Node has its own name unless another one is given."""
        name = text_at(tree, "metadata", "name")
        role: Role = "controlplane" if text_at(tree, "spec", "role") == "controlplane" else "worker"
        return MachineSpec(name, text_at(tree, "spec", "address"), text_at(tree, "spec", "nodeName") or name, role)

    @property
    def is_control_plane(self) -> bool:
        return self.role == "controlplane"

    @property
    def expected(self) -> Expected:
        """Which machine must answer."""
        return Expected(self.node, self.role)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a machine has.  `active` and `base` are never shown; `base` is what a change starts from (section 7.3).

    Attributes:
        supplied: whether somebody else rendered the base.
    """

    active: bytes = field(repr=False)
    base: bytes = field(repr=False)
    supplied: bool
    hash_active: str
    hash_persistent: str
    part: KubeProxyPart

    @property
    def is_settled(self) -> bool:
        """False while a staged or tried change of somebody else waits (section 7.2)."""
        return self.hash_active == self.hash_persistent


@dataclass(frozen=True, slots=True)
class Look:
    """One machine at one moment.

    Attributes:
        began_s: when the look began, on the boot clock.
        reachable: the Talos API answered as a machine does.
        problem: why the rest is not known.
        proxy_enabled: whether this control plane renders kube-proxy; None when it is not settled, and on workers.
        rendered: what this control plane renders for kube-proxy, by object; None on workers.
        failing: services that are not running and healthy.
        static_unready: static pods that are not ready.
    """

    spec: MachineSpec
    began_s: float
    reachable: bool = False
    problem: Problem | None = None
    identity: Identity | None = None
    configuration: Configuration | None = None
    prism: KubePrism | None = None
    proxy_enabled: bool | None = None
    rendered: Mapping[ObjectId, JsonObject] | None = None
    failing: tuple[str, ...] = ()
    static_unready: tuple[str, ...] = ()

    @property
    def type(self) -> MachineType | Literal[""]:
        return self.identity.machine_type if self.identity is not None else ""


async def look_at(
    spec: MachineSpec, link: AbstractAsyncContextManager[MachineLink], *, base: bytes | None, began_s: float
) -> Look:
    """Everything about one machine; a failure is part of the answer."""
    known = Look(spec, began_s)
    try:
        async with asyncio.timeout(LOOK_S), link as machine:
            try:
                identity = await machine.require_identity()
                known = replace(known, reachable=True, identity=identity)
                known = replace(known, configuration=await read_configuration(machine, base=base))
                return await _health(machine, known)
            except GitopsError as error:
                answered = known.reachable or isinstance(error, WrongMachine)
                return replace(known, reachable=answered, problem=problem_of(error))
    except TimeoutError:
        late = MachineUnreachable(f"{spec.address} did not answer everything within {LOOK_S:g} s")
        return replace(known, reachable=False, problem=problem_of(late))
    except GitopsError as error:
        return replace(known, reachable=False, problem=problem_of(error))


async def read_configuration(machine: MachineLink, *, base: bytes | None) -> Configuration:
    """The configuration that is in force, and whether the saved one is the same.

    Raises:
        GitopsError: it cannot be read.
    """
    active, persistent = await machine.machine_config("v1alpha1"), await machine.machine_config("persistent")
    return Configuration(
        active=active,
        base=active if base is None else base,
        supplied=base is not None,
        hash_active=config_hash(active),
        hash_persistent=config_hash(persistent),
        part=kube_proxy_part(active),
    )


def problem_of(error: GitopsError) -> Problem:
    """The error as a status shows it."""
    return Problem(reason=error.reason, message=cut(redact_text(error.message), limit=MESSAGE_LIMIT))


async def _health(machine: MachineLink, known: Look) -> Look:
    services = await machine.services()
    needed = ON_CONTROL_PLANES if known.spec.is_control_plane else EVERYWHERE
    known = replace(
        known,
        prism=await machine.kube_prism(),
        failing=tuple(name for name in needed if not _works(services.get(name))),
    )
    if not known.spec.is_control_plane:
        return known
    pods = await machine.static_pods()
    return replace(
        known,
        proxy_enabled=await machine.bootstrap_proxy_enabled(),
        rendered=rendered_set(await machine.kube_proxy_manifests() or ()),
        static_unready=tuple(pod.name for pod in pods if not pod.ready),
    )


def _works(state: ServiceState | None) -> bool:
    """A service without a health check counts as healthy while it runs."""
    return state is not None and state.running and (state.healthy or state.unknown)

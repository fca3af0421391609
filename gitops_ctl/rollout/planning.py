"""A rollout is planned: everything that it depends on is read, frozen, and published in one write (rollouts.md, sections 9.2 and 9.3).

The selection comes from the informers; each selected device and its Node is then read again, uncached, so that nothing stale is frozen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.fleet.strict import Malformed
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.bootstrap import BoundPolicy
from gitops_ctl.rollout.fleetlook import FleetLook
from gitops_ctl.rollout.freeze import FreezeInput, FreezeProblem, Frozen, freeze, planning_digest
from gitops_ctl.rollout.leafplan import leaf_path
from gitops_ctl.rollout.lock import device_path
from gitops_ctl.rollout.planned import plan_of
from gitops_ctl.rollout.ports import node_path
from gitops_ctl.rollout.problem import HELD
from gitops_ctl.rollout.progress import Phase, Standing, planned, status_of
from gitops_ctl.rollout.selection import select
from gitops_ctl.rollout.sources import SourceSecret

PLANNING_FAILED: Final = "PlanningFailed"
_AT_ONCE: Final = 16
"""Reads of devices and Nodes under way together."""


@dataclass(frozen=True, slots=True)
class FleetSeen:
    """The fleet by the informers.

    Attributes:
        devices: of the namespace, all that the plan may select; others may be among them.
        nodes: those of these devices, by name.
        look: what was found in the whole fleet.
    """

    devices: Sequence[Device]
    nodes: Mapping[str, NodeSeen]
    look: FleetLook


@dataclass(frozen=True, slots=True)
class PlanningPorts:
    """What planning reaches out to.

    Attributes:
        policy: the fleet policy, bound to its ledger.
        fleet: for the planning of a rollout; None until the informers have seen everything.
        secrets: the source Secrets that a rollout names, by name: metadata and the keys `allowed*`, read live.
    """

    client: KubeClient
    clock: Clock
    policy: Callable[[], Awaitable[BoundPolicy]]
    fleet: Callable[[FleetPolicy, JsonObject], Awaitable[FleetSeen | None]]
    secrets: Callable[[JsonObject], Awaitable[Mapping[str, SourceSecret]]]


@dataclass(frozen=True, slots=True)
class Planned:
    """What planning came to.

    Attributes:
        status: members of the status to write; empty for nothing.
        digest: of what a failure depends on; "" for a plan.
        problem: why there is no plan.
        frozen: the plan.
    """

    status: JsonObject
    digest: str = ""
    problem: FreezeProblem | None = None
    frozen: Frozen | None = None


async def plan_rollout(ports: PlanningPorts, rollout: JsonObject, *, failed_digest: str = "") -> Planned | None:
    """Plan a rollout that has no plan; None while the fleet has not been seen as a whole.

    Args:
        failed_digest: of the last failure: under the same one nothing is tried again.

    Raises:
        TransientError, BlockedError: something cannot be read; nothing is concluded.
        Refused: the policy, or its ledger, cannot be used.
    """
    bound = await ports.policy()
    seen = await ports.fleet(bound.record.policy, rollout)
    if seen is None:
        return None
    given = await _given(ports, rollout, bound, seen)
    digest = planning_digest(given)
    if digest == failed_digest:
        return Planned({}, digest)
    found = freeze(given)
    if isinstance(found, FreezeProblem):
        return Planned(_failed(rollout, found, ports), digest, problem=found)
    return Planned(_published(rollout, found, ports), frozen=found)


async def _given(ports: PlanningPorts, rollout: JsonObject, bound: BoundPolicy, seen: FleetSeen) -> FreezeInput:
    namespace = text_at(rollout, "metadata", "namespace")
    devices = {device.name: device for device in seen.devices if device.namespace == namespace}
    nodes = dict(seen.nodes)
    limit = asyncio.Semaphore(_AT_ONCE)
    chosen = _chosen(rollout, tuple(devices.values()), bound, namespace)
    for former, device, node in await asyncio.gather(*(_again(ports.client, one, limit) for one in chosen)):
        del devices[former.name]
        if device is not None:
            devices[device.name] = device
        nodes.pop(former.node_name, None)
        if node is not None:
            nodes[node.name] = node
    listed = await ports.client.list_all(leaf_path(namespace))
    return FreezeInput(
        rollout=rollout,
        policy=bound.record,
        devices=tuple(devices.values()),
        nodes=nodes,
        secrets=await ports.secrets(rollout),
        leaves=tuple(map(leaf_of, listed.items)),
        fleet=seen.look,
        now=ports.clock.wall(),
    )


def _chosen(rollout: JsonObject, devices: Sequence[Device], bound: BoundPolicy, namespace: str) -> tuple[Device, ...]:
    """The devices that are read again; none for a plan that is wrong already."""
    try:
        plan = plan_of(object_at(rollout, "spec", "plan"))
    except Malformed:
        return ()
    cap = bound.record.policy.max_campaign_targets
    found = select(devices, plan=plan, namespace=namespace, policy_cap=cap)
    return () if found.problems else found.devices


async def _again(
    client: KubeClient, device: Device, limit: asyncio.Semaphore
) -> tuple[Device, Device | None, NodeSeen | None]:
    """A device as the informers have it, and it and its Node as they are; None for what is gone."""
    async with limit:
        tree = await client.find(device_path(device.namespace, device.name))
        node = await client.find(node_path(device.node_name))
    return device, None if tree is None else device_of(tree), None if node is None else node_of(node)


def _published(rollout: JsonObject, found: Frozen, ports: PlanningPorts) -> JsonObject:
    """Frozen plan, first epoch, targets, conditions: one write."""
    now = ports.clock.wall()
    targets = [planned(target) for target in found.targets]
    standing = Standing(Phase.AWAITING_APPROVAL, targets, f"waiting for approval of {found.hash}", approved=False)
    effective: dict[str, JsonValue] = {
        "epoch": 1,
        "policy": found.snapshot.to_json(),
        "updatedAt": to_rfc3339(now),
    }
    return {
        **status_of(rollout, standing, now=now),
        "frozenPlan": found.to_json(created_at=now),
        "intentHash": found.intent_hash,
        "effectivePolicy": effective,
    }


def _failed(rollout: JsonObject, found: FreezeProblem, ports: PlanningPorts) -> JsonObject:
    """What is written about a plan that cannot be frozen; nothing while planning only waits for a device."""
    if found.is_deferred:
        return {}
    held = next((problem.reason.value for problem in found.problems if problem.reason in HELD), "")
    standing = Standing(Phase.FAILED, (), found.message, held or PLANNING_FAILED)
    return status_of(rollout, standing, now=ports.clock.wall())

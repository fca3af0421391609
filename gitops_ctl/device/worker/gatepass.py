"""One pass of the worker's gate: read leaf, device and Node, judge, publish what was judged (rollouts.md, section 13.1).

It may run beside a transfer: it writes `workerControl` and nothing else, on the version that it judged.
"""

from dataclasses import dataclass

from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.leafports import Access, LeafPorts
from gitops_ctl.device.worker.leafwriting import LeafDesk
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.gate import Gate, bindings_of, gate_of
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.node import NodeSeen


@dataclass(frozen=True, slots=True)
class Passed:
    """What the pass saw.

    Attributes:
        leaf: the version after the write of the pass.
        is_ours: it is bound to this worker, device and Node; any other leaf is left alone.
    """

    leaf: Leaf
    device: Device | None
    node: NodeSeen | None
    gate: Gate
    is_ours: bool


async def pass_gate(ports: LeafPorts, desk: LeafDesk, access: Access, leaf: Leaf) -> Passed:
    """Judge the leaf as it was read, and publish it.

    Raises:
        Conflict: somebody wrote in between: read the leaf again.
    """
    device, node = await desk.device(leaf), await desk.node(leaf)
    bindings = bindings_of(leaf, device, node, access.runtime)
    gate = gate_of(leaf, bindings)
    members = leafstatus.control(leaf, gate, revision=access.runtime.loaded_revision, now=ports.clock.wall())
    return Passed(await desk.write(leaf, members), device, node, gate, is_ours=not bindings.identity)

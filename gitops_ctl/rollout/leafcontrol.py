"""The control of a campaign on its leaves: every leaf hears of a newer one, and none ever of an older one (rollouts.md, section 11.3)."""

import asyncio
from collections.abc import Iterable

from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.leafplan import control_patch, leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.ports import Ports


async def push_control(ports: Ports, leaves: Iterable[Leaf], control: Control) -> bool:
    """Tell every admitted leaf that has heard of no such revision yet; whether any was late.

    Raises:
        TransientError, Conflict: some were told; the next pass tells the others.
    """
    late = [leaf for leaf in leaves if leaf.manager_control is None or leaf.manager_control.revision < control.revision]
    await asyncio.gather(*(_tell(ports, leaf, control) for leaf in late if leaf.admission is not None))
    return bool(late)


async def _tell(ports: Ports, leaf: Leaf, control: Control) -> None:
    path = leaf_path(leaf.namespace, leaf.name)

    async def one_round() -> None:
        tree = await ports.client.get(path)
        known = leaf_of(tree).manager_control
        if known is not None and known.revision >= control.revision:
            return
        change = {"status": {"managerControl": control_patch(control, now=ports.clock.wall())}}
        await ports.client.patch_merge(path, swap(tree, change), manager=FIELD_MANAGER, subresource="status")

    await swapped(ports.client, one_round)

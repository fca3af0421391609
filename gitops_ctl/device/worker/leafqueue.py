"""The queue of a device: which of its leaves may work (rollouts.md, section 13.4, last rule).

Started ones come first, then the oldest, then by name.  A prepared leaf keeps the queue until it is consumed or invalidated; only its own
activation may pass.
"""

from datetime import UTC, datetime

from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.device.worker.leafwork import Work
from gitops_ctl.fleet.leaf import Leaf

_LAST = datetime.max.replace(tzinfo=UTC)


async def is_first(work: Work) -> bool:
    """Whether this leaf may work now; one that has claimed, or ended, looks on in any case, and one that may not claim waits anyway."""
    leaf = work.leaf
    if leaf.is_terminal or leaf.claims or not work.gate.may_claim:
        return True
    return holder_of(await work.desk.leaves(leaf.namespace), leaf) == leaf.uid


def holder_of(leaves: tuple[Leaf, ...], asking: Leaf) -> str:
    """UID of the leaf of the same device that may work, as far as the one that asks is concerned."""
    same = [one for one in leaves if one.device_name == asking.device_name]
    consumed = {one.binding.prepared_upgrade_uid for one in same if one.phase == "Succeeded"}
    for one in same:
        keeps = one.phase == "Prepared" and one.uid not in consumed
        if keeps and one.uid not in (asking.uid, asking.binding.prepared_upgrade_uid):
            return one.uid
    return min((asking, *filter(_is_waiting, same)), key=_rank).uid


def _is_waiting(leaf: Leaf) -> bool:
    return not leaf.is_outcome_resolved and (leaf.admission is None or leaf.admission.state != "Settled")


def _rank(leaf: Leaf) -> tuple[bool, datetime, str]:
    has_begun = bool(leaf.claims) or bool(text_at(leaf.status, "startTime"))
    return not has_begun, leaf.created or _LAST, leaf.name

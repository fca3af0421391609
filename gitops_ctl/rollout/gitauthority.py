"""What the accepted revision has of the blocks of a rollout (rollouts.md, section 2.6)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, text_at
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.rollout.authority import Authority, Block
from gitops_ctl.trust.declared import Declared, DeclaredReader
from gitops_ctl.trust.provenance import AcceptedRevision
from gitops_ctl.trust.withdrawn import TakenUp

Withdrawn = Callable[[AcceptedRevision, TakenUp], bool]
"""Whether the newest policy revokes who stood behind an older commit; called from a thread."""

CONTROL: Final = "control"
APPROVAL: Final = "approval"
ACTIVATION: Final = "activationApproval"
RECOVERY: Final = "recovery"
INVALIDATION: Final = "preparationInvalidation"
_RECORDS: Final = {APPROVAL: "approval", ACTIVATION: "activation"}
"""Member of the status that says what was taken up of a block."""


class GitAuthority:
    """Asks Git, never the cluster, who authorised something."""

    def __init__(self, reader: DeclaredReader, *, withdrawn: Withdrawn | None = None) -> None:
        self._reader, self._withdrawn = reader, withdrawn
        self._asked: dict[tuple[str, str], tuple[tuple[str, TakenUp], bool]] = {}
        """UID of a rollout and member of its spec to what was asked last, and the answer."""

    async def of(self, rollout: JsonObject) -> Authority:
        """The blocks of a rollout as it is in the cluster.

        Raises:
            TransientError, BlockedError: its Sync cannot be read; nothing is known then.
        """
        found = await self._reader.of(rollout)
        return Authority(
            control=block_of(found, CONTROL),
            approval=await self._standing(rollout, found, APPROVAL),
            recovery=block_of(found, RECOVERY),
            activation=await self._standing(rollout, found, ACTIVATION),
            invalidation=block_of(found, INVALIDATION),
        )

    async def _standing(self, rollout: JsonObject, found: Declared, member: str) -> Block:
        """An approval; one that was taken up from a commit that nobody judges any more is looked at by itself."""
        block, taken = block_of(found, member), taken_up(rollout, member)
        revision = found.revision
        judged = block.introduced is not None and taken is not None and block.introduced.commit == taken.commit
        if self._withdrawn is None or revision is None or taken is None or block.revoked or judged:
            return block
        place, asked = (text_at(rollout, "metadata", "uid"), member), (revision.commit, taken)
        known = self._asked.get(place)
        if known is None or known[0] != asked:
            try:
                known = (asked, await asyncio.to_thread(self._withdrawn, revision, taken))
            except GitopsError:
                return block  # the copy may only be late; what was taken up stands until somebody is seen to be revoked
            self._asked[place] = known
        return replace(block, revoked=known[1])


def taken_up(rollout: JsonObject, member: str = APPROVAL) -> TakenUp | None:
    """The approval that the status records for a block of the spec; None when none was taken up."""
    recorded = object_at(rollout, "status", _RECORDS[member])
    at = moment_at(recorded, "validatedAt")
    if not bool_at(recorded, "valid") or at is None:
        return None
    return TakenUp(text_at(recorded, "commit"), text_at(recorded, "person"), at)


def block_of(found: Declared, member: str) -> Block:
    """One block below `spec`, with who introduced its value."""
    document, revision = found.document, found.revision
    if document is None or revision is None:
        return Block(known=found.is_known, why=found.why, halted=found.is_refused)
    pointer = f"/spec/{member}"
    return Block(
        declared=object_at(document.tree, "spec", member),
        introduced=revision.provenance.of(document.id, pointer),
        why=revision.provenance.why_void(document.id, pointer),
        revoked=(document.id, pointer) in revision.provenance.lost,
    )

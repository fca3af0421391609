"""What the accepted revision has of the blocks of a rollout (rollouts.md, section 2.6)."""

from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, object_at
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignpass import Authority
from gitops_ctl.trust.declared import Declared, DeclaredReader

CONTROL: Final = "control"
APPROVAL: Final = "approval"
ACTIVATION: Final = "activationApproval"
RECOVERY: Final = "recovery"
INVALIDATION: Final = "preparationInvalidation"


class GitAuthority:
    """Asks Git, never the cluster, who authorised something."""

    def __init__(self, reader: DeclaredReader) -> None:
        self._reader = reader

    async def of(self, rollout: JsonObject) -> Authority:
        """The blocks of a rollout as it is in the cluster.

        Raises:
            TransientError, BlockedError: its Sync cannot be read; nothing is known then.
        """
        found = await self._reader.of(rollout)
        return Authority(
            control=block_of(found, CONTROL),
            approval=block_of(found, APPROVAL),
            recovery=block_of(found, RECOVERY),
            activation=block_of(found, ACTIVATION),
            invalidation=block_of(found, INVALIDATION),
        )


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

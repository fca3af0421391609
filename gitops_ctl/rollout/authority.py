"""What the accepted revision says about a block of a rollout, and who stands behind it (rollouts.md, sections 2.6 and 18.3).

Provenance decides, never the spec in the cluster.  A value in the cluster counts as Git's only while it is the value that Git has.
"""

from dataclasses import dataclass, field

from gitops_ctl.core.jsonvalue import EMPTY, JsonObject
from gitops_ctl.trust.provenance import Introduced

NOT_FROM_GIT = "NotFromGit"


@dataclass(frozen=True, slots=True)
class Block:
    """One block as the accepted revision has it.

    Attributes:
        known: False while nobody has looked at a revision yet, after a start: nothing may be concluded.
        declared: the block in the document; empty where the document has none, or there is no document.
        introduced: who introduced its present value; None when it authorises nothing.
        why: why it authorises nothing, in words.
        revoked: who introduced it has lost the key, or the commit, since.
        halted: the accepted commit itself is refused now: what was taken up stands, and nothing new begins.
    """

    known: bool = True
    declared: JsonObject = field(default_factory=lambda: EMPTY)
    introduced: Introduced | None = None
    why: str = ""
    revoked: bool = False
    halted: bool = False

    def proves(self, live: JsonObject, *, verb: str, members: tuple[str, ...]) -> Introduced | None:
        """Who introduced the live block: somebody with that verb, and the members are the same in Git; None otherwise."""
        same = all(self.declared.get(name) == live.get(name) for name in members)
        person = self.introduced
        return person if person is not None and person.verb == verb and same and not self.revoked else None


@dataclass(frozen=True, slots=True)
class Authority:
    """What Git has of the blocks of one campaign."""

    control: Block = field(default_factory=Block)
    approval: Block = field(default_factory=Block)
    recovery: Block = field(default_factory=Block)
    activation: Block = field(default_factory=Block)
    invalidation: Block = field(default_factory=Block)

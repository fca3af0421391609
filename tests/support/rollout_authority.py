"""Who introduced a block of a rollout, as the accepted revision would say."""

from gitops_ctl.trust.provenance import Introduced
from tests.support.rollout_planning import NOW


def by(verb: str, person: str = "change-approver") -> Introduced:
    """A commit of somebody with that verb."""
    return Introduced("c0ffee" * 6, person, verb, f"gitops-ctl:{person}", NOW, NOW, (person,))

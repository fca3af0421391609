"""When a signed revision becomes an operation, and that a consent is spent once (cni-switch.md, sections 4, 5.1 and 5.2).

Pure.  The field and the consent count only as the accepted revision has them; what stands in the cluster must be the same, so that a
value that was written there by hand authorises nothing.
"""

from collections.abc import Sequence

from gitops_ctl.cni.model import Authority, Cluster, Consumed, Introduction, Operation, Phase, Problem

NOT_FROM_GIT = "NotFromGit"
_BROKEN = "LockBroken"


def is_pending(cluster: Cluster) -> bool:
    """A switch is pending, in either direction: the consent names the spec's mode, and no switch has set that mode (section 5.2)."""
    return cluster.consent == cluster.mode.value and cluster.record.mode is not cluster.mode


def asked_for(cluster: Cluster, operations: Sequence[Operation], authority: Authority) -> Introduction | Problem | None:
    """The consent that a new operation would spend; a problem when a value does not come from Git; None when nothing is asked."""
    if cluster.deleted or not authority.revision or not _is_wanted(cluster, operations):
        return None
    if authority.mode is not cluster.mode or authority.consent != cluster.consent:
        return Problem(
            NOT_FROM_GIT,
            f"the accepted revision {authority.revision[:12]} has spec.cni.kubeProxy {authority.mode} and the consent "
            f"{authority.consent or 'none'}; what stands in the cluster is another value and authorises nothing",
        )
    introduced = authority.introduced
    if introduced is None:
        return Problem(
            "ConsentMissing" if authority.why_void else NOT_FROM_GIT,
            authority.why_void
            or "nobody with the verb consent introduced the present value of the annotation since the pinned root; "
            "it authorises nothing until it is introduced anew",
        )
    if authority.held:
        return None
    if is_spent(cluster, operations, introduced.commit):
        return _spent(introduced) if all(one.is_over for one in operations) else None
    return introduced


def _spent(introduced: Introduction) -> Problem:
    return Problem(
        "ConsentMissing",
        f"the consent that {introduced.person} gave in {introduced.commit} has had its operation: take it out, and write it "
        "again in a later commit",
    )


def is_spent(cluster: Cluster, operations: Sequence[Operation], commit: str) -> bool:
    """Whether the consent that a commit introduced has had its operation."""
    consumed = cluster.record.consumed
    return (consumed is not None and consumed.commit == commit) or any(one.consent == commit for one in operations)


def unrecorded(cluster: Cluster, operation: Operation, authority: Authority) -> Consumed | Problem | None:
    """What must be in the cluster's status before an operation may begin; a problem when it was not made by this controller.

    None when it is recorded.
    """
    consumed = cluster.record.consumed
    if consumed is not None and consumed.uid == operation.uid:
        return None
    introduced = authority.introduced
    if introduced is None or introduced.commit != operation.consent or authority.consent != operation.target.value:
        return Problem(NOT_FROM_GIT, "no consent in the accepted revision stands behind this operation")
    if consumed is not None and consumed.commit == operation.consent:
        return Problem(NOT_FROM_GIT, "the consent behind this operation was spent by another one")
    return Consumed(operation.consent, operation.target, operation.uid)


def _is_wanted(cluster: Cluster, operations: Sequence[Operation]) -> bool:
    if is_pending(cluster):
        return True
    return cluster.consent == cluster.mode.value and _is_broken_off(cluster, operations)


def _is_broken_off(cluster: Cluster, operations: Sequence[Operation]) -> bool:
    """After a broken lock the same target may be asked for again, although its mode is set already (section 6.6)."""
    newest = max(operations, key=lambda one: (one.created, one.key.name), default=None)
    if newest is None or newest.state.phase is not Phase.CANCELLED:
        return False
    return newest.target is cluster.mode and newest.state.said.reason == _BROKEN

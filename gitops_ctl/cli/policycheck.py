"""Brings rules of higher rooms into `gitops-ctl check`: the meaning of a trust policy, and what holds an object."""

from collections.abc import Iterator
from functools import cache

from gitops_ctl.api.names import GROUP
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.rules import register_check
from gitops_ctl.documents.shape import Flaw


@cache
def register() -> None:
    """Register the check, once for each process."""
    register_check(GroupKind(GROUP, "TrustPolicy"), _policy)
    # Their import registers what is said about the Talos kinds, about devices, rollouts and their policy, and about required levels.
    import gitops_ctl.cni.checks  # noqa: PLC0415
    import gitops_ctl.cni.holds  # noqa: PLC0415
    import gitops_ctl.rollout.holds  # noqa: PLC0415
    import gitops_ctl.rollout.policydocuments  # noqa: PLC0415
    import gitops_ctl.scheduling.documentrules  # noqa: PLC0415
    import gitops_ctl.scheduling.required_documents  # noqa: F401, PLC0415


def _policy(document: Document) -> Iterator[Flaw]:
    # Cryptography and models come in with the first trust policy, not with every changed file.
    from gitops_ctl.trust.lockout import HINT, lockout  # noqa: PLC0415
    from gitops_ctl.trust.policy import load_policy  # noqa: PLC0415

    try:
        policy = load_policy(document.text, path=document.file)
    except Refused as error:
        yield Flaw(error.code, error.message, hint=error.hint)
        return
    why = lockout(policy, now=SystemClock().wall())
    if why:
        yield Flaw(
            ErrorCode.RULE, f"nobody could change the policy any more: {why}", "/rules", HINT, severity="warning"
        )

"""What holds a TalosCluster as it is: a switch without consent, and a second one while the first runs (cni-switch.md, 4 and 6.6).

The rule about consent is the text of `policies/kube-proxy-consent.yaml`, the same that the API server enforces.  Where provenance
can be asked, a consent that nobody introduced, or that counts for nothing, is none.
"""

from functools import cache
from typing import TYPE_CHECKING, Final

from gitops_ctl.api.manifests import manifest
from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ICHOR_GROUP, VERSION
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.holds import HoldQuestion, register_hold
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw

if TYPE_CHECKING:
    from gitops_ctl.documents.policy import PolicyEngine

TALOS_CLUSTER: Final = GroupKind(ICHOR_GROUP, "TalosCluster")
CONSENT: Final = pointer_of(("metadata", "annotations", ANNOTATION_CONFIRM_SWITCH))
MODE: Final = "/spec/cni/kubeProxy"
_POLICY_FILE: Final = "kube-proxy-consent.yaml"
_DEFAULT: Final = "enabled"
_CNI: Final = "cni"


def mode_of(tree: JsonObject) -> str:
    """The mode that an object asks for."""
    return text_at(tree, "spec", "cni", "kubeProxy", default=_DEFAULT)


def switch_in_progress(question: HoldQuestion) -> Flaw | None:
    """Held while a switch to another mode has the cluster and can no longer be cancelled."""
    old = question.old
    if old is None or mode_of(question.new) == mode_of(old) or text_at(old, "status", "lock", "kind") != _CNI:
        return None
    target = _running_target(old)
    if mode_of(question.new) == target or text_at(old, "status", "cni", "kubeProxy") != target:
        return None  # the same switch, or one that touched nothing yet and is cancelled by this change
    holder = text_at(old, "status", "lock", "holder")
    message = (
        f"the switch to {target} ({holder}) has the cluster; other fields, spec.cni.operation too, get through once "
        f"spec.cni.kubeProxy is {target} again"
    )
    return Flaw(ErrorCode.SWITCH_IN_PROGRESS, message, MODE)


def _running_target(tree: JsonObject) -> str:
    """The mode that the running switch goes to: that of its consent, else the one that the cluster asks for."""
    spent = object_at(tree, "status", "cni", "consumedConsent")
    runs = text_at(tree, "status", "lock", "operationUID")
    return text_at(spent, "target") if runs and text_at(spent, "operationUID") == runs else mode_of(tree)


def consent_missing(question: HoldQuestion) -> Flaw | None:
    """Held until consent to the new mode, by a person who may give it, is in the accepted revision."""
    if question.old is None:
        return None
    from gitops_ctl.documents.policy import Subject  # noqa: PLC0415 - see consent_policy

    subject = Subject(question.new, question.old, ICHOR_GROUP, VERSION, "talosclusters")
    for flaw in consent_policy().flaws(subject):
        return Flaw(ErrorCode.CONSENT_MISSING, flaw.message.removeprefix(_prefix()), CONSENT)
    if question.authors is None or mode_of(question.new) == mode_of(question.old):
        return None
    if question.authors.of(CONSENT) is not None:
        return None
    void = question.authors.why_void(CONSENT)
    why = (
        void
        or "nobody introduced the annotation since the trusted root: take it out, and write it again in a later commit"
    )
    return Flaw(ErrorCode.CONSENT_MISSING, f"the consent to {mode_of(question.new)} counts for nothing: {why}", CONSENT)


@cache
def consent_policy() -> "PolicyEngine":
    """The compiled rule about consent.

    Raises:
        FileNotFoundError: the installation has no policies.
        Refused: RULE; its text cannot be compiled.
    """
    # CEL takes longer to load than most checks take: only for repositories with a TalosCluster that changed.
    from gitops_ctl.documents.loader import load  # noqa: PLC0415
    from gitops_ctl.documents.policy import compile_policies  # noqa: PLC0415

    data = (manifest("policies") / _POLICY_FILE).read_bytes()
    return compile_policies(document.tree for document in load(data, file=_POLICY_FILE).documents)


@cache
def _prefix() -> str:
    return f"policy {consent_policy().policies[0].name}: "


register_hold(TALOS_CLUSTER, switch_in_progress)
register_hold(TALOS_CLUSTER, consent_missing)

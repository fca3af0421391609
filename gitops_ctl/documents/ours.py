"""Our own kinds by their models: rules between members, which a JSON Schema cannot say."""

from collections.abc import Iterator

from gitops_ctl.api.names import CISCO_GROUP, GROUP, ICHOR_GROUP, OPS_GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.shape import Flaw

CONSENT = GroupKind(GROUP, "Consent")
ROLLOUT = GroupKind(OPS_GROUP, "IOSXESoftwareRollout")
"""Its blocks answer to a status that a document has not: the API server judges them against it."""


def check_ours(document: Document) -> Iterator[Flaw]:
    """What the model of one of our kinds says.  The semantics of a TrustPolicy are checked where trust is decided."""
    if document.id.group not in (GROUP, ICHOR_GROUP, CISCO_GROUP, OPS_GROUP):
        return
    # The models bring pydantic, a third of the start-up time: only for repositories that hold our kinds.
    from gitops_ctl.api.crd import kind_of  # noqa: PLC0415
    from gitops_ctl.api.kinds import ALL_KINDS  # noqa: PLC0415
    from gitops_ctl.api.model import parse  # noqa: PLC0415
    from gitops_ctl.api.rollout import RolloutDocument  # noqa: PLC0415
    from gitops_ctl.api.trust_policy import ConsentDocument  # noqa: PLC0415

    models = {GroupKind(kind_of(model).group, model.__name__): model for model in ALL_KINDS} | {
        CONSENT: ConsentDocument,
        ROLLOUT: RolloutDocument,
    }
    model = models.get(document.id.group_kind)
    if model is None:
        return
    try:
        parse(model, document.tree)
    except Refused as error:
        yield Flaw(ErrorCode.SCHEMA, error.message)

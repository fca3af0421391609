"""Brings the meaning of a trust policy into `gitops-ctl check`; its shape alone would not show who is locked out."""

from collections.abc import Iterator
from functools import cache

from gitops_ctl.api.names import GROUP
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.rules import register_check
from gitops_ctl.documents.shape import Flaw


@cache
def register() -> None:
    """Register the check, once for each process."""
    register_check(GroupKind(GROUP, "TrustPolicy"), _policy)


def _policy(document: Document) -> Iterator[Flaw]:
    # Cryptography and models come in with the first trust policy, not with every changed file.
    from gitops_ctl.trust.policy import load_policy  # noqa: PLC0415

    try:
        load_policy(document.text, path=document.file)
    except Refused as error:
        yield Flaw(error.code, error.message, hint=error.hint)

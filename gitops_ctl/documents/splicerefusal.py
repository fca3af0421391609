"""Why a text cannot be edited by splice (cni-switch.md, section 13).  A refusal names places and keys, never a value."""

from typing import Literal, TypeAlias

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError

Why: TypeAlias = Literal[
    "NotUtf8",
    "MixedNewlines",
    "UnusualLineBreak",
    "TooLarge",
    "NotYaml",
    "Templated",
    "DuplicateKey",
    "PathAbsent",
    "PathInvalid",
    "AlreadySet",
    "FromMismatch",
    "NotAScalar",
    "MultiLine",
    "BlockStyle",
    "Anchored",
    "Aliased",
    "MergeKey",
    "Tagged",
    "Substitution",
    "FlowMapping",
    "FlowSequence",
    "EmptyMapping",
    "ListItem",
    "FirstKeyOfListItem",
    "ExplicitKey",
    "WouldBeEmpty",
    "OtherChange",
]
"""The words that a refusal may carry as its reason."""


class SpliceRefused(BlockedError):
    """The edit would touch more than what it is meant for, or its place is not as it was said to be.

    Attributes:
        why: the reason, as its type.
        line: of the file, from 1; 0 when the whole file is meant.
    """

    code = ErrorCode.SPLICE_REFUSED

    def __init__(self, why: Why, message: str, *, line: int = 0, subject: str = "", hint: str = "") -> None:
        super().__init__(f"line {line}: {message}" if line else message, subject=subject, hint=hint)
        self.why: Why = why
        self.line = line

    @property
    def reason(self) -> str:
        """CamelCase word for conditions and events."""
        return self.why

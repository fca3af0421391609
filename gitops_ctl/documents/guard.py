"""Evaluates policies in a process of its own, so that a rule that does not end ends nothing else."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.confined import Confined
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.policy import Subject, compile_policies, subject_of
from gitops_ctl.documents.shape import Flaw

DEADLINE_S: Final = 5.0


class PolicyGuard:
    """The policies behind a deadline.  Use it as a context manager; one object at a time.

    Args:
        policies: the ValidatingAdmissionPolicies and their bindings.
        params: parameter objects that are known without a server, by the name of their policy.
        deadline_s: for all policies on one object.

    Raises:
        Refused: RULE; a policy cannot be compiled.
    """

    def __init__(
        self,
        policies: Sequence[JsonObject],
        *,
        params: Mapping[str, JsonObject] | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        trees, known = list(policies), dict(params or {})
        self._engine = compile_policies(trees, params=known)
        self._confined = Confined(_engine_of, (trees, known), deadline_s=deadline_s)

    @property
    def server_only(self) -> tuple[str, ...]:
        return self._engine.server_only

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def judge(self, document: Document, *, resource: str, before: JsonObject | None) -> list[Flaw]:
        """What the policies say against a document; `resource` is the plural of its kind."""
        return self.flaws(subject_of(document, resource=resource, before=before))

    def flaws(self, subject: Subject) -> list[Flaw]:
        """What the policies say against an object; one flaw when they do not come to an end."""
        if not self._engine.policies:
            return []
        answer = self._confined.ask(subject)
        if answer is not None:
            found: list[Flaw] = answer[0]
            return found
        message = f"the policies came to no end in {self._confined.deadline_s:g} s"
        return [Flaw(ErrorCode.RULE, message, hint="simplify the policy, or make the document smaller")]

    def close(self) -> None:
        """End the process, at once."""
        self._confined.close()


def _engine_of(given: tuple[Sequence[JsonObject], Mapping[str, JsonObject]]) -> Callable[[Subject], list[Flaw]]:
    policies, params = given
    return compile_policies(policies, params=params).flaws

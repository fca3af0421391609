"""Evaluates policies in a process of its own, so that a rule that does not end ends nothing else.

The engine counts iterations, but a rule may still build texts without end, and nothing stops a thread.  The process gets a
deadline for each object; when it passes, the process is killed and the object's rules count as failed.
"""

import contextlib
import multiprocessing
import resource
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Final, Self

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.policy import PolicyEngine, Subject, compile_policies, subject_of
from gitops_ctl.documents.shape import Flaw

DEADLINE_S: Final = 5.0
_MEMORY_BYTES: Final = 2 * 2**30
"""Address space of the process, its libraries included."""

_START_S: Final = 60.0
"""The first answer includes the start of the process."""


class PolicyGuard:
    """The policies behind a deadline.  Use it as a context manager; one object at a time.

    Args:
        policies: the ValidatingAdmissionPolicies and their bindings.
        deadline_s: for all policies on one object.

    Raises:
        Refused: RULE; a policy cannot be compiled.
    """

    def __init__(self, policies: Sequence[JsonObject], *, deadline_s: float = DEADLINE_S) -> None:
        self._trees = list(policies)
        self._deadline_s = deadline_s
        self._engine = compile_policies(self._trees)
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

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
        fresh = self._pipe is None
        pipe = self._pipe or self._start()
        try:
            pipe.send(subject)
            if pipe.poll(self._deadline_s + (_START_S if fresh else 0.0)):
                answer: list[Flaw] = pipe.recv()
                return answer
        except (EOFError, OSError):
            pass
        self.close()
        message = f"the policies came to no end in {self._deadline_s:g} s"
        return [Flaw(ErrorCode.RULE, message, hint="simplify the policy, or make the document smaller")]

    def close(self) -> None:
        """End the process, at once."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        self._process = self._pipe = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        # A daemon dies with its parent, also when nobody closes the guard.
        self._process = context.Process(target=_serve, args=(theirs, self._trees), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe = ours
        return ours


def _serve(pipe: Connection, policies: Sequence[JsonObject]) -> None:
    """The other process: one answer for each question, until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    engine: PolicyEngine = compile_policies(policies)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            pipe.send(engine.flaws(pipe.recv()))

"""A function in a process of its own, with a deadline and a memory limit for each answer.

Rules of users can be made to build texts without end; nothing stops a thread, and a budget of iterations does not count
bytes.  When the deadline passes, or the memory is used up, the process is killed and there is no answer.
"""

import contextlib
import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final

_MEMORY_BYTES: Final = 2 * 2**30
"""Address space of the process, its libraries included."""

_START_S: Final = 60.0
"""The first answer includes the start of the process."""

Make = Callable[[Any], Callable[[Any], Any]]
"""Called once in the process with the argument; gives the function.  Everything that crosses is pickled, hence Any."""


class Confined:
    """One process, started at the first question; one question at a time."""

    def __init__(self, make: Make, argument: object, *, deadline_s: float) -> None:
        """`make` is a function of a module; `argument` is sent to it."""
        self.deadline_s = deadline_s
        self._make, self._argument = make, argument
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, question: object) -> tuple[Any] | None:
        """The answer in a tuple of one; None when there was none in time or within the memory."""
        fresh = self._pipe is None
        pipe = self._pipe or self._start()
        try:
            pipe.send(question)
            if pipe.poll(self.deadline_s + (_START_S if fresh else 0.0)):
                return (pipe.recv(),)
        except (EOFError, OSError):
            pass
        self.close()
        return None

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
        # A daemon dies with its parent, also when nobody closes this.
        self._process = context.Process(target=_serve, args=(theirs, self._make, self._argument), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe = ours
        return ours


def _serve(pipe: Connection, make: Make, argument: object) -> None:
    """The other process: one answer for each question, until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    answer = make(argument)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt, MemoryError):
        while True:
            pipe.send(answer(pipe.recv()))

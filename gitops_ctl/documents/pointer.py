"""JSON pointers (RFC 6901): how a place inside a document is written."""

from collections.abc import Iterable
from functools import lru_cache


def pointer_of(steps: Iterable[str | int]) -> str:
    """`/spec/ports/0`; the empty string for the document itself."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


@lru_cache(maxsize=1024)
def steps_of(pointer: str) -> tuple[str, ...]:
    """The unescaped steps; list positions stay text."""
    if not pointer:
        return ()
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/"))

"""What the stand-ins for other controllers have in common: writes on an API server in memory, one at a time, like a client of their own."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.request import JSON_PATCH, Request

Tree = dict[str, Any]
FEW = 2000
"""More writes than anything in a test needs to settle."""


class Sleeper(Protocol):
    """The part of a clock that waits."""

    async def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Write:
    """One request that is due."""

    method: str
    path: str
    body: Any
    media: str = "application/json"


class Hands:
    """Carries writes out under one user agent."""

    def __init__(self, api: ApiServer, agent: str) -> None:
        self.api = api
        self._agent = agent

    def all(self, group: str, plural: str) -> list[Tree]:
        """Objects of a kind; do not change them."""
        return [tree for _, tree in self.api.store.all((group, plural))]

    def carry_out(self, write: Write) -> bool:
        """Whether the server took it; a conflict or a missing object is looked at again, anything else is a mistake of the stand-in."""
        headers = {"content-type": write.media, "user-agent": self._agent}
        body = json.dumps(write.body).encode()
        answer = self.api.handle(Request(write.method, write.path, {}, headers, body))
        assert answer.code < 300 or answer.code in (404, 409), (write, answer.body)
        return answer.code < 300

    def next(self, due: Iterator[Write]) -> bool:
        """Carry out the first write that the server takes; False when there is none."""
        return any(self.carry_out(write) for write in due)


def settle(step: Callable[[], bool]) -> int:
    """Let a stand-in work until nothing is due; how many writes that took."""
    for number in range(FEW):
        if not step():
            return number
    raise AssertionError("the stand-in never comes to rest")


def replaced(path: str, tree: Tree, **members: Any) -> Write:
    """A full update of an object with other top-level members; its version stays, so that nobody's write is lost."""
    return Write("PUT", path, {**copy.deepcopy(tree), **members})


def patched(path: str, operations: list[Tree]) -> Write:
    """A JSON patch."""
    return Write("PATCH", path, operations, JSON_PATCH)

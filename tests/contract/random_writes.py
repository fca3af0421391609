"""Random sequences of writes, and answers in a form in which two servers can be compared."""

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.contract.client import APPLY, MERGE

Tree: TypeAlias = dict[str, Any]
TIMES = frozenset({"time", "creationTimestamp", "deletionTimestamp", "lastTransitionTime"})
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@dataclass(frozen=True)
class Write:
    """One request; `version` says that the body takes the present version of the object along."""

    method: str
    path: str
    body: Any = None
    media_type: str = "application/json"
    query: Mapping[str, str] | None = None


class Draw:
    """Random parts of objects.  The seed repeats them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def one(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def some(self, choices: str | list[str], most: int) -> list[str]:
        return self._random.sample(list(choices), self._random.randint(0, most))

    def pairs(self, keys: str) -> dict[str, str]:
        return {key: self.one("x", "y") for key in self.some(keys, 2)}

    def members(self, **members: tuple[float, Callable[[], Any]]) -> Tree:
        """Each member with its share; what is not drawn is left out."""
        return {name: make() for name, (share, make) in members.items() if self.chance(share)}

    def widget_spec(self) -> Tree:
        def port(name: str) -> Tree:
            more = self.members(port=(0.6, lambda: self.one(5, 6)), protocol=(0.3, lambda: "UDP"))
            return {"name": name, **more}

        return self.members(
            size=(0.85, lambda: self.one(1, 2, 3)),
            mode=(0.3, lambda: self.one("Fast", "Slow")),
            tags=(0.4, lambda: self.some("abc", 3)),
            ports=(0.5, lambda: [port(name) for name in self.some("abcd", 4)]),
            numbers=(0.3, lambda: self.one([], [1], [1, 2])),
            labels=(0.4, lambda: self.pairs("pq")),
            whole=(0.3, lambda: self.pairs("ab")),
            open=(0.3, lambda: self.one({}, {"k": 1}, {"k": {"z": [1]}}, {"k": {"z": None}, "y": "t"})),
            nested=(0.3, lambda: self.one({}, {"depth": 4})),
            nullable=(0.2, lambda: self.one(None, "x")),
            plain=(0.2, lambda: self.one(None, "x")),
        )

    def service_spec(self) -> Tree:
        def port(number: int) -> Tree:
            more = self.members(
                targetPort=(0.3, lambda: self.one(8080, "http")), protocol=(0.3, lambda: self.one("TCP", "UDP"))
            )
            return {"name": f"n{number}", "port": number, **more}

        numbers = self.one([80], [80, 81], [82, 80])
        return self.members(
            ports=(0.9, lambda: [port(number) for number in numbers]), selector=(0.6, lambda: self.pairs("pqr"))
        )

    def content(self, kind: str) -> Tree:
        """Everything beside metadata."""
        if kind == "Widget":
            return self.members(spec=(0.95, self.widget_spec))
        if kind == "Service":
            return {"spec": self.service_spec()}
        if kind == "Secret":
            return self.members(
                data=(0.7, lambda: dict.fromkeys(self.some("ab", 2), "Yg==")),
                stringData=(0.3, lambda: self.pairs("bc")),
            )
        return self.members(data=(0.8, lambda: self.pairs("pqr")), binaryData=(0.2, lambda: {"b": "Yg=="}))

    def metadata(self) -> Tree:
        return self.members(labels=(0.3, lambda: self.pairs("mn")), annotations=(0.2, lambda: self.pairs("mn")))

    def write(self, api_version: str, kind: str, collection: str, name: str) -> Write:
        """One write of an object that may or may not be there."""
        path = f"{collection}/{name}"
        metadata = {"name": name, **self.metadata()}
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **self.content(kind)}
        way = self._random.random()
        if way < 0.5:
            query = {"fieldManager": self.one("a", "b", "c"), **self.one({}, {"force": "true"}, {"dryRun": "All"})}
            return Write("PATCH", path, body, APPLY, query)
        if way < 0.7:
            patch = {name: value for name, value in body.items() if name not in ("apiVersion", "kind")}
            return Write("PATCH", path, patch, MERGE, self.one({}, {"fieldManager": "a"}))
        if way < 0.8 and kind == "Widget":
            status = {"status": self.one({"phase": "x"}, {"count": 2, "phase": "y"})}
            query = {"fieldManager": self.one("a", "s"), "force": "true"}
            rest = {name: value for name, value in body.items() if name != "spec"}
            return Write("PATCH", f"{path}/status", {**rest, **status}, APPLY, query)
        if way < 0.95:
            return Write("POST", collection, body)
        return Write("DELETE", path)


def _ordered(tree: Tree) -> str:
    return json.dumps(tree, sort_keys=True)


def comparable(body: Any) -> Any:
    """An answer without what differs between any two servers, and without orders that nobody promises."""
    if isinstance(body, str):
        return UID.sub("UID", body)
    if isinstance(body, list):
        return [comparable(item) for item in body]
    if not isinstance(body, dict):
        return body
    tree = {name: comparable(value) for name, value in body.items() if name not in ("uid", "resourceVersion")}
    for name in TIMES & tree.keys():
        tree[name] = bool(tree[name])
    if str(tree.get("clusterIP", "")).count(".") == 3:
        tree["clusterIP"], tree["clusterIPs"] = "some", ["some"]
    if "causes" in tree:
        tree["causes"].sort(key=_ordered)
    if "managedFields" in tree:
        tree["managedFields"].sort(key=_ordered)
    if tree.get("kind") == "Status" and "message" in tree:
        # Only the first words: what follows lists fields in the order of a hash table.
        tree["message"] = tree["message"].partition(": ")[0]
    return tree

"""One rule about an old and a new version: what may follow a version of an object, and what may not."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.api_case import born

PLACES = {
    "CiscoDevice": "/apis/cisco.vk/v1alpha1/namespaces/{}/ciscodevices",
    "IOSXESoftwareRollout": "/apis/ops.cisco.vk/v1alpha1/namespaces/{}/iosxesoftwarerollouts",
    "IOSXESoftwareUpgrade": "/apis/ops.cisco.vk/v1alpha1/namespaces/{}/iosxesoftwareupgrades",
}

Call = Callable[[str, str, dict[str, Any] | None], tuple[int, dict[str, Any]]]
"""Sends method, path and body (a PATCH as a merge patch) and gives code and body."""


@dataclass(frozen=True)
class Step:
    """From `old`, the part `part` may become that of `good`, and not that of any of `bad`, for which `told` is the reason."""

    name: str
    old: dict[str, Any]
    good: dict[str, Any]
    bad: tuple[dict[str, Any], ...]
    told: str
    part: str = "status"


class Stage:
    """Puts an object on a server, and asks what may follow without leaving anything behind."""

    def __init__(self, call: Call, old: dict[str, Any]) -> None:
        self._call = call
        kind, metadata = old["kind"], old["metadata"]
        self._path = f"{PLACES[kind].format(metadata['namespace'])}"
        self._name = f"{self._path}/{metadata['name']}"
        self._old = old

    def __enter__(self) -> "Stage":
        """In the order of life: object, status, blocks that answer to the status, what became of these blocks."""
        self._made("POST", self._path, born(self._old))
        status = self._old.get("status", {})
        if status:
            first = {key: value for key, value in status.items() if key != "recoveries"}
            self._made("PATCH", f"{self._name}/status", {"status": first})
        self._live = self._made("PATCH", self._name, {"spec": self._old["spec"]})
        if "recoveries" in status:
            self._live = self._made("PATCH", f"{self._name}/status", {"status": status})
        return self

    def _made(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        code, answer = self._call(method, path, body)
        if code >= 300:
            self.__exit__()
        assert code < 300, f"{code} {answer.get('message')}"
        return answer

    def __exit__(self, *ignored: object) -> None:
        self._call("DELETE", self._name, None)

    def says(self, new: dict[str, Any], *, part: str) -> str:
        """Empty when the part of `new` is accepted in place of the present one, else the server's message."""
        tree = copy.deepcopy(self._live)
        if part in new:
            tree[part] = new[part]
        else:
            tree.pop(part, None)
        place = f"{self._name}/status" if part == "status" else self._name
        code, body = self._call("PUT", f"{place}?dryRun=All", tree)
        return "" if code < 300 else f"{code} {body['message']}"

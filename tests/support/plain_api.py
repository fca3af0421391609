"""A plain HTTP client of a real API server for tests of what the server itself enforces, apart from the client under test."""

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.kinds import ALL_KINDS

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Reply:
    """What the server said; `warning` is its Warning header."""

    status: int
    body: Any
    warning: str

    @property
    def message(self) -> str:
        """Empty for success."""
        return "" if self.status < 300 else f"{self.status} {self.body.get('message', self.body)}"


class Server(Protocol):
    """Where the API is, and with which TLS it is spoken to."""

    url: str

    @property
    def ssl_context(self) -> ssl.SSLContext: ...


class PlainApi:
    """One kept connection as whom the server's TLS says, or as whomever `user` and `groups`, or a bearer token, name."""

    def __init__(self, server: Server, *, user: str = "", groups: tuple[str, ...] = (), token: str = "") -> None:
        host, port = server.url.removeprefix("https://").split(":")
        self._server = server
        self._connection = http.client.HTTPSConnection(host, int(port), context=server.ssl_context, timeout=30)
        self._identity = (user, groups)
        self._token = token

    def acting_as(self, user: str, *groups: str) -> "PlainApi":
        """Another client that impersonates `user` in `groups` (and in those that every account is in)."""
        return PlainApi(self._server, user=user, groups=(*groups, "system:authenticated"))

    def close(self) -> None:
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Reply:
        """One request; the connection is kept."""
        user, groups = self._identity
        self._connection.putrequest(method, path)
        data = b"" if body is None else json.dumps(body).encode()
        headers = [("Content-Type", content_type), ("Accept", accept), ("Content-Length", str(len(data)))]
        headers += [("Authorization", f"Bearer {self._token}")] if self._token else []
        headers += [("Impersonate-User", user)] if user else []
        headers += [("Impersonate-Group", group) for group in groups if user]
        for name, value in headers:
            self._connection.putheader(name, value)
        self._connection.endheaders(data)
        reply = self._connection.getresponse()
        text = reply.read().decode()
        found: Any = json.loads(text) if text.startswith(("{", "[")) else {"message": text}
        return Reply(reply.status, found, reply.headers.get("Warning") or "")

    def get(self, path: str, **more: str) -> Reply:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        return self.request("POST", path, body)

    def merge(self, path: str, body: Mapping[str, Any]) -> Reply:
        return self.request("PATCH", path, body, content_type=MERGE)

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str = "tests") -> Reply:
        joint = "&" if "?" in path else "?"
        return self.request("PATCH", f"{path}{joint}fieldManager={manager}&force=true", body, content_type=APPLY)

    def delete(self, path: str) -> Reply:
        return self.request("DELETE", path)


def install_crds(api: PlainApi, *, deadline_s: float = 30.0) -> None:
    """Our kinds on the server, strictly, and served when this returns.  Several callers at once do no harm."""
    for model in ALL_KINDS:
        crd: Any = crd_of(model)
        name, plural = crd["metadata"]["name"], crd["spec"]["names"]["plural"]
        reply = api.apply(f"{CRDS_PATH}/{name}?fieldValidation=Strict", crd)
        assert reply.status in (200, 201), reply.body
        assert reply.warning == ""
        eventually(
            lambda path=f"/apis/{crd['spec']['group']}/v1alpha1/{plural}": api.get(path).status == 200, deadline_s
        )


def eventually(holds: Any, deadline_s: float = 20.0) -> None:
    """Return when `holds()` is true.

    Raises:
        AssertionError: it was not true before the deadline.
    """
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, "the deadline passed"
        time.sleep(0.05)

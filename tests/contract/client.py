"""A raw HTTP client for the contract tests: no product code, and nothing that hides what the server said."""

import asyncio
import io
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.doubles.apiserver import FakeApiServer

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Reply:
    """One answer.  `body` is the JSON tree, or the text of a plain answer."""

    status: int
    body: Any
    media_type: str

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        """Reason, field and message of each cause, sorted: a server keeps no order between fields."""
        found = self.body["details"].get("causes", ())
        return sorted((item.get("reason", ""), item.get("field", ""), item["message"]) for item in found)

    @property
    def metadata(self) -> dict[str, Any]:
        result: dict[str, Any] = self.body["metadata"]
        return result

    @property
    def version(self) -> str:
        return str(self.metadata["resourceVersion"])

    def managers(self) -> dict[tuple[str, str, str], Any]:
        """`fieldsV1` by manager, operation and subresource."""
        return {
            (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
            for entry in self.metadata.get("managedFields", ())
        }


class Stream:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._lines = response.content

    async def next(self, *, seconds: float = 20.0) -> dict[str, Any] | None:
        """The next event, None at the end of the stream."""
        line = await asyncio.wait_for(self._lines.readline(), seconds)
        if not line:
            return None
        event: dict[str, Any] = json.loads(line)
        return event

    async def take(self, number: int) -> list[tuple[str, str]]:
        """Type and name of the next object events; bookmarks are left out."""
        found: list[tuple[str, str]] = []
        while len(found) < number:
            event = await self.next()
            assert event is not None, found
            if event["type"] != "BOOKMARK":
                found.append((event["type"], event["object"]["metadata"]["name"]))
        return found


class Api:
    """One server, real or not."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        fake: FakeApiServer | None = None,
        forget: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._tls: Any = tls if tls is not None else True
        self._fake = fake
        self._forget = forget

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media_type: str = "application/json",
        headers: Any = None,
        **query: str,
    ) -> Reply:
        """One request; a body that is no bytes is sent as JSON."""
        data = None
        if body is not None:
            data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        sent = {"Content-Type": media_type, **(headers or {})} if data is not None else dict(headers or {})
        async with self._session.request(
            method, self._url + path, data=data, headers=sent, params=query, ssl=self._tls
        ) as answer:
            text = await answer.text()
            plain = answer.content_type != "application/json"
            return Reply(answer.status, text if plain else json.loads(text), answer.content_type)

    async def get(self, path: str, **query: str) -> Reply:
        return await self.call("GET", path, **query)

    async def create(self, path: str, body: Any, **query: str) -> Reply:
        return await self.call("POST", path, body, **query)

    async def replace(self, path: str, body: Any, **query: str) -> Reply:
        return await self.call("PUT", path, body, **query)

    async def merge(self, path: str, body: Any, **query: str) -> Reply:
        return await self.call("PATCH", path, body, media_type=MERGE, **query)

    async def json_patch(self, path: str, body: Any, **query: str) -> Reply:
        return await self.call("PATCH", path, body, media_type=JSON_PATCH, **query)

    async def apply(self, path: str, body: Any, manager: str, **query: str) -> Reply:
        return await self.call("PATCH", path, body, media_type=APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: Any = None, **query: str) -> Reply:
        return await self.call("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Stream]:
        """Open a watch; the stream ends with the block."""
        params = {"watch": "1", "timeoutSeconds": "60", **query}
        async with self._session.get(self._url + path, params=params, ssl=self._tls) as response:
            yield Stream(response)

    async def compact(self) -> None:
        """Let the server forget its first versions."""
        if self._fake is not None:
            self._fake.api.store.compact()
        elif self._forget is not None:
            await self._forget()

    async def until(self, what: Callable[[], Awaitable[bool]], *, seconds: float = 40.0) -> None:
        """Wait until `what` holds.  Controllers of a real cluster work by themselves; the double is told to."""
        async with asyncio.timeout(seconds):
            while True:
                if self._fake is not None:
                    self._fake.api.collect()
                if await what():
                    return
                await asyncio.sleep(0.05)

    async def is_gone(self, path: str) -> bool:
        return (await self.get(path)).status == 404


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap as a person would write it."""
    tree: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return tree if data is None else {**tree, "data": dict(data)}


def random_name(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(4)}"

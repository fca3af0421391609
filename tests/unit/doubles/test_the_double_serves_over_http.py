"""The double answers over a real socket: a first object, a list, a watch, a custom kind."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.doubles.apiserver import FakeApiServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.net"},
    "spec": {
        "group": "example.net",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def http(server: FakeApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url, headers={"User-Agent": "author/1"}) as session:
        yield session


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_created_object_is_listed_and_watched(http: aiohttp.ClientSession) -> None:
    async with http.get(CONFIG_MAPS) as answer:
        version = (await answer.json())["metadata"]["resourceVersion"]
    async with http.get(CONFIG_MAPS, params={"watch": "1", "resourceVersion": version}) as stream:
        async with http.post(CONFIG_MAPS, json=config_map("one", mtu="9000")) as answer:
            assert answer.status == 201
            created = await answer.json()
        line = await asyncio.wait_for(stream.content.readline(), 5)
    event = json.loads(line)
    assert event["type"] == "ADDED"
    assert event["object"] == created
    assert created["metadata"]["managedFields"][0]["manager"] == "author"


async def test_versions_jump_and_the_seed_repeats_them() -> None:
    seen = []
    for seed in (1, 1, 2):
        async with FakeApiServer() as server:
            server.api.seed = seed
            server.api.reset()
            async with aiohttp.ClientSession(server.url) as http:
                versions = []
                for number in range(5):
                    async with http.post(CONFIG_MAPS, json=config_map(f"m{number}")) as answer:
                        versions.append(int((await answer.json())["metadata"]["resourceVersion"]))
            seen.append(versions)
    assert seen[0] == seen[1] != seen[2]
    assert {after - before for before, after in zip(seen[0], seen[0][1:], strict=False)} != {1}


async def test_a_custom_kind_is_served_a_moment_after_its_definition_says_so(http: aiohttp.ClientSession) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    async with http.post(definitions, json=DEFINITION) as answer:
        assert answer.status == 201
    async with http.get(f"{definitions}/widgets.example.net") as answer:
        conditions = (await answer.json())["status"]["conditions"]
    assert {"Established": "True"}.items() <= {item["type"]: item["status"] for item in conditions}.items()
    statuses = []
    for _ in range(2):
        async with http.get("/apis/example.net/v1/namespaces/default/widgets") as answer:
            statuses.append((answer.status, answer.content_type))
    assert statuses == [(404, "text/plain"), (200, "application/json")]


async def test_what_the_double_cannot_do_is_501(http: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    async with http.patch(f"{CONFIG_MAPS}/one", data=b"{}", headers=headers) as answer:
        assert answer.status == 501
        assert "strategic merge patch" in (await answer.json())["message"]
    for path in (
        "/openapi/v3",
        "/api/v1/namespaces/default/events",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/apps/v1/namespaces/default/deployments/one/scale",
    ):
        async with http.get(path) as answer:
            assert (answer.status, (await answer.json())["reason"]) == (501, "NotImplemented"), path

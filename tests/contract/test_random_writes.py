"""Whatever is written in whatever order: the double answers as the real server does.

Both get the same sequence; after each step status, object, owners and causes are compared.  The seed is in the name of the test.
"""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.contract.client import DEFINITIONS, Api, random_name
from tests.contract.random_writes import Draw, comparable
from tests.contract.widgets import definition
from tests.doubles.apiserver import FakeApiServer

pytestmark = [pytest.mark.contract, pytest.mark.cluster, pytest.mark.property]

STEPS = 60
STEPS_OF_ONE_NAME = 20


@pytest.fixture
def handle(request: pytest.FixtureRequest) -> Any:
    """Asked for before a loop runs: the control plane is started by one of its own."""
    return request.getfixturevalue("control_plane")


@pytest.fixture
async def both(handle: Any) -> AsyncIterator[tuple[Api, Api]]:
    """The double and the real server."""
    async with FakeApiServer() as fake, aiohttp.ClientSession(headers={"User-Agent": "random/1"}) as session:
        yield Api(session, fake.url, fake=fake), Api(session, handle.url, tls=handle.ssl_context)


async def prepared(both: tuple[Api, Api], kind: str) -> tuple[str, str]:
    """apiVersion and collection of a kind in a namespace of this test, on both servers."""
    namespace, group = random_name("random"), f"{random_name('r')}.example.net"
    for api in both:
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        if kind == "Widget":
            await api.create(DEFINITIONS, definition(group))
    if kind != "Widget":
        return "v1", f"/api/v1/namespaces/{namespace}/{kind.lower()}s"
    path = f"/apis/{group}/v1/namespaces/{namespace}/widgets"
    for api in both:

        async def served(api: Api = api) -> bool:
            return (await api.get(path)).status == 200

        await api.until(served)
    return f"{group}/v1", path


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Widget", "ConfigMap", "Secret", "Service"])
async def test_both_servers_answer_alike(both: tuple[Api, Api], kind: str, seed: int) -> None:
    api_version, collection = await prepared(both, kind)
    draw = Draw(seed)
    for step in range(STEPS):
        write = draw.write(api_version, kind, collection, f"one-{step // STEPS_OF_ONE_NAME}")
        replies = [
            await api.call(write.method, write.path, write.body, media_type=write.media_type, **(write.query or {}))
            for api in both
        ]
        shown = [(reply.status, comparable(reply.body)) for reply in replies]
        assert shown[0] == shown[1], (step, write)

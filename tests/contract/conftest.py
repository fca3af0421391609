"""The two servers that every contract test meets: the double, and a real kube-apiserver."""

import base64
import secrets
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.contract.client import DEFINITIONS, Api, random_name
from tests.contract.widgets import Widgets, definition
from tests.doubles.apiserver import FakeApiServer

AGENT = {"User-Agent": "contract/1"}


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
def real_server(request: pytest.FixtureRequest) -> Any:
    """The handle of the real control plane, None for the double."""
    return request.getfixturevalue("control_plane") if request.param == "real" else None


@pytest.fixture
async def api(real_server: Any) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession(headers=AGENT) as session:
        if real_server is not None:
            yield Api(
                session, real_server.url, tls=real_server.ssl_context, forget=lambda: _compact(real_server, session)
            )
            return
        async with FakeApiServer() as fake:
            yield Api(session, fake.url, fake=fake)


async def _compact(real_server: Any, session: aiohttp.ClientSession) -> None:
    """Compact the store of the real server at a version from its start: other tests lose nothing.

    The API server keeps snapshots of its own; it drops them some seconds after the key that says how far the store is compacted.
    """
    certificates = real_server.folder.certs
    tls = ssl.create_default_context(cafile=str(certificates / "etcd-ca.crt"))
    tls.load_cert_chain(certificates / "etcd-client.crt", certificates / "etcd-client.key")
    store = f"https://127.0.0.1:{real_server.folder.ports()[0]}/v3/kv"
    async with session.post(f"{store}/compaction", json={"revision": "20"}, ssl=tls) as answer:
        text = await answer.text()
        assert answer.status == 200 or "has been compacted" in text, text
    announcement = {"key": _encoded("compact_rev_key"), "value": _encoded("20")}
    async with session.post(f"{store}/put", json=announcement, ssl=tls) as answer:
        assert answer.status == 200, await answer.text()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
async def place(api: Api) -> AsyncIterator[str]:
    """The path of a namespace of this test alone."""
    path = f"/api/v1/namespaces/{random_name('contract')}"
    made = await api.create("/api/v1/namespaces", {"metadata": {"name": path.rpartition("/")[2]}})
    assert made.status == 201, made.body
    yield path
    await api.delete(path)


@pytest.fixture
def maps(place: str) -> str:
    """The path of the ConfigMaps of this test."""
    return f"{place}/configmaps"


@pytest.fixture(scope="session")
def known_groups() -> dict[str, str]:
    """The group of the widgets on the real server: their definition is made once."""
    return {}


@pytest.fixture
async def widgets(api: Api, place: str, real_server: Any, known_groups: dict[str, str]) -> Widgets:
    """A custom kind with a rule of every sort, served in the namespace of this test."""
    group = known_groups.get("real") if real_server is not None else None
    if group is None:
        group = f"w{secrets.token_hex(4)}.example.net"
        made = await api.create(DEFINITIONS, definition(group))
        assert made.status == 201, made.body
        if real_server is not None:
            known_groups["real"] = group
    found = Widgets(group, place.rpartition("/")[2])

    async def served() -> bool:
        return (await api.get(found.path)).status == 200

    await api.until(served)
    return found

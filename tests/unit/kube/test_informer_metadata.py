"""An informer that asks for metadata only never holds what stands in an object."""

import asyncio
from typing import Any

from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.informer import Informer
from gitops_ctl.kube.mapper import Resource
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.simulation_loop import LoopClock, run_virtually

SECRETS = Resource(GroupVersionKind("", "v1", "Secret"), "secrets", namespaced=True)


def test_what_is_in_a_secret_is_neither_listed_nor_watched() -> None:
    seen: list[JsonObject] = []

    async def story() -> None:
        api = ApiServer(lag=0)
        async with direct_client(api, component="test", clock=LoopClock()) as client:
            await client.apply(*_secret("first"), manager="test")
            informer: Informer[None] = Informer(client, SECRETS, trim=seen.append, metadata_only=True)
            running = asyncio.create_task(informer.run())
            await informer.synced.wait()
            await client.apply(*_secret("second"), manager="test")
            await client.delete(_secret("first")[0])
            await asyncio.sleep(1.0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert list(informer.cache) == [NamespacedName("default", "second")]

    run_virtually(story())
    assert {str(tree["kind"]) for tree in seen} == {"PartialObjectMetadata"}
    assert all(set(tree) == {"kind", "apiVersion", "metadata"} for tree in seen)
    assert len(seen) >= 3


def _secret(name: str) -> tuple[str, Any]:
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"token": "c2VjcmV0"}}
    return f"/api/v1/namespaces/default/secrets/{name}", tree

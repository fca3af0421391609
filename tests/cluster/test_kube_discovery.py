"""Discovery with many definitions: read once, in two requests, however many kinds there are (fault H06)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COUNT = 60


def definition(group: str, number: int) -> JsonObject:
    schema: JsonObject = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"thing{number}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": f"Thing{number}", "plural": f"thing{number}s"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture
async def client(control_plane: Any) -> AsyncIterator[KubeClient]:
    """A client whose calls nobody else counts."""
    config = await load_cluster(Path(control_plane.kubeconfig), allow_exec=False)
    async with KubeClient(config, component="discovery-tests") as made:
        yield made


async def test_H06_sixty_kinds_of_one_group_cost_two_requests_and_are_remembered(
    kube_admin: KubeClient, client: KubeClient, namespace: str
) -> None:
    group = f"{namespace[-6:]}.six.example.net"
    kinds = [GroupVersionKind(group, "v1", f"Thing{number}") for number in range(COUNT)]
    await asyncio.gather(*(kube_admin.create(DEFINITIONS, definition(group, number)) for number in range(COUNT)))
    try:
        seen = Mapper(kube_admin)

        async def all_served() -> bool:
            await seen.refresh()
            return set(kinds) <= set((await seen.all()).resources)

        await until(all_served, timeout_s=60, what="every definition is served")
        mapper = Mapper(client)
        found = await asyncio.gather(*(mapper.resource(kind) for kind in kinds))
        assert [resource.plural for resource in found] == [f"thing{number}s" for number in range(COUNT)]
        assert sum(client.calls.values()) == 2
        await asyncio.gather(*(mapper.resource(kind) for kind in kinds))
        assert sum(client.calls.values()) == 2
    finally:
        names = [f"thing{number}s.{group}" for number in range(COUNT)]
        await asyncio.gather(*(kube_admin.delete(f"{DEFINITIONS}/{name}") for name in names))

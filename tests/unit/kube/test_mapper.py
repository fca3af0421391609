"""From a kind to its path: how often discovery is read, and what is concluded when a part of it fails."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.mapper import Mapper, Resource
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_clock import JumpingClock
from tests.support.kube_server import KubeServer, reply, status_object


def a_resource(kind: str, *, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "resource": f"{kind.lower()}s",
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "verbs": ["get", "list"],
        "subresources": [{"subresource": "status"}],
    }


def a_group(name: str, *kinds: str, versions: tuple[str, ...] = ("v1",), stale: bool = False) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "versions": [
            {
                "version": version,
                "freshness": "Stale" if stale else "Current",
                "resources": [] if stale else [a_resource(kind) for kind in kinds],
            }
            for version in versions
        ],
    }


def discovery(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)}


CORE = {
    "metadata": {},
    "versions": [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [a_resource("ConfigMap"), a_resource("Namespace", scope="Cluster")],
        }
    ],
}


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer() as running:
        running.on("GET", "/api", reply(200, discovery(CORE)))
        yield running


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def mapper(server: KubeServer, clock: JumpingClock) -> AsyncIterator[Mapper]:
    async with KubeClient(server.config(), component="test", clock=clock) as client:
        yield Mapper(client)


def things(number: int) -> GroupVersionKind:
    return GroupVersionKind(f"g{number}.example.net", "v1", "Thing")


@pytest.mark.parametrize("groups", [60, pytest.param(300, marks=pytest.mark.soak)])
async def test_H06_hundreds_of_kinds_cost_two_requests(server: KubeServer, mapper: Mapper, groups: int) -> None:
    server.on("GET", "/apis", reply(200, discovery(*(a_group(f"g{n}.example.net", "Thing") for n in range(groups)))))
    found = await asyncio.gather(*(mapper.resource(things(number)) for number in range(groups)))
    assert found[7].path("team-a", "x") == "/apis/g7.example.net/v1/namespaces/team-a/things/x"
    assert len(server.requests) == 2
    assert all("APIGroupDiscoveryList" in seen.headers["Accept"] for seen in server.requests)


async def test_H06_many_missing_kinds_cause_one_more_discovery(
    server: KubeServer, mapper: Mapper, clock: JumpingClock
) -> None:
    server.on("GET", "/apis", reply(200, discovery()))
    await mapper.all()
    clock.now_s += 5
    results = await asyncio.gather(*(mapper.resource(things(n)) for n in range(50)), return_exceptions=True)
    assert {type(result) for result in results} == {KindNotServed}
    assert len(server.requests) == 4


async def test_a_kind_that_was_installed_meanwhile_is_found_after_a_miss(
    server: KubeServer, mapper: Mapper, clock: JumpingClock
) -> None:
    server.on("GET", "/apis", reply(200, discovery()), reply(200, discovery(a_group("g1.example.net", "Thing"))))
    with pytest.raises(KindNotServed):
        await mapper.resource(things(1))
    clock.now_s += 1
    assert (await mapper.resource(things(1))).plural == "things"


async def test_after_a_refresh_a_new_kind_is_there_at_once(server: KubeServer, mapper: Mapper) -> None:
    server.on("GET", "/apis", reply(200, discovery()), reply(200, discovery(a_group("g1.example.net", "Thing"))))
    await mapper.all()
    await mapper.refresh()
    assert (await mapper.resource(things(1))).namespaced


async def test_H19_a_group_whose_server_is_down_is_unavailable_and_not_absent(
    server: KubeServer, mapper: Mapper
) -> None:
    metrics = a_group("metrics.k8s.io", stale=True)
    server.on("GET", "/apis", reply(200, discovery(a_group("apps", "Deployment"), metrics)))
    assert (await mapper.resource(GroupVersionKind("apps", "v1", "Deployment"))).plural == "deployments"
    assert mapper.unavailable_groups == {"metrics.k8s.io"}
    with pytest.raises(Unavailable, match=r"metrics\.k8s\.io"):
        await mapper.resource(GroupVersionKind("metrics.k8s.io", "v1", "PodMetrics"))
    with pytest.raises(Unavailable):
        await mapper.group_kind(GroupKind("metrics.k8s.io", "PodMetrics"))
    with pytest.raises(KindNotServed):
        await mapper.resource(things(1))


async def test_the_first_version_is_the_preferred_one(server: KubeServer, mapper: Mapper) -> None:
    server.on("GET", "/apis", reply(200, discovery(a_group("example.net", "Thing", versions=("v2", "v1")))))
    assert (await mapper.group_kind(GroupKind("example.net", "Thing"))).gvk.version == "v2"


async def test_paths_of_the_core_group_and_of_cluster_scoped_kinds(server: KubeServer, mapper: Mapper) -> None:
    server.on("GET", "/apis", reply(200, discovery()))
    maps = await mapper.resource(GroupVersionKind("", "v1", "ConfigMap"))
    spaces = await mapper.resource(GroupVersionKind("", "v1", "Namespace"))
    assert maps.path("team-a") == "/api/v1/namespaces/team-a/configmaps"
    assert maps.path() == "/api/v1/configmaps"
    assert spaces.path("ignored", "team-a") == "/api/v1/namespaces/team-a"


async def test_H19_a_server_without_the_aggregated_form_is_read_group_by_group(
    server: KubeServer, mapper: Mapper
) -> None:
    groups = [{"name": name, "versions": [{"version": "v1"}]} for name in ("apps", "metrics.k8s.io")]
    listed = {
        "kind": "APIResourceList",
        "groupVersion": "apps/v1",
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get"]},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": True, "verbs": ["get"]},
        ],
    }
    core = {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{"name": "nodes", "kind": "Node", "namespaced": False, "verbs": ["get"]}],
    }
    server.on("GET", "/api", reply(200, {"kind": "APIVersions", "versions": ["v1"]}))
    server.on("GET", "/api/v1", reply(200, core))
    server.on("GET", "/apis", reply(200, {"kind": "APIGroupList", "groups": groups}))
    server.on("GET", "/apis/apps/v1", reply(200, listed))
    server.on("GET", "/apis/metrics.k8s.io/v1", reply(503, status_object(503)))
    known = await mapper.all()
    assert [(str(gvk), resource.plural) for gvk, resource in known.resources.items()] == [
        ("v1/Node", "nodes"),
        ("apps/v1/Deployment", "deployments"),
    ]
    assert mapper.unavailable_groups == {"metrics.k8s.io"}


async def test_a_discovery_that_fails_as_a_whole_keeps_what_was_known(
    server: KubeServer, mapper: Mapper, clock: JumpingClock
) -> None:
    server.on("GET", "/apis", reply(200, discovery(a_group("apps", "Deployment"))), reply(503, status_object(503)))
    await mapper.all()
    clock.now_s += 10
    with pytest.raises(Unavailable):
        await mapper.resource(things(1))
    assert (await mapper.resource(GroupVersionKind("apps", "v1", "Deployment"))).plural == "deployments"


def test_a_name_is_one_segment_of_the_path_whatever_it_holds() -> None:
    maps = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
    path = maps.path("team", "../secrets/a?force=true#b%2f")
    assert path == "/api/v1/namespaces/team/configmaps/..%2Fsecrets%2Fa%3Fforce%3Dtrue%23b%252f"
    assert maps.path("../a", "b") == "/api/v1/namespaces/..%2Fa/configmaps/b"
    assert maps.path("team", "system:a") == "/api/v1/namespaces/team/configmaps/system:a"

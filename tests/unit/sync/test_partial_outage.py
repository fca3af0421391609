"""One object that cannot be written for the moment stops the removal of what depends on it, and of nothing else."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.errors import GitopsError, Unavailable
from tests.doubles.apiserver import FakeApiServer
from tests.support.sync_cluster import Bench, document, fake_bench, until

pytestmark = pytest.mark.simulation

PRUNE = {"enabled": True, "maxPercent": 100, "allowEmpty": True}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as made:
        yield made


def fail_writes_of(site: Bench, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the server does not answer when this object is written."""
    real = site.manager.apply

    async def apply(path: str, *arguments: Any, **more: Any) -> Any:
        if path.endswith(f"/{name}"):
            raise Unavailable("the server did not answer")
        return await real(path, *arguments, **more)

    monkeypatch.setattr(site.manager, "apply", apply)


async def test_what_is_not_touched_by_the_failure_is_removed(site: Bench, monkeypatch: pytest.MonkeyPatch):
    needs_key = site.config_map("stuck", depends_on=f"ConfigMap/{site.namespace}/key")
    site.push({**site.config_maps(2), "key.yaml": site.config_map("key"), "stuck.yaml": needs_key})
    await site.sync(prune=PRUNE)
    await site.until_ready()
    with monkeypatch.context() as broken:
        fail_writes_of(site, broken, "stuck")
        site.push({"stuck.yaml": site.config_map("stuck", "2")}, delete=["n0001.yaml"])

        async def gone() -> bool:
            return await site.get("configmaps", "n0001") is None

        await until(gone, what="the object that left Git is removed")
        assert (await site.get("configmaps", "stuck"))["data"] == {"key": "1"}
    await site.request()
    await site.until_ready()


async def test_an_object_that_moved_to_another_group_is_not_removed_before_its_new_name_was_applied(
    site: Bench, monkeypatch: pytest.MonkeyPatch
):
    await site.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", moved("old.example.net"))
    await site.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", moved("new.example.net"))
    for group in ("old.example.net", "new.example.net"):
        await until(lambda group=group: is_served(site, group), what=f"{group} is served")
    site.push({"zone.yaml": zone(site, "old.example.net"), **site.config_maps(2)})
    await site.sync(prune=PRUNE)
    await site.until_ready()
    with monkeypatch.context() as broken:
        fail_writes_of(site, broken, "zone")
        site.push({"zone.yaml": zone(site, "new.example.net")}, delete=["n0001.yaml"])
        await until(lambda: is_gone(site, "n0001"), what="the object that left Git is removed")
        assert await site.get("zones", "zone", group="old.example.net/v1") is not None
    await site.request()
    await site.until_ready()
    assert await site.get("zones", "zone", group="old.example.net/v1") is None
    assert await site.get("zones", "zone", group="new.example.net/v1") is not None


async def is_gone(site: Bench, name: str) -> bool:
    return await site.get("configmaps", name) is None


async def is_served(site: Bench, group: str) -> bool:
    try:
        await site.admin.list_all(site.path("zones", group=f"{group}/v1"))
    except GitopsError:
        return False
    return True


def zone(site: Bench, group: str) -> str:
    return document(
        {"apiVersion": f"{group}/v1", "kind": "Zone", "metadata": {"name": "zone", "namespace": site.namespace}}
    )


def moved(group: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"zones.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Zone", "plural": "zones"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }

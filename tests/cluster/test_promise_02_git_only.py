"""P2: desired state comes from Git only.  An edit in the cluster is drift: it is put back, and it authorises nothing."""

from typing import Any

import pytest

from gitops_ctl.api.names import ANNOTATION_ALLOW_PRUNE, ANNOTATION_RECREATE
from tests.support.product import Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


async def until_value(world: Product, name: str, value: str) -> None:
    async def there() -> bool:
        return bool(await world.config_map(name) == value)

    await until(there, what=f"{name} is {value}")


def service(*, cluster_ip: str) -> str:
    """A Service; its `clusterIP` is immutable."""
    return (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n"
        f"  clusterIP: {cluster_ip}\n  ports: [{{port: 80}}]\n"
    )


async def test_promise_02_an_edit_of_a_managed_field_is_put_back(world: Product) -> None:
    await world.set_config_map("base", "by hand")
    await until_value(world, "base", "1")
    assert (await world.sync_status())["lastAppliedRevision"] == world.root


async def test_promise_02_an_object_that_is_deleted_by_hand_comes_back(world: Product) -> None:
    await world.admin.delete(f"/api/v1/namespaces/{world.namespace}/configmaps/base")
    await until_value(world, "base", "1")


async def test_promise_02_a_field_that_git_does_not_declare_is_left_to_its_owner(world: Product) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/configmaps/base"
    await world.admin.patch_merge(path, {"data": {"value": "by hand", "extra": "kept"}}, manager="somebody")
    await until_value(world, "base", "1")
    found: Any = await world.admin.get(path)
    assert found["data"] == {"value": "1", "extra": "kept"}


async def annotate(world: Product, path: str, name: str, value: str) -> None:
    await world.admin.patch_merge(path, {"metadata": {"annotations": {name: value}}}, manager="kubectl-annotate")


async def test_promise_02_an_allow_prune_written_with_kubectl_authorises_no_removal(world: Product) -> None:
    files = {f"site/n{number}.yaml": config_map(f"n{number}") for number in range(7)}
    await world.until_applied(world.push(files))
    removal = world.push(delete=list(files))
    blocked = await _until_blocked(world)
    await annotate(world, world.sync_path(), ANNOTATION_ALLOW_PRUNE, _digest_in(blocked["message"]))
    for number in range(7):
        path = f"/api/v1/namespaces/{world.namespace}/configmaps/n{number}"
        await annotate(world, path, ANNOTATION_ALLOW_PRUNE, removal)
    await _answered(world)
    assert [await world.config_map(f"n{number}") for number in range(7)] == ["1"] * 7
    assert (await world.condition("PruneBlocked", sync="site"))["status"] == "True"


async def test_promise_02_a_recreate_written_with_kubectl_deletes_nothing(world: Product) -> None:
    await world.until_applied(world.push({"site/web.yaml": service(cluster_ip="None")}))
    path = f"/api/v1/namespaces/{world.namespace}/services/web"
    before: Any = await world.admin.get(path)
    commit = world.push({"site/web.yaml": service(cluster_ip="10.96.77.77")})
    await world.until_accepted(commit)
    await _until_held(world, "web")
    await annotate(world, path, ANNOTATION_RECREATE, commit)
    await _answered(world)
    after: Any = await world.admin.get(path)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["clusterIP"] == "None"
    await _until_held(world, "web")


def _digest_in(message: str) -> str:
    """The digest of the set that a blocked removal asks consent for."""
    words = [word.strip('".,;:()') for word in message.split()]
    found = [word for word in words if "sha256:" in word or (len(word) == 64 and word.isalnum())]
    assert found, message
    return found[0]


async def _until_blocked(world: Product) -> Any:
    async def blocked() -> Any:
        found = await world.condition("PruneBlocked", sync="site")
        return found if found.get("status") == "True" else None

    return await until(blocked, what="the removal waits for a consent")


async def _until_held(world: Product, name: str) -> None:
    async def held() -> bool:
        return any(name in entry["object"] for entry in (await world.sync_status()).get("held", ()))

    await until(held, what=f"{name} is held")


async def _answered(world: Product) -> None:
    """A pass was asked for and is over: it has seen what was written before."""
    await world.request("site")

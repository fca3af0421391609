"""Our reading of the server's answers against a real kube-apiserver.

The unit tests classify recorded bodies; here the same meanings come from the server itself, so that a new version that answers
otherwise fails here.
"""

from typing import Any

import pytest

from gitops_ctl.core.errors import Conflict, Forbidden, GitopsError, NotFound
from gitops_ctl.kube.answers import (
    AlreadyExists,
    FieldCause,
    FieldConflict,
    KindNotServed,
    NamespaceMissing,
    ObjectReplaced,
    ServerRefused,
)
from gitops_ctl.kube.transport import KubeClient

pytestmark = pytest.mark.cluster


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(label: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": label}},
            "template": {
                "metadata": {"labels": {"app": label}},
                "spec": {"containers": [{"name": "c", "image": "registry.example.net/c:1"}]},
            },
        },
    }


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


async def error_of(call: Any) -> GitopsError:
    with pytest.raises(GitopsError) as caught:
        await call
    return caught.value


async def test_H10_the_same_apply_twice_is_one_object_at_one_version(kube_admin: KubeClient, namespace: str) -> None:
    first = await kube_admin.apply(maps(namespace, "a"), config_map(x="1"), manager="m")
    again = await kube_admin.apply(maps(namespace, "a"), config_map(x="1"), manager="m")
    assert first == again
    fields = first["metadata"]["managedFields"]  # type: ignore[index, call-overload]
    assert [(entry["manager"], entry["operation"]) for entry in fields] == [("m", "Apply")]  # type: ignore[union-attr, index, call-overload]


async def test_H10_a_field_of_another_manager_is_a_conflict_and_force_takes_it(
    kube_admin: KubeClient, namespace: str
) -> None:
    path = maps(namespace, "a")
    await kube_admin.apply(path, config_map(x="1"), manager="one")
    error = await error_of(kube_admin.apply(path, config_map(x="2"), manager="two"))
    assert isinstance(error, FieldConflict)
    assert error.causes == (FieldCause("one", ".data.x"),)
    forced = await kube_admin.apply(path, config_map(x="2"), manager="two", force=True)
    assert forced["data"] == {"x": "2"}


async def test_S05_a_field_that_the_server_does_not_know_is_final_and_named(
    kube_admin: KubeClient, namespace: str
) -> None:
    error = await error_of(kube_admin.apply(maps(namespace, "a"), {**config_map(), "foo": 1}, manager="m"))
    assert isinstance(error, ServerRefused)
    assert error.fields == (".foo",)
    assert kube_admin.calls["apply", "configmaps"] == 1


async def test_immutable_fields_are_named(kube_admin: KubeClient, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/d"
    await kube_admin.apply(path, deployment("one"), manager="m")
    error = await error_of(kube_admin.apply(path, deployment("two"), manager="m"))
    assert isinstance(error, ServerRefused)
    assert error.immutable_fields == ("spec.selector",)


async def test_another_uid_is_another_object_and_not_an_immutable_field(kube_admin: KubeClient, namespace: str) -> None:
    await kube_admin.apply(maps(namespace, "a"), config_map(), manager="m")
    other = config_map()
    other["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111"
    assert isinstance(await error_of(kube_admin.apply(maps(namespace, "a"), other, manager="m")), ObjectReplaced)


async def test_stale_versions_and_taken_names_are_conflicts(kube_admin: KubeClient, namespace: str) -> None:
    made = await kube_admin.create(maps(namespace), config_map())
    assert isinstance(await error_of(kube_admin.create(maps(namespace), config_map())), AlreadyExists)
    await kube_admin.apply(maps(namespace, "a"), config_map(x="1"), manager="m")
    assert type(await error_of(kube_admin.replace(maps(namespace, "a"), made))) is Conflict
    assert type(await error_of(kube_admin.delete(maps(namespace, "a"), uid="another"))) is Conflict
    test = [{"op": "test", "path": "/data/x", "value": "9"}, {"op": "replace", "path": "/data/x", "value": "2"}]
    assert type(await error_of(kube_admin.patch_json(maps(namespace, "a"), test))) is Conflict


async def test_missing_objects_kinds_and_namespaces_are_three_things(kube_admin: KubeClient, namespace: str) -> None:
    assert type(await error_of(kube_admin.get(maps(namespace, "a")))) is NotFound
    assert type(await error_of(kube_admin.get("/apis/example.net/v1/things/a"))) is KindNotServed
    assert type(await error_of(kube_admin.create(maps("no-such-namespace"), config_map()))) is NamespaceMissing
    assert await kube_admin.delete(maps(namespace, "a")) is None


async def test_a_delete_that_a_finalizer_holds_returns_the_object(kube_admin: KubeClient, namespace: str) -> None:
    held = config_map()
    held["metadata"]["finalizers"] = ["example.net/hold"]
    await kube_admin.apply(maps(namespace, "a"), held, manager="m")
    left = await kube_admin.delete(maps(namespace, "a"))
    assert left is not None
    assert left["metadata"]["deletionTimestamp"]  # type: ignore[index, call-overload]
    await kube_admin.patch_merge(maps(namespace, "a"), {"metadata": {"finalizers": None}})
    assert await kube_admin.find(maps(namespace, "a")) is None


async def test_an_impersonated_account_has_its_own_rights_and_no_others(kube_admin: KubeClient, namespace: str) -> None:
    account = f"system:serviceaccount:{namespace}:app"
    error = await error_of(kube_admin.apply(maps(namespace, "a"), config_map(), manager="m", account=account))
    assert isinstance(error, Forbidden)
    assert account in error.message
    assert "patch" in error.message


async def test_a_dry_run_shows_the_object_and_writes_nothing(kube_admin: KubeClient, namespace: str) -> None:
    shown = await kube_admin.apply(maps(namespace, "a"), config_map(x="1"), manager="m", dry_run=True)
    assert shown["data"] == {"x": "1"}
    assert await kube_admin.find(maps(namespace, "a")) is None


async def test_H22_a_refused_secret_is_explained_without_its_values(kube_admin: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets/s"
    for data in ({"a": ["s3cr3t-value"]}, {"a": "s3cr3t-value!"}, {"a b": "czNjcjN0LXZhbHVl"}):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}
        error = await error_of(kube_admin.apply(path, body, manager="m"))
        assert isinstance(error, ServerRefused)
        assert "s3cr3t" not in error.message

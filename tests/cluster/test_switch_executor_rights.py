"""Executor and worker under the shipped rights and admission policies: nothing is missing, and each writes only what is its own."""

import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError
from tests.support.chart_install import Installation, installed_chart
from tests.support.cluster import ControlPlaneHandle, UserFactory
from tests.support.plain_api import PlainApi, eventually, install_crds
from tests.support.switch_plane import Plane, make_plane

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    api = PlainApi(control_plane)
    install_crds(api)
    yield api
    api.close()


@pytest.fixture
def chart(admin: PlainApi) -> Iterator[Installation]:
    """Rights and policies in one namespace, once the server follows them."""
    namespace = f"switch-{secrets.token_hex(4)}"
    assert admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    values = {
        "tenants": [{"namespace": namespace, "serviceAccounts": ["applier"]}],
        "workers": [{"namespace": namespace, "clusters": [{"name": "north", "talosconfig": "north"}]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "applier"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "applier", "namespace": namespace}],
    }
    assert admin.post(f"{RBAC}/{namespace}/rolebindings", binding).status == 201
    with installed_chart(admin, namespace, values) as installation:
        operations = f"/apis/ichor.maesh.dev/v1alpha1/namespaces/{namespace}/talosoperations?dryRun=All"
        spec = {"clusterRef": {"name": "north"}, "kind": "cni", "target": "replaced", "sourceCommit": "c" * 40}
        tree = {
            "apiVersion": "ichor.maesh.dev/v1alpha1",
            "kind": "TalosOperation",
            "metadata": {"name": "x"},
            "spec": spec,
        }
        eventually(lambda: admin.post(operations, tree).status == 403)
        yield installation
    admin.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
async def plane(chart: Installation, kube_user: UserFactory) -> AsyncIterator[Plane]:
    namespace = chart.namespace
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")

    async def account(name: str) -> Any:
        return await kube_user(f"system:serviceaccount:{namespace}:{name}", groups)

    made = await make_plane(
        await account("gitops-ctl-manager"),
        namespace,
        "replaced",
        worker=await account("gitops-ctl-worker"),
        applier=await account("applier"),
    )
    yield made
    await made.kill()


async def test_a_whole_switch_needs_no_other_right_and_breaks_no_policy(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    await plane.reached("AwaitingCNIChange")
    assert plane.live is not None
    plane.live.now = SystemClock().wall()
    plane.live.change_cni("true")
    done = await plane.reached("Succeeded")
    assert {row["state"] for row in done["status"]["machines"]} == {"Done"}
    assert plane.live.broken == []


async def test_the_executor_may_not_write_what_is_the_workers(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    operation = await plane.reached("AwaitingCNIChange")
    claim = {"id": "replaced/5-switch-machines/cp-1#99", "worker": "nobody", "at": "2026-03-01T08:00:00Z"}
    name = operation["metadata"]["name"]
    with pytest.raises(GitopsError, match="claims"):
        await plane.client.patch_merge(
            plane.path("talosoperations", name), {"status": {"claims": [claim]}}, subresource="status"
        )

"""P5: while a switch runs the manager is connected to its API server and to Git, and to nothing else (cni-switch.md, sections 2.1 and 21).

The manager is the real command under the shipped rights and policies.  Somebody listens where machines and target would be.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ICHOR_API_VERSION, SYSTEM_NAMESPACE
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from tests.support.manager_process import Managed, managed_tenant, manager_plane  # noqa: F401
from tests.support.product import ADMIN, people  # noqa: F401
from tests.support.sockets import Place, family, remote_ends
from tests.support.switch_live import Live, LiveMachine
from tests.support.switch_worker import ModelWorker
from tests.support.sync_cluster import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(420)]

CLUSTER, FILE = "north", "site/north.yaml"
ROLES = {"cp-1": "controlplane", "node-1": "worker"}
SECRETS = ("north-talos", "north-kube")
PARAMETERS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/gitops-ctl-admission"
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "worker"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
}


def declared(address: str, *, mode: str, consent: bool = False) -> str:
    """The cluster and its machines, one document a line."""
    metadata: dict[str, Any] = {"name": CLUSTER}
    if consent:
        metadata["annotations"] = {ANNOTATION_CONFIRM_SWITCH: mode}
    references = {"talosconfigSecretRef": {"name": SECRETS[0]}, "kubeconfigSecretRef": {"name": SECRETS[1]}}
    trees: list[Any] = [
        {"kind": "TalosCluster", "metadata": metadata, "spec": {**references, "cni": {"kubeProxy": mode}}}
    ]
    for name, role in ROLES.items():
        spec = {"clusterRef": {"name": CLUSTER}, "address": address, "role": role}
        trees.append({"kind": "TalosMachine", "metadata": {"name": name}, "spec": spec})
    return "".join(f"---\n{json.dumps({'apiVersion': ICHOR_API_VERSION, **tree})}\n" for tree in trees)


@asynccontextmanager
async def machine(asked: list[str]) -> AsyncIterator[str]:
    """Where a machine would answer; whoever connects is written down."""

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(str(writer.get_extra_info("peername")))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield "{}:{}".format(*server.sockets[0].getsockname())


@asynccontextmanager
async def model_worker(managed: Managed) -> AsyncIterator[Live]:
    """A worker under its own account and the policies, with a cluster in memory behind it."""
    admin, namespace = managed.admin, managed.tenant.namespace
    user = f"system:serviceaccount:{namespace}:gitops-ctl-worker"
    subjects = [{"kind": "ServiceAccount", "name": "gitops-ctl-worker", "namespace": namespace}]
    await admin.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {**BINDING, "subjects": subjects}
    )
    await admin.patch_merge(PARAMETERS, {"data": {"workers": f"{user}\n"}})
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    config = await load_cluster(managed.plane.kubeconfig_for(user, groups), allow_exec=False)
    wall = SystemClock().wall
    live = Live(wall(), {name: LiveMachine(name, role, "enabled") for name, role in ROLES.items()})
    live.written = live.template_written = live.started = wall() - timedelta(days=1)
    async with KubeClient(config, component="worker") as client:
        worker = ModelWorker(client, namespace=namespace, cluster=CLUSTER, live=live, wall=wall)

        async def work() -> None:
            while True:
                with suppress(GitopsError):
                    await worker.look()
                await asyncio.sleep(0.2)

        working = asyncio.create_task(work())
        try:
            yield live
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def phase_of(managed: Managed) -> str:
    path = f"/apis/{ICHOR_API_VERSION}/namespaces/{managed.tenant.namespace}/talosoperations"
    trees: Any = (await managed.admin.list_all(path)).items
    return str(trees[0].get("status", {}).get("phase", "")) if trees else ""


async def test_promise_05_a_manager_that_steers_a_switch_is_connected_to_its_api_server_and_to_git_only(
    managed: Managed,
) -> None:
    tenant, asked, seen = managed.tenant, list[str](), set[Place]()
    for name in SECRETS:
        data = {"talosconfig": b64encode(b"never read").decode(), "kubeconfig": b64encode(b"never read").decode()}
        await managed.admin.create(
            f"/api/v1/namespaces/{tenant.namespace}/secrets", {"metadata": {"name": name}, "data": data}
        )
    async with machine(asked) as address, model_worker(managed) as live:
        begun = tenant.commit({FILE: declared(address, mode="enabled")})
        process = await managed.start()

        async def reached(phase: str) -> bool:
            seen.update(remote_ends(family(process.process.pid)))
            return await phase_of(managed) == phase

        await tenant.until_applied(begun)
        tenant.commit({FILE: declared(address, mode="replaced")})
        await managed.push({FILE: declared(address, mode="replaced", consent=True)}, by=ADMIN)
        await until(lambda: reached("AwaitingCNIChange"), what="the switch waits for Cilium", timeout_s=120)
        live.now = SystemClock().wall()
        live.change_cni("true")
        await until(lambda: reached("Succeeded"), what="the switch is over", timeout_s=120)
    assert live.broken == []
    assert asked == [], "nobody came to a machine"
    server, git = (urlsplit(url) for url in (managed.plane.url, tenant.url))
    allowed = {("127.0.0.1", place.port) for place in (server, git)}
    assert ("127.0.0.1", server.port) in seen
    assert seen <= allowed
    read = [
        found
        for entry in managed.entries("first")
        if (found := entry.get("objectRef", {})).get("resource") == "secrets"
    ]
    assert read, "the audit log shows what the manager reads"
    assert not [found for found in read if found.get("name") in (*SECRETS, None)]

"""The manager as a real process under its shipped rights, on a control plane of its own.

A manager works for every namespace, so it cannot share an API server with tests whose managers run in this process.  The second
control plane is started once per test run; whoever uses it holds a file lock, since two managers would work for each other's tenants.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.cli.installing import Tenant, tenant_objects
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.supervise import tied_argv
from tests.support.cluster import AuditLog, ControlPlaneHandle, _shared_control_plane
from tests.support.git_keys import SshKey
from tests.support.git_servers import Authority, HttpsGitServer
from tests.support.product import SOURCE, Product, product
from tests.support.sync_cluster import install_crds, until
from tools.render_install import install_objects

USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:gitops-ctl-manager"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}", "system:authenticated")
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/gitops-ctl-manager"
PRODUCT, TENANT = "gitops-ctl-install", "gitops-ctl-bootstrap"
PASSWORD = "planted-git-password"


@dataclass
class ManagerProcess:
    """One running `gitops-ctl manager`; `mark` is a group in its certificate, so the audit log tells replicas apart."""

    process: subprocess.Popen[bytes]
    log: Path
    mark: str

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    async def ended(self, *, timeout_s: float = 60.0) -> int:
        """Its exit code."""

        def over() -> bool:
            return self.process.poll() is not None

        await until(over, what=f"the manager ends; {self.log.read_text()[-2000:]}", timeout_s=timeout_s)
        return int(self.process.returncode)

    async def terminate(self) -> int:
        self.signal(signal.SIGTERM)
        return await self.ended()

    def end(self) -> None:
        """At once, whatever state it is in."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class Managed:
    """A control plane with the product installed, one tenant, its Git server over TLS, and the managers that a test starts."""

    plane: ControlPlaneHandle
    admin: KubeClient
    tenant: Product
    server: HttpsGitServer
    folder: Path
    audit: AuditLog
    processes: list[ManagerProcess] = field(default_factory=list)
    metrics_url: str = ""

    async def start(self, mark: str = "first", *, lease_s: float = 15.0, options: Sequence[str] = ()) -> ManagerProcess:
        """Start a manager; it may or may not get the Lease."""
        kubeconfig = self.plane.kubeconfig_for(USER, (*GROUPS, f"tests:{mark}"))
        log = self.folder / f"manager-{mark}-{len(self.processes)}.log"
        argv = (
            *(sys.executable, "-m", "gitops_ctl", "manager", f"--kubeconfig={kubeconfig}"),
            *(f"--cache-dir={self.folder / f'cache-{mark}'}", f"--lease-duration={lease_s:g}", f"--identity={mark}"),
            *options,
        )
        with log.open("ab") as stream:
            process = subprocess.Popen(
                tied_argv(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
            )
        made = ManagerProcess(process, log, mark)
        self.processes.append(made)
        return made

    async def holder(self) -> str:
        """The identity that the Lease names; empty when it is free."""
        found: Any = await self.admin.find(LEASE) or {"spec": {}}
        return str(found["spec"].get("holderIdentity") or "")

    async def until_leads(self, mark: str) -> None:
        async def leads() -> bool:
            return (await self.holder()).startswith(f"{mark}/")

        await until(leads, what=f"{mark} leads", timeout_s=60)

    def entries(self, mark: str = "", *, writes: bool = False) -> list[Any]:
        """Requests of our managers, or of one of them, since the mark of the audit log."""
        found = self.audit.writes() if writes else self.audit.entries()
        group = f"tests:{mark}"
        return [
            event
            for event in found
            if event["user"]["username"] == USER and (not mark or group in event["user"].get("groups", ()))
        ]

    async def push(self, files: dict[str, str] | None = None, **more: Any) -> str:
        """Commit, and ask for a poll as a person does."""
        commit = self.tenant.commit(files, **more)
        await self.poll()
        return commit

    async def poll(self) -> None:
        await self.tenant.admin.patch_merge(
            self.tenant.source_path,
            {"metadata": {"annotations": {"gitops-ctl.dev/requested-at": os.urandom(4).hex()}}},
        )


async def put_all(client: KubeClient, trees: Sequence[JsonObject], *, manager: str) -> None:
    """Apply the objects in order.  Product and tenant need two managers: both write to one ConfigMap."""
    mapper = Mapper(client)
    for tree in trees:
        gvk, name = GroupVersionKind.of(tree), ObjectId.of(tree)
        resource = await mapper.resource(gvk)
        await client.apply(resource.path(name.namespace, name.name), tree, manager=manager, force=True)


@asynccontextmanager
async def managed(
    plane: ControlPlaneHandle, namespace: str, folder: Path, *, keys: dict[str, SshKey]
) -> AsyncIterator[Managed]:
    """Install the product as shipped, less its Deployment, and one tenant; nothing runs yet."""
    async with AsyncExitStack() as stack:
        config = await load_cluster(plane.kubeconfig, allow_exec=False)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        await install_crds(admin)
        await put_all(admin, [tree for tree in install_objects() if tree["kind"] != "Deployment"], manager=PRODUCT)
        authority = Authority()
        certificate = authority.issue(folder)
        server = stack.enter_context(HttpsGitServer(folder, certificate, users={"controller": PASSWORD}))
        await put_all(
            admin, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}], manager=TENANT
        )
        tenant = await stack.enter_async_context(product(admin, admin, namespace, folder, keys=keys))
        tenant.url = server.url("repo/.git")
        wanted = Tenant(
            namespace=namespace,
            source=SOURCE,
            sync="site",
            url=tenant.url,
            branch="main",
            path="site",
            service_account="applier",
            root=tenant.root,
            policy_digest="",
            credentials={"username": "controller", "password": PASSWORD},
            ca=authority.pem.decode(),
        )
        objects = [tree for tree in tenant_objects(wanted) if tree["kind"] not in ("GitSource", "Sync")]
        await put_all(admin, objects, manager=TENANT)
        await tenant.source(
            credentialsSecretRef={"name": f"{SOURCE}-git"}, caConfigMapRef={"name": f"{SOURCE}-ca"}, interval="1h"
        )
        await tenant.sync()
        made = Managed(plane, admin, tenant, server, folder, AuditLog(plane.audit))
        try:
            await _until_rights_hold(admin, namespace)
            yield made
        finally:
            for process in made.processes:
                process.end()
                # pytest shows it when the test failed.
                print(process.log.read_text()[-4000:])
            await admin.delete(LEASE)
            # The manager of the next test would ask for their Secrets while the rights to them go with the namespace.
            sources = tenant.source_path.rpartition("/")[0]
            for tree in (await admin.list_all(sources)).items:
                await admin.delete(f"{sources}/{text_at(tree, 'metadata', 'name')}")
            await admin.delete(f"/api/v1/namespaces/{namespace}")


async def _until_rights_hold(admin: KubeClient, namespace: str) -> None:
    """The authoriser learns of new roles a moment after they were stored; a manager that asks earlier would see 403."""

    async def may() -> bool:
        review: JsonObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": USER,
                "groups": list(GROUPS),
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": "impersonate",
                    "resource": "serviceaccounts",
                    "name": "applier",
                },
            },
        }
        answer: Any = await admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    await until(may, what="the manager's rights hold")


@pytest.fixture(scope="session")
def manager_plane(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> ControlPlaneHandle:
    """A second control plane of this run, for managers that run as processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    return asyncio.run(_shared_control_plane(shared / "manager-plane"))


@pytest.fixture(name="managed")
async def managed_tenant(
    manager_plane: ControlPlaneHandle, tmp_path: Path, people: dict[str, SshKey]
) -> AsyncIterator[Managed]:
    """One tenant, alone on the control plane for managers; import it (with `manager_plane` and `people`) into a test module."""
    with manager_plane.folder.path.with_suffix(".turn").open("ab") as turn:
        await asyncio.to_thread(fcntl.flock, turn, fcntl.LOCK_EX)
        namespace = f"managed-{os.urandom(4).hex()}"
        async with managed(manager_plane, namespace, tmp_path, keys=people) as made:
            yield made

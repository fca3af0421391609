"""The world of the benchmarks that need a cluster: real etcd and kube-apiserver, a Git server, and the manager as a child process.

No controller-manager and no kubelet run: they would work on what is applied, at their own pace, beside what is measured.  The
manager has its shipped rights; the Sync's account may do everything, so that no rule is missing.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gitops_ctl
from gitops_ctl.api.names import API_VERSION, POLICY_PATH, SYSTEM_NAMESPACE
from gitops_ctl.cli.installing import Tenant, tenant_objects
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.certificates import Authority
from gitops_ctl.local.controlplane import ControlPlane, Options, issue_kubeconfig
from gitops_ctl.local.gitserver import GitServer, Login
from gitops_ctl.local.ports import pick_ports
from gitops_ctl.local.product import MANAGER_ACCOUNT, PRODUCT_MANAGER, established, product_objects, put
from gitops_ctl.local.progress import progress_for
from gitops_ctl.local.supervise import Family, ProcessSpec, log_tail
from gitops_ctl.local.workshop import Workshop
from gitops_ctl.sync.model import OwnerId
from tools.bench.process import Audit

NAMESPACE, SOURCE, SYNC, ACCOUNT = "bench", "network", "site", "applier"
AUTHOR = "network-author"
MANAGER_AGENT = f"gitops-ctl/{gitops_ctl.__version__} (manager)"
WEBHOOK_SECRET = "only-for-the-benchmark"
_LOGIN = Login("controller", "only-for-the-benchmark")
_OPTIONS = Options(audit=True, durable=False, controllers=False, service_range="10.96.0.0/16", start_timeout_s=600.0)
_RBAC = "rbac.authorization.k8s.io"


def policy_text(keys: Iterable[str], *, person: str = AUTHOR) -> str:
    """One person who may do everything; `keys` are entries of its key list."""
    entries = "\n".join(f"      - {key}" for key in keys)
    return (
        f"apiVersion: {API_VERSION}\nkind: TrustPolicy\npeople:\n  - name: {person}\n    keys:\n{entries}\n"
        f"roles:\n  all: [{person}]\nrules:\n"
        f'  - {{paths: ["{POLICY_PATH}"], verbs: [trust], roles: [all]}}\n'
        '  - {paths: ["**"], verbs: [edit, delete, consent], roles: [all]}\n  - {verbs: [merge], roles: [all]}\n'
    )


@dataclass
class World:
    """What runs, and how to act on it.

    Attributes:
        manager_pid: of the running manager; 0 while none runs.
        webhook: address that takes deliveries while a manager runs.
    """

    folder: Path
    plane: ControlPlane
    client: KubeClient
    workshop: Workshop
    server: GitServer
    audit: Audit
    cluster_uid: str
    root: str = ""
    digest: str = ""
    url: str = ""
    ca: str = ""
    manager_pid: int = 0
    webhook: str = ""
    metrics: str = ""
    _family: Family = field(default_factory=Family)

    # -- Git ---------------------------------------------------------------------------------------------------------

    def begin(self, name: str, files: Iterable[tuple[str, str]]) -> str:
        """A new repository: the policy is its root, all files are the second commit; gives that commit."""
        self.workshop = Workshop(self.folder / "people" / name, self.workshop.authority, _LOGIN)
        self.workshop.folder.mkdir(parents=True)
        self.url = self.server.create(name)
        self.workshop.start(self.url)
        policy = policy_text([f'{{ssh: "{self.workshop.person(AUTHOR).public_key}"}}'])
        self.write([(POLICY_PATH, policy)])
        self.root = self.workshop.commit("Begin", author=AUTHOR)
        self.digest = digest_bytes(policy.encode())
        return self.push(files, message="Add all documents")

    def write(self, files: Iterable[tuple[str, str]]) -> list[str]:
        names = []
        for name, text in files:
            path = self.workshop.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            names.append(name)
        return names

    def push(self, files: Iterable[tuple[str, str]], *, message: str = "Change") -> str:
        """Write, commit and push; gives the commit."""
        names = self.write(files)
        paths = names if len(names) < 10 else ["."]
        commit = self.workshop.commit(message, author=AUTHOR, paths=paths)
        self.workshop.push()
        return commit

    # -- processes ---------------------------------------------------------------------------------------------------

    async def start_manager(self, *options: str) -> None:
        """Start the manager as a child with its shipped rights, and further options; returns when it runs."""
        user = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{MANAGER_ACCOUNT}"
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}", "system:authenticated")
        kubeconfig = issue_kubeconfig(
            self.plane.folder, "manager", server=self.plane.url, user=user, groups=groups, clock=SystemClock()
        )
        webhook, metrics = pick_ports(2)
        self.webhook, self.metrics = f"127.0.0.1:{webhook}", f"127.0.0.1:{metrics}"
        argv = (
            *(sys.executable, "-m", "gitops_ctl", "manager", f"--kubeconfig={kubeconfig}", "--log-level=warning"),
            f"--cache-dir={self.folder / 'clones'}",
            # A busy machine may not cost it the Lease: elections are not what is measured.
            "--lease-duration=60",
            f"--webhook-address={self.webhook}",
            f"--metrics-address={self.metrics}",
            *options,
        )
        shutil.rmtree(self.folder / "clones", ignore_errors=True)
        self._family = Family()
        # Compiled modules are kept, as in every installation, also where the shell says otherwise.
        environment = {"PYTHONDONTWRITEBYTECODE": ""}
        log = self.plane.folder.logs / "manager.log"
        await self._family.spawn(ProcessSpec("manager", argv, log, environment, grace_s=20.0))
        self.manager_pid = self._family.pids["manager"]

    async def stop_manager(self) -> None:
        await self._family.stop()
        self.manager_pid = 0

    # -- objects -----------------------------------------------------------------------------------------------------

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"

    @property
    def owner(self) -> OwnerId:
        return OwnerId(self.cluster_uid, NAMESPACE, SOURCE, SYNC)

    def _path(self, plural: str, name: str) -> str:
        return f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{plural}/{name}"

    async def create_source(self) -> None:
        """The tenant with its source; no Sync yet."""
        tenant = Tenant(
            namespace=NAMESPACE,
            source=SOURCE,
            sync=SYNC,
            url=self.url,
            branch="main",
            path="",
            service_account=ACCOUNT,
            root=self.root,
            policy_digest=self.digest,
            credentials={"username": _LOGIN.user, "password": _LOGIN.password},
            ca=self.ca,
            interval="10m",
        )
        mapper = Mapper(self.client)
        for wanted in (*tenant_objects(tenant), *_extra_rights(self.account)):
            tree: dict[str, Any] = {**wanted}
            if tree["kind"] == "Sync":
                continue
            if tree["kind"] == "GitSource":
                tree["spec"] = {**tree["spec"], "forge": _FORGE}
            await put(self.client, mapper, wanted=tree, manager="bench")

    async def create_sync(self, **spec: Any) -> None:
        body: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": SYNC, "namespace": NAMESPACE},
            "spec": {
                "sourceRef": {"name": SOURCE},
                "serviceAccountName": ACCOUNT,
                "targetNamespace": NAMESPACE,
                "prune": {"enabled": True},
                **spec,
            },
        }
        await self.client.apply(self._path("syncs", SYNC), body, manager="bench", force=True)

    async def request_reconcile(self, moment: str) -> None:
        """What `gitops-ctl reconcile` does to a Sync."""
        body = {"metadata": {"annotations": {"gitops-ctl.dev/requested-at": moment}}}
        await self.client.patch_merge(self._path("syncs", SYNC), body, manager="bench")

    async def status(self, plural: str) -> dict[str, Any]:
        tree: Any = await self.client.find(self._path(plural, SOURCE if plural == "gitsources" else SYNC)) or {}
        status: dict[str, Any] = tree.get("status", {})
        return status

    async def until_accepted(self, commit: str) -> None:
        async def accepted() -> bool:
            return bool((await self.status("gitsources")).get("accepted", {}).get("revision") == commit)

        await self.until(accepted, f"{commit} is accepted")

    async def until_applied(self, commit: str) -> None:
        async def applied() -> bool:
            return bool((await self.status("syncs")).get("lastAppliedRevision") == commit)

        await self.until(applied, f"{commit} is applied")

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, *, poll_s: float = 0.05) -> float:
        """Seconds until a claim held.

        Raises:
            TimeoutError: not within five minutes; the message has both statuses.
        """
        began_s = time.monotonic()
        while not await holds():
            if time.monotonic() - began_s > 300:
                raise TimeoutError(f"not: {what}; {await self.status('gitsources')} {await self.status('syncs')}")
            await asyncio.sleep(poll_s)
        return time.monotonic() - began_s

    async def forget_unit(self, *collections: str) -> None:
        """Remove Sync, inventories, source and applied objects, as if they had never been; no manager may run."""
        path = self._path("syncs", SYNC)
        if await self.client.find(path) is not None:
            await self.client.patch_merge(path, {"metadata": {"finalizers": None}})
        for plural in ("syncs", "inventories", "gitsources"):
            await self.clear(f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{plural}")
        for collection in collections:
            await self.clear(collection)

    async def clear(self, collection: str) -> None:
        """Delete every object of a collection and wait until it is empty."""
        while (await self.client.list_all(collection)).items:
            names: list[Any] = list((await self.client.list_all(collection)).items)
            waiting = iter(names)

            async def work() -> None:
                for tree in waiting:  # noqa: B023  # consumed before the loop goes on
                    await self.client.delete(f"{collection}/{tree['metadata']['name']}", propagation="Background")

            async with asyncio.TaskGroup() as group:
                for _ in range(32):
                    group.create_task(work())


_FORGE = {
    "provider": "plain",
    "baseURL": "https://forge.example.net",
    "project": "bench",
    "webhookSecretRef": {"name": "webhook"},
}


def _extra_rights(account: str) -> tuple[dict[str, Any], ...]:
    """The account may do everything; the manager may read the webhook's secret."""
    _, _, namespace, name = account.split(":")
    return (
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "bench-applier"},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "webhook", "namespace": namespace},
            "stringData": {"token": WEBHOOK_SECRET},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": "webhook", "namespace": namespace},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["webhook"], "verbs": ["get"]}],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "webhook", "namespace": namespace},
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "webhook"},
            "subjects": [{"kind": "ServiceAccount", "name": MANAGER_ACCOUNT, "namespace": SYSTEM_NAMESPACE}],
        },
    )


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """Start everything but the manager in an empty folder; it ends with the context."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        with progress_for(sys.stderr) as progress:
            binaries = await find_binaries(progress=progress)
        plane = ControlPlane(binaries, folder / "plane", options=_OPTIONS)
        stack.push_async_callback(plane.stop)
        kubeconfig = await plane.start()
        authority = Authority(plane.folder.certs, "git-ca", clock=clock)
        server = GitServer.start(folder / "repositories", certificate=authority.server("git"), login=_LOGIN)
        stack.callback(server.stop)
        config = await load_cluster(kubeconfig, allow_exec=False)
        client = await stack.enter_async_context(KubeClient(config, component="bench", clock=clock))
        mapper = Mapper(client)
        for wanted in product_objects():
            if wanted["kind"] != "Deployment":
                await put(client, mapper, wanted=wanted, manager=PRODUCT_MANAGER)
        await established(client, mapper)
        system: Any = await client.get("/api/v1/namespaces/kube-system")
        made = World(
            folder=folder,
            plane=plane,
            client=client,
            workshop=Workshop(folder / "people", authority.certificate_path, _LOGIN),
            server=server,
            audit=Audit(plane.folder.logs / "audit.log"),
            cluster_uid=system["metadata"]["uid"],
            ca=authority.certificate_path.read_text(),
        )
        stack.push_async_callback(made.stop_manager)
        try:
            yield made
        except Exception as error:
            error.add_note(f"the manager said:\n{log_tail(plane.folder.logs / 'manager.log', lines=20)}")
            raise

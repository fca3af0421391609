"""Both rooms of the manager on the real API server, fed by a repository whose commits real git signs.

`Product.push` commits as a person and pokes the source, as a webhook would; everything else is the product: fetch in a child
process, verification, acceptance in the status, apply, prune.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import ANNOTATION_REQUESTED_AT, API_VERSION, POLICY_PATH
from gitops_ctl.cli.manager import Rooms, make_rooms, run_rooms
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.transport import KubeClient
from tests.support.git_keys import SshKey
from tests.support.git_repos import RepoBuilder
from tests.support.sync_cluster import RIGHTS, install_crds, until

AUTHOR, PLATFORM, ADMIN = "network-author", "platform-author", "policy-admin"
SOURCE = "network"


def policy_text(
    keys: Mapping[str, SshKey], *, revoked: Sequence[Mapping[str, str]] = (), people: Sequence[str] = ()
) -> str:
    """A policy: `network-author` owns `site/config`, `platform-author` the rest of `site`, `policy-admin` the policy."""
    names = people or tuple(keys)
    lines = ["apiVersion: gitops-ctl.dev/v1alpha1", "kind: TrustPolicy", "people:"]
    for name in names:
        lines += [f"  - name: {name}", f'    keys: [{{ssh: "{" ".join(keys[name].public.split()[:2])}"}}]']
    lines += ["roles:"] + [f"  {name}-role: [{name}]" for name in names]
    lines += [
        "rules:",
        '  - {paths: [".gitops-ctl/trust.yaml"], verbs: [trust], roles: [policy-admin-role]}',
        '  - {paths: [".gitops-ctl/**"], verbs: [consent, edit, delete], roles: [policy-admin-role]}',
        '  - {paths: ["site/**"], verbs: [consent], roles: [policy-admin-role]}',
    ]
    if AUTHOR in names:
        lines.append('  - {paths: ["site/config/**"], verbs: [edit, delete], roles: [network-author-role]}')
    lines += [
        '  - {paths: ["**"], verbs: [edit, delete], roles: [platform-author-role]}',
        "  - {verbs: [merge], roles: [platform-author-role]}",
    ]
    if revoked:
        lines.append("revoked:")
        lines += [f'  - {{fingerprint: "{entry["fingerprint"]}", from: "{entry["from"]}"}}' for entry in revoked]
    return "\n".join(lines) + "\n"


def config_map(name: str, value: str = "1", *, annotations: Mapping[str, str] | None = None) -> str:
    """One ConfigMap document."""
    marks = "".join(f'    {key}: "{text}"\n' for key, text in (annotations or {}).items())
    more = f"  annotations:\n{marks}" if marks else ""
    return f'---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{more}data:\n  value: "{value}"\n'


@dataclass
class Product:
    """One tenant with its repository and the running rooms."""

    admin: KubeClient
    manager: KubeClient
    namespace: str
    repo: RepoBuilder
    keys: Mapping[str, SshKey]
    cache: Path
    root: str = ""
    url: str = ""
    rooms: Rooms | None = None
    running: asyncio.Task[None] | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    connect: Callable[[Clock | None], Awaitable[KubeClient]] | None = None

    # -- Git ---------------------------------------------------------------------------------------------------------

    def commit(
        self,
        files: Mapping[str, str] | None = None,
        *,
        by: str = PLATFORM,
        delete: Sequence[str] = (),
        signed: bool = True,
        **more: Any,
    ) -> str:
        signer = self.keys[by] if signed else None
        return self.repo.commit(files, delete=delete, author=f"{by} <{by}@example.net>", signer=signer, **more)

    def push(self, files: Mapping[str, str] | None = None, **more: Any) -> str:
        """Commit and ask for a poll; the commit id."""
        commit = self.commit(files, **more)
        self.poke()
        return commit

    def poke(self) -> None:
        """What a webhook does."""
        assert self.rooms is not None
        self.rooms.sources.poke(NamespacedName(self.namespace, SOURCE))

    # -- process -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the rooms, as a fresh process would."""
        self.stopping = asyncio.Event()
        self.rooms = make_rooms(
            self.manager,
            cache=self.cache,
            events=EventRecorder(self.manager, instance="tests"),
            require=lambda: None,
            allow_file=True,
            namespace=self.namespace,
            timing=Timing(absent_s=0.2, absent_cap_s=0.4, backoff_s=0.1, confirm_s=0.5),
        )
        await self.rooms.syncs.__aenter__()
        end = asyncio.create_task(self.stopping.wait())
        self.running = asyncio.create_task(run_rooms(self.rooms, until=[end]))

    async def stop(self) -> None:
        """End as SIGTERM does."""
        if self.rooms is not None and self.running is not None:
            self.stopping.set()
            await self.running
            await self.rooms.syncs.__aexit__(None, None, None)
        self.rooms = self.running = None

    async def kill(self) -> None:
        """End at once, whatever is going on."""
        if self.rooms is not None and self.running is not None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)
            self.rooms.sources.stop()
            await self.rooms.syncs.__aexit__(None, None, None)
        self.rooms = self.running = None

    async def reborn(self, clock: Clock | None = None) -> None:
        """Another process with another clock: its memory is empty, its caches on disk are those of the one before."""
        assert self.connect is not None
        await self.kill()
        self.manager = await self.connect(clock)
        await self.start()

    # -- objects -----------------------------------------------------------------------------------------------------

    async def source(self, **spec: Any) -> None:
        """Create or change the GitSource."""
        digest = digest_bytes(self.repo.git("show", f"{self.root}:{POLICY_PATH}").encode() + b"\n")
        body: Any = {
            "apiVersion": API_VERSION,
            "kind": "GitSource",
            "metadata": {"name": SOURCE, "namespace": self.namespace},
            "spec": {
                "url": self.url or self.repo.url,
                "ref": {"branch": "main"},
                "interval": "1h",
                "trust": {"root": {"commit": self.root, "policyDigest": digest}},
                **spec,
            },
        }
        await self.admin.apply(self.source_path, body, manager="tests", force=True)

    @property
    def source_path(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/gitsources/{SOURCE}"

    async def sync(self, name: str = "site", **spec: Any) -> None:
        body: Any = {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "sourceRef": {"name": SOURCE},
                "serviceAccountName": "applier",
                "path": "site",
                "targetNamespace": self.namespace,
                "prune": {"enabled": True},
                **spec,
            },
        }
        await self.admin.apply(self.sync_path(name), body, manager="tests", force=True)

    def sync_path(self, name: str = "site") -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/syncs/{name}"

    async def source_status(self) -> Any:
        return (await self.admin.get(self.source_path)).get("status", {})

    async def sync_status(self, name: str = "site") -> Any:
        return (await self.admin.get(self.sync_path(name))).get("status", {})

    async def condition(self, kind: str = "Ready", *, sync: str = "") -> Any:
        status = await self.sync_status(sync) if sync else await self.source_status()
        return next((item for item in status.get("conditions", ()) if item["type"] == kind), {})

    async def accepted(self) -> str:
        return str((await self.source_status()).get("accepted", {}).get("revision", ""))

    async def until_accepted(self, commit: str) -> None:
        async def there() -> bool:
            return await self.accepted() == commit

        try:
            await until(there, what=f"{commit} is accepted")
        except AssertionError as error:
            raise AssertionError(f"{error}; source says {await self.condition()}") from None

    async def until_reason(self, reason: str, *, sync: str = "") -> Any:
        async def says() -> Any:
            found = await self.condition(sync=sync)
            return found if found.get("reason") == reason else None

        try:
            return await until(says, what=f"Ready says {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}; last {await self.condition(sync=sync)}") from None

    async def until_applied(self, commit: str, name: str = "site") -> None:
        async def there() -> bool:
            status = await self.sync_status(name)
            ready = next((item for item in status.get("conditions", ()) if item["type"] == "Ready"), {})
            return status.get("lastAppliedRevision") == commit and ready.get("status") == "True"

        try:
            await until(there, what=f"{commit} is applied by {name}")
        except AssertionError as error:
            states = [await self.condition(), await self.condition(sync=name)]
            raise AssertionError(f"{error}; source and Sync say {states}") from None

    async def request(self, sync: str = "") -> None:
        """Ask for a pass with the annotation, as `gitops-ctl reconcile` does, and wait until it is answered."""
        value, path = secrets.token_hex(4), self.sync_path(sync) if sync else self.source_path
        await self.admin.patch_merge(path, {"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: value}}})

        async def answered() -> bool:
            status = await self.sync_status(sync) if sync else await self.source_status()
            return bool(status.get("lastHandledReconcileAt") == value)

        await until(answered, what="the request is answered")

    async def config_map(self, name: str) -> Any:
        """Its value, None when it is absent."""
        found = await self.admin.find(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")
        return None if found is None else found["data"]["value"]  # type: ignore[index,call-overload]

    async def set_config_map(self, name: str, value: str) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"
        await self.admin.patch_merge(path, {"data": {"value": value}}, manager="somebody")


def make_keys(folder: Path, names: Sequence[str] = (AUTHOR, PLATFORM, ADMIN)) -> dict[str, SshKey]:
    """A signing key for each person."""
    return {name: SshKey.generate(folder, name=name) for name in names}


@asynccontextmanager
async def product(
    admin: KubeClient, manager: KubeClient, namespace: str, folder: Path, *, keys: Mapping[str, SshKey]
) -> AsyncIterator[Product]:
    """A tenant with a root commit that holds the policy and one ConfigMap; nothing runs yet."""
    await install_crds(admin)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "applier", "namespace": namespace}}
    await admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    binding = {
        **RIGHTS,
        "metadata": {"name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "applier", "namespace": namespace}],
    }
    await admin.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    made = Product(admin, manager, namespace, RepoBuilder(folder / "repo"), keys, folder / "cache")
    made.root = made.commit(
        {POLICY_PATH: policy_text(keys), "site/base.yaml": config_map("base")}, by=ADMIN, message="begin"
    )
    try:
        yield made
    finally:
        await made.kill()
        page = await admin.list_all(f"/apis/{API_VERSION}/namespaces/{namespace}/syncs")
        for tree in page.items:
            path = made.sync_path(tree["metadata"]["name"])  # type: ignore[index,call-overload]
            await admin.patch_merge(path, {"metadata": {"finalizers": None}})
            await admin.delete(path)
        await admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{namespace}")


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SshKey]:
    """Signing keys of this run; made once, since ssh-keygen takes its time."""
    return make_keys(tmp_path_factory.mktemp("people"))


@pytest.fixture(name="world")
async def product_world(
    control_plane: Any, kube_admin: KubeClient, namespace: str, tmp_path: Path, people: dict[str, SshKey]
) -> AsyncIterator[Product]:
    """A tenant with a running product and an accepted root; import it (and `people`) into a test module to use it."""
    async with AsyncExitStack() as stack:

        async def connect(clock: Clock | None = None) -> KubeClient:
            config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
            client = KubeClient(config, component=f"product-{secrets.token_hex(3)}", clock=clock)
            return await stack.enter_async_context(client)

        manager = await connect()
        made = await stack.enter_async_context(product(kube_admin, manager, namespace, tmp_path, keys=people))
        made.connect = connect
        await made.source()
        await made.sync()
        await made.start()
        await made.until_applied(made.root)
        yield made


@dataclass
class ShiftedClock(SystemClock):
    """The clocks of this machine, each moved by so many seconds; a test moves them further."""

    wall_s: float = 0.0
    ahead_s: float = 0.0

    def wall(self) -> datetime:
        return SystemClock.wall(self) + timedelta(seconds=self.wall_s)

    def boot_s(self) -> float:
        return SystemClock.boot_s(self) + self.ahead_s

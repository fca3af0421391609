"""A running sync room on the real API server, fed from a repository made by git, with hand-made accepted revisions.

What verification would do is left out on purpose: `Bench.push` publishes the tip as accepted, with the consents that the test
names.  Everything after that is the product.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.api.names import ANNOTATION_REQUESTED_AT, API_VERSION, CISCO_GROUP, OPS_GROUP
from gitops_ctl.core.errors import NotFound
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.kube.config import ClusterConfig, load_cluster
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.sync.loading import CheckedLoader
from gitops_ctl.sync.room import Options, SyncRoom
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions, Introduced, Provenance
from tests.doubles.apiserver import FakeApiServer
from tests.support.git_repos import RepoBuilder

DEADLINE_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1
CRDS = Path(__file__).resolve().parents[2] / "schemas" / "crds"
SOURCE = "network"
TIMING = Timing(absent_s=0.2, absent_cap_s=0.4, backoff_s=0.1, confirm_s=0.5)


async def until(condition: Callable[[], Any], *, timeout_s: float = DEADLINE_S, what: str = "") -> Any:
    """The first true answer of `condition` (awaited when it has to be); fails after the deadline."""
    last: Any = None
    pause_s = FIRST_PAUSE_S
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                last = condition()
                if asyncio.iscoroutine(last):
                    last = await last
                if last:
                    return last
                await asyncio.sleep(pause_s)
                # What takes long is asked for less often: each look may be a request.
                pause_s = min(LONGEST_PAUSE_S, pause_s * 1.3)
    except TimeoutError:
        raise AssertionError(f"not within {timeout_s:g} s: {what or condition}; last {last!r}") from None


@cache
def definitions() -> tuple[dict[str, Any], ...]:
    """Our CustomResourceDefinitions, read once: parsing them takes longer than most tests."""
    return tuple(yaml.load(path.read_text(), Loader=yaml.CSafeLoader) for path in sorted(CRDS.glob("*.yaml")))


_installed: set[tuple[str, frozenset[str]]] = set()
"""Uid of a namespace of a real server, and what was left out there: nobody takes our kinds away from it again."""


async def install_crds(client: KubeClient, *, but: frozenset[str] = frozenset()) -> None:
    """Our kinds, served when this returns, without those of the groups in `but`; what is there already is not sent again."""
    # The ids of a double, which speaks plain HTTP, come again with the next one.
    if client._config.tls is None:
        await _install_crds(client, but)
        return
    place: Any = await client.get("/api/v1/namespaces/kube-system")
    known = (place["metadata"]["uid"], but)
    if known not in _installed:
        await _install_crds(client, but)
        _installed.add(known)


async def _install_crds(client: KubeClient, but: frozenset[str]) -> None:
    trees = [tree for tree in definitions() if tree["spec"]["group"] not in but]
    for tree in trees:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{tree['metadata']['name']}"
        found: Any = await client.find(path)
        if found is None or any(found["spec"].get(name) != value for name, value in tree["spec"].items()):
            await client.apply(path, tree, manager="tests", force=True)
    for tree in trees:
        path = f"/apis/{tree['spec']['group']}/v1alpha1/{tree['spec']['names']['plural']}"
        await until(lambda path=path: _is_served(client, path), what=path)


async def _is_served(client: KubeClient, path: str) -> bool:
    try:
        await client.get(f"{path}?limit=1")
    except NotFound:
        return False
    return True


class Loader:
    """Reads document sets from the object store, as the manager does; `gate` holds a loading back."""

    def __init__(self) -> None:
        self.cache = DocumentCache()
        self.loads: Counter[str] = Counter()

    def __call__(self, revision: AcceptedRevision, path: str) -> DocumentSet:
        self.loads[path] += 1
        store = ObjectStore.open(revision.store_path)
        try:
            tree = revision.tree or store.links(revision.commit).tree
            return load_set(store, tree=tree, path=path, cache=self.cache)
        finally:
            store.close()


@dataclass
class Bench:
    """One tenant namespace with a repository, Syncs and the room that works for them."""

    admin: KubeClient
    manager: KubeClient
    namespace: str
    repo: RepoBuilder
    revisions: AcceptedRevisions = field(default_factory=AcceptedRevisions)
    loader: Loader = field(default_factory=Loader)
    checked: CheckedLoader | None = None
    events: list[tuple[str, str, str]] = field(default_factory=list)
    room: SyncRoom | None = None
    running: asyncio.Task[None] | None = None
    consents: dict[tuple[ObjectId, str], Introduced] = field(default_factory=dict)
    void: dict[tuple[ObjectId, str], str] = field(default_factory=dict)

    # -- Git ---------------------------------------------------------------------------------------------------------

    def push(self, files: Mapping[str, str] | None = None, *, delete: Sequence[str] = (), source: str = SOURCE) -> str:
        """Commit and publish the tip as accepted; the commit id."""
        commit = self.repo.commit(files, delete=delete)
        self.publish(commit, source=source)
        return commit

    def publish(self, commit: str, *, source: str = SOURCE, **changes: Any) -> None:
        """Publish a commit as accepted."""
        revision = AcceptedRevision(
            source=NamespacedName(self.namespace, source),
            uid=f"uid-{source}",
            url=self.repo.url,
            ref="refs/heads/main",
            commit=commit,
            tree=self.repo.git("rev-parse", f"{commit}^{{tree}}"),
            store_path=self.repo.git_dir,
            provenance=Provenance(fields=dict(self.consents), void=dict(self.void)),
            generation=1,
            trusted=True,
            effects_allowed=True,
        )
        self.revisions.publish(replace(revision, **changes))

    def consent(self, identity: ObjectId, annotation: str, *, person: str = "change-approver") -> None:
        """From the next push on a person stands behind a consent annotation."""
        now = datetime(2026, 11, 30, 8, tzinfo=UTC)
        pointer = f"/metadata/annotations/{annotation.replace('/', '~1')}"
        self.consents[identity, pointer] = Introduced("c" * 40, person, "consent", person, now, now)

    # -- the room ----------------------------------------------------------------------------------------------------

    async def start(self, *, timing: Timing = TIMING, **options: Any) -> None:
        """Start the room, as a fresh process would."""
        chosen = Options(
            namespace=self.namespace,
            emit=lambda _tree, kind, reason, note: self.events.append((kind, reason, note)),
            timing=timing,
            **options,
        )
        self.checked = CheckedLoader(self.loader)
        self.room = SyncRoom(self.manager, revisions=self.revisions, load=self.checked, options=chosen)
        await self.room.__aenter__()
        self.running = asyncio.create_task(self.room.run())

    async def stop(self) -> None:
        """End the room as SIGTERM does."""
        if self.room is not None and self.running is not None:
            self.room.stop()
            await self.running
            await self.room.__aexit__(None, None, None)
        self.room = self.running = None

    async def kill(self) -> None:
        """End the room at once, whatever it is doing."""
        if self.room is not None and self.running is not None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)
            await self.room.__aexit__(None, None, None)
        self.room = self.running = None

    async def restart(self, **options: Any) -> None:
        """A new process: its memory is empty, the revisions are known again."""
        await self.stop()
        old, self.revisions = self.revisions, AcceptedRevisions()
        for source in (SOURCE, "other"):
            known = old.get(NamespacedName(self.namespace, source))
            if known is not None:
                self.revisions.publish(known)
        self.manager.calls.clear()
        await self.start(**options)

    @property
    def writes(self) -> int:
        """Requests of the manager that changed something, since its calls were cleared."""
        return sum(count for (verb, _), count in self.manager.calls.items() if verb in WRITE_VERBS)

    async def until_idle(self) -> None:
        """Until nothing is in flight or ready; delayed passes may remain."""

        def idle() -> bool:
            gauges = self.room.queue.gauges() if self.room is not None else {}
            return all(
                not value for name, value in gauges.items() if name.startswith("depth") or name.startswith("unfinished")
            )

        await until(idle, what="the queue is idle")

    # -- objects -----------------------------------------------------------------------------------------------------

    async def sync(self, name: str = "site", **spec: Any) -> None:
        """Create or change a Sync."""
        body = {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"sourceRef": {"name": SOURCE}, "serviceAccountName": "applier", **spec},
        }
        await self.admin.apply(self.sync_path(name), body, manager="tests", force=True)

    def sync_path(self, name: str = "site") -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/syncs/{name}"

    async def status(self, name: str = "site") -> Any:
        tree: Any = await self.admin.get(self.sync_path(name))
        return tree.get("status", {})

    async def condition(self, name: str = "site", kind: str = "Ready") -> Any:
        status = await self.status(name)
        return next((item for item in status.get("conditions", ()) if item["type"] == kind), {})

    async def until_ready(self, name: str = "site", *, commit: str = "", timeout_s: float = DEADLINE_S) -> Any:
        """The status once the Sync is Ready at a commit (the published one by default)."""
        revision = self.revisions.get(NamespacedName(self.namespace, SOURCE))
        wanted = commit or (revision.commit if revision is not None else "")

        async def ready() -> Any:
            tree: Any = await self.admin.get(self.sync_path(name))
            status = tree.get("status", {})
            good = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", ()))
            same = status.get("observedGeneration") == tree["metadata"]["generation"]
            return status if good and same and status.get("lastAppliedRevision") == wanted else None

        try:
            return await until(ready, timeout_s=timeout_s, what=f"{name} ready at {wanted}")
        except AssertionError as error:
            raise AssertionError(f"{error}; status {await self.status(name)}") from None

    async def until_reason(self, reason: str, *, name: str = "site", kind: str = "Ready") -> Any:
        """The condition once it has that reason."""

        async def has() -> Any:
            found = await self.condition(name, kind)
            return found if found.get("reason") == reason else None

        try:
            return await until(has, what=f"{kind} of {name} is {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}; status {await self.status(name)}") from None

    async def until_held(self, reason: str, *, name: str = "site", count: int = 1) -> Any:
        """The held objects once so many have that reason."""

        async def held() -> Any:
            found = [item for item in (await self.status(name)).get("held", ()) if item["reason"] == reason]
            return found if len(found) == count else None

        try:
            return await until(held, what=f"{count} held with {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}; status {await self.status(name)}") from None

    async def request(self, value: str = "", *, name: str = "site") -> None:
        """Ask for a pass now, and wait until it is answered."""
        value = value or secrets.token_hex(4)
        patch: JsonObject = {"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: value}}}
        await self.admin.patch_merge(self.sync_path(name), patch, manager="tests")

        async def answered() -> bool:
            return (await self.status(name)).get("lastHandledReconcileAt") == value

        await until(answered, what="the request is answered")

    def path(self, plural: str, name: str = "", *, group: str = "", namespace: str | None = None) -> str:
        """Path of an object of the tenant; `group` is `<group>/<version>`."""
        root = f"/apis/{group}" if group else "/api/v1"
        where = self.namespace if namespace is None else namespace
        scope = f"/namespaces/{where}" if where else ""
        return f"{root}{scope}/{plural}" + (f"/{name}" if name else "")

    async def get(self, plural: str, name: str, **more: Any) -> Any:
        return await self.admin.find(self.path(plural, name, **more))

    async def inventory(self, name: str = "site") -> list[Any]:
        """All entries of a Sync."""
        page = await self.admin.list_all(f"/apis/{API_VERSION}/namespaces/{self.namespace}/inventories")
        trees: Any = page.items
        return [
            entry
            for tree in trees
            if tree["spec"]["owner"]["sync"] == name
            for entry in tree["spec"].get("entries", ())
        ]

    def config_map(self, name: str, value: str = "1", **annotations: str) -> str:
        """YAML of a ConfigMap of the tenant; annotation names are those of ours, without the group."""
        noted = {f"gitops-ctl.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
        tree = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace, "annotations": noted},
            "data": {"key": value},
        }
        return document(tree)

    def config_maps(self, count: int, *, prefix: str = "n") -> dict[str, str]:
        """Files, one ConfigMap each."""
        return {f"{prefix}{number:04}.yaml": self.config_map(f"{prefix}{number:04}") for number in range(count)}


def document(tree: Mapping[str, Any]) -> str:
    """One YAML document."""
    return "---\n" + yaml.safe_dump(dict(tree), sort_keys=False)


RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
}


@asynccontextmanager
async def bench(
    admin: KubeClient, manager: KubeClient, namespace: str, folder: Path, *, but: frozenset[str] = frozenset()
) -> AsyncIterator[Bench]:
    """A tenant whose account may do everything; the room is started, and everything cluster-scoped goes afterwards."""
    await install_crds(admin, but=but)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "applier", "namespace": namespace}}
    await admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    binding = {
        **RIGHTS,
        "metadata": {"name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "applier", "namespace": namespace}],
    }
    await admin.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    made = Bench(admin, manager, namespace, RepoBuilder(folder / "repo"))
    await made.start()
    try:
        yield made
    finally:
        await made.kill()
        await _clean(admin, namespace)


async def _clean(admin: KubeClient, namespace: str) -> None:
    page = await admin.list_all(f"/apis/{API_VERSION}/namespaces/{namespace}/syncs")
    for tree in page.items:
        name = tree["metadata"]["name"]  # type: ignore[index,call-overload]
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/syncs/{name}"
        await admin.patch_merge(path, {"metadata": {"finalizers": None}})
        await admin.delete(path)
    await admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{namespace}")


@pytest.fixture(name="site")
async def sync_site(control_plane: Any, kube_admin: KubeClient, namespace: str, tmp_path: Path) -> AsyncIterator[Bench]:
    """A tenant with a running room; import it into a test module to use it."""
    async with AsyncExitStack() as stack:
        config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
        manager = await stack.enter_async_context(KubeClient(config, component="sync-tests"))
        yield await stack.enter_async_context(bench(kube_admin, manager, namespace, tmp_path))


@asynccontextmanager
async def fake_bench(server: FakeApiServer, folder: Path, *, devices: bool = False) -> AsyncIterator[Bench]:
    """The same tenant on the double, whose store the test can look into, snapshot and restore.

    `devices`: with the large definitions of devices and rollouts too.
    """
    async with AsyncExitStack() as stack:
        config = ClusterConfig(server.url)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        manager = await stack.enter_async_context(KubeClient(config, component="sync-tests"))
        for name in ("lab", "kube-system"):
            if await admin.find(f"/api/v1/namespaces/{name}") is None:
                await admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
        but = frozenset() if devices else frozenset({CISCO_GROUP, OPS_GROUP})
        yield await stack.enter_async_context(bench(admin, manager, "lab", folder, but=but))

"""The world of the demo: control plane, Git server, people, pinned source and manager; everything goes with the context."""

import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.api.manifests import manifest
from gitops_ctl.api.names import POLICY_PATH, SYSTEM_NAMESPACE
from gitops_ctl.cli.installing import TENANT_MANAGER, Tenant, granted, tenant_objects
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of, is_true
from gitops_ctl.core.errors import BlockedError, GitopsError, TerminalError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, objects_at, text_at
from gitops_ctl.documents.loader import load
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.certificates import Authority
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.gitserver import GitServer, Login
from gitops_ctl.local.product import MANAGER_ACCOUNT, put
from gitops_ctl.local.progress import progress_for
from gitops_ctl.local.state import SystemFolder, locked, state_home
from gitops_ctl.local.system import Provider, Request, bring_up, take_down
from gitops_ctl.local.workshop import Workshop, run_kubectl

NAMESPACE = "team-network"
NAME = "lab"
ACCOUNT = "applier"
_LOGIN = Login("controller", "only-for-the-demo")
_DEADLINE_S = 90.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """What the steps of the demo act on and look at."""

    client: KubeClient
    kubeconfig: Path
    binary: Path
    workshop: Workshop
    logs: Path
    say: Callable[[str], None]
    namespace: str = NAMESPACE
    name: str = NAME
    poll_s: float = _POLL_S
    deadline_s: float = _DEADLINE_S

    async def source(self) -> JsonObject:
        return await self.client.find(GIT_SOURCE.path(self.namespace, self.name)) or EMPTY

    async def sync(self) -> JsonObject:
        return await self.client.find(SYNC.path(self.namespace, self.name)) or EMPTY

    async def is_applied(self, commit: str) -> bool:
        """Whether source and Sync are Ready at this commit."""
        source, sync = object_at(await self.source(), "status"), object_at(await self.sync(), "status")
        accepted = text_at(source, "accepted", "revision") == commit and is_true(source, "Ready")
        return accepted and text_at(sync, "lastAppliedRevision") == commit and is_true(sync, "Ready")

    async def until(self, claim: str, holds: Callable[[], Awaitable[bool]]) -> float:
        """Wait until the claim holds; gives the seconds that it took.

        Raises:
            TerminalError: it did not come within the deadline; the message names what the objects say instead.
        """
        clock = self.client.clock
        start_s = clock.boot_s()
        while not await holds():
            if clock.boot_s() - start_s > self.deadline_s:
                ready = [_ready_text(await self.source()), _ready_text(await self.sync())]
                raise TerminalError(
                    f"{claim}: not within {self.deadline_s:g} s; source: {ready[0]}; sync: {ready[1]}",
                    code=ErrorCode.LOCAL_SYSTEM,
                    subject=str(self.logs),
                )
            await clock.sleep(self.poll_s)
        self.say(f"   {claim}")
        return clock.boot_s() - start_s

    def head(self) -> str:
        """The commit that the checkout is at."""
        return self.workshop.git("rev-parse", "HEAD").strip()

    def kubectl(self, *arguments: str) -> None:
        """Run kubectl as a person would, and show command and output."""
        self.say(f"   $ kubectl {shlex.join(arguments)}")
        for line in run_kubectl(self.binary, *arguments, kubeconfig=self.kubeconfig).splitlines():
            self.say(f"   {line}".rstrip())

    def copy(self, *folders: str) -> None:
        """Bring folders of the example repository into the checkout."""
        for folder in folders:
            shutil.copytree(manifest("examples-repo") / folder, self.workshop.checkout / folder, dirs_exist_ok=True)

    def show_commit(self, commit: str) -> None:
        """One line of git about a commit, with the signature's own verdict left to the controller."""
        self.say("   $ git log -1 --format='%h %an: %s'")
        self.say(f"   {self.workshop.git('log', '-1', '--format=%h %an: %s', commit).strip()}")


def _ready_text(tree: JsonObject) -> str:
    ready = condition_of(object_at(tree, "status"), "Ready") or EMPTY
    return f"{text_at(ready, 'status')} {text_at(ready, 'reason')} {text_at(ready, 'message')}".strip() or "nothing yet"


@asynccontextmanager
async def demo_world(*, say: Callable[[str], None]) -> AsyncIterator[DemoWorld]:
    """Start everything in a folder of its own; nothing of it is left when the context ends.

    Raises:
        GitopsError: a tool, disk or memory is short, something did not start, or another demo runs (LOCAL_BUSY).
    """
    folder = SystemFolder(state_home() / "demo")
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(alone("demo"))
        # What a killed demo left behind.
        await take_down(folder, purge=True)
        stack.push_async_callback(take_down, folder, purge=True)
        options = Options(nodes=1, durable=False)
        # Whoever closes the terminal ends it too.
        request = Request(folder.path, provider=Provider.PROCESSES, options=options, manager=True, owner=os.getpid())
        with progress_for(sys.stderr) as progress:
            state = await bring_up(request, progress=progress, clock=clock)
        say(f"control plane: Kubernetes {state.version} at {state.url}")
        say("manager: runs with its own account and its shipped rights")
        authority = Authority(folder.certs, "git-ca", clock=clock)
        server = GitServer.start(folder.path / "repositories", certificate=authority.server("git"), login=_LOGIN)
        stack.callback(server.stop)
        workshop = Workshop(folder.path, authority.certificate_path, _LOGIN)
        url = server.create("network")
        say(f"Git server: {url}")
        root, digest = first_commits(workshop, url)
        config = await load_cluster(Path(state.kubeconfig), allow_exec=False)
        client = await stack.enter_async_context(KubeClient(config, component="demo", clock=clock))
        await install(client, tenant=demo_tenant(url, root, digest, ca=authority.certificate_path.read_text()))
        yield DemoWorld(client, Path(state.kubeconfig), Path(state.kubectl), workshop, folder.logs, say)


def alone(name: str) -> AbstractContextManager[None]:
    """Be the only process that runs the demo of that name.

    Raises:
        BlockedError: another one does (LOCAL_BUSY).
    """
    lock = state_home() / f"{name}.lock"
    hint = "wait for its end, or end it with Ctrl-C where it runs"
    busy = BlockedError("another demo is running", code=ErrorCode.LOCAL_BUSY, subject=str(lock), hint=hint)
    return locked(lock, busy=busy)


@contextmanager
def logs_kept(home: Path) -> Iterator[None]:
    """A failure names a folder with the logs of everything that ran."""
    kept = home.with_name(f"{home.name}-logs")
    shutil.rmtree(kept, ignore_errors=True)
    try:
        yield
    except GitopsError as error:
        for log in sorted(home.rglob("*.log")):
            target = kept / "-".join(log.relative_to(home).parts)
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(log, target)
        raise TerminalError(error.message, code=error.code, subject=str(kept), hint=error.hint) from error


def first_commits(workshop: Workshop, url: str) -> tuple[str, str]:
    """The policy and the platform's documents, signed and pushed; gives the root commit and the policy's digest."""
    example = manifest("examples-repo")
    target = begin(workshop, url)
    shutil.copy(example / "README.md", workshop.checkout / "README.md")
    root = workshop.commit("Begin: who may change what", author="policy-admin-a")
    for name in ("namespaces", "rbac", "policies", "crds", "workloads"):
        shutil.copytree(example / "clusters/lab" / name, workshop.checkout / "clusters/lab" / name)
    workshop.commit("Add namespaces, roles, network policies and the collector", author="platform-author")
    workshop.push()
    return root, digest_bytes(target.read_bytes())


def begin(workshop: Workshop, url: str) -> Path:
    """A checkout with the policy of the example, which is not committed yet; gives its file."""
    workshop.start(url)
    text = (manifest("examples-repo") / POLICY_PATH).read_text(encoding="utf-8")
    target = workshop.checkout / POLICY_PATH
    target.parent.mkdir(parents=True)
    target.write_text(policy_with_keys(text, workshop), encoding="utf-8")
    return target


def policy_with_keys(text: str, workshop: Workshop) -> str:
    """The example policy with a fresh key for each person in place of the printed ones."""
    (document,) = load(text.encode(), file=POLICY_PATH).documents
    for person in objects_at(document.tree, "people"):
        for key in objects_at(person, "keys"):
            text = text.replace(text_at(key, "ssh"), workshop.person(text_at(person, "name")).public_key)
    return text


def demo_tenant(url: str, root: str, digest: str, *, ca: str) -> Tenant:
    """What bootstrap would be told: the pinned root, the login of the Git server and its authority."""
    return Tenant(
        namespace=NAMESPACE,
        source=NAME,
        sync=NAME,
        url=url,
        branch="main",
        path="clusters/lab",
        service_account=ACCOUNT,
        root=root,
        policy_digest=digest,
        credentials={"username": _LOGIN.user, "password": _LOGIN.password},
        ca=ca,
        interval="5s",
    )


async def install(client: KubeClient, *, tenant: Tenant) -> None:
    """What bootstrap does for a tenant, and the rights that a person gives to the Sync's account and to the manager."""
    mapper = Mapper(client)
    for wanted in tenant_objects(tenant):
        await put(client, mapper, wanted=wanted, manager=TENANT_MANAGER)
    for wanted in (*applier_rights(tenant), *watch_rights()):
        await put(client, mapper, wanted=wanted, manager=TENANT_MANAGER)


def applier_rights(tenant: Tenant) -> tuple[JsonObject, ...]:
    """What the documents of the example need; who applies roles must hold them or may escalate."""
    name = f"{tenant.namespace}-{tenant.service_account}"
    verbs = ["get", "create", "patch", "delete"]
    rules: list[JsonObject] = [
        {"apiGroups": [""], "resources": ["namespaces", "configmaps", "services", "serviceaccounts"], "verbs": verbs},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs},
        {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": verbs},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings"],
            "verbs": [*verbs, "bind", "escalate"],
        },
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": verbs},
        {"apiGroups": ["lab.example.net"], "resources": ["accessports"], "verbs": verbs},
    ]
    return granted(name, rules, account=tenant.service_account, namespace=tenant.namespace)


def watch_rights() -> tuple[JsonObject, ...]:
    """What the manager needs to hear of drift in a kind of one's own: without it such objects are only looked at in turn."""
    rules: list[JsonObject] = [
        {"apiGroups": ["lab.example.net"], "resources": ["accessports"], "verbs": ["list", "watch"]}
    ]
    return granted("lab-informers", rules, account=MANAGER_ACCOUNT, namespace=SYSTEM_NAMESPACE)

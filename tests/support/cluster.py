"""A real control plane for tests: one per test run, shared by all workers, gone with the run.

The first worker that needs it starts the product's own supervisor, owned by the process of the whole run, so that nothing is left
behind when that process ends or is killed.  Each test gets a namespace of its own.
"""

import asyncio
import fcntl
import http.client
import json
import os
import re
import secrets
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.binaries import Binaries, find_binaries
from gitops_ctl.local.controlplane import Options, client_context, issue_kubeconfig
from gitops_ctl.local.progress import LineProgress
from gitops_ctl.local.state import SystemFolder, SystemState
from gitops_ctl.local.supervisor import Job, start_supervisor

_RUNNER = "GITOPS_CTL_TEST_RUNNER"
OPTIONS = Options(audit=True, durable=False, event_ttl="10m")


@dataclass(frozen=True)
class Answer:
    """What the API server said."""

    status: int
    body: Any


class ControlPlaneHandle:
    """The running control plane of this test run.

    Attributes:
        url: base address of the API server.
        kubeconfig: file of its administrator.
        kubectl: program that fits the server.
        audit: path of the audit log.
    """

    def __init__(self, folder: SystemFolder, state: SystemState, binaries: Binaries) -> None:
        self.folder = folder
        self.state = state
        self.url = state.url
        self.kubeconfig = Path(state.kubeconfig)
        self.kubectl = binaries.kubectl
        self.binaries = binaries
        self.audit = Path(state.audit_log)

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """TLS context of the administrator."""
        return client_context(self.folder, self.kubeconfig)

    def kubeconfig_for(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig with a client certificate for `user` in `groups`."""
        name = f"test-{re.sub('[^a-z0-9]+', '-', user.lower())}-{secrets.token_hex(4)}"
        return issue_kubeconfig(self.folder, name, server=self.url, user=user, groups=groups, clock=SystemClock())

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "*/*",
    ) -> Answer:
        """One plain request as the administrator, apart from the client under test."""
        host, port = self.url.removeprefix("https://").split(":")
        connection = http.client.HTTPSConnection(host, int(port), context=self.ssl_context, timeout=30)
        try:
            headers = {"Content-Type": content_type, "Accept": accept, "User-Agent": "tests"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        try:
            return Answer(reply.status, json.loads(text))
        except ValueError:
            return Answer(reply.status, text)


class AuditLog:
    """Requests that the server answered since this object was made.  An entry is there when its answer is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size

    def mark(self) -> None:
        """Forget what happened until now."""
        self._start = self._path.stat().st_size

    def entries(
        self, *, user: str = "", user_agent: str = "", verbs: tuple[str, ...] = (), namespace: str = ""
    ) -> list[Mapping[str, Any]]:
        """Audit events in order, narrowed by exact user, part of the user agent, verbs and namespace."""
        with self._path.open("rb") as stream:
            stream.seek(self._start)
            # The last line may still be being written.
            lines = stream.read().split(b"\n")[:-1]
        events = [json.loads(line) for line in lines]
        return [
            event
            for event in events
            if (not user or user in {_user(event), event.get("impersonatedUser", {}).get("username")})
            and user_agent in event.get("userAgent", "")
            and (not verbs or event["verb"] in verbs)
            and (not namespace or event.get("objectRef", {}).get("namespace") == namespace)
        ]

    def writes(self, **narrowed: Any) -> list[Mapping[str, Any]]:
        """Entries that changed something."""
        return self.entries(verbs=("create", "update", "patch", "delete", "deletecollection"), **narrowed)


def _user(event: Mapping[str, Any]) -> str:
    return str(event.get("user", {}).get("username", ""))


def pytest_configure(config: pytest.Config) -> None:
    """Remember the process of the whole run before workers are started: the control plane lives as long as it does."""
    if not hasattr(config, "workerinput"):
        os.environ[_RUNNER] = str(os.getpid())


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> ControlPlaneHandle:
    """The control plane of this run; started by whoever needs it first."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    return asyncio.run(_shared_control_plane(shared / "control-plane"))


async def _shared_control_plane(directory: Path) -> ControlPlaneHandle:
    folder = SystemFolder(directory)
    with directory.with_suffix(".lock").open("ab") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        binaries = await find_binaries(progress=LineProgress(sys.__stderr__ or sys.stderr))
        state = folder.state()
        if state is None:
            job = Job(directory, binaries, OPTIONS, owner=int(os.environ[_RUNNER]))
            state = await start_supervisor(job, clock=SystemClock())
    return ControlPlaneHandle(folder, state, binaries)


@pytest.fixture
def namespace(control_plane: ControlPlaneHandle, request: pytest.FixtureRequest) -> str:
    """A namespace of this test alone.  It goes with the control plane: to remove it takes a hundred requests, of each kind that there is."""
    words = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{words}-{secrets.token_hex(3)}"
    made = control_plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert made.status == 201, made.body
    return name


@pytest.fixture
def audit_log(control_plane: ControlPlaneHandle) -> AuditLog:
    """Reads what the server was asked, from now on."""
    return AuditLog(control_plane.audit)


class UserFactory(Protocol):
    """Makes clients of further identities; they are closed after the test."""

    async def __call__(self, name: str, groups: tuple[str, ...] = ()) -> Any: ...


@pytest.fixture
async def kube_admin(control_plane: ControlPlaneHandle) -> AsyncIterator[Any]:
    """The product's client, as the administrator."""
    async with AsyncExitStack() as stack:
        yield await _client(stack, control_plane.kubeconfig)


@pytest.fixture
async def kube_user(control_plane: ControlPlaneHandle) -> AsyncIterator[UserFactory]:
    """`await kube_user("network-author", ("authors",))` is the product's client with a certificate for that user."""
    async with AsyncExitStack() as stack:

        async def make(name: str, groups: tuple[str, ...] = ()) -> Any:
            return await _client(stack, control_plane.kubeconfig_for(name, groups))

        yield make


async def _client(stack: AsyncExitStack, kubeconfig: Path) -> Any:
    from gitops_ctl.kube.config import load_cluster
    from gitops_ctl.kube.transport import KubeClient

    config = await load_cluster(kubeconfig, allow_exec=False)
    return await stack.enter_async_context(KubeClient(config, component="tests", clock=SystemClock()))

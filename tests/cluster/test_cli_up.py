"""`gitops-ctl up` with the product: the manager leads, restarts, and goes with the system.

In scope: what `up` adds to a control plane.  Out of scope: the control plane, and one without the product (test_local_up_down.py).
"""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from tests.support.cli import Done, run_cli
from tests.support.cluster import ControlPlaneHandle
from tests.support.git_repos import RepoBuilder
from tests.support.processes import is_running, processes_of
from tests.support.product import ADMIN, PLATFORM, config_map, make_keys, policy_text
from tests.support.sync_cluster import RIGHTS, until

pytestmark = pytest.mark.cluster

LEASE = "/apis/coordination.k8s.io/v1/namespaces/gitops-ctl-system/leases/gitops-ctl-manager"


class Local:
    """The commands on a folder of these tests."""

    def __init__(self, directory: Path, assets: Path) -> None:
        self.directory = directory
        self._assets = assets

    async def run(self, name: str, *arguments: str) -> Done:
        environment = {"KUBEBUILDER_ASSETS": str(self._assets)}
        return await run_cli(name, "--directory", str(self.directory), *arguments, environment=environment)

    async def up(self, *arguments: str) -> Any:
        done = await self.run("up", "-o", "json", *arguments)
        assert done.code == 0, done.err
        return done.json

    def manager(self) -> int:
        """Process id of the manager as it is written down now."""
        return int(json.loads((self.directory / "system.json").read_text())["manager"])

    def nothing_runs(self) -> bool:
        return processes_of(str(self.directory)) == []

    async def holder(self) -> str:
        """Who holds the Lease; empty for nobody."""
        config = await load_cluster(self.directory / "admin.kubeconfig", allow_exec=False)
        async with KubeClient(config, component="tests", clock=SystemClock()) as client:
            lease: Any = await client.find(LEASE) or {}
        return str(lease.get("spec", {}).get("holderIdentity", ""))


@pytest.fixture(scope="module")
def local(control_plane: ControlPlaneHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """One system for all: each test begins with `up`, which starts nothing where the one before left it up."""
    assets = tmp_path_factory.mktemp("assets")
    binaries = control_plane.binaries
    for program in (binaries.etcd, binaries.kube_apiserver, binaries.kube_controller_manager):
        (assets / program.name).symlink_to(program)
    for program in (binaries.kube_scheduler, binaries.kubectl):
        (assets / program.name).symlink_to(program)
    system = Local(tmp_path_factory.mktemp("local") / "system", assets)
    yield system
    asyncio.run(system.run("down", "--purge"))
    assert system.nothing_runs()


async def test_up_installs_the_product_and_runs_its_manager_until_down(local: Local) -> None:
    state = await local.up()
    assert is_running(state["manager"])
    leader = await until(local.holder, what="the manager leads")
    done = await run_cli("status", "-o", "json", kubeconfig=Path(state["kubeconfig"]))
    assert (done.code, done.json["items"], done.err) == (0, [], "")

    assert (await local.run("down")).err == "stopped\n"
    await until(local.nothing_runs)
    assert not is_running(state["manager"])

    again = await local.up()

    async def leads() -> bool:
        return await local.holder() not in ("", leader)

    assert await local.holder() != leader, "the Lease was not released"
    await until(leads, what="the next manager leads")
    assert is_running(again["manager"])


async def test_up_and_bootstrap_take_a_repository_of_this_machine_to_applied_objects(
    local: Local, tmp_path: Path
) -> None:
    keys = make_keys(tmp_path, (PLATFORM, ADMIN))
    repo = RepoBuilder(tmp_path / "repo")
    document = config_map("base").replace("name: base", "name: base\n  namespace: team")
    files = {POLICY_PATH: policy_text(keys, people=(PLATFORM, ADMIN)), "site/base.yaml": document}
    repo.commit(files, author=f"{ADMIN} <{ADMIN}@example.net>", signer=keys[ADMIN])
    state = await local.up()
    kubeconfig = Path(state["kubeconfig"])
    arguments = ["bootstrap", repo.url, "--allow-file-url", "-n", "team", "--path", "site", "--no-install"]
    done = await run_cli(*arguments, kubeconfig=kubeconfig, typed="y\n")
    assert done.code == 0, done.err
    config = await load_cluster(kubeconfig, allow_exec=False)
    async with KubeClient(config, component="tests", clock=SystemClock()) as client:
        account: JsonObject = {"kind": "ServiceAccount", "name": "gitops-ctl-sync", "namespace": "team"}
        rights: Any = {**RIGHTS, "metadata": {"name": "team"}, "subjects": [account]}
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", rights)

    async def is_ready() -> bool:
        return (await run_cli("status", "-n", "team", kubeconfig=kubeconfig)).code == 0

    await run_cli("reconcile", "gsync/main", "-n", "team", kubeconfig=kubeconfig)
    await until(is_ready, what="source and Sync are ready")
    same = await run_cli("diff", "-n", "team", kubeconfig=kubeconfig, cwd=repo.path)
    assert (same.code, same.out.splitlines()[-1]) == (0, "team/main: 1 same")


async def test_kill_9_of_the_supervisor_takes_the_manager_along_and_one_that_ends_is_started_again(
    local: Local,
) -> None:
    state = await local.up()
    os.kill(state["manager"], signal.SIGKILL)
    second = await until(lambda: local.manager() != state["manager"] and local.manager(), what="another manager")
    assert is_running(second)
    assert is_running(state["processes"]["kube-apiserver"])
    log = (local.directory / "logs" / "supervisor.log").read_text()
    assert "the manager was killed by SIGKILL and is started again" in log

    os.kill(state["supervisor"], signal.SIGKILL)
    await until(local.nothing_runs, timeout_s=10)
    # One that is just being killed has no command line any more.
    await until(lambda: not is_running(second), timeout_s=10, what="the manager is gone")

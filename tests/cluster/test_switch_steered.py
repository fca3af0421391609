"""Signed commits that steer a switch, from the commit of a person to the operation (cni-switch.md, sections 6.6 and 21): cancel, breakLock, revert.

The rooms of the manager on a real API server with real keys; a model of the cluster worker has the machines.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ICHOR_API_VERSION
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError
from tests.support.authority import APPROVER, CLUSTER, FORGE, ROBOT, SECOND_KEY, Scene
from tests.support.git_keys import SshKey
from tests.support.product import ADMIN, AUTHOR, PLATFORM, Product, make_keys, product_world  # noqa: F401
from tests.support.switch_live import Live, LiveMachine
from tests.support.switch_worker import ModelWorker
from tests.support.sync_cluster import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

NAME = "one"
ROLES = {"cp-1": "controlplane", "node-1": "worker"}
MACHINES = "site/clusters/machines.yaml"


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SshKey]:
    names = (AUTHOR, PLATFORM, ADMIN, APPROVER, SECOND_KEY, FORGE, ROBOT)
    return make_keys(tmp_path_factory.mktemp("steering"), names)


def declared(mode: str, *, consent: bool = True, **operation: object) -> str:
    """The cluster with the wanted mode, its consent, and what steers its operation."""
    metadata: dict[str, Any] = {"name": NAME}
    if consent:
        metadata["annotations"] = {ANNOTATION_CONFIRM_SWITCH: mode}
    cni: dict[str, Any] = {"kubeProxy": mode, **({"operation": operation} if operation else {})}
    spec = {"talosconfigSecretRef": {"name": "talosconfig"}, "cni": cni}
    tree = {"apiVersion": ICHOR_API_VERSION, "kind": "TalosCluster", "metadata": metadata, "spec": spec}
    return json.dumps(tree, indent=1) + "\n"


def machines() -> str:
    trees = [
        {
            "apiVersion": ICHOR_API_VERSION,
            "kind": "TalosMachine",
            "metadata": {"name": name},
            "spec": {"clusterRef": {"name": NAME}, "address": "192.0.2.1", "role": role},
        }
        for name, role in ROLES.items()
    ]
    return "".join(f"---\n{json.dumps(tree)}\n" for tree in trees)


class Switch:
    """The tenant of a scene, whose cluster waits for its CNI to be changed."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.world = scene, scene.world
        now = SystemClock().wall()
        self.live = Live(now, {name: LiveMachine(name, role, "enabled") for name, role in ROLES.items()})
        self.live.written = self.live.template_written = self.live.started = now - timedelta(days=1)
        self._model = ModelWorker(
            self.world.admin,
            namespace=self.world.namespace,
            cluster=NAME,
            live=self.live,
            wall=SystemClock().wall,
        )

    async def work(self) -> None:
        """The worker, until it is cancelled."""
        while True:
            with suppress(GitopsError):
                await self._model.look()
            await asyncio.sleep(0.2)

    async def begin(self) -> None:
        self.world.commit({MACHINES: machines()}, by=AUTHOR)
        self.world.commit({CLUSTER: declared("replaced", consent=False)}, by=AUTHOR)
        self.world.push({CLUSTER: declared("replaced")}, by=APPROVER)
        await self.reached("AwaitingCNIChange")

    def owner_changes_the_cni(self) -> None:
        self.live.now = SystemClock().wall()
        self.live.change_cni("true")

    async def reached(self, phase: str) -> Any:
        """The one operation in that phase."""
        path = f"/apis/{ICHOR_API_VERSION}/namespaces/{self.world.namespace}/talosoperations"

        async def there() -> Any:
            [found] = (await self.world.admin.list_all(path)).items or [{}]
            status: Any = found.get("status", {})
            return found if status.get("phase") == phase else None

        return await until(there, timeout_s=90.0, what=phase)

    async def ended(self, reason: str) -> Any:
        """The operation, cancelled for that reason and with the lock freed."""
        found = await self.reached("Cancelled")
        [said] = [one for one in found["status"]["conditions"] if one["type"] == "Succeeded"]
        assert said["reason"] == reason

        async def freed() -> bool:
            return "lock" not in (await self.scene.cluster())["status"]

        await until(freed, what="the lock is freed")
        return found


@pytest.fixture
async def switch(world: Product, tmp_path: Path) -> AsyncIterator[Switch]:
    made = Switch(await Scene.begin(world, tmp_path))
    working = asyncio.create_task(made.work())
    try:
        await made.begin()
        yield made
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_signed_cancel_ends_an_operation_that_touched_nothing_and_only_by_a_person_with_the_verb(
    switch: Switch,
) -> None:
    last = await switch.world.accepted()
    bad = switch.world.push({CLUSTER: declared("replaced", cancel=True)}, by=APPROVER)
    await switch.scene.refused("PathNotAuthorised", commit=bad, last=last)
    await switch.reached("AwaitingCNIChange")
    switch.scene.reset(last)
    switch.world.push({CLUSTER: declared("replaced", cancel=True)}, by=AUTHOR)
    found = await switch.ended("Cancelled")
    assert found["status"]["operation"]["cancel"] is True
    assert switch.live.effects == []


async def test_a_signed_break_lock_ends_a_paused_operation_and_undoes_nothing(switch: Switch) -> None:
    switch.live.machines["node-1"].refuses = "ApplyRefused: two documents are wrong"
    switch.owner_changes_the_cni()
    await switch.reached("Paused")
    effects = list(switch.live.effects)
    switch.world.push({CLUSTER: declared("replaced", breakLock=True)}, by=AUTHOR)
    await switch.ended("LockBroken")
    assert switch.live.effects == effects
    assert switch.live.machines["cp-1"].proxy == "disabled"
    assert (await switch.scene.cluster())["status"]["cni"]["kubeProxy"] == "replaced"


async def test_a_signed_revert_ends_the_operation_although_the_cluster_is_held_and_the_cni_is_changed(
    switch: Switch,
) -> None:
    commit = switch.world.push({CLUSTER: declared("enabled", consent=False)}, by=AUTHOR)
    held = await switch.scene.held("ConsentMissing")
    assert "changes from replaced to enabled" in held["message"]
    assert await switch.world.accepted() == commit
    assert await switch.scene.mode() == "replaced"
    await switch.ended("TargetChanged")
    switch.owner_changes_the_cni()
    await switch.scene.others_go_on()
    assert switch.live.effects == []
    assert "kubeProxy" not in (await switch.scene.cluster())["status"].get("cni", {})

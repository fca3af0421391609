"""Managed devices and a software rollout on the API server in memory, on virtual time: both rooms of the manager, and stand-ins for all workers."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import cache
from typing import Any

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.git_source import GitSource
from gitops_ctl.api.inventory import Inventory
from gitops_ctl.api.proposal import Proposal
from gitops_ctl.api.sync import Sync
from gitops_ctl.cli.rolloutfleet import ManagedFleet
from gitops_ctl.kube.controller import Pace
from gitops_ctl.rollout.controller import Intervals
from gitops_ctl.rollout.room import Options as RolloutOptions
from gitops_ctl.rollout.room import RolloutRoom
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.room import TopologyRoom
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.peer_crds import install
from tests.support import device_world
from tests.support.device_world import DEVICES, OPTIONS, POLICY_NAME, SYSTEM, DeviceWorld
from tests.support.leaf_workers import LeafWorkers
from tests.support.rollout_revision import RolloutInGit
from tests.support.simulation_loop import run_virtually
from tests.support.topology_devices import NAMESPACE, POLICY, device

NAME = "spring"
ROLLOUT = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{NAMESPACE}/iosxesoftwarerollouts/{NAME}"
PROPOSALS = f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{NAMESPACE}/proposals"
COHORT, FAMILY = "operations.cisco.vk/qualification-cohort", "operations.cisco.vk/image-family"
SOURCE_URL = "https://images.example.net/cat9k.bin"


def document(*, canaries: tuple[str, ...] = ("access-1",), **plan: Any) -> Any:
    """A rollout as a person writes it: without names and times of people."""
    wanted = {
        "targets": {"selector": {"matchLabels": {"topology.cisco.vk/managed": "true"}}},
        "image": {
            "sha256": "a" * 64,
            "imageFamily": "cat9k",
            "sources": [{"name": "main", "priority": 10, "url": SOURCE_URL}],
        },
        "targetVersion": "17.18.03",
        "strategy": "Reload",
        "canaries": [{"name": "c9300", "devices": list(canaries)}],
        "pauseAfterCanary": False,
        "budgets": {"maxConcurrentTransfers": 1, "maxUnavailable": 1},
        "workloads": {"policy": "BlockIfRunning"},
        "health": {"maxObservationAgeSeconds": 300, "canarySoakSeconds": 1, "waveSoakSeconds": 1},
        **plan,
    }
    return {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareRollout",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"plan": wanted},
    }


class RolloutWorld(DeviceWorld):
    """A cluster with devices and what Git says about one rollout.

    Attributes:
        git: the repository.
    """

    def __init__(self) -> None:
        super().__init__()
        self.api.restore(_prepared())
        self.revisions = AcceptedRevisions()
        self.git = RolloutInGit(self.revisions, document())
        self.rollouts: RolloutRoom | None = None
        self.intervals = Intervals()
        self._ids = itertools.count(1)
        self._rolling: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator["RolloutWorld"]:
        async with super().living(), direct_client(self.api, component="leaf-worker", clock=self.clock) as client:
            self.leaf_workers = LeafWorkers(client, namespace=NAMESPACE)
            working = asyncio.create_task(self.leaf_workers.run())
            try:
                yield self
            finally:
                await self.stop()
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)

    async def start(self, options: Options = OPTIONS) -> TopologyRoom:
        """A manager leads, with both rooms."""
        managed = await super().start(options)
        assert self._client is not None
        self.rollouts = RolloutRoom(
            self._client,
            revisions=self.revisions,
            read=self.git.read,
            read_file=lambda _revision, _path: self.git.data,
            inventory=ManagedFleet(managed.caches, managed.options),
            options=RolloutOptions(
                namespace=SYSTEM,
                policy=POLICY_NAME,
                intervals=self.intervals,
                emit=self._tell,
                require=managed.require,
                new_id=lambda: f"{next(self._ids):032x}",
                pace=Pace(blocked_s=5.0, bug_s=5.0),
            ),
        )
        self._rolling = asyncio.create_task(self.rollouts.run())
        return managed

    async def stop(self) -> None:
        if self.rollouts is not None and self._rolling is not None:
            self.rollouts.stop()
            with contextlib.suppress(BaseExceptionGroup, device_world.Crash):
                await self._rolling
        self.rollouts = self._rolling = None
        await super().stop()

    @property
    def requests(self) -> dict[tuple[str, str], int]:
        """How often the manager asked for rollouts, leaves, and the maps of policy and ledger, by verb and resource."""
        assert self._client is not None
        own = ("iosxesoftwarerollouts", "iosxesoftwareupgrades", "configmaps")
        return {key: count for key, count in self._client.calls.items() if key[1] in own and key[0] != "watch"}

    # -- the cluster ----------------------------------------------------------------------------------------------

    async def fleet(self, *names: str) -> None:
        """Devices that may be upgraded, with their policy and its ledger; until they are ready."""
        await self.policy(requiredTopologyKeys=POLICY["requiredTopologyKeys"])
        for name in names:
            await self.device(name)
            labels = {**device(name)["metadata"]["labels"], COHORT: "c9300", FAMILY: "cat9k"}
            await self.admin.patch_merge(f"{DEVICES}/{name}", {"metadata": {"labels": labels}})
        for name in names:
            await self.ready(name)

    async def request(self) -> None:
        """The rollout is in Git, accepted and applied."""
        self.git.accept()
        await self.git.apply(self.admin)

    async def approve(self) -> None:
        """A person with the verb approves the exact plan, and the Sync applies it."""
        plan_hash = (await self.status())["frozenPlan"]["hash"]
        self.git.tree["spec"]["approval"] = {"planHash": plan_hash}
        self.git.who["/spec/approval"] = ("approve", "change-approver")
        await self.request()

    async def rollout(self) -> Any:
        return await self.get(ROLLOUT)

    async def status(self) -> Any:
        return (await self.rollout()).get("status", {})

    async def reaches(self, phase: str, *, timeout_s: float = 900.0) -> Any:
        """Wait until the campaign is in that phase; its status."""

        async def is_there() -> bool:
            return bool((await self.status()).get("phase") == phase)

        try:
            await self.until(is_there, what=f"phase {phase}", timeout_s=timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self.status()}") from error
        return await self.status()

    async def proposals(self) -> dict[str, Any]:
        """Proposals by their purpose."""
        items: Any = (await self.admin.list_all(PROPOSALS)).items
        return {tree["spec"]["reason"].partition("/")[0]: tree for tree in items}

    def reasons(self) -> list[str]:
        """What was told about the rollout, in order."""
        return [reason for _, reason, name, _ in self.told if name == NAME]


@cache
def _prepared() -> Snapshot:
    api = ApiServer(lag=0)
    api.restore(device_world._prepared())
    crds: list[Any] = [crd_of(kind) for kind in (GitSource, Sync, Inventory, Proposal)]
    install(api, crds)
    return api.snapshot()


def in_rollout_world(story: Callable[[RolloutWorld], Coroutine[Any, Any, None]]) -> None:
    """Run a story in a new cluster, on virtual time."""

    async def run() -> None:
        async with RolloutWorld().living() as world:
            await story(world)

    run_virtually(run())

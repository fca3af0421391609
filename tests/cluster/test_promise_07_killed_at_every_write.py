"""P7: killing the manager at every write of a full cycle loses nothing and repeats nothing that must not be repeated.

In turn for each write k of a step (accept and apply, drift, prune, delete) the process dies before the write is sent, and once
more before its answer is read.  A process with an empty memory goes on, and the end must be the same as without a death.  Every day
each third write of accepting, applying and pruning has its turn; `make soak` takes all.  Real processes and SIGKILL: tests/cluster/test_rbac_process.py.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_crash import Fuse
from tests.support.product import Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

MOST_WRITES = 40
"""More writes than any step has; a step that needs more is a finding by itself."""


class Lives:
    """Lives of the manager on one tenant: each has a client, a memory and a fuse of its own."""

    def __init__(self, world: Product, stack: AsyncExitStack, kubeconfig: Any) -> None:
        self.world = world
        self._stack = stack
        self._kubeconfig = kubeconfig
        self.fuse: Fuse | None = None

    async def begin(self, *, at: int = 0, after: bool = False) -> None:
        """A new process; with `at` it dies at that write."""
        await self.world.kill()
        config = await load_cluster(self._kubeconfig, allow_exec=False)
        client = KubeClient(config, component=f"product-{secrets.token_hex(3)}")
        self.world.manager = await self._stack.enter_async_context(client)
        self.fuse = Fuse(client, at=at, after=after)
        await self.world.start()

    def _is_idle(self) -> bool:
        """Whether no pass runs or is due, delayed ones apart."""
        rooms = self.world.rooms
        assert rooms is not None
        gauges = {**rooms.sources.queue.gauges(), **{f"sync {k}": v for k, v in rooms.syncs.queue.gauges().items()}}
        return not any(value for name, value in gauges.items() if "depth" in name or "unfinished" in name)

    @property
    def dead(self) -> bool:
        return self.fuse is not None and self.fuse.blown

    async def step(
        self, act: Callable[[], Awaitable[None]], reached: Callable[[], Awaitable[bool]], k: int, *, after: bool
    ) -> bool:
        """Do `act` before a process that dies at write k, let another finish; False when the step has fewer writes."""
        await act()
        await self.begin(at=k, after=after)

        async def over() -> bool:
            # An effect can be seen before its answer is read: only a process with nothing in hand has survived.
            return self.dead or (await reached() and self._is_idle() and await reached())

        await until(over, what=f"the step is over or the process died at write {k}", timeout_s=60)
        died = self.dead
        if died:
            await self.begin()
            await until(reached, what=f"the step is over after a death at write {k}", timeout_s=60)
        return died


@pytest.fixture
async def lives(world: Product, control_plane: Any) -> AsyncIterator[Lives]:
    async with AsyncExitStack() as stack:
        made = Lives(world, stack, control_plane.kubeconfig)
        yield made
        await world.kill()


async def in_cluster(world: Product) -> dict[str, str]:
    """Value of each ConfigMap of the tenant that we own."""
    page = await world.admin.list_all(f"/api/v1/namespaces/{world.namespace}/configmaps")
    trees: Any = page.items
    return {tree["metadata"]["name"]: tree["data"]["value"] for tree in trees if "value" in tree.get("data", {})}


async def uids(world: Product) -> dict[str, str]:
    page = await world.admin.list_all(f"/api/v1/namespaces/{world.namespace}/configmaps")
    trees: Any = page.items
    return {tree["metadata"]["name"]: tree["metadata"]["uid"] for tree in trees}


async def inventory(world: Product) -> dict[str, str]:
    """Name to UID of every entry; a name that stands there twice is a failure."""
    page = await world.admin.list_all(f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{world.namespace}/inventories")
    trees: Any = page.items
    entries = [entry for tree in trees for entry in tree["spec"].get("entries", ())]
    found = {entry["name"]: entry["uid"] for entry in entries}
    assert len(found) == len(entries)
    return found


def site(number: int) -> dict[str, str]:
    """Revision `number`: five objects that change, one that is new."""
    files = {f"site/n{index}.yaml": config_map(f"n{index}", str(number)) for index in range(4)}
    return {
        **files,
        "site/wave.yaml": config_map("wave", str(number)),
        f"site/x{number}.yaml": config_map(f"x{number}"),
    }


async def ready(world: Product, commit: str) -> bool:
    status = await world.sync_status()
    found = next((item for item in status.get("conditions", ()) if item["type"] == "Ready"), {})
    return status.get("lastAppliedRevision") == commit and found.get("status") == "True"


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.soak)], ids=["each third", "each"])
@pytest.mark.parametrize("after", [False, True], ids=["before it is sent", "before its answer is read"])
async def test_promise_07_at_every_write_of_accepting_applying_and_pruning(
    lives: Lives, after: bool, stride: int
) -> None:
    world = lives.world
    outsider = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "outsider"}, "data": {"value": "own"}}
    await world.admin.create(f"/api/v1/namespaces/{world.namespace}/configmaps", outsider)
    for number, k in enumerate(range(1, MOST_WRITES, stride), start=1):
        old = [f"site/x{number - 1}.yaml"] if number > 1 else []
        commit = world.commit(site(number), delete=old)
        kept = await uids(world)

        async def act() -> None:
            """The repository has moved already."""

        if not await lives.step(act, lambda commit=commit: ready(world, commit), k, after=after):
            assert k > 8, "a revision of six objects has more writes than that"
            break
        wanted = {f"n{index}": str(number) for index in range(4)} | {
            "wave": str(number),
            f"x{number}": "1",
            "base": "1",
        }
        assert await in_cluster(world) == {**wanted, "outsider": "own"}
        now = await uids(world)
        assert {name: uid for name, uid in now.items() if name in kept} == {
            name: uid for name, uid in kept.items() if name in now
        }, "nothing was deleted and made again"
        assert await inventory(world) == {name: now[name] for name in wanted}
    else:
        pytest.fail(f"more than {MOST_WRITES} writes")


@pytest.mark.parametrize("after", [False, True], ids=["before it is sent", "before its answer is read"])
async def test_promise_07_at_every_write_of_a_repair(lives: Lives, after: bool) -> None:
    world = lives.world
    for k in range(1, MOST_WRITES):

        async def act() -> None:
            await world.kill()
            await world.set_config_map("base", "drift")

        async def repaired() -> bool:
            return (await in_cluster(world)).get("base") == "1" and await ready(world, world.root)

        if not await lives.step(act, repaired, k, after=after):
            break
        assert await inventory(world) == {"base": (await uids(world))["base"]}
    else:
        pytest.fail(f"more than {MOST_WRITES} writes")
    assert k > 1


@pytest.mark.parametrize("after", [False, True], ids=["before it is sent", "before its answer is read"])
async def test_promise_07_at_every_write_of_deleting_the_sync(lives: Lives, after: bool) -> None:
    world = lives.world
    outsider = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "outsider"}, "data": {"value": "own"}}
    await world.admin.create(f"/api/v1/namespaces/{world.namespace}/configmaps", outsider)
    commit = world.commit({f"site/n{index}.yaml": config_map(f"n{index}") for index in range(3)})
    for k in range(1, MOST_WRITES):
        await lives.begin()
        await world.sync(deletionPolicy="Delete", prune={"enabled": True, "allowEmpty": True, "maxPercent": 100})
        await until(lambda: ready(world, commit), what="the Sync is applied again", timeout_s=60)

        async def act() -> None:
            await world.kill()
            await world.admin.delete(world.sync_path())

        async def gone() -> bool:
            return await world.admin.find(world.sync_path()) is None

        died = await lives.step(act, gone, k, after=after)
        assert await in_cluster(world) == {"outsider": "own"}, "what the Sync owned is gone, and nothing else"
        assert await inventory(world) == {}
        if not died:
            break
    else:
        pytest.fail(f"more than {MOST_WRITES} writes")
    assert k > 2

"""Random histories of a cluster: people, Nodes, Kueue and NFD act in any order, with faults in between; the laws hold all along.

At the end everything is put right again, and the queue has to serve the plan that the Nodes give, or wait for an administrator's hold.
"""

import random
from collections.abc import Awaitable, Callable

from tests.support.scheduling_world import NODES, QUEUES, RACK, RACKED, REGION, ZONE, ZONED
from tests.support.simulation_faults import FaultPlan, IoPoint, Kind, Side, faults_at
from tests.support.simulation_loop import run_virtually
from tests.support.topology_simulation import REST_S, Simulation, new_simulation
from tests.support.topology_stories import managed, serving_store

STEPS = 12
ONE_FAULT_IN = 60


class RandomFaults(FaultPlan):
    """A fault of any kind at a random point, now and then."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._draw = draw

    def pass_by(self, name: str, side: Side, *, state: str) -> Kind | None:
        """The kind of fault that happens here, if any."""
        if not self.armed or self._draw.randrange(ONE_FAULT_IN):
            return None
        return self._draw.choice(
            [kind for kind in faults_at(IoPoint(name, 1, side)) if kind is not Kind.STOPPED] or [None]
        )


class Walk:
    """One history."""

    def __init__(self, sim: Simulation, draw: random.Random) -> None:
        self._sim = sim
        self._draw = draw
        self._workloads = 0
        self._levels: tuple[str, ...] = (REGION, ZONE)

    async def step(self) -> None:
        """Anything happens, and some time passes."""
        acts: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self._workload, self._workload, self._switch_levels, self._managed, self._cores, self._label),
            *(self._hold, self._git, self._kueue, self._nfd, self._clinging, self._lose),
        )
        await self._draw.choice(acts)()
        end_s = self._sim.clock.boot_s() + self._draw.choice((0.0, 2.0, 7.0, 20.0, 90.0))
        await self._sim.until(lambda: self._sim.clock.boot_s() >= end_s)

    async def put_right(self) -> None:
        """Everybody is there, Git wants an open queue, and every Node is as it was."""
        hands = self._sim.hands
        hands.kueue.away = hands.nfd.away = hands.clings = False
        hands.kueue.restart()
        hands.nfd.restart()
        for number in range(1, 5):
            await self._edit(number, "true", "4")
        await hands.queue(stopPolicy="None")
        await self._apply_levels()

    @property
    def profile(self) -> str:
        """What the Nodes have to end with."""
        return ZONED if len(self._levels) == 2 else RACKED

    async def _workload(self) -> None:
        self._workloads += 1
        required = self._draw.choice(("", ZONE))
        await self._sim.hands.workload(f"w{self._workloads}", count=self._draw.randint(1, 3), required=required)

    async def _switch_levels(self) -> None:
        self._levels = (REGION, ZONE, RACK) if len(self._levels) == 2 else (REGION, ZONE)
        await self._apply_levels()

    async def _apply_levels(self) -> None:
        await self._sim.source(*self._levels)
        await self._sim.snapshot(*self._levels)

    async def _managed(self) -> None:
        await self._edit(self._draw.randint(1, 4), self._draw.choice((None, "true")), "4")

    async def _cores(self) -> None:
        await self._edit(self._draw.randint(1, 4), "true", self._draw.choice(("2", "4", "04")))

    async def _edit(self, number: int, is_managed: str | None, cores: str) -> None:
        patch = managed(is_managed)
        patch["metadata"]["labels"]["general.feature.gpustack.ai/amd-25.count"] = cores
        await self._sim.hands.admin.patch_merge(f"{NODES}/n{number}", patch)

    async def _label(self) -> None:
        """Somebody takes a label away that NFD or the manager has to put back."""
        await self._sim.hands.label(f"n{self._draw.randint(1, 4)}", profile=None)

    async def _hold(self) -> None:
        policy = self._draw.choice(("None", "Hold", "HoldAndDrain"))
        await self._sim.hands.admin.patch_merge(
            f"{QUEUES}/cpu", {"spec": {"stopPolicy": policy}}, manager="administrator"
        )

    async def _git(self) -> None:
        await self._sim.hands.queue(stopPolicy=self._draw.choice(("None", "Hold", "HoldAndDrain")))

    async def _kueue(self) -> None:
        self._sim.hands.kueue.away = not self._sim.hands.kueue.away
        self._sim.hands.kueue.restart()

    async def _nfd(self) -> None:
        self._sim.hands.nfd.away = not self._sim.hands.nfd.away
        self._sim.hands.nfd.restart()

    async def _clinging(self) -> None:
        self._sim.hands.clings = not self._sim.hands.clings

    async def _lose(self) -> None:
        """An object that is the manager's is deleted by somebody."""
        features = list(self._sim.all("nfd.k8s-sigs.io", "nodefeatures"))
        if features:
            path = (
                f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/gpustack-system/nodefeatures/{self._draw.choice(features)}"
            )
            await self._sim.hands.admin.delete(path)


def walked(seed: int) -> dict[str, object]:
    """One history to its end; what the queue is like then.

    Raises:
        Broken: a law did not hold, or there is no end.
    """
    return run_virtually(_walk(seed, serving_store()))


async def _walk(seed: int, store: object) -> dict[str, object]:
    draw = random.Random(seed)
    plan = RandomFaults(draw)
    sim = new_simulation(store, plan)  # type: ignore[arg-type]
    async with sim.hands.living():
        try:
            await sim.start()
            await sim.until(lambda: True, quiet_s=10.0)
            walk, plan.armed = Walk(sim, draw), True
            for _ in range(STEPS):
                await walk.step()
            plan.armed = False
            await walk.put_right()
            policies, put_right_s = ("None", "Hold", "HoldAndDrain"), sim.clock.boot_s()

            def is_served() -> bool:
                # The last outage may go on for a moment, and a pass that failed in it comes again up to a minute later.
                over = sim.clock.boot_s() - put_right_s >= REST_S
                return over and any(sim.serves(walk.profile, policy=one) for one in policies)

            await sim.until(is_served, quiet_s=REST_S)
            await sim.rest(200.0)
            return {"policy": sim.marks["policy"], "reserved": len(sim.reserved())}
        finally:
            plan.armed = False
            await sim.stop()

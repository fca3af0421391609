"""Stories of topology-aware scheduling, each played once without faults and then again and again with one at a point; all must end alike."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from gitops_ctl.scheduling.options import Options
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.kueue import Variant
from tests.support.kueue import workload
from tests.support.scheduling_world import HOSTNAME_ONLY, NODES, QUEUES, RACK, RACKED, REGION, ZONE, ZONED
from tests.support.simulation_faults import FaultPlan
from tests.support.simulation_loop import run_virtually
from tests.support.simulation_search import Search
from tests.support.topology_simulation import (
    KUEUE,
    NAMESPACE,
    REST_S,
    Simulation,
    new_simulation,
    serving,
    snapshot_text,
)

Play = Callable[[Simulation], Awaitable[None]]
LONG_S = 700.0
"""Longer than any look that comes again by itself."""
CREDENTIALS = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "inventory", "namespace": NAMESPACE}}
WEBHOOK = {
    "url": "https://inventory.example.net/halls",
    "pollInterval": "30s",
    "timeout": "5s",
    "maxStaleness": "3m",
    "bearerTokenSecretRef": {"namespace": NAMESPACE, "name": "inventory"},
}


@dataclass(frozen=True)
class Story:
    """What people do, and when.

    Attributes:
        rests: the product writes nothing afterwards; a webhook renews the time of its last success at each poll.
    """

    name: str
    play: Play
    options: Options = field(default_factory=Options)
    variant: Variant = Variant.V0_17
    leased: bool = False
    rests: bool = True
    begins_empty: bool = False


# -- what happens -----------------------------------------------------------------------------------------------------


async def busy(sim: Simulation) -> None:
    """Two Workloads run in the queue, one of them in one zone."""
    await sim.hands.workload("spread", count=3)
    await sim.hands.workload("near", count=2, required=ZONE)
    await sim.until(lambda: set(sim.reserved()) == {"spread", "near"})


async def racks(sim: Simulation) -> None:
    """The commit that adds a level: stages bring the ConfigMap first."""
    await sim.snapshot(REGION, ZONE, RACK, racks=True)
    await sim.source(REGION, ZONE, RACK)


def came_back(sim: Simulation, profile: str) -> bool:
    """Whether the queue serves by the new profile, with both Workloads in it."""
    return sim.serves(profile) and sim.reserved() == dict.fromkeys(("near", "spread"), profile.removeprefix("fnv64-"))


# -- stories ----------------------------------------------------------------------------------------------------------


async def first(sim: Simulation) -> None:
    """Nothing ran before: sources, Nodes and a queue are there when the manager comes for the first time."""
    for number in range(1, 5):
        await sim.hands.node(f"n{number}")
    await sim.snapshot(REGION, ZONE)
    await sim.source(REGION, ZONE)
    await sim.hands.queue()
    await sim.hands.put({**workload("unasking", "cpu"), "metadata": {"name": "unasking", "namespace": "team"}})
    await sim.start()
    await sim.until(lambda: sim.serves(ZONED), quiet_s=REST_S)


async def drained(sim: Simulation) -> None:
    """A level is added under running Workloads: hold, drain, switch of the whole plan, release."""
    await busy(sim)
    await racks(sim)
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def in_place(sim: Simulation) -> None:
    """A level is added while nothing runs."""
    await racks(sim)
    await sim.until(lambda: sim.serves(RACKED), quiet_s=REST_S)


async def lost_and_back(sim: Simulation) -> None:
    """The pool loses every Node, and gets them back."""
    await busy(sim)
    for number in range(1, 5):
        await sim.hands.admin.patch_merge(f"{NODES}/n{number}", managed(None))
    await sim.until(lambda: sim.says() == "True/Ready" and not sim.quotas and not sim.reserved(), quiet_s=REST_S)
    for number in range(1, 5):
        await sim.hands.admin.patch_merge(f"{NODES}/n{number}", managed("true"))
    await sim.until(lambda: came_back(sim, ZONED), quiet_s=REST_S)


async def there_and_back(sim: Simulation) -> None:
    """A level comes and goes again while Kueue is away: the old flavor is terminating, and needed once more."""
    await busy(sim)
    sim.hands.kueue.away = True
    await racks(sim)
    await sim.until(
        lambda: any("deletionTimestamp" in one["metadata"] for one in sim.all(KUEUE, "resourceflavors").values())
    )
    await sim.snapshot(REGION, ZONE)
    await sim.source(REGION, ZONE)
    end_s = sim.clock.boot_s() + 60
    await sim.until(lambda: sim.clock.boot_s() >= end_s)
    sim.hands.kueue.away = False
    await sim.until(lambda: came_back(sim, ZONED), quiet_s=REST_S)


async def held_by_hand(sim: Simulation) -> None:
    """An administrator holds the queue, and finds it so after a migration."""
    await busy(sim)
    await sim.hands.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": "Hold"}}, manager="administrator")
    await racks(sim)
    await sim.until(lambda: sim.serves(RACKED, policy="Hold") and not sim.reserved(), quiet_s=REST_S)


async def held_by_git(sim: Simulation) -> None:
    """Git wants a hold while the queue drains, and later no more."""
    await busy(sim)
    await racks(sim)
    await sim.until(lambda: sim.marks.get("migration-phase") == "draining")
    await sim.hands.queue(stopPolicy="Hold")
    await sim.until(lambda: sim.serves(RACKED, policy="Hold"), quiet_s=REST_S)
    await sim.hands.queue(stopPolicy="None")
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def opened_by_hand(sim: Simulation) -> None:
    """Somebody opens the queue in the middle of a drain that takes long."""
    await busy(sim)
    sim.hands.clings = True
    await racks(sim)
    await sim.until(lambda: sim.marks.get("migration-phase") == "draining")
    await sim.hands.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": "None"}}, manager="administrator")
    await sim.until(lambda: sim.marks["policy"] == "HoldAndDrain", quiet_s=20.0)
    sim.hands.clings = False
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def source_gone(sim: Simulation) -> None:
    """The source is deleted: its labels go, foreign ones stay, and host names are the only level that is left."""
    await busy(sim)
    await sim.hands.label("n1", block="foreign")
    await sim.delete_source("hall")
    await sim.until(lambda: sim.serves(HOSTNAME_ONLY), quiet_s=REST_S)


async def contested(sim: Simulation) -> None:
    """A second source wants the same levels; both step back until it is gone."""
    await busy(sim)
    await sim.snapshot(REGION, ZONE, name="rival")
    await sim.source(REGION, ZONE, name="rival")
    await sim.until(lambda: sim.says("Ready", source="hall") == "False/OwnershipConflict" and sim.serves(HOSTNAME_ONLY))
    await sim.delete_source("rival")
    await sim.until(lambda: sim.serves(ZONED), quiet_s=REST_S)


async def moved(sim: Simulation) -> None:
    """A Node gets other hardware labels: it moves from one flavor of the queue to another one, under Workloads."""
    await busy(sim)
    await sim.hands.workload("more", count=11)
    await sim.until(lambda: "more" in sim.reserved())
    count = {"general.feature.gpustack.ai/amd-25.count": "2"}
    await sim.hands.admin.patch_merge(f"{NODES}/n4", {"metadata": {"labels": count}})

    def split() -> bool:
        return sim.says() == "True/Ready" and len(sim.reserved()) == 2 and sim.marks["policy"] == "None"

    await sim.until(split, quiet_s=REST_S)


async def polled(sim: Simulation) -> None:
    """The inventory is a service: it is down for longer than it may be, and comes back."""
    token = {**CREDENTIALS, "data": {"token": "c2VjcmV0"}}
    await sim.hands.put(token)
    sim.inventory.answer = snapshot_text((REGION, ZONE))
    await sim.source(REGION, ZONE, webhook=WEBHOOK)
    await sim.until(lambda: sim.inventory.asked > 1 and sim.serves(ZONED))
    sim.inventory.answer = ""
    await sim.until(lambda: sim.says("Ready", source="hall") == "False/Stale" and sim.serves(ZONED))
    await sim.until(lambda: sim.says("Ready", source="hall") == "False/Expired" and sim.serves(HOSTNAME_ONLY))
    sim.inventory.answer = snapshot_text((REGION, ZONE))
    await sim.until(lambda: sim.says("Ready", source="hall") == "True/Observed" and sim.serves(ZONED), quiet_s=8.0)


async def without_nfd(sim: Simulation) -> None:
    """NFD is down for an hour while a level is added: the last plan serves, and the change follows when it is back."""
    await busy(sim)
    sim.hands.nfd.away = True
    await racks(sim)
    # A manager that began in between counts its half minute anew, and then the minute of the labels ends first.
    await sim.until(lambda: {f"LabelsNotProjected n{number}" for number in range(1, 5)} <= set(sim.told))
    end_s = sim.clock.boot_s() + 3500
    await sim.until(lambda: sim.clock.boot_s() >= end_s)
    assert sim.serves(ZONED)
    assert set(sim.reserved()) == {"near", "spread"}
    sim.hands.nfd.away = False
    sim.hands.nfd.restart()
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def kueue_restarted(sim: Simulation) -> None:
    """Kueue goes away in the middle of a drain, for ten minutes: nothing is concluded from counters that are old."""
    await busy(sim)
    sim.hands.clings = True
    await racks(sim)
    await sim.until(lambda: sim.marks.get("migration-phase") == "draining" and sim.says("Active") == "False/Stopped")
    sim.hands.kueue.away = True
    sim.hands.clings = False
    end_s = sim.clock.boot_s() + 600
    await sim.until(lambda: sim.clock.boot_s() >= end_s)
    assert sim.marks["migration-phase"] == "draining", "switched by counters that nobody kept"
    sim.hands.kueue.away = False
    sim.hands.kueue.restart()
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def clock_jumps(sim: Simulation) -> None:
    """The clock of the manager's machine jumps back by an hour in the middle of a drain, and forth by two."""
    await busy(sim)
    sim.hands.clings = True
    await racks(sim)
    await sim.until(lambda: sim.marks.get("migration-phase") == "draining")
    sim.jumped_s = -3600.0
    end_s = sim.clock.boot_s() + 60
    await sim.until(lambda: sim.clock.boot_s() >= end_s)
    sim.jumped_s = 3600.0
    sim.hands.clings = False
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def awaited(sim: Simulation) -> None:
    """A drain needs consent: it waits, says what it needs, and goes on with the annotation from Git."""
    await busy(sim)
    await racks(sim)
    await sim.until(lambda: sim.says() == "False/AwaitingDrainApproval" and len(sim.reserved()) == 2, quiet_s=20.0)
    [said] = [one["message"] for one in sim.queue["status"]["conditions"] if one["type"] == "TopologyReady"]
    digest = said.partition("gitops-ctl.dev/allow-drain: ")[2].partition(",")[0]
    document = {"metadata": {"annotations": {"gitops-ctl.dev/allow-drain": digest}}}
    await sim.hands.admin.patch_merge(f"{QUEUES}/cpu", document, manager="gitops-ctl")
    await sim.until(lambda: came_back(sim, RACKED), quiet_s=REST_S)


async def left_alone(sim: Simulation) -> None:
    """An object that others delete: flavor, Topology, NodeFeature and profile label are made again."""
    await sim.hands.label("n2", profile=None)
    [feature, *_] = sim.all("nfd.k8s-sigs.io", "nodefeatures")
    await sim.hands.admin.delete(f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{NAMESPACE}/nodefeatures/{feature}")
    await sim.hands.admin.delete(f"/apis/kueue.x-k8s.io/v1beta2/topologies/gpustack-{ZONED}")
    features = lambda: len(sim.all("nfd.k8s-sigs.io", "nodefeatures")) == 4  # noqa: E731
    await sim.until(lambda: sim.serves(ZONED) and features(), quiet_s=REST_S)


def managed(value: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {"gpustack.ai/managed": value}}}


STORIES = (
    Story("first start", first, begins_empty=True),
    Story("drain and switch", drained),
    Story("switch in place", in_place),
    Story("switch in place, held before", in_place, options=Options(hold_before_drop=True)),
    Story("pool lost and back", lost_and_back),
    Story("there and back", there_and_back),
    Story("hold of an administrator", held_by_hand),
    Story("hold from Git", held_by_git),
    Story("opened by hand", opened_by_hand),
    Story("source gone", source_gone),
    Story("contested", contested),
    Story("moved Node", moved),
    Story("webhook", polled, rests=False),
    Story("NFD away for an hour", without_nfd),
    Story("Kueue restarted in a drain", kueue_restarted),
    Story("clock jumps", clock_jumps),
    Story("drain with consent", awaited, options=Options(require_drain_approval=True)),
    Story("objects lost", left_alone),
    Story("two managers", drained, leased=True),
    *(
        Story(f"drain and switch, Kueue {variant.value}", drained, variant=variant)
        for variant in Variant
        if variant is not Variant.V0_17
    ),
)

serving_store: Callable[[], Snapshot] = cache(serving)


def search_of(story: Story) -> Search:
    """The runs of one story, all from the same store."""
    store = (lambda: None) if story.begins_empty else serving_store
    return Search(story.name, lambda plan: run_virtually(_play(story, plan, store())), one_process=True)


async def _play(story: Story, plan: FaultPlan, store: Snapshot | None) -> dict[str, Any]:
    sim = new_simulation(store, plan, variant=story.variant)
    sim.options, sim.leased = story.options, story.leased
    sim.rules.strict = story.options.hold_before_drop
    async with sim.hands.living():
        try:
            if store is not None:
                await sim.start()
                await sim.until(lambda: True, quiet_s=10.0)
            plan.armed = True
            await story.play(sim)
            end = sim.summary()
            plan.armed = False
            if not plan.faults and story.rests:
                await sim.rest(LONG_S)
            return end
        finally:
            plan.armed = False
            await sim.stop()

"""Stories of a switch, each played once without faults and then again and again with one at a point; all must end alike."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from gitops_ctl.cni.model import Mode
from tests.doubles.apiserver.api import Snapshot
from tests.support.simulation import Broken
from tests.support.simulation_faults import FaultPlan
from tests.support.simulation_loop import run_virtually
from tests.support.simulation_search import Search
from tests.support.switch_scripted import RealWorker, Scripted, supplied_base
from tests.support.switch_simulation import API, NAMESPACE, PLANES, REST_S, World, first_store, new_world

Play = Callable[[World], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """What people do, and when."""

    name: str
    target: str
    play: Play
    real_worker: bool = False


async def succeeded(world: World, *, lost: int = 0) -> None:
    """The end.  Two faults may leave one machine without an effect twice: then a person is asked, and lets the operation go on once.

    Args:
        lost: applies that the story itself loses.
    """

    def asked_in_vain() -> bool:
        paused = any(
            (one["type"], one["status"], one["reason"]) == ("Paused", "True", "NotApplied")
            for one in world.operation.get("status", {}).get("conditions", ())
        )
        return paused and lost + len(world.plan.happened) > 1

    await world.until(lambda: world.phase == "Succeeded" or asked_in_vain())
    if world.phase != "Succeeded":
        world.commit(steering={"resume": world.git.steering.get("resume", 0) + 1})
    await world.until(lambda: world.phase == "Succeeded", quiet_s=REST_S)


async def to_replaced(world: World, *, lost: int = 0) -> None:
    """The pull request is merged, and the owner's tool rolls the values out."""
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    merged(world)
    world.live.change_cni("true")
    await succeeded(world, lost=lost)


async def to_enabled(world: World) -> None:
    """The values are changed by hand: the pull request is not needed any more."""
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    world.live.change_cni("false")
    await succeeded(world)


async def old_agents(world: World) -> None:
    """The values are merged and no agent restarts: only when somebody restarts them the machines follow."""
    world.live.rolls_out = False
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange")
    world.live.change_cni("true")
    await world.until(lambda: world.phase == "VerifyingNewSide", quiet_s=20.0)
    if world.live.effects:
        world.rules.broken.append("a machine was touched while the agents run the old mode")
    world.live.restart_agents()
    await succeeded(world)


async def resumed(world: World) -> None:
    """A machine refuses; a person looks at it and lets the operation go on."""
    world.live.machines["cp-2"].refuses = "ApplyRefused: proxy image cannot be empty"
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange")
    world.live.change_cni("true")
    await world.until(lambda: world.phase == "Paused", quiet_s=20.0)
    world.live.machines["cp-2"].refuses = ""
    world.commit(steering={"resume": 1})
    await succeeded(world)


async def lost_apply(world: World) -> None:
    """The apply of one machine is lost on the way and had no effect."""
    world.live.machines["cp-1"].loses = 1
    await to_replaced(world, lost=1)


async def cancelled(world: World) -> None:
    """A person thinks better of it before anything was touched."""
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    world.commit(steering={"cancel": True})
    await world.until(lambda: world.phase == "Cancelled", quiet_s=REST_S)


async def reverted(world: World) -> None:
    """Field and consent are taken back before anything was touched, and the owner's tool rolls out the values all the same.

    The way back has no consent of its own, so the object in the cluster stays as it was: what ends the operation is the revision alone.
    """
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    world.commit_that_is_held(target=Mode(world.git.target).other.value, annotated=False)
    world.live.change_cni("true")
    await world.until(lambda: world.phase in ("Cancelled", "Succeeded"), quiet_s=REST_S)
    if world.live.effects:
        raise Broken(f"touched although no accepted revision asks for it: {world.live.effects}")


async def there_and_back(world: World) -> None:
    """To replaced, and back with a consent of its own."""
    await to_replaced(world)
    world.commit(target="enabled", consent="b" * 40)
    await world.until(lambda: len(world.get("talosoperations")) == 2 and world.phase == "AwaitingCNIChange")
    world.live.change_cni("false")
    await succeeded(world)


async def from_a_base(world: World) -> None:
    """Somebody renders the new mode for the control planes as soon as Git asks for it: nobody is told to reboot into it, and the
    switch applies exactly what was rendered.
    """
    for name in PLANES:
        patch = {"spec": {"configSecretRef": {"name": f"{name}-base"}}}
        world.ask("PATCH", f"{API}/talosmachines/{name}", patch, media="application/merge-patch+json")
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and _reports(world) == {"KubeProxySwitchPending"})
    if any("rebootPaths" in world.get("talosmachines")[name]["status"] for name in PLANES):
        raise Broken("a machine whose switch is pending names paths for a reboot")
    world.live.change_cni("true")
    await succeeded(world)
    await world.until(lambda: _reports(world) == {"Observed"}, quiet_s=REST_S)
    if any(world.live.machines[name].active != supplied_base() for name in PLANES):
        raise Broken("a control plane does not have what was rendered for it")


def _reports(world: World) -> set[str]:
    """What the control planes say of themselves."""
    found = [world.get("talosmachines")[name].get("status", {}) for name in PLANES]
    return {one["reason"] for status in found for one in status.get("conditions", [{"reason": ""}])}


def merged(world: World) -> None:
    """A person merged the open pull request."""
    for name in world.get("proposals"):
        path = f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{NAMESPACE}/proposals/{name}/status"
        body = {"status": {"phase": "Merged", "number": 7, "url": "https://git.example.net/network/pulls/7"}}
        world.ask("PATCH", path, body, media="application/merge-patch+json")


STORIES = (
    Story("to replaced", "replaced", to_replaced),
    Story("to enabled", "enabled", to_enabled),
    Story("old agents", "replaced", old_agents),
    Story("paused and resumed", "replaced", resumed),
    Story("lost apply", "replaced", lost_apply),
    Story("cancelled", "replaced", cancelled),
    Story("reverted", "replaced", reverted),
    Story("there and back", "replaced", there_and_back),
    Story("to replaced, real worker", "replaced", to_replaced, real_worker=True),
    Story("to enabled, real worker", "enabled", to_enabled, real_worker=True),
    Story("from a supplied base, real worker", "replaced", from_a_base, real_worker=True),
)


def explorer_of(story: Story) -> Search:
    """The runs of one story, all from the same store."""
    store = cache(lambda: first_store(story.target))
    return Search(story.name, lambda plan: run_virtually(_play(story, plan, store())), one_process=True)


async def _play(story: Story, plan: FaultPlan, store: Snapshot) -> dict[str, Any]:
    world = new_world(store, target=story.target, plan=plan, seed=20)
    if story.real_worker:
        world.live = Scripted(world.api, Mode(story.target).other.value)
        world.make_worker = RealWorker
    plan.armed = True
    try:
        await world.start()
        await story.play(world)
        return world.summary()
    finally:
        plan.armed = False
        await world.stop()

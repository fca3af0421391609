"""The Proposals of a rollout from the first to the last: asked for, brought up to date, taken back (rollouts.md, section 11.7)."""

from typing import Any

from gitops_ctl.api.model import parse
from gitops_ctl.api.proposal import Proposal
from gitops_ctl.forge.content import edited, edits_of
from gitops_ctl.rollout.controller import Intervals
from tests.support.rollout_revision import FILE
from tests.support.rollout_world import NAME, ROLLOUT, RolloutWorld, in_rollout_world
from tests.support.topology_devices import NAMESPACE


async def proposed(world: RolloutWorld, purpose: str, *, timeout_s: float = 60.0) -> Any:
    """The proposal for a purpose, once it asks for something."""

    async def is_there() -> bool:
        return bool((await world.proposals()).get(purpose, {}).get("spec", {}).get("changes"))

    await world.until(is_there, what=f"a proposal of {purpose}", timeout_s=timeout_s)
    return (await world.proposals())[purpose]


async def taken_back(world: RolloutWorld, purpose: str) -> None:
    async def is_back() -> bool:
        return not (await world.proposals())[purpose]["spec"].get("changes")

    await world.until(is_back, what=f"{purpose} is taken back", timeout_s=60.0)


def why(tree: Any) -> str:
    return str(tree["metadata"]["annotations"]["gitops-ctl.dev/why"])


def merged(world: RolloutWorld, tree: Any) -> bytes:
    """The file as it is after a merge."""
    spec = parse(Proposal, tree).spec
    found = edited(lambda path: (0o100644, world.git.data) if path == FILE else None, edits_of(spec.changes))
    return found.files[FILE][1]


def test_a_plan_is_put_before_its_approvers_and_the_proposal_goes_with_the_approval() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1", "access-2")
        world.leaf_workers.results["access-2"] = "Failed"
        await world.request()
        plan = (await world.reaches("AwaitingApproval"))["frozenPlan"]
        tree = await proposed(world, "rollout-approval")
        assert tree["metadata"]["name"] == f"{NAME}-approval"
        assert tree["metadata"]["ownerReferences"][0]["kind"] == "IOSXESoftwareRollout"
        assert tree["spec"]["reason"] == f"rollout-approval/{NAMESPACE}/{NAME}"
        text = why(tree)
        assert "canary: access-1 17.12.4 -> 17.18.03" in text
        assert "wave 1: access-2" in text
        assert "preflight Failed (FlashSpace: 2048 bytes free, 1000000 needed)" in text
        assert text.index("access-1") < text.index("access-2")
        assert plan["hash"] in text
        assert "epoch 1" in text
        world.leaf_workers.results.clear()

        async def is_newer() -> bool:
            return "preflight Failed" not in why((await world.proposals())["rollout-approval"])

        await world.until(is_newer, what="the text follows the preflight", timeout_s=60.0)
        assert b"\n  approval:\n    planHash: " in merged(world, tree)
        await world.approve()
        await taken_back(world, "rollout-approval")

    in_rollout_world(story)


def test_a_missing_preflight_is_waited_for_one_interval_and_no_longer() -> None:
    async def story(world: RolloutWorld) -> None:
        world.intervals = Intervals(resync_s=86400.0, preflight_s=300.0)
        world.leaf_workers.checks = False
        await world.start()
        await world.fleet("access-1")
        await world.request()
        await world.reaches("AwaitingApproval")
        await world.clock.sleep(200.0)
        assert await world.proposals() == {}
        assert "preflight not done yet" in why(await proposed(world, "rollout-approval", timeout_s=150.0))

    in_rollout_world(story)


def test_a_pause_in_the_cluster_is_brought_back_to_git() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1")
        world.git.tree["spec"]["control"] = {"revision": 0}
        await world.request()
        await world.reaches("AwaitingApproval")
        control: Any = {"revision": 1, "pause": True, "reason": "noise on the uplink"}
        control |= {"requestedBy": "operator", "requestedAt": "2026-01-01T09:00:00Z"}
        await world.admin.patch_merge(ROLLOUT, {"spec": {"control": control}}, manager="operator")
        tree = await proposed(world, "rollout-control")
        after = merged(world, tree)
        assert b"noise on the uplink" in after
        assert b"operator" not in after
        assert "revision 1" in why(tree)
        world.git.tree["spec"]["control"] = {"revision": 1, "pause": True, "reason": "noise on the uplink"}
        world.git.accept()
        await taken_back(world, "rollout-control")

    in_rollout_world(story)


def test_a_proposal_that_somebody_deletes_comes_back_while_it_is_needed() -> None:
    async def story(world: RolloutWorld) -> None:
        world.intervals = Intervals(resync_s=86400.0)
        await world.start()
        await world.fleet("access-1")
        await world.request()
        await world.reaches("AwaitingApproval")
        tree = await proposed(world, "rollout-approval")
        await world.admin.delete(f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{NAMESPACE}/proposals/{NAME}-approval")
        again = await proposed(world, "rollout-approval")
        assert again["metadata"]["uid"] != tree["metadata"]["uid"]
        assert again["spec"] == tree["spec"]

    in_rollout_world(story)


def test_promise_08_a_proposal_that_says_what_it_should_is_not_written_again() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1")
        await world.request()
        await world.reaches("AwaitingApproval")
        before = await proposed(world, "rollout-approval")
        world.writes.clear()
        await world.clock.sleep(120.0)
        assert not [call for call in world.writes if "proposals" in call.path]
        assert (await world.proposals())["rollout-approval"] == before

    in_rollout_world(story)

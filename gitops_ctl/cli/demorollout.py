"""`gitops-ctl demo rollout`: twelve switches are upgraded by signed commits, canaries first; then one that fails stops another rollout.

Told step by step; each step waits for what it claims and fails when that does not come, so the demo is a test as well (rollouts.md, section 11).
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from gitops_ctl.cli.demorolloutrepository import APPROVER, AUTHOR, FOLDER, NAMESPACE, rollout_document
from gitops_ctl.cli.demorolloutworld import FAILING, FIRST, SECOND, RolloutWorld, rollout_world
from gitops_ctl.cli.demotelling import Step, farewell, tell
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of, is_true
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.health import is_healthy
from gitops_ctl.fleet.node import node_of
from gitops_ctl.local.switches import Image

_FIRST: Final = "to-17-18-03"
_SECOND: Final = "to-17-18-04"
_CANARIES: Final = ("access-a1", "access-b1")


async def rollout_demo(*, say: Callable[[str], None], keep: bool) -> None:
    """Tell the whole story.

    Raises:
        GitopsError: something did not come; the message names the step, its subject a folder with the logs.
    """
    async with rollout_world(say=say) as world:
        await tell(RolloutStory(world).steps(), say=say)
        kinds = "ciscodevices,iosxesoftwarerollouts,iosxesoftwareupgrades"
        await farewell(world.basic, command="gitops-ctl demo rollout", kinds=kinds, keep=keep, say=say)


class RolloutStory:
    """The steps, in the order in which they are told."""

    def __init__(self, world: RolloutWorld) -> None:
        self._world = world

    def steps(self) -> Iterator[Step]:
        yield "Git describes twelve switches in three zones; each gets its Node and is found healthy", self.described
        yield "A network author asks for version 17.18.03, by a signed commit", partial(self.asked, _FIRST, FIRST)
        yield "The plan is frozen; somebody else approves its exact hash", partial(self.approved, _FIRST)
        yield "Two canaries go first, in two zones; then the rollout waits", partial(self.canaries, _FIRST)
        yield "A signed resume lets the others go", partial(self.resumed, _FIRST)
        yield "All twelve run the new version", self.succeeded
        yield "The next version is asked for and approved, too", self.again
        yield f"{FAILING} does not come up with it: the rest is fenced, nothing else is touched", self.failed

    async def described(self) -> None:
        world = self._world
        await world.until("the repository is accepted and applied", self._is_applied)
        await world.until("every switch is healthy", self._are_healthy)
        world.kubectl("get", "ciscodevices", "-n", NAMESPACE)
        world.kubectl("get", "nodes", "-Ltopology.kubernetes.io/zone")

    async def asked(self, name: str, image: Image) -> None:
        world = self._world
        file = world.workshop.checkout / self._file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        version = image.name.removeprefix("cat9k_iosxe.").removesuffix(".SPA.bin")
        file.write_text(rollout_document(name, version, world.switches.images[image.name]), encoding="utf-8")
        world.product("plan", "rollout", str(self._file(name)), code=2)
        self._commit(f"Ask for {version} on the access switches", author=AUTHOR)
        await world.until("the plan is frozen", partial(self._is_frozen, name))
        world.product("explain", "rollout", name, "-n", NAMESPACE)

    async def approved(self, name: str) -> None:
        world = self._world
        await world.until("every switch has been checked, read-only", partial(self._is_checked, name))
        digest = text_at(await world.rollout(name), "status", "frozenPlan", "hash")
        world.product("approve", str(self._file(name)), f"planHash={digest}", code=2, with_cluster=False)
        self._commit(f"Approve the plan of {name}", author=APPROVER)
        await world.until("the exact plan is approved", partial(self._is_approved, name))

    async def canaries(self, name: str) -> None:
        world = self._world
        await world.until("the canaries succeeded, and the rollout waits", partial(self._waits_for_resume, name))
        touched = sorted(switch for switch, count in world.switches.changes().items() if count)
        if touched != list(_CANARIES):
            raise TerminalError(f"{touched} were touched", code=ErrorCode.LOCAL_SYSTEM)
        self._status()
        world.product("explain", "rollout", name, "-n", NAMESPACE)

    async def resumed(self, name: str) -> None:
        world = self._world
        world.product("rollout", "resume", name, "--reason", "canaries look fine", code=2)
        self._commit(f"Let {name} go on", author=AUTHOR)
        await world.until("the others begin", partial(self._counts, name, "succeeded", at_least=3))
        self._status()

    async def succeeded(self) -> None:
        world = self._world
        await world.until("the rollout has succeeded", partial(self._is_in_phase, _FIRST, "Succeeded"))
        versions = set(world.switches.versions().values())
        if versions != {FIRST.version}:
            raise TerminalError(f"the switches run {versions}", code=ErrorCode.LOCAL_SYSTEM)
        world.kubectl("get", "xerollout,xeupgrade", "-n", NAMESPACE)

    async def again(self) -> None:
        await self._world.until("every switch is healthy on its new version", self._are_healthy)
        await self.asked(_SECOND, SECOND)
        await self.approved(_SECOND)
        await self._world.until("its canaries succeeded", partial(self._waits_for_resume, _SECOND))
        self._world.product("rollout", "resume", _SECOND, code=2)
        self._commit(f"Let {_SECOND} go on", author=AUTHOR)

    async def failed(self) -> None:
        world = self._world
        await world.until("the rollout has failed", partial(self._is_in_phase, _SECOND, "Failed"))
        self._status()
        world.product("explain", "rollout", _SECOND, "-n", NAMESPACE)
        await world.until("every other switch is as it was or runs the new version", self._is_consistent)

    # -- what people do ----------------------------------------------------------------------------------------------

    def _file(self, name: str) -> Path:
        return Path(FOLDER) / "rollouts" / f"{name}.yaml"

    def _commit(self, message: str, *, author: str) -> None:
        world = self._world
        world.say("   $ git commit -S && git push")
        world.basic.show_commit(world.workshop.commit(message, author=author))
        world.workshop.push()

    def _status(self) -> None:
        """Its exit code is not asked for: the Proposal that nobody can sign here is no fine state."""
        self._world.product("status", "-n", NAMESPACE, code=None)

    # -- what is looked at -------------------------------------------------------------------------------------------

    async def _is_applied(self) -> bool:
        return await self._world.basic.is_applied(self._world.basic.head())

    async def _are_healthy(self) -> bool:
        nodes = {one.name: one for one in map(node_of, (await self._world.client.list_all("/api/v1/nodes")).items)}
        devices = [device_of(tree) for tree in await self._world.devices()]
        healthy = [one for one in devices if one.node_name in nodes and is_healthy(one, nodes[one.node_name])]
        return len(healthy) == len(self._world.switches.ports)

    async def _is_frozen(self, name: str) -> bool:
        return bool(text_at(await self._world.rollout(name), "status", "frozenPlan", "hash"))

    async def _is_checked(self, name: str) -> bool:
        uid = text_at(await self._world.rollout(name), "metadata", "uid")
        done = [
            any(text_at(one, "rolloutUID") == uid for one in objects_at(device, "status", "preflight"))
            for device in await self._world.devices()
        ]
        return all(done)

    async def _is_approved(self, name: str) -> bool:
        return is_true(object_at(await self._world.rollout(name), "status"), "Approved")

    async def _waits_for_resume(self, name: str) -> bool:
        tree = await self._require_going(name)
        found = condition_of(object_at(tree, "status"), "CanaryResumeRequired") or EMPTY
        return text_at(found, "status") == "True"

    async def _counts(self, name: str, what: str, *, at_least: int) -> bool:
        return int_at(await self._require_going(name), "status", "counts", what) >= at_least

    async def _require_going(self, name: str) -> JsonObject:
        tree = await self._world.rollout(name)
        if text_at(tree, "status", "phase") in ("Failed", "Cancelled"):
            said = text_at(tree, "status", "message")
            raise TerminalError(f"{name} ended: {said}", code=ErrorCode.LOCAL_SYSTEM)
        return tree

    async def _is_in_phase(self, name: str, phase: str) -> bool:
        tree = await self._world.rollout(name)
        if phase != "Failed":
            await self._require_going(name)
        return text_at(tree, "status", "phase") == phase

    async def _is_consistent(self) -> bool:
        """No switch is between two versions, and the failed one is back at its old one."""
        versions = self._world.switches.versions()
        return versions[FAILING] == FIRST.version and set(versions.values()) <= {FIRST.version, SECOND.version}

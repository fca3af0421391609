"""`gitops-ctl demo topology`: racks come into an inventory in Git, and the whole plan of a queue drains and switches.

Told step by step; each step waits for what it claims and fails when that does not come, so the demo is a test as well
(topology-scheduling.md, sections 2 and 8).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from gitops_ctl.cli.demotelling import Step, farewell, tell
from gitops_ctl.cli.demotopologyrepository import AUTHOR, NODES, SNAPSHOT_FILE, SOURCE_FILE, with_racks
from gitops_ctl.cli.demotopologyworld import QUEUE, TRAINING, TopologyWorld, topology_world
from gitops_ctl.cli.status import show_status
from gitops_ctl.cli.topologyworld import kueue_path
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of, is_true
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.scheduling.migration import CONDITION
from gitops_ctl.scheduling.queue import PHASE, Queue, quotas_of
from gitops_ctl.scheduling.topology import KUEUE_API_VERSION

ZONE: Final = "topology.gpustack.ai/zone"
RACK: Final = "topology.gpustack.ai/rack"
_ZONED: Final = "fnv64-29c7d645fad688b1"
_RACKED: Final = "fnv64-dde125aa4572179a"
_LABELS: Final = f"-Ltopology.gpustack.ai/region,{ZONE},topology.gpustack.ai/profile"
_LABELS_WITH_RACK: Final = f"-L{ZONE},{RACK},topology.gpustack.ai/profile"


async def topology_demo(*, say: Callable[[str], None], keep: bool) -> None:
    """Tell the whole story.

    Raises:
        GitopsError: something did not come; the message names the step, its subject a folder with the logs.
    """
    async with topology_world(say=say) as world:
        await tell(TopologyStory(world).steps(), say=say)
        kinds = "toposrc,topologies,resourceflavors,clusterqueues,workloads"
        await farewell(world.basic, command="gitops-ctl demo topology", kinds=kinds, keep=keep, say=say)


class TopologyStory:
    """The steps, in the order in which they are told."""

    def __init__(self, world: TopologyWorld) -> None:
        self._world = world
        self._uid = ""

    def steps(self) -> Iterator[Step]:
        yield "Git says in which region and zone each Node stands, and which CPU a queue may use", self.applied
        yield "Node Feature Discovery puts the labels on the Nodes; each gets its profile", self.labelled
        yield "The profile becomes a Topology, a flavor and the plan of the queue", self.planned
        yield "A training of two Pods runs in one zone; one of three fits in none", self.admitted
        yield "The platform author writes down the racks, and looks at what the commit would do", self.previewed
        yield "The commit is signed and pushed: the queue is held, and its Workloads are evicted", self.held
        yield "The Pods end; the whole plan is switched and the queue released", self.switched
        yield "The training runs again, on the new topology; what nobody needs is gone", self.resumed
        yield "A rack is written into two zones at once: that snapshot changes nothing", self.refused
        yield "The commit is taken back", self.taken_back

    async def applied(self) -> None:
        world = self._world
        await world.until("the repository is accepted and applied", self._is_applied)
        world.kubectl("get", "toposrc,clusterqueues")

    async def labelled(self) -> None:
        world = self._world
        await world.until(f"all Nodes have the profile {_ZONED}", partial(self._have_profile, _ZONED))
        world.kubectl("get", "nodes", _LABELS)

    async def planned(self) -> None:
        world = self._world
        await world.until(f"queue {QUEUE} serves its plan", partial(self._serves, _ZONED))
        self._uid = text_at(await world.queue(), "metadata", "uid")
        world.kubectl("get", "topologies,resourceflavors")
        world.product("explain", "node", NODES[0])
        await self._status()

    async def admitted(self) -> None:
        world = self._world
        await self._submit("pair", pods=2)
        await self._submit("trio", pods=3)
        await world.until("the pair is admitted", partial(self._is_admitted, "pair"))
        await world.until("the trio is not", self._trio_waits)
        world.kubectl("get", "workloads", "-n", TRAINING)
        said = condition_of(object_at(await world.workload("trio"), "status"), "QuotaReserved") or EMPTY
        world.say(f"   Kueue on the trio: {text_at(said, 'message')}")

    async def previewed(self) -> None:
        world, checkout = self._world, self._world.workshop.checkout
        files = (checkout / SOURCE_FILE, checkout / SNAPSHOT_FILE)
        texts = with_racks(*(file.read_text(encoding="utf-8") for file in files))
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        world.say("   $ git diff")
        for line in world.workshop.git("diff", "--unified=0", "--no-color").splitlines():
            if line[:1] in ("+", "-"):
                world.say(f"   {line}")
        world.product("plan", "topology", code=2)

    async def held(self) -> None:
        world = self._world
        self._commit("Say in which racks the Nodes of hall 7 stand")
        await world.until("the commit is applied", self._is_applied)
        await world.until(f"queue {QUEUE} is drained", self._is_draining)
        await world.until("Kueue evicts the pair", self._pair_is_evicted)
        world.kubectl("get", "nodes", _LABELS_WITH_RACK)
        world.product("explain", "queue", QUEUE)

    async def switched(self) -> None:
        world = self._world
        world.say("   (a stand-in for what runs Workloads stops the Pods that Kueue evicts)")
        world.runner.start()
        await world.until(f"queue {QUEUE} serves the new plan", partial(self._serves, _RACKED))
        if text_at(await world.queue(), "metadata", "uid") != self._uid:
            raise TerminalError("the queue is another object", code=ErrorCode.LOCAL_SYSTEM)
        world.say("   the queue is the same object as before: nobody who refers to it notices")

    async def resumed(self) -> None:
        world = self._world
        await world.until("the pair is admitted again", partial(self._is_admitted, "pair"))
        await world.until("the old flavor and its Topology are gone", self._is_retired)
        world.kubectl("get", "topologies,resourceflavors")
        world.kubectl("get", "workloads", "-n", TRAINING)
        await self._status()

    async def refused(self) -> None:
        world, checkout = self._world, self._world.workshop.checkout
        file = checkout / SNAPSHOT_FILE
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("rack: b2", "rack: a1"), encoding="utf-8")
        world.product_alone("check", SNAPSHOT_FILE, code=1)
        self._commit("Move gpu-n04, in a hurry")

        async def is_held() -> bool:
            held = objects_at(await world.basic.sync(), "status", "held")
            return any(text_at(item, "object").endswith("/hall-7") for item in held)

        await world.until("the commit is accepted, and the snapshot is held as it was", is_held)
        await self._status()
        if not await self._serves(_RACKED):
            raise TerminalError("the queue does not serve its plan any more", code=ErrorCode.LOCAL_SYSTEM)

    async def taken_back(self) -> None:
        world = self._world
        world.workshop.git("revert", "--no-edit", "-S", "HEAD", author=AUTHOR)
        world.basic.show_commit(world.basic.head())
        world.workshop.push()
        await world.until("the repository is accepted and applied", self._is_applied)
        await self._status()

    # -- what people do ----------------------------------------------------------------------------------------------

    def _commit(self, message: str) -> None:
        world = self._world
        world.say("   $ git commit -S && git push")
        world.basic.show_commit(world.workshop.commit(message, author=AUTHOR))
        world.workshop.push()

    async def _submit(self, name: str, *, pods: int) -> None:
        """What a Job's controller would make of a Job with the annotation for its zone."""
        world = self._world
        container: JsonObject = {
            "name": "main",
            "image": "registry.example.net/training:1",
            "resources": {"requests": {"cpu": "60"}},
        }
        tree: JsonObject = {
            "apiVersion": KUEUE_API_VERSION,
            "kind": "Workload",
            "metadata": {"name": name, "namespace": TRAINING},
            "spec": {
                "queueName": "users",
                "podSets": [
                    {
                        "name": "main",
                        "count": pods,
                        "topologyRequest": {"required": ZONE},
                        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
                    }
                ],
            },
        }
        world.say(f"   a Workload of {pods} Pods of 60 CPUs that requires one {ZONE}")
        await world.client.create(kueue_path(f"namespaces/{TRAINING}/workloads"), tree)

    # -- what is looked at -------------------------------------------------------------------------------------------

    async def _is_applied(self) -> bool:
        return await self._world.basic.is_applied(self._world.basic.head())

    async def _have_profile(self, profile: str) -> bool:
        nodes = [await self._world.client.get(f"/api/v1/nodes/{name}") for name in NODES]
        return all(text_at(node, "metadata", "labels", "topology.gpustack.ai/profile") == profile for node in nodes)

    async def _serves(self, profile: str) -> bool:
        tree = await self._world.queue()
        queue = Queue.of(tree)
        flavors = tuple(quotas_of(queue.managed.groups))
        is_new = bool(flavors) and all(name.endswith(profile) for name in flavors)
        status = object_at(tree, "status")
        return is_new and PHASE not in queue.managed.marks and is_true(status, CONDITION) and is_true(status, "Active")

    async def _is_draining(self) -> bool:
        return Queue.of(await self._world.queue()).managed.marks.get(PHASE) == "draining"

    async def _is_admitted(self, name: str) -> bool:
        """Whether it is, and the queue counts it: the counters of Kueue come later, and plans rest on them."""
        status = object_at(await self._world.workload(name), "status")
        counted = int_at(await self._world.queue(), "status", "admittedWorkloads")
        return is_true(status, "Admitted") and not is_true(status, "Evicted") and counted > 0

    async def _pair_is_evicted(self) -> bool:
        return is_true(object_at(await self._world.workload("pair"), "status"), "Evicted")

    async def _trio_waits(self) -> bool:
        found = condition_of(object_at(await self._world.workload("trio"), "status"), "QuotaReserved") or EMPTY
        return text_at(found, "status") == "False" and bool(text_at(found, "message"))

    async def _is_retired(self) -> bool:
        client = self._world.client
        listed = [await client.list_all(kueue_path(plural)) for plural in ("topologies", "resourceflavors")]
        return not any(_ZONED in text_at(item, "metadata", "name") for page in listed for item in page.items)

    async def _status(self) -> None:
        self._world.say("   $ gitops-ctl status")
        await show_status(self._world.client, namespace="")

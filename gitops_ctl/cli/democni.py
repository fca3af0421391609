"""`gitops-ctl demo cni`: a cluster moves from kube-proxy to Cilium and back, told step by step (cni-switch.md, section 6).

Each step waits for what it claims and fails when that does not come, so the demo is a test as well.  People do what people do:
they sign commits and merges, and roll Cilium out; everything else happens by itself.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, GROUP, ICHOR_GROUP, VERSION
from gitops_ctl.cli.democnirepository import (
    APPROVER,
    AUTHOR,
    CLUSTER,
    CLUSTER_FILE,
    NAMESPACE,
    VALUES_FILE,
    example_machines,
)
from gitops_ctl.cli.democniworld import CniWorld, cni_world
from gitops_ctl.cli.demotelling import Step, farewell, tell
from gitops_ctl.cli.preparing import CHANGED
from gitops_ctl.cli.status import show_status
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.documents.splice import value_in
from gitops_ctl.local.targetcluster import CiliumValues, roll_out

_PROXY: Final = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
_CILIUM: Final = "/apis/apps/v1/namespaces/kube-system/daemonsets/cilium"
_VALUES_LINES: Final = {
    "replaced": (
        "-kubeProxyReplacement: false",
        "+kubeProxyReplacement: true",
        "+k8sServiceHost: localhost",
        "+k8sServicePort: 7445",
    ),
    "enabled": ("-kubeProxyReplacement: true", "+kubeProxyReplacement: false"),
}

_CLUSTER: Final = f"/apis/{ICHOR_GROUP}/{VERSION}/namespaces/{NAMESPACE}/talosclusters/{CLUSTER}"


async def switch_demo(*, say: Callable[[str], None], keep: bool, separate: bool) -> None:
    """Tell the whole story.

    Raises:
        GitopsError: something did not come; the message names the step, its subject a folder with the logs.
    """
    async with cni_world(say=say, separate=separate) as world:
        await tell(SwitchStory(world).steps(), say=say)
        kinds = "talosclusters,talosoperations,proposals"
        await farewell(world.basic, command="gitops-ctl demo cni", kinds=kinds, keep=keep, say=say)


def cilium_values(text: bytes) -> CiliumValues:
    """What the chart is told by a file of values, as far as this cluster has it."""
    names = ("kubeProxyReplacement", "rollOutCiliumPods", "k8sServiceHost", "k8sServicePort")
    replacement, restarts, host, port = (value_in(text, document=0, pointer=f"/{name}") for name in names)
    return CiliumValues(
        replacement is True,
        restarts is True,
        host=host if isinstance(host, str) else "",
        port=port if isinstance(port, int) else 0,
    )


class SwitchStory:
    """The steps, in the order in which they are told."""

    def __init__(self, world: CniWorld) -> None:
        self._world = world
        self._shown: tuple[str, ...] = ()
        self._done: list[str] = []

    def steps(self) -> Iterator[Step]:
        yield "kube-proxy serves the Services of cluster north, beside Cilium", self.before
        yield "A change approver asks for the switch to Cilium, with consent, by one signed commit", self.asked
        yield "The switch waits for Cilium's values, and has opened a pull request", partial(self.waits, "replaced")
        yield "A platform author merges it with a signed merge; the switch goes by the live cluster", self.merged
        yield "The owner of Cilium rolls the values out", partial(self.rolled_out, "replaced")
        yield "Machines switch, control planes first, and kube-proxy goes", self.replaced
        yield "The spent consent goes, by a second pull request", self.cleaned_up
        yield "And back: a platform author changes the mode, without consent", self.held
        yield "The change approver consents; kube-proxy comes back before Cilium is asked for anything", self.consented
        yield "The switch waits for Cilium's values again", partial(self.waits, "enabled")
        yield "They are merged and rolled out", self.merged_and_rolled_out
        yield "Both sides are as they were", self.enabled
        yield "This consent goes as well", self.cleaned_up
        yield "Nothing is left to do", self.settled

    # -- to Cilium ---------------------------------------------------------------------------------------------------

    async def before(self) -> None:
        world = self._world
        await world.until("the repository is accepted and applied", self._is_applied)
        await world.until("kube-proxy and the Cilium agents run on every node", self._both_run)
        world.target_kubectl("get", "nodes")
        world.target_kubectl("get", "daemonsets", "-n", "kube-system")
        world.kubectl("get", "talosclusters,talosmachines", "-n", NAMESPACE)
        await self._status()

    async def asked(self) -> None:
        self._prepare("replaced")
        self._commit("Let Cilium serve the Services of north", author=APPROVER)
        await self._world.until("an operation has begun", partial(self._has_begun, "replaced"))

    async def waits(self, target: str) -> None:
        world = self._world
        await self._until_phase("AwaitingCNIChange", target)
        proposal = await self._opened(f"cni/{CLUSTER}/{target}")
        await self._until_linked(target)
        world.kubectl("get", "talosoperations,proposals", "-n", NAMESPACE)
        await self._status()
        await self._show_pull_request(proposal, expected=_VALUES_LINES[target])

    async def merged(self) -> None:
        await self._merge(f"cni/{CLUSTER}/replaced")
        await self._until_phase("AwaitingCNIChange", "replaced")

    async def rolled_out(self, target: str) -> None:
        world = self._world
        world.say(f"   (a stand-in for Helm applies {VALUES_FILE} of main)")
        await roll_out(world.target, cilium_values((world.workshop.checkout / VALUES_FILE).read_bytes()))
        await world.until("the live value is what the switch waits for", partial(self._is_past_waiting, target))

    async def replaced(self) -> None:
        world = self._world
        await self._until_phase("Succeeded", "replaced")
        self._require_control_planes_first()
        if await world.target.find(_PROXY) is not None:
            raise TerminalError("the DaemonSet kube-proxy is still there", code=ErrorCode.LOCAL_SYSTEM)
        world.target_kubectl("get", "daemonsets", "-n", "kube-system")
        await self._status()

    async def cleaned_up(self) -> None:
        world = self._world
        purpose = f"cni-consent/{CLUSTER}"
        proposal = await self._opened(purpose)
        world.kubectl("get", "talosoperations,proposals", "-n", NAMESPACE)
        lines = ("-  annotations:", f"-    {ANNOTATION_CONFIRM_SWITCH}: {self._mode()}")
        await self._show_pull_request(proposal, expected=lines)
        await self._merge(purpose)
        await world.until("the annotation is gone from the cluster, too", self._has_no_consent)
        await world.until("its Proposal is Merged", partial(self._is_merged, text_at(proposal, "metadata", "name")))

    # -- and back ----------------------------------------------------------------------------------------------------

    async def held(self) -> None:
        world = self._world
        path = world.workshop.checkout / CLUSTER_FILE
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("kubeProxy: replaced", "kubeProxy: enabled"), encoding="utf-8")
        self._commit("Let kube-proxy serve the Services of north again", author=AUTHOR)

        async def is_held() -> bool:
            held = objects_at(await world.basic.sync(), "status", "held")
            return any(text_at(item, "reason") == "ConsentMissing" for item in held)

        await world.until("the commit is accepted, and the cluster is held until somebody consents", is_held)
        await self._status()

    async def consented(self) -> None:
        world = self._world
        self._prepare("enabled")
        self._commit("Consent to kube-proxy on north", author=APPROVER)
        await world.until("an operation has begun", partial(self._has_begun, "enabled"))
        await self._until_phase("AwaitingCNIChange", "enabled")
        self._require_control_planes_first()
        await world.until("kube-proxy runs on every node", partial(self._runs, _PROXY))
        world.target_kubectl("get", "daemonsets", "-n", "kube-system")

    async def merged_and_rolled_out(self) -> None:
        await self._merge(f"cni/{CLUSTER}/enabled")
        await self.rolled_out("enabled")

    async def enabled(self) -> None:
        await self._until_phase("Succeeded", "enabled")
        await self._world.until("kube-proxy and the Cilium agents run on every node", self._both_run)
        self._world.target_kubectl("get", "daemonsets", "-n", "kube-system")
        await self._status()

    async def settled(self) -> None:
        world = self._world

        async def is_quiet() -> bool:
            cluster = await world.basic.client.get(_CLUSTER)
            phases = [text_at(item, "status", "phase") for item in await world.proposals()]
            return phases == ["Merged"] * 4 and not object_at(cluster, "status", "lock")

        await world.until("all four pull requests are merged, and the cluster is locked by nobody", is_quiet)
        world.kubectl("get", "talosoperations,proposals", "-n", NAMESPACE)
        world.kubectl("get", "talosclusters,talosmachines", "-n", NAMESPACE)
        await self._status()

    # -- what people do ----------------------------------------------------------------------------------------------

    def _prepare(self, mode: str) -> None:
        """`gitops-ctl cni kube-proxy`, as a person runs it in a checkout."""
        world = self._world
        world.say(f"   $ gitops-ctl cni kube-proxy {mode}")
        code, text = world.workshop.product("cni", "kube-proxy", mode)
        if code != CHANGED:
            raise TerminalError(f"it ended with {code}: {text.strip()}", code=ErrorCode.LOCAL_SYSTEM)
        for line in text.splitlines():
            world.say(f"   {line}".rstrip())

    def _commit(self, message: str, *, author: str) -> None:
        world = self._world
        world.say("   $ git commit -S && git push")
        world.basic.show_commit(world.workshop.commit(message, author=author))
        world.workshop.push()

    async def _merge(self, purpose: str) -> None:
        """A signed merge commit, made in a checkout and pushed."""
        world = self._world
        proposal = await world.proposal(purpose) or EMPTY
        branch, number = text_at(proposal, "status", "branch"), int_at(proposal, "status", "number")
        world.say(f"   $ git fetch origin {branch} && git merge --no-ff -S FETCH_HEAD && git push")
        world.workshop.git("fetch", "--quiet", "origin", branch)
        message = f"Merge pull request #{number}: {text_at(proposal, 'spec', 'reason')}"
        world.workshop.git("merge", "--quiet", "--no-ff", "-S", "-m", message, "FETCH_HEAD", author=AUTHOR)
        commit = world.basic.head()
        world.basic.show_commit(commit)
        world.workshop.push()
        await world.until(f"{commit[:12]} is accepted and applied", self._is_applied)

        async def is_shown() -> bool:
            shown = await world.api.call("GET", f"/repos/{world.forge.project}/pulls/{number}")
            return shown.get("state") != "open"

        await world.until(f"pull request #{number} is open no longer", is_shown)

    def _mode(self) -> str:
        text = (self._world.workshop.checkout / CLUSTER_FILE).read_bytes()
        return str(value_in(text, document=0, pointer="/spec/cni/kubeProxy"))

    # -- what is looked at -------------------------------------------------------------------------------------------

    async def _until_phase(self, wanted: str, target: str) -> None:
        """Wait for a phase, and show every other one on the way."""

        async def reached() -> bool:
            operation = await self._world.operation(target) or EMPTY
            self._show_progress(operation)
            phase = text_at(operation, "status", "phase")
            if phase in ("Paused", "Cancelled"):
                ended = condition_of(object_at(operation, "status"), "Paused" if phase == "Paused" else "Succeeded")
                raise TerminalError(
                    f"the switch is {phase}: {text_at(ended or EMPTY, 'message')}", code=ErrorCode.LOCAL_SYSTEM
                )
            return phase == wanted

        await self._world.until(f"the switch to {target} is in phase {wanted}", reached)

    def _show_progress(self, operation: JsonObject) -> None:
        status = object_at(operation, "status")
        phase = (text_at(operation, "metadata", "name"), text_at(status, "phase"))
        if phase != self._shown and phase[1]:
            if phase[0] not in self._shown:
                self._done.clear()
            self._shown = phase
            self._world.kubectl("get", "talosoperations,proposals", "-n", NAMESPACE)
        for row in objects_at(status, "machines"):
            name = text_at(row, "name")
            if text_at(row, "state") == "Done" and name not in self._done:
                self._done.append(name)
                self._world.say(f"   {name} ({text_at(row, 'role')}) is done")

    def _require_control_planes_first(self) -> None:
        roles = {machine.name: machine.role for machine in example_machines()}
        order = [roles[name] for name in self._done]
        if sorted(self._done) != sorted(roles) or order != sorted(order):
            raise TerminalError(f"the machines were done in the order {self._done}", code=ErrorCode.LOCAL_SYSTEM)

    async def _opened(self, purpose: str) -> JsonObject:
        """The Proposal of that purpose, once its pull request is open."""
        found: JsonObject = EMPTY

        async def is_open() -> bool:
            nonlocal found
            found = await self._world.proposal(purpose) or EMPTY
            return text_at(found, "status", "phase") == "Open" and bool(text_at(found, "status", "url"))

        await self._world.until(f"a pull request for {purpose} is open", is_open)
        return found

    async def _until_linked(self, target: str) -> None:
        async def names_it() -> bool:
            operation = await self._world.operation(target) or EMPTY
            return bool(text_at(operation, "status", "pullRequest", "url"))

        await self._world.until("the switch names the pull request", names_it)

    async def _show_pull_request(self, proposal: JsonObject, *, expected: Sequence[str]) -> None:
        """Title, difference, and that exactly the expected lines are changed."""
        world, status = self._world, object_at(proposal, "status")
        shown = await world.api.call("GET", f"/repos/{world.forge.project}/pulls/{int_at(status, 'number')}")
        world.say(f"   {text_at(status, 'url')}\n   {text_at(shown, 'title')}")
        world.workshop.git("fetch", "--quiet", "origin", "main", text_at(status, "branch"))
        difference = world.workshop.git("diff", f"origin/main...{text_at(status, 'headCommit')}").splitlines()
        for line in difference:
            world.say(f"   {line}")
        changed = [line for line in difference if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
        if sorted(changed) != sorted(expected):
            raise TerminalError("the pull request changes other lines", code=ErrorCode.LOCAL_SYSTEM)

    async def _is_applied(self) -> bool:
        return await self._world.basic.is_applied(self._world.basic.head())

    async def _both_run(self) -> bool:
        return await self._runs(_PROXY) and await self._runs(_CILIUM)

    async def _runs(self, path: str) -> bool:
        tree = await self._world.target.find(path) or EMPTY
        ready = int_at(tree, "status", "numberReady")
        return ready == int_at(tree, "status", "desiredNumberScheduled") == len(example_machines())

    async def _has_begun(self, target: str) -> bool:
        return await self._world.operation(target) is not None

    async def _is_past_waiting(self, target: str) -> bool:
        operation = await self._world.operation(target) or EMPTY
        self._show_progress(operation)
        return text_at(operation, "status", "phase") not in ("", "AwaitingCNIChange")

    async def _has_no_consent(self) -> bool:
        cluster = await self._world.basic.client.get(_CLUSTER)
        return not text_at(cluster, "metadata", "annotations", ANNOTATION_CONFIRM_SWITCH)

    async def _is_merged(self, name: str) -> bool:
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/proposals/{name}"
        proposal = await self._world.basic.client.find(path) or EMPTY
        return text_at(proposal, "status", "phase") == "Merged"

    async def _status(self) -> None:
        self._world.say(f"   $ gitops-ctl status -n {NAMESPACE}")
        await show_status(self._world.basic.client, namespace=NAMESPACE)

"""`gitops-ctl demo`: the main job on this machine, with real components, told step by step.

A Git server, a real API server and the manager with its shipped rights; signed commits become Ready objects, a drift is
repaired, an unauthorised commit is refused with its reason, a removal is pruned.  Each step waits for what it claims and fails
when that does not come, so the demo is a test as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import click

from gitops_ctl.cli.demotelling import Step, farewell, tell
from gitops_ctl.cli.demoworld import NAMESPACE, DemoWorld, demo_world
from gitops_ctl.cli.status import show_status
from gitops_ctl.core.conditions import is_true
from gitops_ctl.core.jsonvalue import EMPTY, object_at, text_at

_SITE_A = "ConfigMap/network/site-a-core"


_keep = click.option("--keep", is_flag=True, help="Leave everything running until Ctrl-C, to look around.")


@click.group(invoke_without_command=True)
@_keep
@click.pass_context
def demo(context: click.Context, *, keep: bool) -> None:
    """Show the main job: from a signed commit to the cluster, and what is refused on the way."""
    if context.invoked_subcommand is None:
        asyncio.run(_demo(keep=keep))
    elif keep:
        raise click.UsageError(f"--keep belongs behind {context.invoked_subcommand}")


@demo.command()
@_keep
@click.option("--separate", is_flag=True, help="The switched cluster has an API server of its own.")
def cni(*, keep: bool, separate: bool) -> None:
    """Switch a cluster of Talos machines from kube-proxy to Cilium and back, with a pull request for the values.

    Kubernetes and Gitea are real; nodes are simulated, and machines are played by stand-ins, so it needs a checkout.
    """
    from gitops_ctl.cli.democni import switch_demo  # noqa: PLC0415 - most of it is not needed by the other demo

    asyncio.run(switch_demo(say=_say, keep=keep, separate=separate))


@demo.command()
@_keep
def topology(*, keep: bool) -> None:
    """Write racks into an inventory in Git: labels, profiles and flavors follow, and a busy queue drains and switches.

    Kubernetes, Node Feature Discovery and Kueue are real; nodes are simulated.
    """
    from gitops_ctl.cli.demotopology import topology_demo  # noqa: PLC0415 - most of it is not needed by the other demos

    asyncio.run(topology_demo(say=_say, keep=keep))


@demo.command()
@_keep
def rollout(*, keep: bool) -> None:
    """Upgrade twelve switches by signed commits, canaries first; then one that fails stops another rollout.

    Kubernetes, manager and device workers are real; switches are played by stand-ins, so it needs a checkout.
    """
    from gitops_ctl.cli.demorollout import rollout_demo  # noqa: PLC0415 - most of it is not needed by the other demos

    asyncio.run(rollout_demo(say=_say, keep=keep))


async def _demo(*, keep: bool) -> None:
    async with demo_world(say=_say) as world:
        await tell(Story(world).steps(), say=_say)
        await farewell(world, command="gitops-ctl demo", kinds="gsrc,gsync", keep=keep, say=_say)


def _say(text: str) -> None:
    click.echo(text)


class Story:
    """The steps, in the order in which they are told."""

    def __init__(self, world: DemoWorld) -> None:
        self._world = world

    def steps(self) -> Iterator[Step]:
        yield "A platform author has signed and pushed; the source is pinned and applied", self.applied
        yield "A network author pushes a signed commit", self.changed
        yield "Somebody edits a managed object with kubectl", self.drifted
        yield "The network author changes what only the platform may change", self.refused
        yield "The commit is taken back", self.taken_back
        yield "The network author removes a site", self.removed

    async def applied(self) -> None:
        world = self._world
        await world.until("the source is accepted and the Sync is Ready", self._ready_at(world.head()))
        world.kubectl("get", "gsrc,gsync", "-A")
        await world.until("the telemetry collector is available", self._collector_runs)
        world.kubectl("get", "deployments,services,networkpolicies", "-n", "telemetry")

    async def changed(self) -> None:
        world = self._world
        world.copy("clusters/lab/config", "clusters/lab/devices")
        commit = world.workshop.commit("Add the sites and their access ports", author="network-author")
        world.show_commit(commit)
        world.workshop.push()
        await world.until(f"{commit[:12]} is applied", self._ready_at(commit))
        world.kubectl("get", "configmaps,accessports", "-n", "network", "-l", "gitops-ctl.dev/owner")

    async def drifted(self) -> None:
        world = self._world
        path = "/api/v1/namespaces/network/configmaps/site-a-core"
        before = text_at(await world.client.get(path), "data", "config.yaml")
        world.kubectl(
            "patch",
            "configmap",
            "site-a-core",
            "-n",
            "network",
            "--type=merge",
            "-p",
            '{"data":{"config.yaml":"hand-made"}}',
        )

        async def repaired() -> bool:
            return text_at(await world.client.get(path), "data", "config.yaml") == before

        took_s = await world.until(f"{_SITE_A} is what Git says again", repaired)
        _say(f"   repaired {took_s:.2f} s after the edit")

    async def refused(self) -> None:
        world = self._world
        accepted = world.head()
        path = world.workshop.checkout / "clusters/lab/rbac/readers.yaml"
        path.write_text(
            path.read_text(encoding="utf-8").replace("[get, list, watch]", "[get, list, watch, delete]"),
            encoding="utf-8",
        )
        commit = world.workshop.commit("Let readers delete", author="network-author")
        world.show_commit(commit)
        world.workshop.push()

        async def rejected() -> bool:
            status = object_at(await world.source(), "status")
            return (
                text_at(status, "rejected", "commit") == commit and text_at(status, "accepted", "revision") == accepted
            )

        await world.until(f"{commit[:12]} is refused and {accepted[:12]} stays", rejected)
        await self._status()

    async def taken_back(self) -> None:
        world = self._world
        world.workshop.git("reset", "--quiet", "--hard", "HEAD~1")
        world.workshop.push(force=True)
        await world.until("the source is accepted again", self._ready_at(world.head()))

    async def removed(self) -> None:
        world = self._world
        (world.workshop.checkout / "clusters/lab/config/site-b.yaml").unlink()
        commit = world.workshop.commit("Site B is closed", author="network-author")
        world.show_commit(commit)
        world.workshop.push()

        async def gone() -> bool:
            return await world.client.find("/api/v1/namespaces/network/configmaps/site-b-core") is None

        await world.until("ConfigMap/network/site-b-core is pruned", gone)
        await world.until(f"{commit[:12]} is applied", self._ready_at(commit))
        await self._status()

    async def _status(self) -> None:
        _say(f"   $ gitops-ctl status -n {NAMESPACE}")
        await show_status(self._world.client, namespace=NAMESPACE)

    def _ready_at(self, commit: str) -> Callable[[], Awaitable[bool]]:
        return partial(self._world.is_applied, commit)

    async def _collector_runs(self) -> bool:
        path = "/apis/apps/v1/namespaces/telemetry/deployments/collector"
        return is_true(object_at(await self._world.client.find(path) or EMPTY, "status"), "Available")

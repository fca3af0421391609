"""A fleet on the real API server, under the manager with its shipped rights; then both planes of one namespace as the product's own processes.

No controller runs beside the server, so stand-ins make the Pods of the workers, and do what workers do until the real ones begin.  Those talk
to switches on loopback, all in one process.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.local.deviceworkers import PLANES, Workplace, pod_kubeconfig, worker_pod
from gitops_ctl.local.product import PRODUCT_MANAGER, put
from gitops_ctl.local.supervise import Family, ProcessSpec, log_tail
from tests.support.device_workers import Workers
from tests.support.topology_devices import APP_ACCOUNT, NETWORK_ACCOUNT, POLICY
from tools.bench.devices import HEARTBEAT_S, POLICY_NAME, Site, collection, is_ready
from tools.bench.figures import Figure, Report, Target
from tools.bench.fleetrest import MOST_MIB, OPTIONS, Rest, free_address, freezes, rest_figures, until
from tools.bench.process import cpu_s, descriptors, rss_mib, threads
from tools.bench.world import MANAGER_AGENT, World
from tools.render_install import chart_objects

Tree = dict[str, Any]
_WRITES = ("create", "update", "patch", "delete")
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_RULES = ("gitops-ctl-rollout-status", "gitops-ctl-rollout-blocks")
_WIDTH = 16
_DUTIES = {"network": "sample", "node": "node"}
_RIGHTS = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


class StandIns(Workers):
    """Both planes of a namespace; `answers` is False once the real ones do it.  Its devices share one Secret."""

    answers = True
    _shared: dict[str, str] | None = None

    async def _versions(self, device: Any) -> dict[str, str]:
        if self._shared is None:
            self._shared = await super()._versions(device)
        return self._shared

    async def _beat(self, device: Any, pod: Tree, versions: dict[str, str]) -> None:
        if self.answers:
            await super()._beat(device, pod, versions)

    async def _report(self, device: Any, pod: Tree, versions: dict[str, str]) -> None:
        if self.answers:
            await super()._report(device, pod, versions)


class RealFleet:
    """One fleet in the world of the benchmarks."""

    def __init__(self, made: World, site: Site) -> None:
        self.made, self.site = made, site
        self._workers = {name: StandIns(made.client, namespace=name) for name in site.spaces}

    async def install(self) -> None:
        """Rights, namespaces, policy, Secrets and devices."""
        client, mapper = self.made.client, Mapper(self.made.client)
        accounts = {"appHosting": APP_ACCOUNT, "networkManagement": NETWORK_ACCOUNT}
        topology = {"enabled": True, "namespaces": self.site.spaces, "workerAccounts": accounts}
        values = {"managedTopology": {**topology, "fleetPolicy": POLICY_NAME, "ledger": POLICY["ledgerName"]}}
        for name in self.site.spaces:
            tree: Tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.create("/api/v1/namespaces", tree)
        for wanted in chart_objects(values):
            if wanted["kind"] in _RIGHTS:
                await put(client, mapper, wanted=wanted, manager=PRODUCT_MANAGER)
        # They ask for the token of a worker's Pod, and for a plan from Git: neither stand-ins nor we have that.
        for name in _RULES:
            await client.delete(f"{_BINDINGS}/{name}")
        await self._create((*self.site.policy(), *map(self.site.secret, self.site.spaces)))
        await self._create(self.site.devices())

    async def _create(self, trees: Iterable[Tree]) -> None:
        waiting = iter(trees)

        async def work() -> None:
            for tree in waiting:
                await self.made.client.create(collection(tree), tree)

        async with asyncio.TaskGroup() as group:
            for _ in range(_WIDTH):
                group.create_task(work())

    async def step(self) -> None:
        """What the stand-ins have to do now; what fails is done in the next step."""

        async def one(workers: StandIns) -> None:
            with suppress(GitopsError):
                await workers.step()

        await asyncio.gather(*map(one, self._workers.values()))

    async def work(self) -> None:
        """Heartbeats at the pace of the real workers."""
        while True:
            began = time.monotonic()
            await self.step()
            await asyncio.sleep(max(0.0, HEARTBEAT_S - (time.monotonic() - began)))

    async def devices(self) -> list[Any]:
        pages = [
            await self.made.client.list_all(collection({**_KIND, "metadata": {"namespace": name}}))
            for name in self.site.spaces
        ]
        return [tree for page in pages for tree in page.items]

    async def until_ready(self) -> None:
        """Wait until every device is ready, stand-ins at work."""

        async def are_ready() -> bool:
            await self.step()
            return all(map(is_ready, await self.devices()))

        await until(are_ready, f"{self.site.count} devices are ready", poll_s=1.0)

    async def rest(self, window_s: float) -> Rest:
        """A window at rest, shorter than a third of the limit: evidence of each device is renewed once at most."""
        before, pid = observed(await self.devices()), self.made.manager_pid
        self.made.audit.mark()
        used, began = cpu_s(pid), time.monotonic()
        await asyncio.sleep(window_s)
        share = (cpu_s(pid) - used) / (time.monotonic() - began) * 100
        counts = self.made.audit.counts(MANAGER_AGENT)
        after = observed(await self.devices())
        # Devices whose evidence was renewed after the window are too many here by as many as were renewed while we listed.
        renewed = min(len(renewals(before, after)), counts.get("patch ciscodevices/status", 0))
        others = {name: count for name, count in counts.items() if is_write(name)}
        others["patch ciscodevices/status"] = others.get("patch ciscodevices/status", 0) - renewed
        return Rest(renewed, {n: c for n, c in others.items() if c}, share, rss_mib(pid), rss_mib(pid, peak=True))

    async def start_workers(self, family: Family, folder: Path, *, log: Sequence[str]) -> dict[str, str]:
        """The real planes of the first namespace; where each tells its metrics."""
        namespace, metrics = self.site.spaces[0], {plane: free_address() for plane in PLANES}
        options = {plane: (f"--metrics-address={metrics[plane]}", *log) for plane in PLANES}
        place = Workplace(namespace, folder, {"PYTHONDONTWRITEBYTECODE": ""}, options)
        self._workers[namespace].answers = False
        for plane in PLANES:
            pod = await worker_pod(self.made.client, namespace=namespace, plane=plane)
            kubeconfig = await pod_kubeconfig(
                self.made.client,
                pod,
                namespace=namespace,
                server=self.made.plane.url,
                authority=self.made.plane.folder.certs / "ca.crt",
                path=folder / f"worker-{plane}.kubeconfig",
            )
            await family.spawn(place.process(plane, pod, kubeconfig=kubeconfig))
        return metrics


_KIND = {"apiVersion": "cisco.vk/v1alpha1", "kind": "CiscoDevice"}


def observed(devices: Iterable[Any]) -> dict[str, str]:
    """When the evidence of each device was renewed last, by its UID."""
    return {
        tree["metadata"]["uid"]: tree["status"].get("healthObservation", {}).get("observedAt", "") for tree in devices
    }


def renewals(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Devices whose evidence was renewed in between."""
    return [uid for uid, at in after.items() if before.get(uid) != at]


def is_write(name: str) -> bool:
    """Whether a request, by verb and resource, is a write that counts."""
    verb, _, resource = name.partition(" ")
    return verb in _WRITES and resource not in ("leases", "events")


def looks_in(text: str, duty: str) -> float:
    """Looks of a worker for one duty that went well, by the text of its metrics."""
    start = f'gitops_ctl_device_worker_looks_total{{duty="{duty}",result="success"}}'
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(start))


async def on_real_server(report: Report, made: World, *, site: Site, window_s: float) -> None:
    """Taking up the fleet, the fleet at rest, a rollout over it, and the workers of one namespace."""
    folder = made.folder / "workers"
    async with AsyncExitStack() as stack:
        switches, workers = Family(), Family()
        stack.push_async_callback(switches.stop)
        stack.push_async_callback(workers.stop)
        found = await _switched_on(switches, folder, site)
        fleet = RealFleet(made, Site(site.namespaces, site.each, site.targets, found["ports"], found["login"]))
        await fleet.install()
        began = time.monotonic()
        await made.start_manager(*OPTIONS)
        await fleet.until_ready()
        report.add(Figure(f"{site.count} devices on the real server, taken up", "s", (time.monotonic() - began,)))
        working = asyncio.create_task(fleet.work())
        stack.callback(working.cancel)
        await _still(fleet)
        rest = await fleet.rest(window_s)
        rest_figures(report, rest, where="(real server)", count=site.count, window_s=window_s)
        await freezes(report, made.client, site, pid=made.manager_pid)
        try:
            await _workers(report, fleet, workers, folder, window_s=window_s)
        except Exception as error:
            logs = sorted((folder / "logs").glob("worker-*.log"))
            error.add_note("\n".join(log_tail(log, lines=10) for log in logs))
            raise
        await made.stop_manager()


async def _switched_on(family: Family, folder: Path, site: Site) -> dict[str, Any]:
    names = [tree["metadata"]["name"] for tree in site.devices() if tree["metadata"]["namespace"] == site.spaces[0]]
    ready = folder / "switches-ready.json"
    job = {"folder": str(folder), "names": names, "ready": str(ready)}
    await asyncio.to_thread(_written, folder / "switches.json", job)
    argv = (sys.executable, "-m", "tools.bench.switches", str(folder / "switches.json"))
    await family.spawn(ProcessSpec("switches", argv, folder / "switches.log"))
    await until(ready.exists, "the switches answer")
    found: dict[str, Any] = json.loads(await asyncio.to_thread(ready.read_text))
    return found


def _written(file: Path, job: Tree) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(job))


async def _still(fleet: RealFleet) -> None:
    """What the last device that became ready has left to do is over."""

    async def wrote_evidence_only() -> bool:
        rest = await fleet.rest(5.0)
        return not rest.others

    await until(wrote_evidence_only, "nothing but evidence is written", limit_s=300.0)


async def _workers(report: Report, fleet: RealFleet, family: Family, folder: Path, *, window_s: float) -> None:
    """Both planes: memory and CPU once each device was looked at twice."""
    count = fleet.site.each
    metrics = await fleet.start_workers(family, folder, log=("--log-level=warning",))
    for plane in PLANES:
        await _until_looks(metrics[plane], _DUTIES[plane], 2 * count)
    used = {plane: cpu_s(family.pids[f"worker-{plane}"]) for plane in PLANES}
    began = time.monotonic()
    await asyncio.sleep(window_s)
    took = time.monotonic() - began
    for plane in PLANES:
        pid = family.pids[f"worker-{plane}"]
        what = f"worker of {count} devices, {plane} plane"
        report.counts[f"{what}: threads and descriptors"] = [threads(pid), descriptors(pid)]
        share = (cpu_s(pid) - used[plane]) / took * 100
        report.add(
            Figure(f"{what}, memory", "MiB", (rss_mib(pid),), target=Target(MOST_MIB)),
            Figure("the same, most since the start", "MiB", (rss_mib(pid, peak=True),), target=Target(MOST_MIB)),
            Figure("the same, CPU at rest", "%", (share,)),
        )


async def _until_looks(address: str, duty: str, count: int) -> None:
    async def looked() -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://{address}/metrics") as answer:
                return looks_in(await answer.text(), duty) >= count
        except aiohttp.ClientError:
            return False  # it does not listen yet

    await until(looked, f"{count} looks for {duty}", poll_s=1.0)
